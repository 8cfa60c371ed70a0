"""The pages themselves: charsets, shapes, and that they are what their source makes."""

from __future__ import annotations

import importlib.util
import re
from html import unescape
from pathlib import Path

import httpx2
import pypdf
import pytest

from sift_client.samples import SAMPLES, Sample
from sift_client.site import find_site

PUBLIC = find_site()
CHARSETS = {
    "ru/ledokol.html": "windows-1251",
    "ja/minato.html": "shift_jis",
    "zh/duchuan.html": "gbk",
    "misc/brume.html": "windows-1252",
}
PAGES = sorted(path.relative_to(PUBLIC).as_posix() for path in PUBLIC.rglob("*.html"))


def read(name: str) -> str:
    return (PUBLIC / name).read_bytes().decode(CHARSETS.get(name, "utf-8"))


def read_text(name: str) -> str:
    page = re.sub(r"(?s)<(script|style)\b.*?</\1>|<[^>]*>", " ", read(name))
    return re.sub(r"\s+", " ", unescape(page))


def test_the_pages_are_what_the_source_makes(tmp_path: Path) -> None:
    spec = importlib.util.spec_from_file_location("make", PUBLIC.parent / "make.py")
    assert spec is not None
    assert spec.loader is not None
    make = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(make)
    make.make_pages(tmp_path)
    made = {path.relative_to(tmp_path): path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    kept = {
        path.relative_to(PUBLIC): path.read_bytes()
        for path in PUBLIC.rglob("*")
        if path.is_file() and path.suffix != ".pdf"
    }
    assert made.keys() == kept.keys()
    assert [str(name) for name in made if made[name] != kept[name]] == []


@pytest.mark.parametrize("name", ["tide-tables", "lighthouse-keepers", "river-gauges"])
def test_articles_are_long(name: str) -> None:
    article = read(f"articles/{name}.html").split("</header>\n<p>")[1].split('<footer class="article-foot">')[0]
    assert len(re.sub(r"<[^>]*>", " ", article).split()) >= 800


@pytest.mark.parametrize(("name", "charset"), CHARSETS.items())
def test_old_charsets_are_not_utf8(name: str, charset: str) -> None:
    raw = (PUBLIC / name).read_bytes()
    with pytest.raises(UnicodeDecodeError):
        raw.decode("utf-8")
    declared = re.search(rb"charset=([\w-]+)", raw)
    assert (declared and declared[1].decode()) == {"gbk": "gb2312", "windows-1252": None}.get(charset, charset)


def test_the_chinese_page_is_more_than_it_declares() -> None:
    with pytest.raises(UnicodeDecodeError):
        (PUBLIC / "zh/duchuan.html").read_bytes().decode("gb2312")


def test_the_deep_page_is_deep() -> None:
    page = read("archive/thread-deep.html")
    depth = deepest = 0
    for tag in re.findall(r"</?div\b", page):
        depth += 1 if tag == "<div" else -1
        deepest = max(deepest, depth)
    assert depth == 0
    assert deepest > 256


def test_code_keeps_its_tabs() -> None:
    page = read("docs/ledger-queue.html")
    assert "worker: bin/worker\n\t./bin/worker" in page
    assert "\t\tcase errors.Is(err, ErrNothingFree):\n\t\t\tselect {" in page


@pytest.mark.parametrize(("name", "pages"), [("annual-report", 6), ("leaflet", 2)])
def test_reports(name: str, pages: int) -> None:
    reader = pypdf.PdfReader(PUBLIC / "reports" / f"{name}.pdf")
    texts = [page.extract_text() for page in reader.pages]
    assert len(texts) == pages
    assert all(len(text.split()) > 40 for text in texts)
    assert reader.metadata is not None
    assert reader.metadata.title


@pytest.mark.parametrize("name", PAGES)
def test_pages_name_no_real_host(name: str) -> None:
    hosts = set(re.findall(r"https?://([\w.-]+)", read(name)))
    assert {host for host in hosts if not host.endswith(".example")} <= {"schema.org", "www.w3.org"}


def test_the_front_page_links_lead_somewhere(http: httpx2.Client) -> None:
    links = set(re.findall(r'(?i)href="(/[^"#?]*)', read("index.html")))
    assert len(links) > 20
    assert [link for link in links if http.head(link, follow_redirects=True).status_code != 200] == []


@pytest.mark.parametrize("sample", [s for s in SAMPLES if s.holds], ids=lambda sample: sample.path)
def test_the_sample_batch_asks_for_what_the_site_has(http: httpx2.Client, sample: Sample) -> None:
    path = sample.path.format(visit="pages")
    if path.startswith(("/busy", "/slow")):
        path = {"/busy": "/articles/river-gauges.html", "/slow": "/articles/lighthouse-keepers.html"}[
            path.split("?")[0]
        ]
    answer = http.get(path, follow_redirects=True)
    name = answer.url.path.lstrip("/").removeprefix("gzip/")
    if name.endswith(".pdf"):
        text = "".join(page.extract_text() for page in pypdf.PdfReader(PUBLIC / name).pages)
    elif name.endswith(".html") and sample.options.get("mode") != "raw":
        text = read_text(name)
    elif name.endswith(".csv"):
        text = "\n".join(f"| {line.replace(',', ' | ')} |" for line in answer.text.splitlines())
    else:
        text = answer.text
    assert sample.holds in text
    assert sample.lacks in text
