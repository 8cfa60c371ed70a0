"""Following a job: files as they arrive, few requests, nothing lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from sift_client.client import Sift
from sift_client.errors import SiftApiError
from sift_client.follow import Follower
from sift_client.shapes import Job, Slot
from tests.unit.client.fake_api import FakeApi

URLS = [f"https://site.example/{number}" for number in range(12)]


class Watcher:
    """Notes what it is shown."""

    def __init__(self) -> None:
        self.looks: list[str] = []
        self.ended: list[tuple[int, bool]] = []

    def show_job(self, job: Job) -> None:
        self.looks.append(job["status"])

    def show_target(self, slot: Slot, path: Path | None) -> None:
        assert path is None or path.is_file()
        self.ended.append((slot["index"], path is not None))

    def close(self) -> None:
        pass


def follower(client: Sift, out: Path | None, watcher: Watcher, count: int = len(URLS)) -> Follower:
    return Follower(client, client.submit(URLS[:count]), out, watcher, sleep=lambda _: None)


def test_each_target_is_shown_and_saved_once_as_it_ends(client: Sift, api: FakeApi, tmp_path: Path) -> None:
    watcher = Watcher()
    made = follower(client, tmp_path, watcher, 3)
    order = iter([lambda: api.finish(2, "two"), lambda: api.fail(0), lambda: api.finish(1, "one")])
    seen: list[list[tuple[int, bool]]] = []

    def move() -> None:
        seen.append(list(watcher.ended))
        next(order)()

    api.on_look = move
    api.holds = False
    followed = made.follow()
    assert seen == [[], [(2, True)], [(2, True), (0, False)]]
    assert watcher.ended == [(2, True), (0, False), (1, True)]
    assert followed.job["status"] == "partial"
    assert {path.name: path.read_text() for path in (tmp_path / "job_1").iterdir()} == {
        "0001-1.md": "one",
        "0002-2.md": "two",
    }


def test_pages_that_are_over_and_pages_that_have_not_begun_are_not_read_again(client: Sift, api: FakeApi) -> None:
    made = follower(client, None, Watcher())
    for index in range(5):
        api.finish(index)
    looks: list[list[str]] = []

    def finish_the_rest() -> None:
        looks.append([request.split("/targets")[1] for request in api.requests if "/targets" in request])
        api.requests.clear()
        for index in range(5, 12):
            api.finish(index)

    api.on_look = finish_the_rest
    followed = made.follow()
    looks.append([request.split("/targets")[1] for request in api.requests if "/targets" in request])
    # Pages of four: the third had not begun at the first look, the first was over at the second.
    assert looks == [["", "?cursor=4", "?cursor=8"], ["?cursor=4", "?cursor=8"]]
    assert sorted(followed.slots) == list(range(12))


def test_a_content_that_cannot_be_had_does_not_stop_the_others(client: Sift, api: FakeApi, tmp_path: Path) -> None:
    made = follower(client, tmp_path, Watcher(), 2)
    api.finish(0)
    api.finish(1)
    api.fail_next("/targets/0/content", 500, {"code": "internal", "detail": "Broken.", "hint": ""})
    followed = made.follow()
    assert isinstance(followed.unsaved[0], SiftApiError)
    assert list(followed.files) == [1]


def test_a_disk_error_is_not_hidden(client: Sift, api: FakeApi, tmp_path: Path) -> None:
    (tmp_path / "job_1").write_text("in the way")
    made = follower(client, tmp_path, Watcher(), 1)
    api.finish(0)
    with pytest.raises(OSError, match="job_1"):
        made.follow()
