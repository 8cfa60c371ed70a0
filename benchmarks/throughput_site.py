"""A site of generated pages of the sizes that pages of articles, forums and shops have, served on loopback.

`python -m benchmarks.throughput_site COUNT` serves it in a process of its own and prints the port.
"""

from __future__ import annotations

import asyncio
import random
import sys

from benchmarks.loopback import Answer, serve

#: Bytes of HTML by share of the pages: what 520 public pages of seven kinds measured at their deciles, rounded.
SIZES = (10_000, 13_000, 16_000, 19_000, 23_000, 29_000, 38_000, 50_000, 70_000)
#: Of those bytes, how many are the article; the rest is navigation, lists of links, scripts and the page's foot.
ARTICLE_SHARE = 0.3
_LETTERS = "etaoinshrdlucmfwypvbgk"


def make_page(number: int) -> bytes:
    """An article with headings, a list, links and a table, in the surroundings that such pages have."""
    random_ = random.Random(number)
    size = SIZES[number % len(SIZES)]

    def words(count: int) -> str:
        return " ".join("".join(random_.choices(_LETTERS, k=random_.randint(2, 9))) for _ in range(count))

    def link() -> str:
        marks = f'class="teaser__link" data-id="{random_.getrandbits(32)}"'
        return f'<a href="/{random_.getrandbits(24):x}" {marks}>{words(4)}</a>'

    body: list[str] = []
    length = 0
    while length < size * ARTICLE_SHARE:
        kind = random_.random()
        if kind < 0.12:
            part = f"<h2>{words(4).capitalize()}</h2>"
        elif kind < 0.18:
            part = "<ul>" + "".join(f"<li>{words(7)}</li>" for _ in range(4)) + "</ul>"
        elif kind < 0.2:
            cells = "".join(f"<tr><td>{words(1)}</td><td>{words(2)}</td></tr>" for _ in range(4))
            part = f"<table><tr><th>{words(1)}</th><th>{words(1)}</th></tr>{cells}</table>"
        else:
            text = ". ".join(words(random_.randint(8, 20)).capitalize() for _ in range(3))
            part = f"<p>{text}, <a href='/more/{random_.getrandbits(20):x}'>{words(2)}</a>.</p>"
        body.append(part)
        length += len(part)
    around: list[str] = []
    length = 0
    while length < size * (0.85 - ARTICLE_SHARE):
        part = f'<li class="teaser teaser--small"><div class="teaser__box">{link()}<span>{words(2)}</span></div></li>'
        around.append(part)
        length += len(part)
    half = len(around) // 2
    script = f"window.state={{{','.join(f'k{n}:{random_.getrandbits(40)}' for n in range(size // 150))}}};"
    title = words(6).capitalize()
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title} | Example</title>'
        f'<meta name="author" content="A. Writer"><meta property="article:published_time" content="2026-05-04">'
        f'<meta name="description" content="{words(12)}"><script>{script}</script></head><body>'
        f"<header><nav><ul>{''.join(around[:half])}</ul></nav></header><main><article><h1>{title}</h1>"
        f"{''.join(body)}</article></main><aside><ul>{''.join(around[half:])}</ul></aside>"
        f"<footer><p>{words(30)}</p></footer></body></html>"
    ).encode()


async def _serve(count: int) -> None:
    routes = {f"/{number}": Answer(make_page(number), "text/html; charset=utf-8") for number in range(count)}
    async with serve(routes) as port:
        print(port, flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(_serve(int(sys.argv[1])))
