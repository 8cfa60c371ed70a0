"""CSV and TSV to a Markdown table: which delimiter, quoted line ends, rows of different length."""

from __future__ import annotations

import csv
import io
from itertools import islice

from sift.content.sheets import escape_cell, render_rows
from sift.errors import TargetFailed

# Beyond this the table is left as it came: filling ragged rows up could make it any size.
MAX_CELLS = 200_000

_DELIMITERS = ",;\t|"
_SAMPLE_ROWS = 50


def render_delimited(text: str, media_type: str) -> str | None:
    """The table as Markdown; None where it has over MAX_CELLS cells once every row is as wide as the widest.

    Raises TargetFailed empty when no cell has text.
    """
    first, _, rest = text.partition("\n")
    first = first.rstrip("\r\n")  # and nothing else: the delimiter may be a tab
    if first.lower().startswith("sep=") and len(first) == 5:
        delimiter, text = first[4], rest  # Excel's own way to say it
    else:
        delimiter = "\t" if media_type == "text/tab-separated-values" else find_delimiter(text)
    rows: list[list[str]] = []
    width = 0
    for row in _read(text, delimiter):
        width = max(width, len(row))
        if (len(rows) + 1) * width > MAX_CELLS:
            return None
        rows.append([escape_cell(cell) for cell in row])
    table = render_rows(rows)
    if not table:
        raise TargetFailed("empty", "The table has no text in any cell.", "Use mode text or raw to get it as it is.")
    return table + "\n"


def find_delimiter(text: str) -> str:
    """The delimiter that parts most rows of the beginning into one number of cells, of those the one with more."""

    def score(delimiter: str) -> tuple[int, int]:
        widths = [len(row) for row in islice(_read(text, delimiter), _SAMPLE_ROWS) if row]
        usual = max(set(widths), key=lambda width: (widths.count(width), width), default=1)
        return (widths.count(usual) if usual > 1 else 0), usual

    return max(_DELIMITERS, key=score)


def _read(text: str, delimiter: str) -> csv._reader:  # type: ignore[name-defined]
    # One cell may be the whole document: a quote that nobody closed.
    csv.field_size_limit(len(text) + 1)
    return csv.reader(io.StringIO(text.replace("\x00", ""), newline=""), delimiter=delimiter)
