"""Filters on documents of every kind, over real connections and with real child processes."""

from __future__ import annotations

import gzip
from typing import Any

import pytest

from sift.errors import TargetFailed
from sift.targets import Content, FetchOptions
from tests.integration.content.conftest import OpenPipeline, play
from tests.integration.content.loopback import Loopback, respond
from tests.unit.content.documents import make_pdf
from tests.unit.content.office_documents import make_docx

PROSE = "The harbour authority published a long statement on the state of the northern pier this morning. "
PAGE = (
    "<!doctype html><html lang=en><head><title>News</title></head><body><nav>Menu of the pier</nav><article>"
    f"<h1>Harbour news</h1><p>{PROSE * 4}</p><h2>Ferries</h2><p>Line seven sails at noon. {PROSE}</p>"
    "</article><footer>Imprint of the site</footer></body></html>"
).encode()


def read(open_pipeline: OpenPipeline, url: str, *, settings: dict[str, Any] | None = None, **options: Any) -> Content:
    async def main() -> Content:
        async with open_pipeline(**(settings or {})) as pipeline:
            return await pipeline.run(url, FetchOptions(**options), 60.0)

    return play(main())


def failure(open_pipeline: OpenPipeline, url: str, **options: Any) -> TargetFailed:
    with pytest.raises(TargetFailed) as caught:
        read(open_pipeline, url, **options)
    assert caught.value.hint
    return caught.value


def test_grep_reads_what_the_mode_makes_of_a_page(server: Loopback, open_pipeline: OpenPipeline) -> None:
    server.routes["/a"] = respond(PAGE, content_type="text/html; charset=utf-8")
    article = read(open_pipeline, server.url("/a"), grep="seven|pier$|Menu")
    assert (article.media_type, article.meta["matches"]) == ("text/plain; charset=utf-8", 1)
    assert article.meta["chars"] == len(article.body.decode())
    assert (article.meta["title"], article.meta["media_type"]) == ("Harbour news", "text/html")
    assert article.body.decode().partition(": ")[2].startswith("Line seven sails at noon.")
    assert b"Menu of the pier" in read(open_pipeline, server.url("/a"), grep="Menu", mode="page").body
    source = read(open_pipeline, server.url("/a"), grep="<nav>", mode="raw")
    assert source.body.startswith(b"1: <!doctype html>")


def test_grep_shows_the_pages_of_a_pdf(server: Loopback, open_pipeline: OpenPipeline) -> None:
    server.routes["/x"] = respond(make_pdf(["alpha pier", "beta", "gamma pier"]), content_type="application/pdf")
    for mode in ("auto", "text"):
        content = read(open_pipeline, server.url("/x"), grep="pier", mode=mode)
        text = content.body.decode()
        assert text.splitlines()[0] == "<!-- page 1 -->"
        assert "--\n<!-- page 3 -->\n" in text
        assert content.meta["matches"] == 2
    only = read(open_pipeline, server.url("/x"), grep="pier", pages="2-").body.decode()
    assert "page 1" not in only
    assert "gamma pier" in only


def test_grep_that_finds_nothing_says_what_it_read(server: Loopback, open_pipeline: OpenPipeline) -> None:
    server.routes["/a"] = respond(PAGE)
    error = failure(open_pipeline, server.url("/a"), grep="submarine")
    assert (error.code, error.status, error.meta["title"]) == ("no_match", 200, "Harbour news")


def test_grep_on_what_is_no_text(server: Loopback, open_pipeline: OpenPipeline) -> None:
    server.routes["/i"] = respond(b"\x89PNG\r\n\x1a\n" + bytes(100), content_type="image/png")
    server.routes["/x"] = respond(make_pdf(["one"]), content_type="application/pdf")
    for path, mode in (("/i", "auto"), ("/i", "raw"), ("/x", "raw")):
        assert failure(open_pipeline, server.url(path), grep="o", mode=mode).code == "unsupported_media"


def test_a_bad_pattern_that_no_submission_checked(server: Loopback, open_pipeline: OpenPipeline) -> None:
    server.routes["/a"] = respond(PAGE)

    async def main() -> None:
        async with open_pipeline() as pipeline:
            await pipeline.run(server.url("/a"), FetchOptions.model_construct(grep="("), 30.0)

    with pytest.raises(TargetFailed) as caught:
        play(main())
    assert caught.value.code == "bad_grep"


