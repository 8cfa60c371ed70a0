"""A job's targets as a table: drawn on a terminal, aligned plain text anywhere else."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TextIO

from rich.console import Console
from rich.table import Table
from rich.text import Text

from sift_client.shapes import Job, Slot, address

_HEADINGS = ("index", "url", "status", "media type", "characters", "time", "error")
_RIGHT = frozenset({"index", "characters", "time"})
_COLOURS = {"done": "green", "failed": "red", "cancelled": "yellow"}


def clean(text: str) -> str:
    """The text without control characters: it comes from the web and must not steer the terminal."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


def describe_error(slot: Slot) -> str:
    """`http_error (404): ...`, or nothing for a target without an error."""
    error = slot.get("error")
    if not error:
        return ""
    status = f" ({error['status']})" if error.get("status") else ""
    return clean(f"{error.get('code', 'error')}{status}: {error.get('detail', '')}".rstrip(": "))


def print_table(slots: Iterable[Slot], stream: TextIO) -> None:
    """One row per target, in the order given."""
    rows = [_row(slot) for slot in slots]
    if stream.isatty():
        _draw(rows, stream)
    else:
        align(_HEADINGS, rows, stream, _RIGHT)


def describe_job(job: Job) -> str:
    """`job_...: partial, 11 done, 1 failed of 12`."""
    counts = job["counts"]
    parts = [f"{counts[name]} {name}" for name in ("done", "failed", "cancelled", "running", "pending") if counts[name]]
    return f"{clean(job['id'])}: {job['status']}, {', '.join(parts) or 'nothing'} of {counts['total']}"


def _row(slot: Slot) -> tuple[str, ...]:
    meta = slot.get("meta") or {}
    chars, elapsed = slot.get("chars"), meta.get("elapsed_ms")
    return (
        str(slot["index"]),
        clean(address(slot)),
        slot["status"],
        clean((slot.get("media_type") or "").split(";")[0]),
        f"{chars:,}" if chars is not None else "",
        f"{elapsed / 1000:.1f} s" if isinstance(elapsed, int | float) else "",
        describe_error(slot),
    )


def _draw(rows: Sequence[Sequence[str]], stream: TextIO) -> None:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in _HEADINGS:
        # The address gives way first, but never to nothing.
        table.add_column(
            heading,
            justify="right" if heading in _RIGHT else "left",
            overflow="fold" if heading in ("url", "error") else "ellipsis",
            no_wrap=heading not in ("url", "error"),
            min_width=20 if heading == "url" else None,
        )
    for row in rows:
        cells = [Text(cell) for cell in row]
        cells[2].stylize(_COLOURS.get(row[2], ""))
        table.add_row(*cells)
    Console(file=stream).print(table)


def align(
    headings: Sequence[str], rows: Sequence[Sequence[str]], stream: TextIO, right: frozenset[str] = frozenset()
) -> None:
    """Plain text in columns; those named in `right` end at the same place."""
    lines = [headings, *rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(headings))]
    for line in lines:
        cells = (
            cell.rjust(width) if heading in right else cell.ljust(width)
            for cell, width, heading in zip(line, widths, headings, strict=True)
        )
        print("  ".join(cells).rstrip(), file=stream)
