"""What a million targets cost: real jobs counted on the real functions, and the price table applied to the counts."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.cost_run import Account, Calls, Idle, Run
from benchmarks.pricing import MILLION, Prices, per_million, read_prices

SIZES = (1, 32, 1_000, 9_000)
CONTENTS = (5_000, 200_000)
#: What is to hold for jobs of a thousand targets and more with the smaller content, in dollars for a million.
GOAL = 8.0
#: Memory at which a function has one whole processor (Lambda Developer Guide: function memory).
WHOLE_PROCESSOR_MB = 1_769
MONTH_S = 30 * 86_400
PICTURE = Path(__file__).parents[1] / "docs" / "cost.svg"
#: Names of prices by line of the bill.
LINES: Mapping[str, tuple[str, ...]] = {
    "worker: duration": ("worker_gb_second",),
    "table: writes": ("table_write_unit",),
    "table: reads": ("table_read_unit",),
    "table: a day of storage": ("table_gb_month",),
    "queue": ("queue_request", "queue_fair_request"),
    "bucket": ("object_put", "object_get"),
    "API: gateway and duration": ("api_request", "api_gb_second"),
    "functions: requests": ("lambda_request",),
    "logs": ("log_gb",),
}


@dataclass(frozen=True)
class Assumptions:
    """What no local cloud can tell. Seconds, bytes, megabytes."""

    worker_mb: int
    api_mb: int
    sweep_mb: int
    #: From a claim to its content, its page read, as the metric TargetTime measures it; an invocation lasts as long.
    fetch_s: float = 1.5
    #: One request to the table, the queue or the bucket.
    aws_request_s: float = 0.01
    #: In sequence after or before the fetch: claim, outcome, finish, and now and then a release with two sends.
    worker_requests: int = 4
    #: The caller asks how far its job is, this often, without holding the request.
    looks_every_s: float = 10.0
    window: int = 32
    #: Lambda's own lines of an invocation, and the gateway's of a request.
    platform_log_bytes: int = 400
    access_log_bytes: int = 250
    kept_s: int = 86_400
    #: Long polls of 20 s, five at once, that a mapping makes while its queue is empty (Lambda Developer Guide: SQS).
    idle_polls_s: float = 0.25
    idle_sweep_s: float = 0.1

    @property
    def invocation_s(self) -> float:
        return self.fetch_s + self.worker_requests * self.aws_request_s


def api_seconds(calls: Calls, assumed: Assumptions) -> float:
    """Seconds that calls of the API last: their own processor time on its share of one, and AWS requests in a row."""
    share = min(1.0, assumed.api_mb / WHOLE_PROCESSOR_MB)
    return calls.processor_s / share + calls.aws_requests * assumed.aws_request_s


def job_seconds(run: Run, assumed: Assumptions) -> float:
    """How long a job takes when only its window holds it back."""
    return math.ceil(run.targets / assumed.window) * assumed.invocation_s


def count_all(run: Run, assumed: Assumptions) -> dict[str, float]:
    """Quantities by the names of prices, of the whole job, from its submission to the caller's last page."""
    counted = {name: float(amount) for name, amount in run.ledger.quantities.items()}
    looks = max(0, round(job_seconds(run, assumed) / assumed.looks_every_s) - 1)  # one was counted
    for name, amount in run.look.ledger.quantities.items():
        counted[name] = counted.get(name, 0.0) + amount * looks
    calls = run.api.count + looks
    api_s = api_seconds(run.api, assumed) + looks * api_seconds(run.look.api, assumed)
    platform = assumed.platform_log_bytes * (calls + run.fetch.count) + assumed.access_log_bytes * calls
    written = counted.pop("log_bytes") + platform
    return {
        **counted,
        "worker_gb_second": run.fetch.count * assumed.invocation_s * assumed.worker_mb / 1_024,
        "api_gb_second": api_s * assumed.api_mb / 1_024,
        "log_gb": written / 1e9,
        "table_gb_month": run.stored / 1e9 * assumed.kept_s / MONTH_S,
    }


