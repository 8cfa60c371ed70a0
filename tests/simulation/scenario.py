"""What a seed stands for: how large the world is, how it fails, and how it ends."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any

from sift.clock import CLOCK_MARGIN_MS
from sift.pacing import PaceLimits


class Fault(Enum):
    """What happens at one call to a port."""

    DEATH_BEFORE = auto()  # the process dies, and the call never gets there
    DEATH_AFTER = auto()  # the call is done, and the process dies
    REFUSED = auto()  # Unavailable, and nothing was done: throttling, or a transaction that lost every race
    ANSWER_LOST = auto()  # Unavailable, and it was done
    LATE = auto()  # Unavailable, and it is done a while later
    REPEATED = auto()  # the answer was lost, and the SDK sends it again; the second answer counts
    ECHO = auto()  # the SDK sent it again after a while, and the first one gets there last
    SLOW = auto()  # it takes seconds
    FROZEN = auto()  # the whole process stands still for longer than a lease, and goes on
    PARTIAL = auto()  # a batch of messages, of which only some are taken (sends only)
    DUPLICATED = auto()  # messages that come twice (sends only)
    DROPPED = auto()  # messages that were taken and are lost (sends only)


#: How often a site is asked, and by how many at once, where it is paced.
PACE = PaceLimits(2, 4)

SENDS = (Fault.PARTIAL, Fault.DUPLICATED, Fault.DROPPED)


class Quiet(Enum):
    """How a run ends."""

    AS_IS = auto()  # the sweeper and the workers go on with what is there
    NOTHING_LEFT = auto()  # every message is lost; the sweeper has to send them again
    NO_WORKERS = auto()  # only the sweeper is left: jobs end by their deadline


@dataclass(frozen=True)
class Scenario:
    """All times in seconds unless named otherwise."""

    seed: int
    rates: Mapping[Fault, float] = field(default_factory=dict)
    lost_deletes: float = 0.0
    workers: int = 2
    batch: int = 10
    clients: int = 3
    lease: int = 100
    skew_ms: int = 2_400
    jobs_total: int = 8
    jobs_per_caller: int = 3
    job_bytes: int = 10**9
    max_targets: int = 8
    deadline: int = 43_200
    short_deadline: int = 43_200
    ttl: int = 86_400
    chaos: float = 600.0
    pace: float = 20.0
    quiet: Quiet = Quiet.AS_IS
    resume_at_end: bool = True
    jobs_per_shard: int = 500
    written_ahead: bool = False
    targets_in_bucket: bool = False
    trouble: float = 0.3
    #: What the targets are; nothing: anything, and `trouble` of them bad.
    kinds: tuple[str, ...] = ()
    #: Clocks are as far off as they may be, rather than anywhere between.
    far_off: bool = False
    #: The site is asked twice a second at most, and by four at once.
    paced: bool = False
    #: Clients do little but pause and resume.
    flips: bool = False
    #: Clients do little but pause, resume and cancel.
    aborts: bool = False
    #: How many of the works are requests to the model gateway.
    inference: float = 0.4

    @property
    def clocks_agree(self) -> bool:
        """No two clocks differ by more than the margin that the code allows for."""
        return 2 * self.skew_ms <= CLOCK_MARGIN_MS


#: What rarely comes together by chance.
THEMES: dict[str, dict[str, Any]] = {
    "zombies": {
        "rates": {Fault.FROZEN: 0.02, Fault.DUPLICATED: 0.01, Fault.SLOW: 0.01},
        "kinds": ("ok", "large", "slow"), "workers": 4, "batch": 2, "job_bytes": 10**9, "jobs_total": 8,
        "short_deadline": 43_200, "chaos": 200.0, "pace": 8.0, "skew_ms": 1_000,
    },
    "hung workers": {
        "rates": {Fault.DUPLICATED: 0.7}, "kinds": ("stuck1", "stuck99", "ok"), "lease": 91, "skew_ms": 2_400,
        "far_off": True, "workers": 4, "batch": 2, "chaos": 200.0, "pace": 8.0, "short_deadline": 43_200,
    },
    "pauses": {
        "rates": {Fault.SLOW: 0.05, Fault.LATE: 0.1}, "kinds": ("slow", "ok"), "workers": 4, "clients": 4,
        "flips": True, "chaos": 150.0, "pace": 1.0, "jobs_total": 2, "short_deadline": 43_200,
    },
    "aborts": {
        "rates": {Fault.SLOW: 0.01, Fault.DUPLICATED: 0.02}, "kinds": ("slow", "slow", "ok", "cut1", "error"),
        "workers": 4, "clients": 4, "aborts": True, "inference": 1.0, "chaos": 200.0, "pace": 2.0, "jobs_total": 4,
    },
    "dying askers": {
        "rates": {Fault.DEATH_BEFORE: 0.03, Fault.DEATH_AFTER: 0.03, Fault.LATE: 0.02, Fault.ANSWER_LOST: 0.02},
        "kinds": ("ok", "large", "slow", "cut1", "busy1", "error"), "workers": 3, "inference": 1.0, "chaos": 300.0,
        "pace": 5.0, "jobs_total": 4, "short_deadline": 43_200,
    },
    "deadlines": {
        "rates": {Fault.SLOW: 0.1, Fault.LATE: 0.05}, "kinds": ("ok", "slow"), "short_deadline": 10, "clients": 4,
        "chaos": 150.0, "pace": 2.0, "jobs_per_caller": 3, "jobs_total": 8,
    },
}  # fmt: skip


def draw(seed: int, *, small: bool = False) -> Scenario:
    """The scenario of a seed: three of five are drawn freely, the others on a theme. `small` for slow adapters."""
    paced = random.Random(f"paced {seed}").random() < 0.4
    scenario, rng = dataclasses.replace(_draw(seed, small), paced=paced), random.Random(f"theme {seed}")
    if rng.random() < 0.6:
        return scenario
    theme = THEMES[rng.choice(sorted(THEMES))]
    smaller = {"chaos": min(theme["chaos"], 100.0)} if small else {}
    return dataclasses.replace(scenario, **{**theme, **smaller})


def _draw(seed: int, small: bool) -> Scenario:
    rng = random.Random(f"scenario {seed}")
    level = rng.choice([0.0, 0.01, 0.03, 0.08, 0.08] if small else [0.0, 0.0, 0.002, 0.01, 0.01, 0.03, 0.08])
    kinds = rng.sample(list(Fault), rng.randint(1, len(Fault)))
    weights = {kind: rng.random() * (0.25 if kind is Fault.FROZEN else 1.0) for kind in kinds}
    total = sum(weights.values())
    far = rng.random() < 0.15
    quiet = rng.choice([Quiet.AS_IS, Quiet.AS_IS, Quiet.NOTHING_LEFT, Quiet.NOTHING_LEFT, Quiet.NO_WORKERS])
    resume_at_end = rng.random() < 0.8
    chaos = rng.choice([60.0, 60.0, 150.0] if small else [60.0, 200.0, 400.0, 800.0, 1_600.0])
    pace = rng.choice([2.0, 8.0, 20.0, 40.0])
    waits_for_deadlines = quiet is Quiet.NO_WORKERS or not resume_at_end
    return Scenario(
        seed=seed,
        rates={kind: level * weight / total for kind, weight in weights.items()},
        lost_deletes=rng.choice([0.0, 0.0, 0.02, 0.1]) if level else 0.0,
        workers=rng.randint(1, 3 if small else 4),
        batch=rng.choice([1, 2, 5, 10, 10]),
        clients=rng.randint(1, 2 if small else 5),
        lease=100 if far else rng.randint(91, 100),
        skew_ms=4_000 if far else rng.choice([0, 1_000, 2_400]),
        jobs_total=rng.choice([1, 2, 3, 4, 8]),
        jobs_per_caller=rng.choice([1, 1, 2, 3]),
        job_bytes=rng.choice([10**9, 10**9, 400, 100_000]),
        max_targets=rng.choice([1, 3, 5] if small else [1, 2, 4, 8, 8, 12, 24, rng.choice([8, 8, 120])]),
        deadline=5_400 if waits_for_deadlines else 43_200,
        short_deadline=rng.choice([60, 120, 300, 900, 5_400, 5_400]),
        ttl=rng.choice([0, 120, 86_400, 86_400]),
        chaos=min(chaos, 100 * pace),
        pace=pace,
        quiet=quiet,
        resume_at_end=resume_at_end,
        jobs_per_shard=rng.choice([500, 500, 1, 2]),
        written_ahead=rng.random() < 0.2,
        targets_in_bucket=rng.random() < 0.2,
        trouble=rng.choice([0.0, 0.3, 0.3, 0.7]),
    )  # fmt: skip
