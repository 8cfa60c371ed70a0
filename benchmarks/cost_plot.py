"""The picture of cost.py: what a million targets cost by line of the bill, beside what others publish."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from benchmarks.pricing import Other, Prices

if TYPE_CHECKING:
    from benchmarks.cost import Result

WIDTH, LEFT, RIGHT, ROW, BAR = 900, 190, 90, 30, 18
COLORS: Mapping[str, str] = {
    "worker: duration": "#1f6feb",
    "table: writes": "#2da44e",
    "table: reads": "#7bd389",
    "table: a day of storage": "#c7e9cf",
    "queue": "#bf8700",
    "bucket": "#cf222e",
    "API: gateway and duration": "#8250df",
    "functions: requests": "#8a8f98",
    "logs": "#24292f",
}


def draw(results: Sequence[Result], prices: Prices) -> str:
    """An SVG with two panels: the bill of each job that fills its invocations, and all services on one scale.

    A job of one target is told in a line of text: it pays for a whole job alone, and its bar would hide the others.
    """
    shown = [result for result in results if result.run.targets > 1]
    alone = [result for result in results if result.run.targets == 1]
    top = 140
    lower = top + ROW * len(shown) + 84
    bottom = lower + ROW * (len(prices.others) + 1) + 56
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {bottom}" '
        'font-family="system-ui, sans-serif" font-size="13" fill="#333">',
        '<rect width="100%" height="100%" fill="white"/>',
        '<text x="24" y="28" font-size="17">What a million targets cost, in dollars</text>',
        *_legend(24, 54),
        *_bills(shown, top),
        *(
            [f'<text x="24" y="{lower - 48}" fill="#666">A job of a single target pays for the whole job: '
             f"{' and '.join(f'${r.total:.0f} a million at {_size(r)}' for r in alone)}.</text>"]
            if alone else []
        ),
        *_services(shown, prices.others, lower),
        f'<text x="24" y="{bottom - 14}" fill="#666">The others include proxies and browsers; sift is plain HTTP from '
        "one's own account. List prices of 2026, no free tier.</text>",
        "</svg>",
    ]  # fmt: skip
    return "\n".join(parts) + "\n"


def _legend(left: int, top: int) -> Iterator[str]:
    for number, (name, color) in enumerate(COLORS.items()):
        x, y = left + 215 * (number % 4), top + 20 * (number // 4)
        yield f'<rect x="{x}" y="{y - 10}" width="12" height="12" fill="{color}"/>'
        yield f'<text x="{x + 18}" y="{y}">{name}</text>'


def _bills(results: Sequence[Result], top: int) -> Iterator[str]:
    most = max(result.total for result in results)
    scale = (WIDTH - LEFT - RIGHT) / most
    for number, result in enumerate(results):
        y, x = top + ROW * number, float(LEFT)
        label = f"{result.run.targets:,} targets of {_size(result)}"
        yield f'<text x="{LEFT - 10}" y="{y + 14}" text-anchor="end">{label}</text>'
        for name, color in COLORS.items():
            width = result.lines[name] * scale
            yield f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="{BAR}" fill="{color}"/>'
            x += width
        yield f'<text x="{x + 8:.1f}" y="{y + 14}" font-weight="600">${result.total:.2f}</text>'


def _services(results: Sequence[Result], others: Sequence[Other], top: int) -> Iterator[str]:
    most = max(other.high for other in others)
    scale = (WIDTH - LEFT - RIGHT - 60) / most
    yield f'<text x="24" y="{top - 16}" font-weight="600">Beside what others publish for a million pages</text>'
    ours = [result.total for result in results]
    rows = [("sift, the jobs above", min(ours), max(ours), "#1f6feb")]
    rows += [(other.name, other.low, other.high, "#8a8f98") for other in sorted(others, key=lambda one: one.low)]
    for number, (name, low, high, color) in enumerate(rows):
        y = top + ROW * number
        yield f'<text x="{LEFT - 10}" y="{y + 14}" text-anchor="end">{name}</text>'
        yield f'<rect x="{LEFT}" y="{y}" width="{max(1.5, low * scale):.1f}" height="{BAR}" fill="{color}"/>'
        if high > low:
            yield (
                f'<rect x="{LEFT + low * scale:.1f}" y="{y}" width="{(high - low) * scale:.1f}" height="{BAR}" '
                f'fill="{color}" opacity="0.35"/>'
            )
        span = f"${low:,.0f}" if f"{low:,.0f}" == f"{high:,.0f}" else f"${low:,.0f} to ${high:,.0f}"
        yield f'<text x="{LEFT + high * scale + 8:.1f}" y="{y + 14}">{span}</text>'


def _size(result: Result) -> str:
    return f"{result.run.content_bytes // 1_000} KB"
