"""Write the results file of a job that has ended: one gzip JSON Lines object, part by part.

A part is a gzip member of whole lines, uploaded, then recorded in the table on condition of the revision it was made
from. Whatever dies in between, the part is made again, of the same bytes: an ended job's outcomes do not change, and
the flight that tells which targets have one is kept from the beginning. See docs/decisions/0033.
"""

from __future__ import annotations

import asyncio
import dataclasses
import logging
import secrets
import zlib
from collections.abc import Awaitable, Callable, Sequence

from sift import logs
from sift.assembly import Assembly, AssemblyMessage, decode
from sift.blob_keys import results_prefix
from sift.blobs.ports import LEAST_PART, Bucket, UploadLost
from sift.clock import CLOCK_MARGIN_MS, Clock
from sift.errors import Unavailable
from sift.jobs import ENDED, SEGMENT, State
from sift.queue.ports import Queue, Received
from sift.services.judge import REPEAT_SECONDS, Judge
from sift.services.slots import Slot, to_line
from sift.store.ports import Store

#: A compressed file is sent as what it is: with a content encoding, some clients would unpack it on the way.
MEDIA_TYPE = "application/gzip"
#: Contents that are read from the bucket at once; each may have 4 MB.
AT_ONCE = 8
#: No part is begun with less of the function's time left (seconds): one of 5 MiB takes some.
PART_SECONDS = 60.0
#: An upload that gets lost this often is given up; the message then ends in the dead-letter queue.
MOST_RESTARTS = 5
#: After so many bytes of lines that did not make a part, the rest of it is stored as it is: a part has to be whole
#: within one run of the function, and there are contents that compress to a thousandth.
PRESSED_BYTES = 512 * 1024 * 1024
#: gzip, with a window of 32 KiB (zlib manual, deflateInit2).
_GZIP = 31

_log = logging.getLogger(__name__)


