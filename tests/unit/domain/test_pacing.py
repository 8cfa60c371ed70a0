"""Turns of hosts: which tickets are asked for, and what they are worth."""

from __future__ import annotations

import pytest

from sift.pacing import Pace, PaceLimits, Slot, host_of, plan, slots

LIMITS = PaceLimits(2, 4)
NOW = 1_796_000_000_000


def test_two_a_second_are_half_a_second_apart_and_have_two_seconds() -> None:
    assert (LIMITS.interval_ms, LIMITS.span_ms) == (500, 2_000)
    assert PaceLimits(3, 3).interval_ms == 334, "rounded so that it is never more"
    assert PaceLimits(0.1, 1).span_ms == 10_000


@pytest.mark.parametrize(("rate", "concurrency"), [(10, 4), (2, 1), (1, 0), (-1, 4)])
def test_limits_that_leave_no_time_are_refused(rate: float, concurrency: int) -> None:
    with pytest.raises(ValueError, match="too few"):
        PaceLimits(rate, concurrency).check()


def test_an_idle_host_is_asked_at_once_and_a_busy_one_in_turn() -> None:
    idle = plan(Pace(), 2, NOW, LIMITS)
    assert idle is not None
    assert (idle.tickets, idle.queue, idle.base, idle.exact) == (2, False, NOW, None)
    assert slots(Pace(NOW + 1_000, 2), idle, NOW, LIMITS) == [Slot(NOW, 0), Slot(NOW + 500, 1)]
    queued = plan(Pace(NOW + 1_000, 2), 3, NOW, LIMITS)
    assert queued is not None
    assert (queued.tickets, queued.queue) == (3, True)
    assert slots(Pace(NOW + 2_500, 5), queued, NOW, LIMITS) == [
        Slot(NOW + 1_000, 2), Slot(NOW + 1_500, 3), Slot(NOW + 2_000, 0),
    ]  # fmt: skip


def test_a_lane_that_is_held_is_passed_over() -> None:
    seen = Pace(NOW + 1_000, 6, holds={2: NOW + 9_000, 1: NOW - 1})
    claim = plan(seen, 3, NOW, LIMITS)
    assert claim is not None
    assert (claim.tickets, claim.exact) == (4, 6), "lane 2 is ticket 6's"
    got = slots(Pace(NOW + 3_000, 10, holds=seen.holds), claim, NOW, LIMITS)
    assert [(slot.at - NOW, slot.lane) for slot in got] == [(1_500, 3), (2_000, 0), (2_500, 1)]


def test_a_spacing_is_kept_until_another_is_wanted() -> None:
    seen = Pace(NOW + 1_000, 6, spacing=2_000)
    kept = plan(seen, 2, NOW, LIMITS)
    assert kept is not None
    assert (kept.interval_ms, kept.was, kept.spacing, kept.queue, kept.exact) == (2_000, 2_000, 2_000, True, None)
    got = slots(Pace(NOW + 5_000, 8, spacing=2_000), kept, NOW, LIMITS)
    assert got == [Slot(NOW + 1_000, 2, 8_000), Slot(NOW + 3_000, 3, 8_000)]


def test_a_shorter_spacing_waits_for_what_was_promised() -> None:
    """Tickets 2 to 5 went 2 s apart, the last 1 s ago, and each has 8 s."""
    seen = Pace(NOW + 1_000, 6, spacing=2_000)
    claim = plan(seen, 4, NOW, LIMITS, 500)
    assert claim is not None
    assert (claim.exact, claim.was, claim.spacing, claim.queue) == (6, 2_000, 0, False)
    got = slots(Pace(claim.base + 2_000, 10), claim, NOW, LIMITS)
    promised = [NOW - 7_000 + 2_000 * n + 8_000 for n in range(4)]
    assert all(slot.at >= end for slot, end in zip(got, promised, strict=True))
    assert [(slot.lane, slot.span) for slot in got] == [(2, 0), (3, 0), (0, 0), (1, 0)]
    assert got[-1].at == promised[-1]


def test_nothing_is_asked_for_while_every_lane_is_held() -> None:
    assert plan(Pace(NOW, 4, holds=dict.fromkeys(range(4), NOW + 1)), 1, NOW, LIMITS) is None


def test_nobody_goes_before_the_time_that_the_host_asked_for() -> None:
    claim = plan(Pace(NOW + 500, 1, after=NOW + 10_000), 1, NOW, LIMITS)
    assert claim is not None
    assert (claim.queue, claim.base) == (False, NOW + 10_000)
    late = plan(Pace(), 2, NOW, LIMITS)
    assert late is not None
    assert slots(Pace(NOW + 1_000, 2, after=NOW + 200), late, NOW, LIMITS) == [Slot(NOW + 500, 1)]


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("https://Example.com:8443/a", "example.com"), ("http://example.com./", "example.com"),
        ("https://bücher.example/", "xn--bcher-kva.example"), ("https://[2001:db8::1]/", "2001:db8::1"),
        ("https://[2001:DB8:0:0::01]/", "2001:db8::1"), ("https://[::ffff:192.0.2.1]/", "192.0.2.1"),
        ("https://straße.example/", "xn--strae-oqa.example"),
        ("https://xn--strae-oqa.example/", "xn--strae-oqa.example"),
        ("https://example。com/", "example.com"),
        ("https://u:p@example.com/", "example.com"), ("https://[::1/", None), ("nothing", None), ("https:///x", None),
        (f"https://{'x' * 254}/", None), ("https://ü..example/", None),
    ],
)  # fmt: skip
def test_the_host_that_a_url_is_paced_by(url: str, host: str | None) -> None:
    assert host_of(url) == host
