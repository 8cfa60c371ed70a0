"""One target now, through the client and the command, on a real local stack: its HTTP API has two functions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from sift_client.cli import main
from sift_client.client import Sift
from sift_client.errors import SiftApiError
from sift_client.local import LocalStack
from tests.integration.content.loopback import Loopback, respond

TEMPLATE = Path(__file__).parents[3] / "template.yaml"


PROSE = "The tide at the harbour turns twice a day, and the keepers of the lock write it down as they always did. "
LARGE = (PROSE * 50_000).encode()


@pytest.fixture(scope="module")
def site() -> Iterator[Loopback]:
    page = f"<html><body><nav>Menu</nav><article><h1>Tides</h1><p>{PROSE * 4}</p></article></body></html>"
    server = Loopback({"/tides": respond(page.encode()), "/large": respond(LARGE, content_type="text/plain")})
    yield server
    server.close()


@pytest.fixture(scope="module")
def stack(site: Loopback, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalStack]:
    parameters = {"FetchNowConcurrency": "1", "GuardAllow": site.allow}
    with LocalStack(TEMPLATE, log_dir=tmp_path_factory.mktemp("logs"), parameters=parameters) as running:
        yield running


def test_a_page(stack: LocalStack, site: Loopback, client: Sift, capsys: pytest.CaptureFixture[str]) -> None:
    page = site.url("/tides")
    fetched = client.fetch(page, {"mode": "article"})
    assert fetched["meta"]["final_url"] == page
    assert "turns twice a day" in fetched["content"]
    assert main(["fetch", page]) == 0
    assert capsys.readouterr() == (fetched["content"], "")
    assert list(client.jobs()) == []
    running = stack.environments()
    assert (len(running["FetchNowFunction"]), running["FetchFunction"]) == (1, [])


def test_a_page_that_is_not_there(site: Loopback, client: Sift, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SiftApiError) as caught:
        client.fetch(site.url("/no-such-page"))
    assert (caught.value.status, caught.value.code, caught.value.of_target) == (502, "http_error", True)
    assert main(["fetch", "http://169.254.169.254/"]) == 1
    assert capsys.readouterr().err.startswith("sift: blocked_address: ")
    assert main(["fetch", site.url("/tides"), "--context", "1"]) == 2
    assert capsys.readouterr().err.startswith("sift: unsupported_option: options.context: ")


def test_what_is_too_large_for_an_answer_is_read_from_the_bucket(site: Loopback, client: Sift) -> None:
    fetched = client.fetch(site.url("/large"))
    assert set(fetched) == {"content_url", "meta"}
    assert client.read(fetched) == LARGE