STATIONS = b'{"stations": [{"name": "Brume", "height": 4.10}, {"name": "Manara", "height": 3}]}'


def test_jq_on_json_under_any_name(server: Loopback, open_pipeline: OpenPipeline) -> None:
    for path, body, content_type, mode in (
        ("/json", STATIONS, "application/json", "auto"),
        ("/geo", STATIONS, "application/geo+json", "text"),
        ("/none", STATIONS, None, "auto"),
        ("/text", STATIONS, "text/plain", "auto"),
        ("/html", STATIONS, "text/html", "raw"),
        ("/utf16", STATIONS.decode().encode("utf-16"), "application/json", "auto"),
        ("/lines", STATIONS + b"\n" + STATIONS, "application/json", "auto"),
        ("/ndjson", STATIONS + b"\n" + STATIONS, "application/x-ndjson", "auto"),
    ):
        server.routes[path] = respond(body, content_type=content_type)
        content = read(open_pipeline, server.url(path), jq=".stations[] | [.name, .height]", mode=mode)
        once = b'["Brume",4.10]\n["Manara",3]\n'
        assert content.body == (once * 2 if path in ("/lines", "/ndjson") else once), path
        assert content.media_type == "application/x-ndjson; charset=utf-8"
        assert content.meta["matches"] == content.body.count(b"\n")


def test_jq_on_what_is_no_json(server: Loopback, open_pipeline: OpenPipeline) -> None:
    server.routes["/a"] = respond(PAGE)
    server.routes["/x"] = respond(make_pdf(["one"]), content_type="application/pdf")
    server.routes["/t"] = respond(b"just words", content_type="text/plain")
    server.routes["/c"] = respond(b"1,2\n", content_type="text/csv")
    server.routes["/d"] = respond(b'{"a": ', content_type="application/json")
    for path, code in (("/a", "bad_jq"), ("/x", "bad_jq"), ("/t", "bad_jq"), ("/c", "bad_jq"), ("/d", "damaged")):
        assert failure(open_pipeline, server.url(path), jq=".").code == code, path
    assert failure(open_pipeline, server.url("/a"), jq=".", mode="raw").code == "bad_jq"


#: One for each way to end a program; there are more of them in `benchmarks.hostile`.
HOSTILE = {"endless and silent": "def f: f; f", "a doubling text": 'reduce range(100) as $i ("x"; . + .)'}


def test_hostile_programs_are_typed_and_the_next_target_is_served(
    server: Loopback, open_pipeline: OpenPipeline
) -> None:
    server.routes["/d"] = respond(STATIONS, content_type="application/json")

    async def main() -> dict[str, str]:
        codes = {}
        async with open_pipeline() as pipeline:
            for name, program in HOSTILE.items():
                with pytest.raises(TargetFailed) as caught:
                    await pipeline.run(server.url("/d"), FetchOptions(jq=program), 60.0)
                codes[name] = caught.value.code
                assert caught.value.hint
                assert (await pipeline.run(server.url("/d"), FetchOptions(jq="1"), 60.0)).body == b"1\n"
        return codes

    assert play(main()) == dict.fromkeys(HOSTILE, "filter_limit")


def test_a_program_sees_no_environment(
    server: Loopback, open_pipeline: OpenPipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "planted")
    server.routes["/d"] = respond(b"{}", content_type="application/json")
    assert read(open_pipeline, server.url("/d"), jq="env, $ENV, $ENV.AWS_SECRET_ACCESS_KEY").body == b"{}\n{}\nnull\n"


def test_a_question_is_answered_with_passages(server: Loopback, open_pipeline: OpenPipeline) -> None:
    server.routes["/a"] = respond(PAGE)
    content = read(open_pipeline, server.url("/a"), question="When does line seven sail?", context=0)
    text = content.body.decode()
    assert content.media_type == "text/markdown; charset=utf-8"
    assert "## Ferries\n\nLine seven sails at noon." in text
    assert text.startswith("<!-- line 7 -->\n\n# Harbour news\n")
    (place,) = content.meta["passages"]
    assert place["headings"] == ["# Harbour news", "## Ferries"]
    assert content.meta["answered_by"] == "passages"
    assert content.meta["chars"] == len(text)
    around = read(open_pipeline, server.url("/a"), question="When does line seven sail?")
    assert around.meta["passages"][0]["lines"][0] < place["lines"][0]
    assert failure(open_pipeline, server.url("/a"), question="purple elephants").code == "no_match"