def bill(quantities: Mapping[str, float], prices: Prices) -> dict[str, float]:
    """Dollars by line of LINES. Raises KeyError for something counted that no line takes."""
    processor = prices.aws["lambda_arm64_gb_second"]
    every = Prices({**prices.aws, "worker_gb_second": processor, "api_gb_second": processor}, prices.others)
    cost = every.cost(quantities)
    lines = {line: sum(cost.pop(name, 0.0) for name in names) for line, names in LINES.items()}
    if cost:
        raise KeyError(f"on no line: {sorted(cost)}")
    return lines


def idle_month(idle: Idle, prices: Prices, assumed: Assumptions) -> float:
    """Dollars a month of a deployment that nobody uses: a sweep a minute, and the mapping's polls."""
    sweeps = MONTH_S / 60
    polls = MONTH_S * assumed.idle_polls_s
    counted = {name: amount * sweeps for name, amount in idle.ledger.quantities.items() if name != "log_bytes"}
    log_bytes = idle.ledger.quantities["log_bytes"] + assumed.platform_log_bytes
    cost = prices.cost(
        {
            **counted,
            "queue_request": counted.get("queue_request", 0.0) + polls,
            "scheduler_call": sweeps,
            "log_gb": log_bytes * sweeps / 1e9,
            "lambda_arm64_gb_second": sweeps * assumed.idle_sweep_s * assumed.sweep_mb / 1_024,
        }
    )
    return sum(cost.values())


@dataclass(frozen=True)
class Result:
    """One run and its bill: dollars for a million such targets, by line."""

    run: Run
    lines: Mapping[str, float]

    @property
    def total(self) -> float:
        return sum(self.lines.values())


def price(run: Run, prices: Prices, assumed: Assumptions) -> Result:
    lines = bill(count_all(run, assumed), prices)
    return Result(run, {line: per_million(dollars, run.targets) for line, dollars in lines.items()})


def show(results: Sequence[Result], prices: Prices, assumed: Assumptions) -> Iterable[str]:
    """The tables and all that they assume, in Markdown."""
    yield "Dollars per million targets\n"
    heads = [f"{r.run.targets:,} x {r.run.content_bytes // 1_000} KB" for r in results]
    yield f"| | {' | '.join(heads)} |\n|---|{'---:|' * len(heads)}"
    for line in LINES:
        yield f"| {line} | {' | '.join(f'{r.lines[line]:.2f}' for r in results)} |"
    yield f"| **together** | {' | '.join(f'**{r.total:.2f}**' for r in results)} |"
    yield f"| targets an invocation | {' | '.join(f'{r.run.batch:.1f}' for r in results)} |"
    yield f"| content, compressed, bytes | {' | '.join(f'{r.run.compressed_bytes:,}' for r in results)} |"
    yield "\nCounted, per target\n"
    names = ("table_write_unit", "table_read_unit", "queue_request", "object_put", "object_get", "api_request")
    yield f"| | {' | '.join(heads)} |\n|---|{'---:|' * len(heads)}"
    for name in names:
        yield f"| {name} | {' | '.join(f'{r.run.ledger.quantities[name] / r.run.targets:.3f}' for r in results)} |"
    for label, counts in (
        ("AWS requests", [r.run.ledger.requests.total() for r in results]),
        ("bytes sent to AWS", [r.run.ledger.sent for r in results]),
        ("bytes read from the bucket", [r.run.ledger.received for r in results]),
        ("bytes answered to the caller", [r.run.answered for r in results]),
    ):
        values = [count / r.run.targets for count, r in zip(counts, results, strict=True)]
        yield f"| {label} | {' | '.join(f'{value:,.2f}' for value in values)} |"
    yield "\nAssumed\n"
    yield from (f"- {text}" for text in describe(assumed))
    yield "\nIf that is otherwise, for the same counts\n"
    worst = [r for r in results if r.run.targets >= 1_000 and r.run.content_bytes == CONTENTS[0]] or results
    yield from (f"- {text}" for text in vary(worst[-1].run, prices, assumed))
    yield "\nPublished prices for a million pages; these services include proxies and browsers, sift is plain HTTP"
    yield "from your own account\n\n| service | dollars | |\n|---|---:|---|"
    for other in prices.others:
        span = f"{other.low:,.0f}" if other.low == other.high else f"{other.low:,.0f} to {other.high:,.0f}"
        yield f"| {other.name} | {span} | {other.note}, {other.date} |"


