"""Tables, JSON, XML, Markdown and plain text."""

from __future__ import annotations

import csv
import gzip
import io
import json

import pytest

from sift.content.delimited import MAX_CELLS, find_delimiter
from sift.content.extraction import MAX_UNPACKED_BYTES
from sift.content.sheets import tidy_tables
from tests.unit.content.reading import fail, read


def write_csv(rows: list[list[str]], delimiter: str = ",") -> str:
    out = io.StringIO()
    csv.writer(out, delimiter=delimiter).writerows(rows)
    return out.getvalue()


def test_a_table() -> None:
    body = write_csv([["Port", "Note"], ["Brest", "two\nlines"], ["Hull", 'a "quote", a | bar']])
    content, media_type, _ = read(body.encode(), "text/csv")
    assert media_type == "text/markdown"
    assert content == '| Port | Note |\n| --- | --- |\n| Brest | two<br>lines |\n| Hull | a "quote", a \\| bar |\n'


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_the_delimiter_is_found(delimiter: str) -> None:
    rows = [["name", "price, net", "when; where"], *([f"p{n}", f"{n},50", "here; there"] for n in range(9))]
    assert find_delimiter(write_csv(rows, delimiter)) == delimiter


def test_excel_names_its_delimiter() -> None:
    assert read(b"sep=;\r\na;b,c\r\n1;2\r\n", "text/csv")[0] == "| a | b,c |\n| --- | --- |\n| 1 | 2 |\n"


def test_a_delimiter_of_white_space() -> None:
    assert read(b"sep=\t\r\na,1\tb;c\r\n1\t2\r\n", "text/csv")[0] == "| a,1 | b;c |\n| --- | --- |\n| 1 | 2 |\n"


@pytest.mark.parametrize("body", [b",,\n,,\n", b"sep=;\n; ;\n"])
def test_a_table_without_text_is_empty(body: bytes) -> None:
    assert fail(body, "text/csv")["code"] == "empty"


def test_ragged_rows_titles_and_blank_lines() -> None:
    content, _, _ = read(b"Tides of 2026\n\nPort,High,,Low\nBrest,6.5\nHull,,,1,extra\n", "text/csv")
    assert content == (
        "Tides of 2026\n\n| Port | High | Low |  |\n| --- | --- | --- | --- |\n"
        "| Brest | 6.5 |  |  |\n| Hull |  | 1 | extra |\n"
    )


def test_a_table_in_its_charset_and_of_any_name() -> None:
    content, media_type, meta = read(
        "Größe;Straße\n1;Zürich\n".encode("cp1252"), "text/plain", url="https://x.test/data.csv"
    )
    assert (content, media_type) == ("| Größe | Straße |\n| --- | --- |\n| 1 | Zürich |\n", "text/markdown")
    assert (meta["charset"], meta["media_type"]) == ("windows-1252", "text/csv")


def test_text_is_the_table_as_it_is() -> None:
    assert read(b"a;b\n1;2\n", "text/csv", mode="text")[:2] == ("a;b\n1;2\n", "text/plain")


def test_a_table_too_large_for_markdown_is_left_as_it_is() -> None:
    wide = ",".join("x" * 1000) + "\n" + "y\n" * 1000  # filled up it would have a million cells
    content, media_type, meta = read(wide.encode(), "text/csv")
    assert (content, media_type) == (wide, "text/csv")
    assert str(MAX_CELLS) in meta["warnings"][0]


def test_a_quote_without_end() -> None:
    assert "b<br>c" in read(b'a,"b\nc\nd', "text/csv")[0]


def test_json_is_left_as_it_is() -> None:
    body = '{"b": 1.50,\n "a": "ü"}'
    assert read(body.encode(), "application/json")[:2] == (body, "application/json")
    assert read(body.encode(), "application/ld+json; charset=utf-8")[:2] == (body, "application/ld+json")
    assert read(body.encode(), "application/json", mode="text")[1] == "text/plain"


def test_broken_json_says_where() -> None:
    error = fail(b'{"a": 1,\n\n "b": }', "application/json")
    assert error["code"] == "damaged"
    assert "line 3" in error["detail"]


def test_json_nested_beyond_measure() -> None:
    assert fail(b"[" * 1_000_000, "application/json")["code"] == "damaged"


def test_numbers_that_are_none() -> None:
    assert "NaN" in read(b'{"a": NaN}', "application/json")[2]["warnings"][0]


def test_whole_numbers_of_any_length() -> None:
    body = '{"a": %s, "version": 1}' % ("7" * 5_000)
    content, media_type, meta = read(body.encode(), "application/json")
    assert (content, media_type, meta["warnings"]) == (body, "application/json", [])
    lines = f"{body}\n{body}\n"
    assert read(lines.encode(), "application/x-ndjson")[:2] == (lines, "application/x-ndjson")


def test_what_only_looks_like_json_is_text() -> None:
    assert read(b"[2026-03-02] the pier is closed")[:2] == ("[2026-03-02] the pier is closed", "text/plain")


@pytest.mark.parametrize("content_type", ["application/x-ndjson", "application/json", "application/jsonl", ""])
def test_json_lines(content_type: str) -> None:
    body = b'{"a": 1}\n\n{"a": 2}\r\n[3]\n'
    content, media_type, _ = read(body, content_type)
    assert (content, media_type) == (body.decode(), "application/x-ndjson")


def test_broken_json_lines_say_where() -> None:
    assert "Line 2" in fail(b'{"a": 1}\n{"a": \n', "application/x-ndjson")["detail"]
    assert read(b'{"a": 1}\n{"a": \n', "text/plain", url="https://x.test/a.jsonl")[1] == "text/plain"


