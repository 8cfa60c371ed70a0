"""The sample site as a visitor sees it: addresses, headers, and those that misbehave."""

from __future__ import annotations

import gzip
import json
import shutil
import socket
from pathlib import Path

import httpx2
import pytest

from sift_client import site as site_module
from sift_client.errors import SiftClientError
from sift_client.site import Site, find_site, start_site


@pytest.mark.parametrize(
    ("path", "media_type"),
    [
        ("/", "text/html; charset=utf-8"),
        ("/harbours/", "text/html; charset=utf-8"),
        ("/articles/tide-tables.html", "text/html; charset=utf-8"),
        ("/ru/ledokol.html", "text/html"),
        ("/misc/brume.html", "text/html"),
        ("/api/stations.json", "application/json"),
        ("/data/tides.csv", "text/csv; charset=utf-8"),
        ("/notes/changelog.txt", "text/plain; charset=utf-8"),
        ("/feed.xml", "application/rss+xml; charset=utf-8"),
        ("/reports/annual-report.pdf", "application/pdf"),
        ("/robots.txt", "text/plain; charset=utf-8"),
    ],
)
def test_media_types(http: httpx2.Client, path: str, media_type: str) -> None:
    answer = http.get(path)
    assert answer.status_code == 200
    assert answer.headers["content-type"] == media_type
    assert int(answer.headers["content-length"]) == len(answer.content) > 0


def test_validators_and_head(http: httpx2.Client) -> None:
    answer = http.get("/articles/tide-tables.html")
    assert answer.headers["last-modified"].endswith("GMT")
    again = http.get("/articles/tide-tables.html", headers={"if-none-match": answer.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    head = http.head("/articles/tide-tables.html")
    assert (head.content, head.headers["content-length"]) == (b"", answer.headers["content-length"])


def test_the_old_address_moves_twice(http: httpx2.Client) -> None:
    answer = http.get("/moved", follow_redirects=True)
    assert [step.status_code for step in answer.history] == [301, 302]
    assert answer.url.path == "/articles/tide-tables.html"


def test_a_redirect_that_never_ends(http: httpx2.Client) -> None:
    with pytest.raises(httpx2.TooManyRedirects):
        http.get("/moved/round", follow_redirects=True)


def test_busy_twice_for_each_visitor(http: httpx2.Client) -> None:
    first = [http.get("/busy?id=a") for _ in range(4)]
    assert [answer.status_code for answer in first] == [429, 429, 200, 200]
    assert [answer.headers.get("retry-after") for answer in first] == ["1", "1", None, None]
    assert http.get("/busy?id=b").status_code == 429


def test_slow(http: httpx2.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    monkeypatch.setattr(site_module.time, "sleep", pauses.append)
    assert "Skarvholm" in http.get("/slow").text
    assert pauses == [2.0]


def test_what_is_not_there(http: httpx2.Client) -> None:
    answer = http.get("/no-such-page.html")
    assert answer.status_code == 404
    assert "gone out with the tide" in answer.text


def test_an_error(http: httpx2.Client) -> None:
    assert http.get("/error").status_code == 500


@pytest.mark.parametrize("path", ["/big.html", "/big.txt"])
def test_big(http: httpx2.Client, path: str) -> None:
    assert 2_000_000 < len(http.get(path).content) < 3_000_000
    assert 100_000 < len(http.get(f"{path}?kb=100").content) < 150_000
    assert len(http.get(f"{path}?kb=lots").content) > 2_000_000


def test_packed(http: httpx2.Client) -> None:
    plain = http.get("/articles/tide-tables.html").content
    with http.stream("GET", "/gzip/articles/tide-tables.html") as answer:
        raw = b"".join(answer.iter_raw())
    assert answer.headers["content-encoding"] == "gzip"
    assert len(raw) < len(plain) / 2
    assert gzip.decompress(raw) == plain


@pytest.mark.parametrize(
    "path", ["/../NOTICE", "/%2e%2e/make.py", "/..%2fmake.py", "//etc/passwd", "/assets/../../make.py", "/%00"]
)
def test_nothing_outside_is_served(site: Site, path: str) -> None:
    # By hand: a polite client would tidy the path before it sends it.
    with socket.create_connection(("127.0.0.1", site.port)) as connection:
        connection.sendall(f"GET {path} HTTP/1.1\r\nhost: site\r\nconnection: close\r\n\r\n".encode())
        answer = connection.makefile("rb").read()
    assert answer.startswith(b"HTTP/1.1 404")


def test_the_api_is_nested_json(http: httpx2.Client) -> None:
    found = json.loads(http.get("/api/stations.json").content)
    assert found["data"][0]["river"]["name"] == "Aue"


def test_closing_twice_and_the_port_is_free_again() -> None:
    running = start_site()
    running.close()
    running.close()
    with start_site(running.port) as again:
        assert again.port == running.port


def test_a_port_that_is_taken(site: Site) -> None:
    with pytest.raises(SiftClientError, match=f"cannot listen on port {site.port}"):
        start_site(site.port)


def test_outside_a_checkout_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed = tmp_path / "lib" / "sift_client" / "site.py"
    installed.parent.mkdir(parents=True)
    shutil.copy(site_module.__file__, installed)
    monkeypatch.setattr(site_module, "__file__", str(installed))
    with pytest.raises(SiftClientError, match="the sample site is not at") as caught:
        find_site()
    assert "checkout" in caught.value.hint
