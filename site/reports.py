"""Draws the two PDFs of the site: a report in one column with an outline, and a folded leaflet in two columns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from reportlab.lib import colors
from reportlab.lib.pagesizes import A4, landscape
from reportlab.lib.styles import ParagraphStyle, getSampleStyleSheet
from reportlab.lib.units import cm
from reportlab.platypus import (
    BaseDocTemplate,
    Frame,
    FrameBreak,
    ListFlowable,
    PageBreak,
    PageTemplate,
    Paragraph,
    SimpleDocTemplate,
    Spacer,
    Table,
)

TEXTS = Path(__file__).resolve().parent / "source" / "reports"
_STYLES = getSampleStyleSheet()
_BODY = ParagraphStyle("text", parent=_STYLES["BodyText"], fontName="Times-Roman", fontSize=11.5, leading=17)
_GRID = [
    ("GRID", (0, 0), (-1, -1), 0.5, colors.grey),
    ("BACKGROUND", (0, 0), (-1, 0), colors.HexColor("#e6eef4")),
    ("FONTSIZE", (0, 0), (-1, -1), 9.5),
    ("ALIGN", (1, 1), (-1, -1), "RIGHT"),
]


def draw_reports(folder: Path) -> None:
    """Write both files; `invariant` keeps times and random ids out of them, so the bytes stay the same."""
    folder.mkdir(parents=True, exist_ok=True)
    _draw_annual(folder / "annual-report.pdf")
    _draw_leaflet(folder / "leaflet.pdf")


def _read(name: str) -> list[list[Any]]:
    """Blocks of a text file, one list per page: `# ` a chapter, `## ` a heading, `- ` items, `| ` a table."""
    pages: list[list[Any]] = []
    for block in (TEXTS / name).read_text(encoding="utf-8").strip().split("\n\n"):
        lines = block.splitlines()
        if lines[0].startswith("# "):
            pages.append([Paragraph(lines[0][2:], _STYLES["Heading1"])])
        elif lines[0].startswith("## "):
            pages[-1].append(Paragraph(lines[0][3:], _STYLES["Heading2"]))
        elif lines[0].startswith("- "):
            pages[-1].append(ListFlowable([Paragraph(line[2:], _BODY) for line in lines], bulletType="bullet"))
        elif lines[0].startswith("| "):
            rows = [[cell.strip() for cell in line.strip("| ").split("|")] for line in lines]
            pages[-1] += [Spacer(1, 8), Table(rows, style=_GRID, repeatRows=1), Spacer(1, 8)]
        else:
            pages[-1].append(Paragraph(" ".join(lines), _BODY))
    return pages


def _draw_annual(path: Path) -> None:
    pages = _read("annual-report.txt")
    document = SimpleDocTemplate(
        str(path),
        pagesize=A4,
        margins=2.5 * cm,
        title="The water year in numbers",
        author="Aue Gauging Service",
        subject="Annual report",
        invariant=1,
        pageCompression=1,
    )

    def decorate(canvas: Any, _document: Any) -> None:
        number = canvas.getPageNumber()
        canvas.bookmarkPage(f"page{number}")
        canvas.addOutlineEntry(pages[number - 1][0].getPlainText(), f"page{number}")
        canvas.setFont("Helvetica", 8)
        canvas.drawString(2.5 * cm, A4[1] - 1.5 * cm, "Aue Gauging Service: annual report")
        canvas.drawRightString(A4[0] - 2.5 * cm, 1.5 * cm, f"{number} / {len(pages)}")

    story = [flowable for page in pages for flowable in [*page, PageBreak()]][:-1]
    document.build(story, onFirstPage=decorate, onLaterPages=decorate)


def _draw_leaflet(path: Path) -> None:
    width, height = landscape(A4)
    document = BaseDocTemplate(
        str(path),
        pagesize=(width, height),
        title="Flood at home",
        author="Sankt Vitus water office",
        lang="en-GB",
        invariant=1,
        pageCompression=0,
    )
    column = (width - 5 * cm) / 2
    frames = [
        Frame(2 * cm + index * (column + 1 * cm), 1.5 * cm, column, height - 3 * cm, id=f"column{index}")
        for index in range(2)
    ]
    document.addPageTemplates(PageTemplate(id="leaflet", frames=frames))
    story: list[Any] = []
    for index, part in enumerate(_read("leaflet.txt")):
        story += [FrameBreak()] if index else []
        story += part
    document.build(story)
