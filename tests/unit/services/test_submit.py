"""Submitting: what one commit writes, what is refused in which order, and what nothing is left of."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest

from sift.blob_keys import segment_key
from sift.errors import CallerBusy, Forbidden, Invalid, ServiceBusy, Unavailable
from sift.identity import Identity, Limits
from sift.jobs import MAX_WINDOW, Flight
from sift.messages import TargetMessage, decode
from sift.services.advance import quiet_since
from sift.services.submit import Request
from sift.services.terms import shard_cap, shard_count
from sift.specs import Spec, unpack_specs
from sift.store.ports import Segment
from tests.unit.services.faults import Fault, at
from tests.unit.services.world import ANN, BOB, NOW, World, urls


def limits(**values: int) -> Limits:
    return Limits(**{"targets_per_job": 32, "jobs_per_caller": 1, "retained_jobs": 1_000, "job_bytes": 10**6, **values})


def test_a_new_job(world: World) -> None:
    async def story() -> None:
        targets = [Spec("https://example.com/a", {"mode": "raw"}, "mine"), Spec("https://example.com/b")]
        made = await world.submit(targets=targets, options={"mode": "raw"}, metadata={"run": "7"}, window=1)
        meta, state = made.meta, made.state
        assert not made.reused
        assert await world.store.get_job(meta.job_id) == (meta, state)
        assert (meta.kind, meta.caller, meta.identity) == ("fetch", "acme/ann", ANN.snapshot())
        assert (meta.created_at, meta.deadline_at) == (NOW, NOW + 86_400_000)
        assert meta.expires_at == state.expires_at == NOW // 1000 + 86_400 + 3_600
        assert (dict(meta.options), dict(meta.metadata)) == ({"mode": "raw"}, {"run": "7"})
        assert (state.status, state.total, state.released, state.window) == ("queued", 2, 1, 1)
        assert state.budget == 1_000_000
        assert dict(state.flight) == {0: Flight(quiet_since(NOW))}
        assert world.store.segments[meta.job_id, 0] == Segment(0, targets)
        bodies = [decode(message.body) for message in world.queue.waiting.values()]
        assert bodies == [TargetMessage(meta.job_id, 0, "https://example.com/a", {"mode": "raw"}, "mine")]
        assert world.store.live == {0: {meta.job_id}}
        assert world.store.callers == {"acme/ann": {meta.job_id}}

    asyncio.run(story())


def test_without_a_ttl_a_job_is_kept_for_ever() -> None:
    async def story() -> None:
        world = World(ttl_seconds=0)
        made = await world.submit()
        await world.run_on()
        assert made.meta.expires_at is None
        assert world.state(made).expires_at is None
        world.clock.now += 10**12
        assert (await world.submit()).reused

    asyncio.run(story())


async def refusal(world: World, kind: type[Exception], code: str, **request: Any) -> Any:
    """The refusal of a submission, which must leave no trace."""
    before = world.contents()
    with pytest.raises(kind) as caught:
        await world.submit(**request)
    assert caught.value.code == code  # type: ignore[attr-defined]
    assert world.contents() == before
    return caught.value


def test_the_order_of_refusals() -> None:
    """Empty, then the same work again, then too many targets, then the caps."""

    async def story() -> None:
        world = World(jobs_total=1, limits=limits(targets_per_job=3))
        first = await world.submit(3)
        small = Identity("acme", "ann", "00000000000a", limits={"targets_per_job": 2})
        empty: list[Spec] = []
        with pytest.raises(Invalid, match="no targets"):
            await world.submitter.submit(small, Request(targets=empty))
        again = await world.submit(3, who=small)
        assert again.reused
        assert again.meta.job_id == first.meta.job_id
        error = await refusal(world, Invalid, "too_many_targets", targets=[Spec(url) for url in urls(4)])
        assert error.extra == {"limit": 3}
        error = await refusal(world, CallerBusy, "caller_busy", count=2)
        assert (error.retry_after, error.extra) == (15, {"cap": "jobs_per_caller", "limit": 1})
        error = await refusal(world, ServiceBusy, "jobs_busy", count=2, who=BOB)
        assert (error.retry_after, error.extra) == (30, {"cap": "jobs_total", "limit": 1})

    asyncio.run(story())


def test_a_slot_is_free_again_when_a_job_has_ended() -> None:
    async def story() -> None:
        world = World(jobs_total=1, limits=limits())
        await world.submit(2)
        await refusal(world, CallerBusy, "caller_busy", count=1)
        await world.run_on()
        assert not (await world.submit(1)).reused

    asyncio.run(story())


def test_the_store_of_a_caller_can_be_full() -> None:
    async def story() -> None:
        world = World(limits=limits(retained_jobs=2), ttl_seconds=60, deadline_seconds=600)
        for number in range(2):
            await world.submit(number + 1)
            await world.run_on()
        error = await refusal(world, CallerBusy, "store_full", count=5)
        assert error.retry_after
        assert (await world.submit(1)).reused, "what is there already is still answered"
        assert not (await world.submit(5, who=BOB)).reused
        world.clock.now += 3_600_000
        assert not (await world.submit(5)).reused

    asyncio.run(story())


def test_a_queue_that_fails_now_is_repaired_later(world: World) -> None:
    async def story() -> None:
        world.restart(at("queue.send", Fault.REQUEST_LOST))
        made = await world.submit(3)
        assert not world.queue.waiting
        await world.run_on()
        world.check(made.meta.job_id, ["done"] * 3)

    asyncio.run(story())


def test_a_table_that_fails_is_said_to_be_unavailable(world: World) -> None:
    async def story() -> None:
        for call in ("get_idempotency", "count_jobs", "commit"):
            world.restart(at(f"store.{call}", Fault.REQUEST_LOST))
            await refusal(world, Unavailable, "unavailable")
        world.restart(at("store.commit", Fault.ANSWER_LOST))
        with pytest.raises(Unavailable):
            await world.submit()
        # Whoever is told to repeat gets the job that was made all the same.
        assert (await world.submit()).reused
        await world.run_on()
        (job_id,) = world.store.metas
        world.check(job_id)

    asyncio.run(story())


def test_a_commit_that_the_sdk_repeats_is_one_job(world: World) -> None:
    async def story() -> None:
        world.restart(at("store.commit", Fault.REPEATED))
        made = await world.submit()
        assert not made.reused
        assert list(world.store.metas) == [made.meta.job_id]

    asyncio.run(story())


def long_specs(count: int, length: int) -> list[Spec]:
    """Targets that hardly compress."""
    source = random.Random(7)
    return [Spec(f"https://example.com/{number}?{source.randbytes(length).hex()}") for number in range(count)]


def test_long_targets_are_kept_in_the_bucket(world: World) -> None:
    async def story() -> None:
        targets = [*long_specs(100, 4_000), *[Spec(url) for url in urls(5)]]
        made = await world.submit(targets=targets)
        job_id = made.meta.job_id
        key = segment_key(job_id, 0)
        assert world.store.segments[job_id, 0] == Segment(0, blob=key)
        assert world.store.segments[job_id, 1] == Segment(1, targets[100:])
        assert unpack_specs(world.blobs.blobs[key][0]) == targets[:100]
        await world.run_on()
        world.check(job_id, ["done"] * 105)
        assert sorted(world.site.fetched) == sorted(spec.url for spec in targets)

    asyncio.run(story())


@pytest.mark.parametrize(
    ("targets", "ahead"),
    [
        ([Spec(url) for url in urls(8_000)], False),
        ([Spec(url) for url in urls(8_100)], True),
        (long_specs(1_200, 2_000), True),
    ],
    ids=["80 segments", "81 segments", "3 MB"],
)
def test_a_large_job_writes_its_segments_ahead_of_the_commit(targets: list[Spec], ahead: bool) -> None:
    async def story() -> None:
        world = World(limits=limits(targets_per_job=9_000))
        made = await world.submit(targets=targets)
        calls = world.life.calls
        assert ("store.put_segments" in calls) == ahead
        if ahead:
            assert calls.index("store.put_segments") < calls.index("store.commit")
        segments = [world.store.segments[made.meta.job_id, number] for number in range(len(targets) // 100)]
        assert [spec for segment in segments for spec in segment.specs] == targets
        assert made.state.released == MAX_WINDOW

    asyncio.run(story())


def test_a_large_job_that_is_known_costs_one_read(world: World) -> None:
    async def story() -> None:
        targets = [Spec(url) for url in urls(8_100)]
        await world.submit(targets=targets)
        life = world.restart()
        assert (await world.submit(targets=targets)).reused
        assert life.calls == ["store.get_idempotency", "store.get_job"]

    asyncio.run(story())


def test_a_large_job_that_the_caps_refuse_writes_nothing() -> None:
    async def story() -> None:
        world = World(limits=limits(targets_per_job=9_000), jobs_total=2)
        await world.submit(1)
        before = world.contents()
        with pytest.raises(CallerBusy):
            await world.submit(8_100)
        assert world.contents() == before
        await world.submit(1, who=BOB)
        before = world.contents()
        with pytest.raises(ServiceBusy):
            await world.submit(8_100, who=Identity("acme", "cid", "00000000000c"))
        assert world.contents() == before
        with pytest.raises(CallerBusy):
            await world.submit(targets=long_specs(200, 4_000))
        assert not world.blobs.blobs
        assert "store.put_segments" not in world.life.calls

    asyncio.run(story())


def test_a_large_job_that_lost_a_race_leaves_only_what_expires() -> None:
    async def story() -> None:
        world = World(limits=limits(targets_per_job=9_000))
        put = world.store.put_segments

        async def be_overtaken(*arguments: Any) -> None:
            await put(*arguments)
            await world.submit(1)

        world.store.put_segments = be_overtaken  # type: ignore[method-assign]
        with pytest.raises(CallerBusy):
            await world.submit(8_100)
        (job_id,) = world.store.metas
        assert {key[0] for key in world.store.segments} > {job_id}

    asyncio.run(story())


def test_a_large_job_whose_slot_the_same_work_took_meanwhile_is_that_work() -> None:
    async def story() -> None:
        world = World(limits=limits(targets_per_job=9_000))
        targets = [Spec(url) for url in urls(8_100)]
        look = world.store.get_idempotency
        looks: list[Any] = []

        async def be_overtaken(key: str) -> Any:
            seen = await look(key)
            looks.append(seen)
            if len(looks) == 1:
                await world.submit(targets=targets)
            return seen

        world.store.get_idempotency = be_overtaken  # type: ignore[method-assign]
        late = await world.submit(targets=targets)
        assert late.reused
        assert list(world.store.metas) == [late.meta.job_id]

    asyncio.run(story())


@pytest.mark.parametrize("total", [1, 8, 499, 500, 501, 1_000, 1_001, 9_999, 10_000])
def test_shares_of_the_shards_add_up_to_the_cap(total: int) -> None:
    shares = [shard_cap(total, shard) for shard in range(shard_count(total))]
    assert sum(shares) == total
    assert max(shares) - min(shares) <= 1
    assert 1 <= min(shares) <= max(shares) <= 500


def test_every_shard_is_filled_before_the_service_is_busy() -> None:
    async def story() -> None:
        world = World(jobs_total=1_001, limits=limits(jobs_per_caller=2_000, retained_jobs=2_000))
        for number in range(1_001):
            made = await world.submit(targets=[Spec(f"https://example.com/{number}")])
            assert made.meta.job_id in world.store.live[made.meta.shard]
        assert sorted(len(ids) for ids in world.store.live.values()) == [333, 334, 334]
        await refusal(world, ServiceBusy, "jobs_busy", targets=[Spec("https://example.com/one-more")])

    asyncio.run(story())


CLASSES = {
    "small": limits(targets_per_job=2, window=1, ttl_seconds=60, job_bytes=7),
    "batch": limits(targets_per_job=100, jobs_per_caller=3, window=8),
}


def test_a_class_sets_the_limits_of_its_callers() -> None:
    async def story() -> None:
        world = World(limits=limits(targets_per_job=10), classes=CLASSES, ttl_seconds=3_600)
        small = Identity("acme", "sam", "00000000000c", caller_class="small")
        made = await world.submit(2, who=small)
        assert (made.state.window, made.state.released, made.state.budget) == (1, 1, 7)
        assert made.meta.ttl_seconds == 60
        assert made.meta.identity["caller_class"] == "small"
        for who, most in ((small, 2), (ANN, 10), (Identity("acme", "bea", "k", caller_class="batch"), 100)):
            with pytest.raises(Invalid) as caught:
                await world.submit(most + 1, who=who)
            assert caught.value.extra["limit"] == most
        await world.run_on()
        assert world.state(made).expires_at == world.state(made).ended_at // 1000 + 60

    asyncio.run(story())


def test_live_jobs_are_those_of_the_class() -> None:
    async def story() -> None:
        world = World(limits=limits(), classes=CLASSES)
        batch = Identity("acme", "bea", "00000000000c", caller_class="batch")
        for number in range(3):
            await world.submit(who=batch, targets=[Spec(f"https://example.com/{number}")])
        with pytest.raises(CallerBusy):
            await world.submit(who=batch)

    asyncio.run(story())


def test_a_keys_own_limits_win_over_those_of_its_class() -> None:
    async def story() -> None:
        world = World(classes=CLASSES)
        who = Identity("acme", "sam", "k", limits={"window": 2, "jobs_per_caller": 2}, caller_class="small")
        made = await world.submit(2, who=who, window=32)
        assert (made.state.window, made.state.budget) == (2, 7)
        assert (await world.submit(1, who=who, window=1, fresh=True)).state.window == 1

    asyncio.run(story())


def test_a_class_that_is_not_there_grants_nothing(world: World) -> None:
    async def story() -> None:
        before = world.contents()
        with pytest.raises(Forbidden, match="no caller class gold"):
            await world.submit(who=Identity("acme", "sam", "k", caller_class="gold"))
        assert world.contents() == before

    asyncio.run(story())
