"""HTML tables as grids: which are data, which are layout or code, and every row as wide as the others."""

from __future__ import annotations

from sift.content.dom import Element

MAX_COLUMNS = 100
MAX_CELLS = 50_000
Grid = list[list[Element | None]]


def rows_of(table: Element) -> list[Element]:
    """The table's own rows, not those of tables inside it."""
    rows = []
    for child in table.children:
        if isinstance(child, Element):
            if child.tag == "tr":
                rows.append(child)
            elif child.tag in ("thead", "tbody", "tfoot"):
                rows += [row for row in child.children if isinstance(row, Element) and row.tag == "tr"]
    return rows


def cells_of(row: Element) -> list[Element]:
    """The cells of one row."""
    return [cell for cell in row.children if isinstance(cell, Element) and cell.tag in ("td", "th")]


def is_data_table(table: Element) -> bool:
    """Say whether a table shows data: two columns or more, no table within, no whole articles in its cells."""
    if table.layout or table.attrs.get("role") in ("presentation", "none") or table.find("table") is not None:
        return False
    rows = rows_of(table)
    widest = max((len(cells_of(row)) for row in rows), default=0)
    if widest < 2 or len(rows) * widest > MAX_CELLS:
        return False
    if any(cell.tag == "th" for row in rows for cell in cells_of(row)):
        return True
    return all(len(cell.text()) < 2000 for row in rows for cell in cells_of(row))


def is_code_table(table: Element) -> Element | None:
    """The code cell of a listing laid out as a table with line numbers, or None."""
    rows = rows_of(table)
    if len(rows) == 1 and len(cells := cells_of(rows[0])) == 2:
        numbers, code = cells
        if (
            code.find("pre", "code") is not None
            and numbers.text().split()
            and all(map(str.isdecimal, numbers.text().split()))
        ):
            return code.find("pre") or code
        return None
    return _join_lines(rows)


def _join_lines(rows: list[Element]) -> Element | None:
    """A listing with one row a line: the number in a cell of its own (or in an attribute), the code in the next."""
    lines: list[Element | str] = []
    for row in rows:
        cells = cells_of(row)
        if len(cells) != 2:
            return None
        number = cells[0].text().strip() or cells[0].attrs.get("data-line-number", "")
        marked = "code" in cells[1].attrs.get("class", "") or cells[1].find("code", "pre") is not None
        if not number.isdecimal() or not marked:
            return None
        lines.append(cells[1].text().strip("\n") + "\n")
    return Element("pre", {}, lines) if len(lines) > 1 else None


def read_grid(table: Element) -> Grid:
    """The cells in a rectangle; None where a cell spans over from the left or above."""
    grid: Grid = []
    hanging: dict[int, int] = {}  # column -> rows that a cell above still covers
    for row in rows_of(table):
        line: list[Element | None] = []
        for cell in cells_of(row):
            _cover(line, hanging)
            if len(line) >= MAX_COLUMNS:
                break
            width = min(_span(cell, "colspan"), MAX_COLUMNS - len(line))
            height = _span(cell, "rowspan")
            for column in range(len(line), len(line) + width):
                if height > 1:
                    hanging[column] = height - 1
            line += [cell, *([None] * (width - 1))]
        _cover(line, hanging)
        if any(cell is not None for cell in line):
            grid.append(line)
    width = max((len(line) for line in grid), default=0)
    return [line + [None] * (width - len(line)) for line in grid]


def _cover(line: list[Element | None], hanging: dict[int, int]) -> None:
    while hanging.get(len(line), 0) > 0:
        hanging[len(line)] -= 1
        line.append(None)


def _span(cell: Element, name: str) -> int:
    value = cell.attrs.get(name, "").strip()
    return max(1, min(int(value), 1000)) if value.isdecimal() and len(value) < 6 else 1


def render_grid(rows: list[list[str]]) -> str:
    """A GFM table whose first row is the head; columns that are empty all the way down are left out."""
    used = [column for column in range(len(rows[0])) if any(row[column] for row in rows)]
    lines = ["| " + " | ".join(row[column] for column in used) + " |" for row in rows if any(row)]
    return "\n".join([lines[0], "|" + " --- |" * len(used), *lines[1:]])
