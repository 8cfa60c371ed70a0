"""Rows of plain cells as Markdown tables: titles above, a head that is one, and every row as wide as the others."""

from __future__ import annotations

import re

from sift.content.tables import render_grid

_ROW = re.compile(r"\|.*\|")
_RULE = re.compile(r"\|(?:\s*:?-+:?\s*\|)+")
_CELL_END = re.compile(r"(?<!\\)(?:\\\\)*\|")


def render_rows(rows: list[list[str]]) -> str:
    """A Markdown table from rows of cells, "" when all are empty; rows and columns without any text are left out.

    Leading rows with one cell filled, above wider ones, are titles: they become paragraphs.
    """
    rows = [row for row in rows if any(cell.strip() for cell in row)]
    if not rows:
        return ""
    width = max(len(row) for row in rows)
    rows = [[*row, *[""] * (width - len(row))] for row in rows]
    filled = [sum(1 for cell in row if cell.strip()) for row in rows]
    first = next((index for index, count in enumerate(filled) if count > 1), 0)
    titles = ["".join(row).strip() for row in rows[:first]]
    return "\n\n".join([*titles, render_grid(rows[first:])])


def escape_cell(text: str) -> str:
    """The text of a cell on one line of a Markdown table."""
    lines = (line.strip() for line in text.strip().splitlines())
    return "<br>".join(line for line in lines if line).replace("|", "\\|")


def tidy_tables(markdown: str) -> str:
    """A document's Markdown with each table that has an empty head put in order, and all rows of one width."""
    if "|" not in markdown:
        return markdown
    out: list[str] = []
    lines = markdown.split("\n")
    place, fenced = 0, ""
    while place < len(lines):
        line = lines[place]
        if fence := re.match(r"\s*(`{3,}|~{3,})", line):
            fenced = "" if fenced and fence[1].startswith(fenced) else fenced or fence[1]
        if fenced or not _ROW.fullmatch(line) or place + 1 == len(lines) or not _RULE.fullmatch(lines[place + 1]):
            out.append(line)
            place += 1
            continue
        end = place + 2
        while end < len(lines) and _ROW.fullmatch(lines[end]):
            end += 1
        out.append(_tidy([_cells(row) for row in (line, *lines[place + 2 : end])]))
        place = end
    return re.sub(r"\n{3,}", "\n\n", "\n".join(out))


def _tidy(rows: list[list[str]]) -> str:
    if not any(rows[0]):
        return render_rows(rows[1:])
    width = max(len(row) for row in rows)
    return render_grid([[*row, *[""] * (width - len(row))] for row in rows])


def _cells(row: str) -> list[str]:
    cells, start = [], 1
    for end in _CELL_END.finditer(row, 1):
        cells.append(row[start : end.end() - 1].strip())
        start = end.end()
    return cells