class Assembler:
    """`slots` gives the slots `first..last`, all of one segment, of a job in a state."""

    def __init__(
        self,
        store: Store,
        queue: Queue,
        bucket: Bucket,
        clock: Clock,
        slots: Callable[[State, int, int], Awaitable[Sequence[Slot]]],
        *,
        part_bytes: int = LEAST_PART,
        pressed_bytes: int = PRESSED_BYTES,
    ) -> None:
        self._judge = Judge("a results file", queue, None, lambda _: REPEAT_SECONDS)
        self._store = store
        self._queue = queue
        self._bucket = bucket
        self._clock = clock
        self._slots = slots
        self._part_bytes = part_bytes
        self._pressed_bytes = pressed_bytes

    async def run_batch(self, batch: Sequence[Received], seconds_left: Callable[[], float]) -> list[str]:
        """Work on the messages; returns the ids of those that are to stay on the queue."""
        kept = []
        for received in batch:
            with logs.about():
                # What nobody foresaw fails the invocation, as an alarm notices: a batch is of one message.
                if await self._judge.judge(received, lambda one: self._work(one, seconds_left)):
                    kept.append(received.message_id)
        return kept

    async def _work(self, received: Received, seconds_left: Callable[[], float]) -> int | None:
        job_id = decode(received.body).job_id
        logs.add(job_id=job_id)
        return await self.assemble(job_id, seconds_left)

    async def assemble(self, job_id: str, seconds_left: Callable[[], float]) -> int | None:
        """Go on with the job's file while there is time. None when there is nothing left to do for this message, else
        the seconds after which to go on. Raises Unavailable; then nothing is lost."""
        while True:
            job = await self._store.get_job(job_id)
            # After the file is complete as well: whoever deleted the job meanwhile may not have seen it.
            if job is None or job[1].expired(self._clock.now_ms()):
                await self._forget(job_id)
                return None
            state = job[1]
            if state.status not in ENDED:
                return None  # its end will send a message of its own
            assembly = await self._store.get_assembly(job_id)
            if assembly is None:
                if wait := self._last_lease(state):
                    return wait
                await self._begin(state)
            elif assembly.done:
                return None
            elif seconds_left() < PART_SECONDS:
                if await self._queue.send([AssemblyMessage(job_id)]):
                    return None  # a fresh message: its receives are not those of this one
                return 0
            else:
                await self._go_on(state, assembly)

    def _last_lease(self, state: State) -> int:
        """Seconds until no worker has a target of a cancelled job any more: until then, outcomes count."""
        if state.status != "cancelled":
            return 0
        now = self._clock.now_ms()
        left = [entry.until + CLOCK_MARGIN_MS - now for entry in state.flight.values() if entry.claims]
        return max([0, *(-(-ms // 1000) for ms in left)])

    async def _begin(self, state: State) -> None:
        now = self._clock.now_ms()
        await self._store.put_assembly(
            Assembly(state.job_id, secrets.token_hex(8), dict(state.flight), now, state.expires_at)
        )

    async def _go_on(self, state: State, seen: Assembly) -> None:
        """One part: made, uploaded and recorded; with the last one, the file is there."""
        body, next_index = await self._make_part(dataclasses.replace(state, flight=seen.flight), seen.next_index)
        last = next_index == state.total
        now = self._clock.now_ms()
        grown = dataclasses.replace(
            seen,
            next_index=next_index,
            size=seen.size + len(body),
            done=last,
            touched_at=now,
            revision=seen.revision + 1,
        )
        if last and not seen.parts:
            await self._bucket.put(seen.key, body, MEDIA_TYPE)
            await self._store.put_assembly(grown)
            return
        upload = seen.upload or await self._bucket.begin_upload(seen.key, MEDIA_TYPE)
        try:
            tag = await self._bucket.put_part(seen.key, upload, len(seen.parts) + 1, body)
            grown = dataclasses.replace(grown, upload=upload, parts=(*seen.parts, tag))
            if last:
                await self._bucket.complete_upload(seen.key, upload, grown.parts)
        except UploadLost:
            # Maybe it is complete, and whoever completed it died before it said so.
            if not await self._bucket.exists(seen.key):
                await self._restart(seen)
                return
            grown = dataclasses.replace(grown, next_index=state.total, done=True)
        if not await self._store.put_assembly(grown) and seen.upload is None:
            held = await self._store.get_assembly(seen.job_id)
            if held is None or held.upload != upload:  # another began one at the same time
                await self._bucket.abort_upload(seen.key, upload)

    async def _make_part(self, state: State, first: int) -> tuple[bytes, int]:
        """Lines from `first` on until they make a part, and the index after the last of them."""
        compressor = zlib.compressobj(6, zlib.DEFLATED, _GZIP)
        pieces: list[bytes] = []
        size, index, pressed = 0, first, 0
        while index < state.total and size < self._part_bytes:
            end = min(index - index % SEGMENT + SEGMENT, state.total)
            slots = await self._slots(state, index, end - 1)
            for start in range(0, len(slots), AT_ONCE):
                some = slots[start : start + AT_ONCE]
                for line in await asyncio.gather(*(to_line(state.job_id, slot, self._bucket) for slot in some)):
                    pieces.append(compressor.compress(line + b"\n"))
                    size += len(pieces[-1])
                    index += 1
                    before, pressed = pressed, pressed + len(line)
                    if before < self._pressed_bytes <= pressed:
                        pieces.append(compressor.flush())
                        compressor = zlib.compressobj(0, zlib.DEFLATED, _GZIP)
                    if size >= self._part_bytes:
                        break
                if size >= self._part_bytes:
                    break
        pieces.append(compressor.flush())
        return b"".join(pieces), index

    async def _restart(self, seen: Assembly) -> None:
        """Write it anew, under another key."""
        if seen.restarts >= MOST_RESTARTS:
            raise Unavailable(f"The upload of {seen.key} was lost {MOST_RESTARTS} times.")
        _log.warning("the upload of a results file is lost, it is written anew", extra={"job_id": seen.job_id})
        anew = Assembly(
            seen.job_id,
            secrets.token_hex(8),
            seen.flight,
            self._clock.now_ms(),
            seen.expires_at,
            restarts=seen.restarts + 1,
            revision=seen.revision + 1,
        )
        if await self._store.put_assembly(anew) and seen.upload is not None:
            await self._bucket.abort_upload(seen.key, seen.upload)

    async def _forget(self, job_id: str) -> None:
        """The job is gone: so is whatever was written since."""
        seen = await self._store.get_assembly(job_id)
        if seen is not None and seen.upload is not None and not seen.done:
            await self._bucket.abort_upload(seen.key, seen.upload)
        await self._bucket.remove(results_prefix(job_id))
        if seen is not None:
            await self._store.remove_assembly(job_id)
