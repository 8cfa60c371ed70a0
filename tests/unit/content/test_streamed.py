"""Pages of which parts come late, hidden at their end."""

from __future__ import annotations

import pytest

from sift.content.html import read_html
from sift.content.streamed import join_streamed

URL = "https://site.test/"
PROSE = "The harbour authority published a long statement on the state of the northern pier this morning. "
PAGE = f"""<!doctype html><html><head><title>T</title></head><body><main><h1>Harbour</h1>
<!--$?--><template id="B:0"></template><!--/$--><p>{PROSE * 2}</p></main><footer>Rights</footer>
<script>var a = 1</script><div hidden id="S:0"><p>Late one.</p><template id="P:1"></template></div>
<script>$RC("B:0","S:0")</script><div hidden id="S:1"><p>Later &lt;b&gt; two.</p></div>
<script>$RS("S:1","P:1")</script></body></html>"""


@pytest.mark.parametrize("mode", ["article", "page", "text"])
def test_what_came_late_stands_in_its_place(mode: str) -> None:
    content, _, _ = read_html(PAGE, URL, mode)
    places = [content.index(words) for words in ("Harbour", "Late one.", "two.", "The harbour authority")]
    assert places == sorted(places)
    assert content.count("Late one.") == 1


@pytest.mark.parametrize(
    "page",
    [
        PAGE.replace("$R", "run"),
        '<div hidden id="S:0">a</div><script>$RC("B:0","S:0")</script>',
        '<div id="S:0"><template id="B:0"></template></div><script>$RC("B:0","S:0")</script>',
        "<p>It said $RC(B, S)</p>",
        "",
    ],
)
def test_a_page_without_a_place_for_it_is_left_alone(page: str) -> None:
    assert join_streamed(page) == page


def test_calls_that_make_no_sense_lose_nothing() -> None:
    parts = '<div id="S:0">one<template id="B:1"></template></div><div id="S:1">two<template id="B:0"></template></div>'
    calls = '$RC("B:0","S:0");$RC("B:1","S:1");$RC("B:0","S:0");$RC("S:0","S:1");$RC("B:9","S:9")'
    joined = join_streamed(f"<html><body>{parts}<script>{calls}</script></body></html>")
    assert (joined.count("one"), joined.count("two")) == (1, 1)
