"""The arithmetic of the bill."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from benchmarks.cost import LINES, Assumptions, bill, count_all, idle_month, job_seconds, price, show, vary
from benchmarks.cost_plot import draw
from benchmarks.cost_run import Calls, Idle, Run, make_text
from benchmarks.ledger import Ledger
from benchmarks.pricing import Other, Prices, per_million, read_prices

AWS = {
    "lambda_arm64_gb_second": 0.001, "lambda_request": 0.002, "table_write_unit": 0.01, "table_read_unit": 0.02,
    "table_gb_month": 30.0, "queue_request": 0.03, "queue_fair_request": 0.04, "object_put": 0.05, "object_get": 0.06,
    "api_request": 0.07, "log_gb": 0.5, "scheduler_call": 0.08,
}  # fmt: skip
PRICES = Prices(AWS, (Other("Another", 100.0, 200.0, "a note", "2026-08-11"),))
ASSUMED = Assumptions(worker_mb=2_048, api_mb=1_024, sweep_mb=512)


def make_run(targets: int = 100, **quantities: float) -> Run:
    ledger = Ledger()
    ledger.add(**{"log_bytes": 1_000_000, **quantities})
    look = Ledger()
    look.add(log_bytes=0, table_read_unit=1)
    return Run(
        targets=targets, content_bytes=5_000, compressed_bytes=2_000, ledger=ledger, api=Calls(3, 0.1, 20),
        fetch=Calls(targets // 10, 1.0, 300), look=Idle(look, Calls(1, 0.0, 1)), stored=10**9, answered=1,
    )  # fmt: skip


def test_every_price_is_on_the_bill_or_known_to_be_elsewhere() -> None:
    named = {name for names in LINES.values() for name in names}
    elsewhere = {"lambda_arm64_gb_second", "lambda_x86_64_gb_second", "scheduler_call"}
    assert set(read_prices().aws) - elsewhere == named - {"worker_gb_second", "api_gb_second"}


def test_each_line_is_its_quantities_times_their_prices() -> None:
    found = bill({"table_write_unit": 3, "queue_request": 2, "queue_fair_request": 1, "worker_gb_second": 5}, PRICES)
    assert found["table: writes"] == pytest.approx(0.03)
    assert found["queue"] == pytest.approx(0.10)
    assert found["worker: duration"] == pytest.approx(0.005)
    assert sum(found.values()) == pytest.approx(0.135)


def test_what_is_counted_and_on_no_line_is_refused() -> None:
    with pytest.raises(KeyError, match="scheduler_call"):
        bill({"scheduler_call": 1}, PRICES)
    with pytest.raises(KeyError, match="moon_dust"):
        bill({"moon_dust": 1}, PRICES)


def test_the_worker_pays_for_its_memory_while_the_invocation_lasts() -> None:
    assumed = dataclasses.replace(ASSUMED, fetch_s=2.0, worker_requests=5, aws_request_s=0.1)
    assert count_all(make_run(), assumed)["worker_gb_second"] == pytest.approx(10 * 2.5 * 2)


def test_storage_is_a_share_of_a_month() -> None:
    kept = dataclasses.replace(ASSUMED, kept_s=3 * 86_400)
    assert count_all(make_run(), kept)["table_gb_month"] == pytest.approx(0.1)


def test_lines_of_the_platform_are_logged_too() -> None:
    run = make_run()
    assert count_all(run, ASSUMED)["log_gb"] * 1e9 == pytest.approx(1_000_000 + 400 * 13 + 250 * 3)


def test_a_long_job_is_looked_at_again_and_again() -> None:
    run = make_run(targets=3_200)
    seconds = job_seconds(run, ASSUMED)
    assert seconds == pytest.approx(100 * ASSUMED.invocation_s)
    looks = round(seconds / ASSUMED.looks_every_s) - 1
    assert looks > 10
    assert count_all(run, ASSUMED)["table_read_unit"] == looks


def test_a_result_is_for_a_million() -> None:
    run = make_run(targets=100, table_write_unit=500)
    assert price(run, PRICES, ASSUMED).lines["table: writes"] == pytest.approx(per_million(5.0, 100))
    assert per_million(5.0, 100) == 50_000


def test_an_idle_deployment_pays_for_sweeps_and_polls() -> None:
    ledger = Ledger()
    ledger.add(lambda_request=1, table_read_unit=2, log_bytes=600)
    idle = idle_month(Idle(ledger, Calls()), PRICES, ASSUMED)
    sweep = 0.002 + 2 * 0.02 + 0.08 + 1_000 / 1e9 * 0.5 + 0.1 * 0.5 * 0.001
    assert idle == pytest.approx(43_200 * sweep + 648_000 * 0.03)


def test_the_report_says_what_it_assumes_and_what_others_include() -> None:
    text = "\n".join(show([price(make_run(), PRICES, ASSUMED)], PRICES, ASSUMED))
    for needed in (
        "1.5 s",
        "2048 MB",
        "no NAT gateway",
        "no free tier",
        "proxies and browsers",
        "compressed",
        "left out",
    ):
        assert needed in text
    assert "| Another | 100 to 200 | a note, 2026-08-11 |" in text


def test_other_assumptions_change_the_sum() -> None:
    base = price(make_run(), PRICES, ASSUMED).total
    assert all(
        float(line.rsplit(" ", 1)[1]) != pytest.approx(base, abs=0.005) for line in vary(make_run(), PRICES, ASSUMED)
    )


def test_the_picture_shows_each_job_and_each_service() -> None:
    results = [price(make_run(targets=n), PRICES, ASSUMED) for n in (1, 100, 200)]
    drawn = draw(results, PRICES)
    assert drawn.count("targets of 5 KB") == 2
    assert "single target" in drawn
    assert "Another" in drawn
    assert "$100 to $200" in drawn


@pytest.mark.parametrize("price_", ['"1"', "0.0", "-1.0", "1"])
def test_a_price_that_is_none_is_refused(tmp_path: Path, price_: str) -> None:
    path = tmp_path / "prices.toml"
    path.write_text(f"others = []\n[aws]\nqueue_request = {price_}\n")
    with pytest.raises(ValueError, match="queue_request"):
        read_prices(path)


def test_texts_are_as_long_as_asked_and_compress_like_pages() -> None:
    import zlib

    texts = [make_text(5_000, seed) for seed in range(5)]
    assert {len(text) for text in texts} == {5_000}
    assert len(set(texts)) == 5
    assert all(1_900 < len(zlib.compress(text, 6)) < 2_700 for text in texts)