def test_a_question_about_pages_names_them(server: Loopback, open_pipeline: OpenPipeline) -> None:
    server.routes["/x"] = respond(
        make_pdf(["alpha pier", "beta lantern", "gamma pier"]), content_type="application/pdf"
    )
    for mode in ("auto", "text"):
        content = read(open_pipeline, server.url("/x"), question="Which lantern?", context=0, mode=mode)
        assert content.body.startswith(b"<!-- page 2, line")
        assert content.meta["passages"][0]["page"] == 2


def test_a_question_after_grep_or_jq(server: Loopback, open_pipeline: OpenPipeline) -> None:
    lines = [f"{number} {'fog over the bay' if number % 10 == 0 else 'calm'}" for number in range(60)]
    lines[30] = "30 fog and a lantern"
    server.routes["/t"] = respond("\n".join(lines).encode(), content_type="text/plain")
    server.routes["/d"] = respond(STATIONS, content_type="application/json")
    grepped = read(open_pipeline, server.url("/t"), grep="fog", question="lantern?")
    assert grepped.body.decode() == "<!-- lines 30-32 -->\n\n30- 29 calm\n31: 30 fog and a lantern\n32- 31 calm\n"
    assert grepped.meta["matches"] == 6
    chosen = read(open_pipeline, server.url("/d"), jq=".stations[]", question="Manara", context=0)
    assert chosen.body.decode() == '<!-- line 2 -->\n\n{"name":"Manara","height":3}\n'


# Document, options, and what the content holds or the code that the target fails with.
COMBINATIONS: list[tuple[str, dict[str, Any], str]] = [
    ("/page", {"grep": "seven", "context": 1, "mode": "article"}, ": Line seven"),
    ("/page", {"grep": "Menu", "mode": "page"}, ": Menu of the pier"),
    ("/page", {"grep": "Menu", "mode": "text", "question": "menu?"}, ": Menu of the pier"),
    ("/page", {"grep": "<nav>", "mode": "raw", "context": 1}, "1: <!doctype html>"),
    ("/page", {"question": "Line seven?", "mode": "page"}, "## Ferries"),
    ("/page", {"question": "Line seven?", "mode": "text", "context": 2}, "Line seven"),
    ("/page", {"grep": "x", "pages": "1"}, "bad_pages"),
    ("/page", {"question": "x", "pages": "1"}, "bad_pages"),
    ("/page", {"jq": "."}, "bad_jq"),
    ("/page", {"jq": ".", "mode": "article"}, "bad_jq"),
    ("/page", {"jq": ".", "mode": "raw"}, "bad_jq"),
    ("/page", {"jq": ".", "grep": "a"}, "bad_grep"),
    ("/page", {"context": 2}, "unsupported_option"),
    ("/page", {"context": 2, "mode": "text"}, "unsupported_option"),
    ("/page", {"question": "x", "mode": "raw"}, "unsupported_option"),
    ("/pdf", {"grep": "pier", "pages": "3", "context": 2}, "<!-- page 3 -->"),
    ("/pdf", {"grep": "pier", "pages": "1,3", "question": "gamma?"}, "<!-- page 3, line"),
    ("/pdf", {"question": "lantern?", "pages": "2-", "mode": "article"}, "<!-- page 2, line"),
    ("/pdf", {"grep": "alpha", "pages": "2-"}, "no_match"),
    ("/pdf", {"grep": "alpha", "mode": "raw"}, "unsupported_media"),
    ("/pdf", {"jq": "."}, "bad_jq"),
    ("/pdf", {"jq": ".", "pages": "1"}, "bad_jq"),
    ("/json", {"jq": ".stations[].name", "question": "Manara?"}, '"Manara"'),
    ("/json", {"jq": ".stations | length", "mode": "text"}, "2"),
    ("/json", {"jq": ".stations | length", "mode": "raw"}, "2"),
    ("/json", {"jq": ".stations | length", "context": 1}, "unsupported_option"),
    ("/json", {"grep": "Brume"}, '1: {"stations"'),
    ("/json", {"question": "Brume?"}, "Brume"),
    ("/csv", {"grep": "^b,", "mode": "text"}, "3: b,2"),
    ("/csv", {"grep": r"\| b \|"}, "4: | b | 2 |"),
    ("/lines", {"jq": ".a"}, "1\n2"),
    ("/packed", {"jq": ".a", "mode": "raw"}, "1\n2"),
    ("/page", {"grep": "pier", "mode": "links"}, '"url": "https://port.test/pier"'),
    ("/page", {"grep": "title", "mode": "meta"}, '"title": "'),
    ("/page", {"question": "pier?", "mode": "links"}, "unsupported_option"),
    ("/page", {"question": "pier?", "mode": "meta"}, "unsupported_option"),
    ("/page", {"jq": ".", "mode": "links"}, "bad_jq"),
    ("/pdf", {"pages": "1", "mode": "meta"}, "bad_pages"),
    ("/pdf", {"grep": "port", "mode": "links", "pages": "1"}, "https://port.test/"),
    ("/docx", {"grep": "closed"}, "3: The pier is **closed**"),
    ("/docx", {"question": "Is the pier closed?"}, "closed"),
    ("/docx", {"grep": "a", "mode": "raw"}, "unsupported_media"),
    ("/docx", {"grep": "a", "pages": "1"}, "bad_pages"),
    ("/docx", {"jq": "."}, "bad_jq"),
    ("/csv", {"question": "alpha"}, "alpha"),
    ("/csv", {"jq": "."}, "bad_jq"),
    ("/image", {"grep": "a"}, "unsupported_media"),
    ("/image", {"grep": "a", "mode": "raw"}, "unsupported_media"),
    ("/image", {"question": "a"}, "unsupported_media"),
    ("/image", {"jq": "."}, "bad_jq"),
    ("/empty", {"grep": "a"}, "empty"),
    ("/empty", {"jq": "."}, "empty"),
]


