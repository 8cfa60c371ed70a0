"""Names of the files that content goes to."""

from __future__ import annotations

from pathlib import Path

import pytest

from sift_client.files import name_file, name_folder, write_file
from sift_client.shapes import Slot, address


@pytest.mark.parametrize(
    ("url", "media_type", "name"),
    [
        ("https://a.example/articles/tide-tables.html", "text/markdown; charset=utf-8", "0003-articles-tide-tables.md"),
        ("https://a.example/", "text/markdown", "0003-a-example.md"),
        ("https://a.example/api/v1.2/stations", "application/json", "0003-api-v1-2-stations.json"),
        ("https://a.example/x", "application/problem+json", "0003-x.json"),
        ("https://a.example/report.pdf", "text/plain", "0003-report.txt"),
        ("https://a.example/report.pdf", "application/pdf", "0003-report.pdf"),
        ("https://a.example/page?id=1", "text/html", "0003-page.html"),
        ("https://a.example/../../etc/passwd", "text/x-odd", "0003-etc-passwd.txt"),
        ("https://a.example/%2e%2e%2f%00%1b[2J", "", "0003-2j.bin"),
        ("https://a.example/港", "application/atom+xml", "0003-a-example.xml"),
    ],
)
def test_names(url: str, media_type: str, name: str) -> None:
    assert name_file(Slot(index=3, url=url, media_type=media_type)) == name


def test_a_long_address_gives_a_short_name() -> None:
    name = name_file(Slot(index=8999, url="https://a.example/" + "long-" * 400, media_type="text/plain"))
    assert name.startswith("8999-long")
    assert len(name) < 80


@pytest.mark.parametrize("job_id", ["../../up", "/etc", "a\\b", ""])
def test_a_folder_stays_in_the_folder(tmp_path: Path, job_id: str) -> None:
    assert name_folder(tmp_path, job_id).parent == tmp_path


def test_a_file_is_replaced_whole(tmp_path: Path) -> None:
    path = tmp_path / "new" / "0000-a.md"
    write_file(path, b"first")
    write_file(path, b"second")
    assert [entry.name for entry in path.parent.iterdir()] == ["0000-a.md"]
    assert path.read_bytes() == b"second"


def test_a_request_is_named_by_its_path() -> None:
    slot: Slot = {"index": 3, "path": "/v1/chat/completions", "model": None, "media_type": "application/json"}
    assert address(slot) == "/v1/chat/completions"
    assert name_file(slot) == "0003-v1-chat-completions.json"
