"""Submitting requests: what is refused, what is the same work, and where bodies are kept."""

from __future__ import annotations

import asyncio
import dataclasses
import json
from typing import Any

import pytest

from sift.blob_keys import input_key
from sift.errors import CallerBusy, Conflict, Forbidden, Invalid, Unavailable
from sift.identity import Limits
from sift.messages import RequestMessage, decode
from sift.model_requests import INLINE_BODY_BYTES, read_request
from sift.services.submit import Request, Submitted
from sift.specs import RequestSpec
from sift.store.ports import Segment
from tests.unit.services.faults import Fault, at
from tests.unit.services.world import ANN, NOW, World

LARGE = "x" * (INLINE_BODY_BYTES + 1)


def request(body: dict[str, Any], path: str = "/v1/x", model: str | None = None, index: int = 0) -> RequestSpec:
    return read_request(index, path, model, body)


async def submit(world: World, *specs: RequestSpec, who: Any = ANN, **values: Any) -> Submitted:
    return await world.submitter.submit(who, Request(targets=specs, **values))


def test_a_new_job(world: World) -> None:
    async def story() -> None:
        specs = [read_request(0, "/v1/x", "a", {"n": 1}, "mine"), request({"n": 2})]
        made = await submit(world, *specs, window=1, metadata={"run": "7"})
        assert (made.meta.kind, made.meta.identity, dict(made.meta.options)) == ("inference", ANN.snapshot(), {})
        assert (made.state.status, made.state.total, made.state.released) == ("queued", 2, 1)
        assert world.store.segments[made.meta.job_id, 0] == Segment(0, specs)
        (message,) = world.requests.waiting.values()
        body = '{"n":1,"model":"a"}'
        assert decode(message.body) == RequestMessage(made.meta.job_id, 0, "/v1/x", "a", body, None, "mine")
        assert not world.queue.waiting
        assert not world.blobs.blobs

    asyncio.run(story())


def test_the_order_of_refusals(world: World) -> None:
    async def story() -> None:
        world.terms = dataclasses.replace(
            world.terms, limits=Limits(targets_per_job=1, jobs_per_caller=1, retained_jobs=1_000, job_bytes=10**6)
        )
        world.restart()
        limited = dataclasses.replace(ANN, denied_models=("bad*",))
        good = request({"n": 1}, model="good")
        first = await submit(world, good, who=limited)
        before = world.contents()
        cases: list[tuple[list[RequestSpec], type[Exception], str]] = [
            ([], Invalid, "no_targets"),
            ([good, request({"n": 2}, path="/admin/keys")], Invalid, "invalid_target"),
            ([good, request({"n": 2}, model="bad-one")], Forbidden, "model_not_allowed"),
            ([good, request({"n": 2})], Forbidden, "model_not_allowed"),
            ([good, good], Invalid, "too_many_targets"),
            ([request({"n": 2}, model="good")], CallerBusy, "caller_busy"),
        ]
        for specs, kind, code in cases:
            with pytest.raises(kind) as caught:
                await submit(world, *specs, who=limited)
            assert getattr(caught.value, "code", None) == code
            if code in {"model_not_allowed", "invalid_target"}:
                assert getattr(caught.value, "extra", {})["index"] == 1
        assert world.contents() == before
        again = await submit(world, good, who=limited)
        assert (again.reused, again.meta.job_id) == (True, first.meta.job_id)

    asyncio.run(story())


def test_without_a_gateway_there_are_no_inference_jobs(world: World) -> None:
    async def story() -> None:
        world.terms = dataclasses.replace(world.terms, paths=None)
        world.restart()
        with pytest.raises(Forbidden) as caught:
            await submit(world, request({"n": 1}))
        assert caught.value.code == "kind_disabled"
        assert not world.store.metas
        await world.submit(1)

    asyncio.run(story())


