"""One seed, on either set of adapters."""

from __future__ import annotations

from tests.simulation.scenario import draw
from tests.simulation.world import Failure, World


def run_seed(seed: int, *, aws: bool = False) -> Failure | None:
    """Run a seed; None when every invariant held."""
    if not aws:
        return World(draw(seed)).run()
    from tests.simulation.cloud import AwsBackend  # moto takes seconds to load

    return World(draw(seed, small=True), AwsBackend).run()
