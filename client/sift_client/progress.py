"""How far a job is, for people: a live bar on a terminal, one line per ended target anywhere else."""

from __future__ import annotations

from pathlib import Path
from typing import TextIO

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as RichProgress

from sift_client.follow import Progress
from sift_client.shapes import Job, Slot, address
from sift_client.tables import clean, describe_error


class SilentProgress:
    """For scripts."""

    def show_job(self, job: Job) -> None:
        """Say nothing."""

    def show_target(self, slot: Slot, path: Path | None) -> None:
        """Say nothing."""

    def close(self) -> None:
        """Say nothing."""


class LineProgress:
    """One plain line for every ended target, made for logs."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._ended = 0
        self._total = 0

    def show_job(self, job: Job) -> None:
        """Say how large the job is, once."""
        if not self._total:
            self._total = job["counts"]["total"]
            print(f"{job['id']}: {self._total} targets", file=self._stream, flush=True)

    def show_target(self, slot: Slot, path: Path | None) -> None:
        """Say what came of the target."""
        self._ended += 1
        outcome = str(path) if path else describe_error(slot)
        line = f"[{self._ended}/{self._total}] {slot['index']:04d} {slot['status']} {clean(address(slot))}"
        print(f"{line} {outcome}".rstrip(), file=self._stream, flush=True)

    def close(self) -> None:
        """Nothing is left to say."""


class BarProgress:
    """A bar that stays in place, with what runs and what failed beside it."""

    def __init__(self, stream: TextIO) -> None:
        self._bar = RichProgress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[state]}", markup=False),
            TimeElapsedColumn(),
            TextColumn("{task.fields[latest]}", markup=False, style="dim"),
            console=Console(file=stream),
        )
        self._task = self._bar.add_task("", total=None, state="", latest="")
        self._bar.start()

    def show_job(self, job: Job) -> None:
        """Move the bar."""
        counts = job["counts"]
        ended = counts["done"] + counts["failed"] + counts["cancelled"]
        state = f"{job['status']}: {counts['running']} running, {counts['failed']} failed"
        self._bar.update(self._task, description=job["id"], total=counts["total"], completed=ended, state=state)

    def show_target(self, slot: Slot, path: Path | None) -> None:
        """Name the target that ended last."""
        self._bar.update(self._task, latest=path.name if path else f"{slot['index']:04d} {slot['status']}")

    def close(self) -> None:
        """Leave the bar as it stands and give the terminal back."""
        self._bar.update(self._task, latest="")
        self._bar.stop()


def open_progress(stream: TextIO, *, silent: bool = False) -> Progress:
    """The right one for the stream."""
    if silent:
        return SilentProgress()
    return BarProgress(stream) if stream.isatty() else LineProgress(stream)