XML = b"""<?xml version="1.0" encoding="iso-8859-1"?>
<!DOCTYPE list [<!ENTITY lol "lol"><!ENTITY file SYSTEM "file:///etc/passwd">]>
<list><!-- no --><item id="1">Gr\xfc\xdfe <b>an</b> alle</item>
<item>&lol;&file;</item></list>"""


def test_xml_is_left_as_it_is() -> None:
    content, media_type, meta = read(XML, "application/xml")
    assert (content, media_type) == (XML.decode("iso-8859-1"), "application/xml")
    assert meta["charset"] == "windows-1252"


def test_the_text_of_xml_has_no_entity_expanded() -> None:
    content, media_type, meta = read(XML, "application/xml", mode="text")
    assert (content, media_type) == ("Grüße\nan\nalle\n&lol;\n&file;\n", "text/plain")
    assert "entities" in meta["warnings"][0]


def test_entities_that_multiply() -> None:
    levels = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 12))
    body = f'<!DOCTYPE a [<!ENTITY e0 "lol">{levels}]><a b="c">&e11;</a>'
    assert fail(body.encode(), "text/xml", mode="text")["code"] == "empty"


def test_an_entity_in_an_attribute() -> None:
    levels = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 12))
    body = f'<!DOCTYPE a [<!ENTITY e0 "lol">{levels}]><a b="&e11;">text</a>'
    assert fail(body.encode(), "text/xml", mode="text")["code"] == "damaged"


def test_xml_that_is_not_well_formed_is_read_as_far_as_it_goes() -> None:
    assert read(b"<a><b>one</b><c>two</a>", "text/xml", mode="text")[0] == "one\ntwo\n"
    assert fail(b"no element here", "text/xml", mode="text")["code"] == "damaged"


def test_markdown_is_left_as_it_is_and_named() -> None:
    body = b"---\ntitle: 'On Piers'\nauthor: Ada\ndate: 2026-03-02\n---\n# Heading\n\nWords.\n"
    content, media_type, meta = read(body, "text/markdown")
    assert (content, media_type) == (body.decode(), "text/markdown")
    assert (meta["title"], meta["author"], meta["published"]) == ("On Piers", "Ada", "2026-03-02")
    assert read(b"intro\n\n# The *pier* `log` #\n", "text/markdown")[2]["title"] == "The pier log"
    assert read(b"The pier\n========\n", "text/markdown")[2]["title"] == "The pier"


@pytest.mark.parametrize("mode", ["auto", "article", "page", "text"])
def test_plain_text(mode: str) -> None:
    assert read(b"just <words> & more\n", "text/plain", mode=mode)[:2] == ("just <words> & more\n", "text/plain")


@pytest.mark.parametrize("body", [b"", b" \n\t", b"\xef\xbb\xbf", b"\x00\x00"])
@pytest.mark.parametrize("content_type", ["text/plain", "text/html", "text/csv", "application/json", "text/xml"])
def test_nothing_is_empty(body: bytes, content_type: str) -> None:
    if body != b"\x00\x00":
        assert fail(body, content_type)["code"] == "empty"


def test_a_packed_file_is_unpacked_once() -> None:
    content, media_type, meta = read(gzip.compress(b"a,b\n1,2\n"), "application/gzip", url="https://x.test/data.csv.gz")
    assert (content, media_type) == ("| a | b |\n| --- | --- |\n| 1 | 2 |\n", "text/markdown")
    assert meta["media_type"] == "text/csv"
    assert fail(gzip.compress(gzip.compress(b"words")))["code"] == "unsupported_media"
    assert fail(gzip.compress(bytes(MAX_UNPACKED_BYTES + 1)))["code"] == "too_large"
    assert fail(gzip.compress(b"words" * 99)[:-9])["code"] == "damaged"
    assert fail(gzip.compress(b"words")[:10] + b"\xff" * 9)["code"] == "damaged"
    assert read(gzip.compress(b"two ") + gzip.compress(b"members"))[0] == "two members"


def test_what_follows_a_packed_file_is_left_out_and_told() -> None:
    packed = gzip.compress(b"words ") + gzip.compress(b"more")
    for after, warnings in ((b"", 0), (bytes(512), 0), (b"junk", 1), (bytes(9) + b"\x1f\x8b", 1)):
        content, _, meta = read(packed + after, "application/gzip")
        assert content == "words more"
        assert [text for text in meta["warnings"] if "left out" in text] == meta["warnings"]
        assert len(meta["warnings"]) == warnings


def test_an_export_under_the_name_of_the_program_that_opens_it_is_a_table() -> None:
    content, media_type, meta = read("\ufeffname;m\nPier;1,5\n".encode(), "application/vnd.ms-excel")
    assert (content, media_type) == ("| name | m |\n| --- | --- |\n| Pier | 1,5 |\n", "text/markdown")
    assert meta["media_type"] == "text/csv"


def test_tables_of_a_document_are_put_in_order() -> None:
    markdown = (
        "# A\n\n|  |  |  |\n| --- | --- | --- |\n| Title |  |  |\n| a |  | b \\| c |\n|  |  |  |\n| 1 |  | 2 |\n\n"
        "```\n|  |\n| --- |\n```\n\nwords | with | bars\n"
    )
    assert tidy_tables(markdown) == (
        "# A\n\nTitle\n\n| a | b \\| c |\n| --- | --- |\n| 1 | 2 |\n\n```\n|  |\n| --- |\n```\n\nwords | with | bars\n"
    )


def test_meta_of_a_text() -> None:
    content, media_type, _ = read(b"# The pier\n", "text/markdown", mode="meta")
    assert media_type == "application/json"
    assert json.loads(content) == {"media_type": "text/markdown", "title": "The pier", "charset": "utf-8"}
