"""The benchmark of extraction: how it reads its sets and how it scores, on sets made here."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from benchmarks.extraction import main
from benchmarks.extraction_scores import score_shingles, score_structure, score_words, strip_markdown, written_tables
from benchmarks.extraction_sets import find_samples

PAGE = """<html><body><main><h1>The pier</h1><p>A statement on <a href="/x">the northern pier</a> this morning.</p>
<ul><li>High water at ten</li></ul><pre>tide --now --here</pre>
<table><tr><th>Ship</th><th>From</th></tr><tr><td>Anna</td><td>Oslo</td></tr></table></main>
<footer><h2>Imprint</h2><a href="/y">Imprint of it</a></footer></body></html>"""
GOLD = "The pier A statement on the northern pier this morning. High water at ten tide --now --here Ship From Anna Oslo"
MARKDOWN = """# The pier

A statement on [the northern pier](https://a.test/x) this morning.

- High water at ten

```
tide --now --here
```

| Ship | From |
| --- | --- |
| Anna | Oslo |
"""


@pytest.fixture
def sets(tmp_path: Path) -> Path:
    """Two sets as they are laid out, one of them with a page that is not there."""
    (tmp_path / "one" / "html").mkdir(parents=True)
    (tmp_path / "one" / "html" / "a.html.gz").write_bytes(gzip.compress(PAGE.encode()))
    golds = {name: {"articleBody": GOLD, "url": "https://a.test/"} for name in ("a", "b")}
    (tmp_path / "one" / "ground-truth.json").write_text(json.dumps(golds))
    (tmp_path / "two" / "html").mkdir(parents=True)
    (tmp_path / "two" / "ground-truth").mkdir()
    for name, about in (
        ("1", {"page_type": {"primary": "forum"}, "source": "some-draft"}),
        ("2", {"page_type": {"primary": "article"}}),
    ):
        (tmp_path / "two" / "html" / f"{name}.html").write_text(PAGE)
        gold = {"url": "https://b.test/", "ground_truth": {"main_content": GOLD}, "_internal": about}
        (tmp_path / "two" / "ground-truth" / f"{name}.json").write_text(json.dumps(gold))
    return tmp_path


def test_sets_are_found_as_they_are_laid_out(sets: Path) -> None:
    samples, missing = find_samples(sets)
    assert [(s.group, s.kind, s.name, s.page_type, s.drafted) for s in samples] == [
        ("one", "aeb", "a", "", False),
        ("two", "wcxb", "1", "forum", True),
        ("two", "wcxb", "2", "article", False),
    ]
    assert missing == 1
    assert {sample.read() for sample in samples} == {PAGE.encode()}
    assert [sample.group for sample in find_samples(sets / "two")[0]] == ["two", "two"]


def test_words_and_sequences() -> None:
    assert score_words("one two two", "one two three") == pytest.approx(2 / 3)
    assert score_words("", "") == 1.0
    assert score_words("", "one") == 0.0
    assert score_shingles("a b c d e", "a b c d f") == (0.5, 0.5)
    assert score_shingles("", "a b") == (0.0, 0.0)


def test_markdown_is_scored_without_its_marks() -> None:
    text = "**One** [two](https://a.test/(x)_y) _three_ \\* snake_case [![four](/i.png)](/l)<br>2 * 3"
    assert strip_markdown(text).split() == ["One", "two", "three", "*", "snake_case", "four", "2", "*", "3"]


def test_structure_is_what_is_kept_of_the_content() -> None:
    every = score_structure(PAGE, GOLD, MARKDOWN)
    assert every == dict.fromkeys(("headings", "links", "lists", "code", "tables", "tables valid"), (1, 1))
    plain = score_structure(PAGE, GOLD, GOLD)
    assert plain == {**dict.fromkeys(every, (0, 1)), "tables valid": (0, 0)}


@pytest.mark.parametrize(
    ("table", "valid"),
    [
        ("| a | b |\n| --- | --- |\n| 1 | 2 |", True),
        ("| a | b |\n| 1 | 2 |", False),
        ("| a | b |\n| --- | --- |\n| 1 |", False),
        ("| a | b |\n| --- | --- |\n| 1 \\| 2 | 3 |", True),
        ("| a | b |\n| --- | --- |\n| 1 | 2 |\n| --- | --- |", False),
    ],
)
def test_a_valid_table(table: str, valid: bool) -> None:
    assert [found for _, found in written_tables(f"text\n\n{table}\n\ntext")] == [valid]


def test_tools_run_in_processes_of_their_own(sets: Path, capfd: pytest.CaptureFixture[str]) -> None:
    out = sets / "scores.json"
    main(["--data", str(sets), "--tools", "sift", "<main>", "--json", str(out)])
    report = json.loads(out.read_text())
    assert report["sift"]["text"]["two neutral"] == [1.0, 1]
    assert report["sift"]["structure"]["tables"] == [1.0, 3]
    assert report["<main>"]["peak_mb"] > 10
    assert report["sift"]["failed"] == report["sift"]["empty"] == 0
    shown = capfd.readouterr().out
    assert "3 pages; 1 known contents have no page" in shown
    assert "CPU ms, median" in shown
