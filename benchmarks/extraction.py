"""How well and how fast the main content of pages is found and written, beside other extractors in the same run."""

from __future__ import annotations

import argparse
import json
import logging
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.extraction_scores import f1, score_shingles, score_structure, score_words, strip_markdown
from benchmarks.extraction_sets import Sample, find_samples
from benchmarks.extraction_tools import TOOLS
from sift.content.charset import decode

STRUCTURE = ("tables valid", "tables", "headings", "links", "lists", "code")


def run_tool(tool: str, directory: Path, step: int, out: Path) -> None:
    """Extract every page with one tool, in a process of its own: so time and memory are that tool's.

    Writes JSON Lines: one `{"markdown", "ms", "error"}` a page, in order, then `{"peak_kb", "base_kb"}`.
    `ms` is processor time, of a tool that has had a few pages before.
    """
    logging.disable(logging.CRITICAL)
    samples = find_samples(directory)[0][::step]
    extract = TOOLS[tool]()
    for sample in samples[:5]:
        _extract(extract, sample)
    base = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with out.open("w", encoding="utf-8") as lines:
        for sample in samples:
            lines.write(json.dumps(_extract(extract, sample)) + "\n")
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        lines.write(json.dumps({"peak_kb": peak, "base_kb": base}) + "\n")


def _extract(extract: Any, sample: Sample) -> dict[str, Any]:
    html = decode(sample.read())[0]
    started = time.process_time()
    error = ""
    try:
        markdown = extract(html, sample.url)
    except Exception as caught:  # noqa: BLE001 - another's tool may fail as it likes; it is counted
        markdown, error = "", type(caught).__name__
    return {"markdown": markdown, "ms": (time.process_time() - started) * 1000, "error": error}


def score(samples: Sequence[Sample], results: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """All scores of one tool: F1 by set, of pages not drafted with an extractor, and by page type; structure."""
    words: dict[str, list[float]] = defaultdict(list)
    shingles: dict[str, list[tuple[float, float]]] = defaultdict(list)
    shares: dict[str, list[float]] = defaultdict(list)
    for sample, result in zip(samples, results, strict=True):
        markdown = result["markdown"]
        text = strip_markdown(markdown)
        if sample.kind == "aeb":
            shingles[sample.group].append(score_shingles(text, sample.gold))
        else:
            value = score_words(text, sample.gold)
            for name in (sample.group, *([] if sample.drafted else [f"{sample.group} neutral"])):
                words[name].append(value)
            words[f"{sample.group} · {sample.page_type or '?'}"].append(value)
        html = decode(sample.read())[0]
        for name, (kept, expected) in score_structure(html, sample.gold, markdown).items():
            if expected:
                shares[name].append(kept / expected)
    scores = {name: (statistics.fmean(values), len(values)) for name, values in words.items()}
    for name, pairs in shingles.items():
        value = f1(statistics.fmean(p for p, _ in pairs), statistics.fmean(r for _, r in pairs))
        scores[name] = (value, len(pairs))
    structure = {name: (statistics.fmean(shares[name]), len(shares[name])) for name in STRUCTURE if shares[name]}
    return {"text": scores, "structure": structure}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the tools one after the other and print the tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.extraction", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder of AEB, of WCXB, or of several such folders")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="only every Nth page")
    parser.add_argument("--tools", nargs="+", choices=TOOLS, default=list(TOOLS), help="some of them only")
    parser.add_argument("--json", type=Path, help="write the scores there too")
    parser.add_argument("--run", nargs=2, metavar=("TOOL", "OUT"), help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.run:
        run_tool(options.run[0], options.data, options.every, Path(options.run[1]))
        return
    samples, missing = find_samples(options.data)
    samples = samples[:: options.every]
    if not samples:
        sys.exit(f"no pages found below {options.data}")
    print(f"{len(samples)} pages" + (f"; {missing} known contents have no page" if missing else ""))
    report = {}
    with tempfile.TemporaryDirectory() as folder:
        for tool in options.tools:
            out = Path(folder) / "out.jsonl"
            command = [sys.executable, "-m", "benchmarks.extraction", "--data", str(options.data)]
            command += ["--every", str(options.every), "--run", tool, str(out)]
            if subprocess.run(command, check=False).returncode:
                print(f"{tool}: could not be run")
                continue
            *results, memory = map(json.loads, out.read_text("utf-8").splitlines())
            report[tool] = score(samples, results) | _cost(results, memory)
    _print(report)
    if options.json:
        options.json.write_text(json.dumps(report, indent=1), "utf-8")


def _cost(results: Sequence[dict[str, Any]], memory: dict[str, int]) -> dict[str, Any]:
    times = sorted(result["ms"] for result in results)
    return {
        "ms": {"median": statistics.median(times), "p95": times[min(len(times) - 1, int(len(times) * 0.95))]},
        "peak_mb": memory["peak_kb"] / 1024,
        "failed": sum(bool(result["error"]) for result in results),
        "empty": sum(not result["markdown"].strip() for result in results),
    }


def _print(report: dict[str, dict[str, Any]]) -> None:
    tools = list(report)
    width = max(18, *(len(name) for one in report.values() for name in one["text"])) + 7

    def row(name: str, cells: Iterable[str]) -> None:
        print(f"{name:<{width}}" + "".join(f"{cell:>18}" for cell in cells))

    row("", tools)
    for part in ("text", "structure"):
        names = dict.fromkeys(name for one in report.values() for name in one[part])
        for name in sorted(names) if part == "text" else names:
            counts = [one[part][name][1] for one in report.values() if name in one[part]]
            label = f"{name} ({max(counts)})"
            row(label, (f"{one[part][name][0]:.3f}" if name in one[part] else "-" for one in report.values()))
    row("CPU ms, median", (f"{one['ms']['median']:.1f}" for one in report.values()))
    row("CPU ms, p95", (f"{one['ms']['p95']:.1f}" for one in report.values()))
    row("peak memory, MB", (f"{one['peak_mb']:.0f}" for one in report.values()))
    row("failed / empty", (f"{one['failed']} / {one['empty']}" for one in report.values()))


if __name__ == "__main__":
    main()