def test_a_model_that_was_denied_after_the_submit_is_not_asked(world: World) -> None:
    """The rules of the snapshot go along with the job; here they are those of a job that the rules then forbid."""

    async def story() -> None:
        made = await submit(world, request({"prompt": "p"}, model="gone"), request({"prompt": "q"}, model="fine"))
        meta = world.store.metas[made.meta.job_id]
        rules = {**meta.identity, "denied_models": ["gone"]}
        world.store.metas[made.meta.job_id] = dataclasses.replace(meta, identity=rules)
        await world.answer()
        world.check(made.meta.job_id, ["failed", "done"])
        error = world.store.outcomes[made.meta.job_id, 0].document["error"]
        assert error["code"] == "model_not_allowed"
        assert world.gateway.prompts == ["q"]

    asyncio.run(story())


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True),
        ({"a": 1}, {"a": 2}, False),
        ({"a": [1, 2]}, {"a": [2, 1]}, False),
        ({"a": "1"}, {"a": 1}, False),
    ],
)
def test_the_same_work(world: World, one: dict[str, Any], other: dict[str, Any], same: bool) -> None:
    async def story() -> None:
        first = await submit(world, request(one))
        second = await submit(world, request(other))
        assert second.reused == same
        assert (second.meta.job_id == first.meta.job_id) == same

    asyncio.run(story())


def test_path_model_and_id_make_other_work(world: World) -> None:
    async def story() -> None:
        specs = [
            read_request(0, "/v1/x", None, {"n": 1}), read_request(0, "/v1/y", None, {"n": 1}),
            read_request(0, "/v1/x", "m", {"n": 1}), read_request(0, "/v1/x", None, {"n": 1}, "id"),
        ]  # fmt: skip
        jobs = {(await submit(world, spec)).meta.job_id for spec in specs}
        assert len(jobs) == 4
        # A model beside the body and one in it are the same request.
        assert (await submit(world, read_request(0, "/v1/x", None, {"model": "m", "n": 1}))).reused

    asyncio.run(story())


def test_a_key_stands_for_one_kind_of_work(world: World) -> None:
    async def story() -> None:
        await submit(world, request({"n": 1}), idempotency_key="k")
        with pytest.raises(Conflict):
            await world.submit(1, idempotency_key="k")
        with pytest.raises(Conflict):
            await submit(world, request({"n": 2}), idempotency_key="k")

    asyncio.run(story())


def test_many_large_bodies(world: World) -> None:
    """Each is in the bucket under a key of the job's own, whatever the caller sent; messages carry the key."""

    async def story() -> None:
        specs = [read_request(n, "/v1/x", None, {"n": n, "x": LARGE}, f"../{n}") for n in range(30)]
        made = await submit(world, *specs)
        job_id = made.meta.job_id
        assert sorted(world.blobs.blobs) == sorted(input_key(job_id, n) for n in range(30))
        for n in (0, 29):
            body, media_type = world.blobs.blobs[input_key(job_id, n)]
            assert (json.loads(body), media_type) == ({"n": n, "x": LARGE}, "application/json")
        for message in world.requests.waiting.values():
            sent = decode(message.body)
            assert isinstance(sent, RequestMessage)
            assert (sent.body, sent.blob) == (None, input_key(job_id, sent.index))

    asyncio.run(story())


def test_inputs_that_can_not_be_stored_make_no_job(world: World) -> None:
    async def story() -> None:
        world.restart(at("blobs.put", Fault.REQUEST_LOST))
        with pytest.raises(Unavailable):
            await submit(world, request({"x": LARGE}), request({"x": LARGE + "2"}))
        assert not world.store.metas
        assert not world.requests.waiting

    asyncio.run(story())


def test_caps_refuse_before_anything_is_stored(world: World) -> None:
    async def story() -> None:
        for n in range(5):
            await submit(world, request({"n": n}))
        with pytest.raises(CallerBusy):
            await submit(world, request({"x": LARGE}))
        assert not world.blobs.blobs

    asyncio.run(story())


def test_a_removal_takes_inputs_outputs_and_record(world: World) -> None:
    async def story() -> None:
        made = await submit(world, request({"prompt": LARGE}))
        await world.answer()
        await world.controller.delete(ANN, made.meta.job_id)
        await world.sweep()
        assert not world.blobs.blobs
        assert not world.store.outcomes
        assert not world.store.segments
        assert not world.store.metas
        assert world.clock.now >= NOW

    asyncio.run(story())
