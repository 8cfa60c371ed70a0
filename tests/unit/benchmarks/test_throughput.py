"""The benchmark of throughput, in small: its site, its arithmetic, and one worker over it."""

from __future__ import annotations

from benchmarks.throughput import Speed, best, run_sift, site
from benchmarks.throughput_site import SIZES, make_page


def test_pages_have_the_sizes_they_are_told_and_are_the_same_each_time() -> None:
    pages = [make_page(number) for number in range(len(SIZES))]
    assert all(abs(len(page) - size) < 0.1 * size for page, size in zip(pages, SIZES, strict=True))
    assert pages[3] == make_page(3) != make_page(3 + len(SIZES))


def test_a_round_that_others_slowed_does_not_count() -> None:
    slow, fast = Speed(20.0, 5.0, 100, 1), Speed(10.0, 5.0, 100, 1)
    assert best([slow, fast]) is fast
    assert (fast.rate, fast.work) == (10.0, 20.0)


def test_every_page_of_the_site_is_read() -> None:
    with site(12) as port:
        speed = run_sift(port, 12)
    assert speed.pages == 12
    # A third of each page is its article, of which tags are no part.
    assert 12 * 1_500 < speed.chars < sum(len(make_page(number)) for number in range(12)) * 0.5
    assert speed.processor > 0
