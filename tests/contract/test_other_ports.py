"""Contract of the queue, the bucket and the bus."""

from __future__ import annotations

import asyncio
import io
import json
import tempfile
from typing import Any

import pytest

from sift import ids
from sift.blob_keys import content_key, job_prefix, results_key, segment_key
from sift.blobs.ports import LEAST_PART, REMOVE_BATCH, Blobs, UploadLost
from sift.errors import Unavailable
from sift.events.ports import Bus
from sift.messages import TargetMessage, decode

JOB = "job_01M8MZ2A0038NKRKAYDXR834MK"


def _messages(count: int, size: int = 0) -> list[TargetMessage]:
    return [
        TargetMessage(JOB, n, f"https://example.com/{'ü' * size}", {"mode": "text"}, f"id{n}") for n in range(count)
    ]


def test_messages_arrive_whole_and_stay_until_deleted(queues: Any) -> None:
    async def story() -> None:
        sent = _messages(23)
        assert await queues.queue.send(sent) == 23
        assert await queues.queue.visible() == 23
        seen = []
        for _ in range(9):
            for receipt, body in queues.receive(10):
                seen.append(decode(body))
                queues.delete(receipt)
        assert sorted(seen, key=lambda message: message.index) == sent
        assert await queues.queue.visible() == 0

    asyncio.run(story())


def test_a_message_for_later_waits_out_of_sight(queues: Any) -> None:
    async def story() -> None:
        await queues.queue.send_later(_messages(1)[0], 600)
        assert queues.receive(10) == []
        assert await queues.queue.visible() == 1

    asyncio.run(story())


def test_a_batch_of_large_messages_is_split(queues: Any) -> None:
    async def story() -> None:
        assert await queues.queue.send(_messages(10, 100_000)) == 10  # 2 MB in all; one request takes 1 MiB
        assert await queues.queue.visible() == 10

    asyncio.run(story())


def test_a_received_message_can_be_hidden_and_shown(queues: Any) -> None:
    async def story() -> None:
        await queues.queue.send(_messages(1))
        ((receipt, body),) = queues.receive(10)
        assert queues.receive(10) == []
        await queues.queue.set_visibility(receipt, 0)
        ((again, same),) = queues.receive(10)
        assert same == body
        await queues.queue.set_visibility(again, 43_200)
        assert queues.receive(10) == []
        queues.delete(again)
        await queues.queue.set_visibility(again, 5)  # gone: nothing to hide, and no error

    asyncio.run(story())


def test_what_nobody_can_read_is_buried(queues: Any) -> None:
    async def story() -> None:
        await queues.dead_letters.bury("not ours", "reason")
        assert queues.buried() == ["not ours"]

    asyncio.run(story())


def test_blobs_are_kept_by_key(blobs: Blobs) -> None:
    async def story() -> None:
        key = content_key(JOB, 7, 12345)
        assert await blobs.get(key) is None
        await blobs.put(key, b"\x00\xff" * 10, "application/pdf")
        assert await blobs.get(key) == b"\x00\xff" * 10
        assert key in await blobs.link(key, 60)

    asyncio.run(story())


def test_a_file_is_put_whole_from_where_it_stands(blobs: Blobs) -> None:
    async def story() -> None:
        key = content_key(JOB, 8, 12345)
        with tempfile.TemporaryFile() as file:
            file.write(b"before" + bytes(range(256)) * 12_000)
            file.seek(6)
            await blobs.put_file(key, file, "text/event-stream")
        assert await blobs.get(key) == bytes(range(256)) * 12_000
        with tempfile.TemporaryFile() as file:
            await blobs.put_file(key, file, "application/json")
        assert await blobs.get(key) == b""

    asyncio.run(story())


class Broken(io.BytesIO):
    """A file that can't be read to its end."""

    def read(self, size: int | None = -1, /) -> bytes:
        if self.tell():
            raise OSError(5, "the disk is broken")
        return super().read(10 if size is None or size < 0 else min(size, 10))


def test_a_file_that_breaks_off_is_never_there(blobs: Blobs) -> None:
    async def story() -> None:
        key = content_key(JOB, 9, 12345)
        file = Broken(bytes(1_000_000))
        file.read()
        with pytest.raises((OSError, Unavailable)):
            await blobs.put_file(key, file, "application/json")
        assert await blobs.get(key) is None

    asyncio.run(story())


def test_events_are_taken(bus: Bus) -> None:
    asyncio.run(bus.publish("Sift Job Ended", json.loads('{"job_id": "x", "counts": {"done": 1}}')))


def test_blobs_are_removed_and_removing_them_again_does_no_harm(blobs: Blobs) -> None:
    async def story() -> None:
        mine = [content_key(JOB, n, 1) for n in range(REMOVE_BATCH + 1)]
        others = [content_key(ids.new_job_id(7), 0, 1), segment_key(JOB[:-1], 0)]
        await asyncio.gather(*(blobs.put(key, b"x", "text/plain") for key in [*mine, *others]))
        assert await blobs.remove(job_prefix(JOB))
        assert not await blobs.remove(job_prefix(JOB))
        assert not await blobs.remove(job_prefix(JOB))
        assert {await blobs.get(key) for key in [*mine[::100], mine[-1]]} == {None}
        assert {await blobs.get(key) for key in others} == {b"x"}

    asyncio.run(story())


RESULT = results_key(JOB, "a")


def test_an_upload_is_seen_when_it_is_complete(blobs: Any) -> None:
    async def story() -> None:
        parts = [bytes(LEAST_PART), b"the end"]
        upload = await blobs.begin_upload(RESULT, "application/gzip")
        tags = [await blobs.put_part(RESULT, upload, number, body) for number, body in enumerate(parts, 1)]
        assert not await blobs.exists(RESULT)
        assert await blobs.get(RESULT) is None
        assert await blobs.put_part(RESULT, upload, 1, parts[0]) == tags[0], "the same bytes have the same tag"
        await blobs.complete_upload(RESULT, upload, tags)
        assert await blobs.exists(RESULT)
        assert await blobs.get(RESULT) == b"".join(parts)
        await blobs.abort_upload(RESULT, upload)  # it is over: nothing to drop, and no error
        with pytest.raises(UploadLost):
            await blobs.put_part(RESULT, upload, 3, b"late")
        assert not await blobs.remove(job_prefix(JOB))
        assert not await blobs.exists(RESULT)

    asyncio.run(story())


def test_an_upload_that_is_not_what_was_said_is_lost(blobs: Any) -> None:
    async def story() -> None:
        upload = await blobs.begin_upload(RESULT, "application/gzip")
        old = await blobs.put_part(RESULT, upload, 1, b"first")
        new = await blobs.put_part(RESULT, upload, 1, b"another wrote here")
        small = await blobs.put_part(RESULT, upload, 2, b"x")
        with pytest.raises(UploadLost):
            await blobs.complete_upload(RESULT, upload, [old])
        with pytest.raises(UploadLost):
            await blobs.complete_upload(RESULT, upload, [new, small])  # only the last part may be small
        await blobs.abort_upload(RESULT, upload)
        with pytest.raises(UploadLost):
            await blobs.complete_upload(RESULT, upload, [new])
        assert not await blobs.exists(RESULT)

    asyncio.run(story())
