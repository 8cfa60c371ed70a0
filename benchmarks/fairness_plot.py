"""The picture of fairness.py: how far each job has come, over the targets of all jobs that have finished."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from benchmarks.fairness import Course

WIDTH, PANEL, TOP, LEFT, RIGHT, GAP = 900, 230, 64, 56, 34, 60
GREY, BLUE = "#8a8f98", "#1f6feb"
#: In the first panel: targets of all jobs up to which it shows them.
NEAR = 120


def draw(together: Course, apart: Course) -> str:
    """An SVG with two panels: the small jobs right after the large one, and over its course."""
    large = f"{together.scene.large:,}"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {TOP + 2 * PANEL + GAP + 40}" '
        'font-family="system-ui, sans-serif" font-size="13" fill="#333">',
        '<rect width="100%" height="100%" fill="white"/>',
        f'<text x="{LEFT}" y="26" font-size="17">Small jobs do not wait for the large one: seven of 5 targets, '
        f"one of {large}</text>",
        f'<text x="{LEFT}" y="48"><tspan fill="{GREY}">&#9473; the large job</tspan>'
        f'<tspan dx="16" fill="{BLUE}">&#9473; a small job, from its submission (dot) to its end</tspan></text>',
        *_panel(together, TOP + 20, NEAR, f"All seven right after it: the first {NEAR} targets"),
        *_panel(apart, TOP + 20 + PANEL + GAP, len(apart.finished), "Over its course: all targets"),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _panel(course: Course, top: int, most: int, title: str) -> Iterator[str]:
    width = WIDTH - LEFT - RIGHT
    bottom = top + PANEL - 30

    def place(finished: int, share: float) -> str:
        return f"{LEFT + width * finished / most:.1f},{bottom - (PANEL - 50) * share:.1f}"

    yield f'<text x="{LEFT}" y="{top}" font-weight="600">{title}</text>'
    for share in (0.0, 0.5, 1.0):
        (x, y), (end, _) = (place(at, share).split(",") for at in (0, most))
        yield f'<line x1="{x}" y1="{y}" x2="{end}" y2="{y}" stroke="#e4e6ea"/>'
        yield f'<text x="{LEFT - 8}" y="{float(y) + 4}" text-anchor="end">{share:.0%}</text>'
    for at in range(0, most + 1, 20 if most <= NEAR else -(-most // 6000) * 500):
        x = place(at, 0).split(",")[0]
        yield f'<text x="{x}" y="{bottom + 18}" text-anchor="middle">{at:,}</text>'
    yield (
        f'<text x="{LEFT + width / 2}" y="{bottom + 36}" text-anchor="middle" fill="#666">'
        "targets of all jobs that have finished; upwards: the share of a job's own</text>"
    )
    for job, size in enumerate(course.scene.sizes):
        ends = [number for number, ended in enumerate(course.finished[:most], start=1) if ended == job]
        # Steps; of those that no eye tells apart, some.
        shown = range(0, len(ends), max(1, len(ends) // 200))
        steps = [(ends[n], share / size) for n in shown for share in (n, n + 1)]
        points = [(course.submitted[job], 0.0), *steps, (ends[-1], len(ends) / size)]
        color, thick = (BLUE, 1.8) if job else (GREY, 2.5)
        line = " ".join(place(at, share) for at, share in points)
        yield f'<polyline points="{line}" fill="none" stroke="{color}" stroke-width="{thick}"/>'
        if job:
            x, y = place(*points[0]).split(",")
            yield f'<circle cx="{x}" cy="{y}" r="3.2" fill="{color}"/>'