def test_every_sensible_combination_and_a_clear_error_for_every_other(
    server: Loopback, open_pipeline: OpenPipeline
) -> None:
    annotation = b"<< /Type /Annot /Subtype /Link /Rect [0 0 9 9] /A << /S /URI /URI (https://port.test/) >> >>"
    page = (
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 11 0 R /Annots [6 0 R] "
        b"/Resources << /Font << /F1 3 0 R >> >> >>"
    )
    pdf = make_pdf(["alpha pier", "beta lantern", "gamma pier"], extra={6: annotation, 10: page})
    linked = PAGE.replace(b"</body>", b'<a href="https://port.test/pier">pier</a></body>')
    lines = b'{"a": 1}\n{"a": 2}\n'
    server.routes |= {
        "/lines": respond(lines, content_type="application/x-ndjson"),
        "/packed": respond(gzip.compress(lines), content_type="application/gzip"),
        "/docx": respond(make_docx(), content_type="application/octet-stream"),
        "/page": respond(linked),
        "/pdf": respond(pdf, content_type="application/pdf"),
        "/json": respond(STATIONS, content_type="application/json"),
        "/csv": respond(b"name,n\nalpha,1\nb,2\n", content_type="text/csv"),
        "/image": respond(b"\x89PNG\r\n\x1a\n" + bytes(100), content_type="image/png"),
        "/empty": respond(b" ", content_type="application/json"),
    }

    async def main() -> list[str]:
        results = []
        async with open_pipeline() as pipeline:
            for path, options, _ in COMBINATIONS:
                try:
                    content = await pipeline.run(server.url(path), FetchOptions(**options), 60.0)
                    results.append(content.body.decode())
                except TargetFailed as error:
                    results.append(error.code if error.hint else f"{error.code} without a hint")
        return results

    for (path, options, expected), result in zip(COMBINATIONS, play(main()), strict=True):
        assert expected in result, (path, options, result)
        assert ("_" in expected) == (result == expected) or expected == "empty", (path, options, result)
