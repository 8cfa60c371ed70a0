"""Two hundred seeds on each run; `python -m tests.simulation` runs any number."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.simulation.runs import run_seed
from tests.simulation.scenario import draw
from tests.simulation.world import World

#: Seeds per test, so that several processes can share them.
CHUNK = 20
AWS_CHUNK = 5


@pytest.mark.parametrize("first", range(0, 200, CHUNK))
def test_every_invariant_holds_in_memory(first: int) -> None:
    for seed in range(first, first + CHUNK):
        failure = run_seed(seed)
        assert failure is None, f"seed {seed}: {failure.invariant}: {failure.detail}\n{failure.trace[-20_000:]}"


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("first", range(0, 25, AWS_CHUNK))
def test_every_invariant_holds_on_aws(first: int) -> None:
    for seed in range(first, first + AWS_CHUNK):
        failure = run_seed(seed, aws=True)
        assert failure is None, f"seed {seed}: {failure.invariant}: {failure.detail}\n{failure.trace[-20_000:]}"


def _story(seed: int) -> list[str]:
    world = World(draw(seed))
    assert world.run() is None
    return [f"{moment:.6f} {actor} {what} {remark}" for moment, actor, what, remark in world.trace]


def test_a_seed_is_the_same_story_every_time() -> None:
    first = _story(7)
    assert len(first) > 100
    assert _story(7) == first


def test_a_seed_is_the_same_story_in_every_process() -> None:
    """Whatever order the sets of this process have."""
    code = (
        "from tests.simulation.test_seeds import _story; import hashlib; "
        "print(hashlib.sha256(repr(_story(11)).encode()).hexdigest())"
    )
    told = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": salt},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for salt in ("1", "2")
    }
    assert len(told) == 1
