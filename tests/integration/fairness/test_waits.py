"""A small job waits for what a large one has out, and never for what it has left."""

from __future__ import annotations

import pytest

from benchmarks.fairness import BATCH, LARGE, SMALL, SMALLS, WORKERS, Course, Scene, run, spread_out
from benchmarks.fairness_plot import draw
from sift.jobs import MAX_WINDOW

FAIR = SMALL + MAX_WINDOW


def test_seven_small_jobs_right_after_one_of_nine_thousand() -> None:
    course = run(Scene(LARGE))
    assert len(course.meanwhile()) == SMALLS
    assert max(course.ahead()) <= MAX_WINDOW
    assert max(course.meanwhile()) <= FAIR
    # Not by luck: the large job was there first, and had all of its window out.
    assert course.finished[:MAX_WINDOW] == [0] * MAX_WINDOW
    assert course.ended[0] == LARGE + SMALLS * SMALL
    assert max(course.ended[job] for job in course.smalls) < 100


@pytest.mark.parametrize("seed", range(4))
def test_seven_small_jobs_in_the_course_of_a_large_one(seed: int) -> None:
    course = run(Scene(1_000, spread_out(1_000, seed), seed=seed))
    assert max(course.ahead()) <= MAX_WINDOW
    assert max(course.meanwhile()) <= FAIR


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("workers", [2, 5])
def test_fetches_that_take_different_times(seed: int, workers: int) -> None:
    """What other workers begin after a small job's last target, and finish before it, it did not wait for."""
    course = run(Scene(600, spread_out(600, seed), workers=workers, spread=0.5, seed=seed))
    assert max(course.ahead()) <= MAX_WINDOW
    # Beside a target of 1.5 s, every other place of the workers finishes at most three of 0.5 s.
    assert max(course.meanwhile()) <= FAIR + 3 * workers * BATCH


def test_a_window_without_a_bound_would_not_be_fair(monkeypatch: pytest.MonkeyPatch) -> None:
    """The measure notices: with all of the large job out at once, the small ones wait for all of it."""
    monkeypatch.setattr("benchmarks.fairness.WINDOW", 600)
    course = run(Scene(600))
    assert min(course.ahead()) == 600
    assert min(course.meanwhile()) > FAIR


def test_the_same_scene_takes_the_same_course() -> None:
    scene = Scene(200, spread_out(200, 1), spread=0.9, seed=1)
    first, second = run(scene), run(scene)
    assert first.finished == second.finished
    assert WORKERS * BATCH < MAX_WINDOW, "a part of the window waits in the queue, where order matters"


def test_the_plot_shows_every_job() -> None:
    course: Course = run(Scene(200))
    assert draw(course, course).count("<polyline") == 2 * (1 + SMALLS)
