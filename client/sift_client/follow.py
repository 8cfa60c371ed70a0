"""Follows a job to its end and saves each target's content as soon as it is there."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from sift_client.client import LONGEST_WAIT_S, Sift
from sift_client.errors import SiftApiError
from sift_client.files import name_file, name_folder, write_file
from sift_client.shapes import ENDED_JOB, ENDED_TARGET, Job, Slot

#: At least this long from one look to the next, so that many quick changes do not become many requests.
PAUSE_S = 0.4


class Progress(Protocol):
    """Shows how far a job is."""

    def show_job(self, job: Job) -> None:
        """The job's status, every time it was asked for."""

    def show_target(self, slot: Slot, path: Path | None) -> None:
        """One target that has ended, once; `path` is its content's file where there is one."""

    def close(self) -> None:
        """Nothing more comes."""


@dataclass
class Followed:
    """What came of a job: its last status, its slots, and by index the saved files and what could not be saved."""

    job: Job
    slots: dict[int, Slot] = field(default_factory=dict)
    files: dict[int, Path] = field(default_factory=dict)
    unsaved: dict[int, SiftApiError] = field(default_factory=dict)


class Follower:
    """Follows one job. `out` is the folder for the jobs' folders; None saves nothing."""

    def __init__(
        self,
        client: Sift,
        job: Job,
        out: Path | None,
        progress: Progress,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.followed = Followed(job)
        self._client = client
        self._job_id = job["id"]
        self._folder = name_folder(out, job["id"]) if out else None
        self._progress = progress
        self._sleep = sleep
        # The page that holds the first target that has not ended: all before it need no second look.
        self._cursor: str | None = None

    def follow(self) -> Followed:
        """Return when the job has ended and every slot has been read.

        Raises the client's errors and OSError (a file that cannot be written); the job itself goes on all the same.
        """
        followed = self.followed
        wait = 1
        while True:
            started = time.monotonic()
            live = followed.job["status"] not in ENDED_JOB
            self._progress.show_job(followed.job)
            for slot in self._read_ended(live):
                self._take(slot)
            if not live:
                return followed
            self._sleep(max(0.0, PAUSE_S - (time.monotonic() - started)))
            before, followed.job = followed.job, self._client.get(self._job_id, wait=wait)
            # A change that falls between two requests is not waited for, so holds are short while much changes.
            wait = min(2 * wait, LONGEST_WAIT_S) if followed.job["counts"] == before["counts"] else 1

    def _read_ended(self, live: bool) -> Iterator[Slot]:
        cursor = self._cursor
        finished_so_far = True
        while True:
            slots, following = self._client.targets_page(self._job_id, cursor=cursor)
            statuses = {slot["status"] for slot in slots}
            finished_so_far = finished_so_far and statuses <= ENDED_TARGET
            yield from (
                slot for slot in slots if slot["status"] in ENDED_TARGET and slot["index"] not in self.followed.slots
            )
            # Targets start in order, so behind a page that is all pending nothing of a live job has ended.
            if following is None or (live and statuses == {"pending"}):
                return
            if finished_so_far:
                self._cursor = following
            cursor = following

    def _take(self, slot: Slot) -> None:
        index = slot["index"]
        path: Path | None = None
        if self._folder and slot["status"] == "done":
            path = self._folder / name_file(slot)
            try:
                write_file(path, self._client.content(self._job_id, index))
                self.followed.files[index] = path
            except SiftApiError as error:
                # One content that the service cannot give must not keep the others from being saved.
                self.followed.unsaved[index] = error
                path = None
        self.followed.slots[index] = slot
        self._progress.show_target(slot, path)