def describe(assumed: Assumptions) -> Iterable[str]:
    yield (
        f"a fetch, its page read, takes {assumed.fetch_s} s, and so do the ten of an invocation together; with "
        f"{assumed.worker_requests} AWS requests of {assumed.aws_request_s * 1_000:.0f} ms it lasts "
        f"{assumed.invocation_s:.2f} s"
    )
    yield f"memory: worker {assumed.worker_mb} MB, API {assumed.api_mb} MB, arm64"
    yield f"full batches, as under load; no cold starts; a window of {assumed.window}"
    yield f"the caller submits, looks every {assumed.looks_every_s:.0f} s, and reads every content once"
    yield f"items are kept for {assumed.kept_s // 86_400} day after the end"
    yield f"lines that AWS logs: {assumed.platform_log_bytes} bytes an invocation, {assumed.access_log_bytes} a request"
    yield "no free tier, no NAT gateway, no discounts"
    yield (
        "left out, because the price table has no price for it: traffic to the caller, storage in the bucket, "
        "point-in-time recovery, one event a job on the bus, metrics made from the logs"
    )


def vary(run: Run, prices: Prices, assumed: Assumptions) -> Iterable[str]:
    """The same counts under other assumptions."""
    from dataclasses import replace

    slowest = assumed.fetch_s * sum(1 / n for n in range(1, 11))
    cases = {
        f"the slowest of ten decides, fetches vary exponentially ({slowest:.1f} s an invocation)": {"fetch_s": slowest},
        "a fetch takes 0.5 s": {"fetch_s": 0.5},
        "reading ten pages takes 0.4 s more, one after the other": {"fetch_s": assumed.fetch_s + 0.4},
        "the worker has 1,024 MB, and takes as long": {"worker_mb": 1_024},
        "items are kept for 30 days": {"kept_s": 30 * 86_400},
    }
    for name, values in cases.items():
        yield f"{name}: {price(run, prices, replace(assumed, **values)).total:.2f}"  # type: ignore[arg-type]


def main() -> None:
    """Run the jobs, print the bill, and draw it when nothing was left out."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--targets", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--content", type=int, nargs="+", default=list(CONTENTS), help="bytes")
    arguments = parser.parse_args()
    prices = read_prices()
    account = Account()
    try:
        assumed = Assumptions(**account.memory())
        results = []
        for content in arguments.content:
            for targets in arguments.targets:
                print(f"running {targets:,} targets of {content // 1_000} KB", file=sys.stderr)
                results.append(price(account.run(targets, content), prices, assumed))
        idle = account.idle()
    finally:
        account.close()
    print("\n".join(show(results, prices, assumed)))
    print(
        f"\nA deployment that nobody uses: ${idle_month(idle, prices, assumed):.2f} a month (a sweep a minute, polls)"
    )
    aimed = [r for r in results if r.run.content_bytes == CONTENTS[0] and r.run.batch > 9]
    for result in aimed:
        met = "met" if result.total <= GOAL else "MISSED"
        print(f"Goal of ${GOAL:.0f} for {MILLION:,}: {met} with {result.run.targets:,} targets, ${result.total:.2f}")
    if arguments.targets == list(SIZES) and arguments.content == list(CONTENTS):
        from benchmarks.cost_plot import draw

        PICTURE.write_text(draw(results, prices), encoding="utf-8")


if __name__ == "__main__":
    main()
