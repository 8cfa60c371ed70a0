"""The edits that the simulator and the tests have to notice. Each text must be there exactly once."""

from __future__ import annotations

from dataclasses import dataclass

STORE = "store/memory.py"
RECORDS = "store/memory_records.py"
REQUESTS = "store/requests.py"
DYNAMO = "store/dynamo.py"
WORK = "services/work.py"
JUDGE = "services/judge.py"
ADVANCE = "services/advance.py"
SWEEP = "services/sweep.py"
SUBMIT = "services/submit.py"
CONTROL = "services/control.py"
READ = "services/read.py"
ASSEMBLE = "services/assemble.py"
PACE = "services/pace.py"
PACING = "pacing.py"
HOSTS = "store/hosts.py"
ASSEMBLIES = "store/assemblies.py"
INFERRING = "services/inferring.py"
INPUTS = "services/inputs.py"
JOBS = "jobs.py"
NOTICES = "services/notices.py"
NOTIFY = "services/notify.py"


@dataclass(frozen=True)
class Mutation:
    """`edits`: what is replaced by what in `file`, under layers/sift/sift. `aws`: only the AWS adapters have it."""

    name: str
    file: str
    edits: tuple[tuple[str, str], ...]

    @property
    def aws(self) -> bool:
        return self.file in {REQUESTS, DYNAMO, ASSEMBLIES, HOSTS}


def _one(name: str, file: str, before: str, after: str) -> Mutation:
    return Mutation(name, file, ((before, after),))


CAP_CHECK = """\
        if len(await self._store.caller_live(identity.caller)) >= limits.jobs_per_caller:
            raise CallerBusy("caller_busy", "Its cap is reached.", retry_after=CALLER_RETRY)
        shards = shard_count(self._terms.jobs_total)
        first = secrets"""
STORE_THEN_COUNT = """\
        if not await self._store.put_outcome(job_id, outcome, claimed.state.expires_at):
            return await self._lost(claimed)
        changed = await self._store.finish(job_id, index, claimed.lease, outcome.status, outcome.size)
        if not changed.ok:
            return await self._refused(claimed.message, changed.state)
"""
COUNT_THEN_STORE = """\
        changed = await self._store.finish(job_id, index, claimed.lease, outcome.status, outcome.size)
        if not changed.ok:
            return await self._refused(claimed.message, changed.state)
        await self._store.put_outcome(job_id, outcome, claimed.state.expires_at)
"""

MUTATIONS = (
    # one target
    _one(
        "finish without a fence", STORE,
        "state = self._held(job_id, index, lease)\n        if state is None or state.status not in COUNTING:",
        "state = self.states.get(job_id)\n        if state is None or index not in state.flight:",
    ),
    _one(
        "finish without a fence (DynamoDB)", REQUESTS,
        "[IS_COUNTING, _lease_is_mine(job_id, lease)]",
        '[IS_COUNTING, Condition("attribute_exists(flight.#i)", {})]',
    ),
    _one("finish forgets the bytes", STORE, '"bytes": state.bytes + size', '"bytes": state.bytes'),
    _one("finish forgets the bytes (DynamoDB)", REQUESTS, '":size": size}', '":size": 0}'),
    _one("counted before it is stored", WORK, STORE_THEN_COUNT, COUNT_THEN_STORE),
    _one(
        "outcome overwritten by an older lease", STORE,
        "if stored is not None and stored.lease > outcome.lease:", "if False:",
    ),
    _one(
        "outcome overwritten by an older lease (DynamoDB)", DYNAMO,
        '"attribute_not_exists(pk) OR lease <= :mine"',
        '"attribute_not_exists(pk) OR lease <= :mine OR lease > :mine"',
    ),
    _one("content key without the lease", "blob_keys.py", "{index}/{lease}", "{index}"),
    _one("claim ignores the lease", STORE, "or entry.until > now_ms:", "or False:"),
    _one(
        "claim ignores the lease (DynamoDB)", REQUESTS,
        '"flight.#i.l <= :now"', '"(flight.#i.l <= :now OR flight.#i.l > :now)"',
    ),
    _one("claim forgets the pause", STORE, "status not in ACTIVE or entry", "status not in LIVE or entry"),
    _one("claim forgets the pause (DynamoDB)", REQUESTS, "[IS_ACTIVE, nobody_holds_it]", "[IS_LIVE, nobody_holds_it]"),
    _one("claim takes any refusal for a lost answer", WORK, "changed.repeated and entry", "entry"),
    _one(
        "held message acknowledged", WORK,
        "return (state.flight[message.index].until - now) / 1000 + 1", "return None",
    ),
    _one(
        "refused claim does not advance", WORK,
        "        await self._advancer.advance(message.job_id, state)\n        return None\n\n    async def _defer",
        "        return None\n\n    async def _defer",
    ),
    _one(
        "acknowledged though a port failed", JUDGE,
        "            await self._put_back(received, self._repeat_after(received))\n", "            return False\n",
    ),
    _one(
        "a later version's message acknowledged", JUDGE,
        "            await self._put_back(received, LATER_VERSION_SECONDS)\n", "            return False\n",
    ),
    _one("busy charged as a claim", STORE, "if busy_since is None else 0,", "if busy_since is None else 1,"),
    _one("busy charged as a claim (DynamoDB)", REQUESTS, '":none": 0, ":busy"', '":none": 1, ":busy"'),
    _one("handed back and charged", STORE, "entry.claims - 1 if", "entry.claims if"),
    _one("handed back and charged (DynamoDB)", REQUESTS, 'values[":one"] = 1', 'values[":one"] = 0'),
    _one("busy wait only on the queue", WORK, "now + round(wait * 1000), since", "quiet_since(now), since"),
    _one("busy for ever", WORK, "+ wait > BUSY_FOR_SECONDS:", "+ wait > 10**9:"),
    _one("crashes are not counted", WORK, "claimed.entry.claims > MAX_CLAIMS", "claimed.entry.claims > 10**9"),
    _one("lease without the margin", WORK, "self._lease_ms + CLOCK_MARGIN_MS +", "self._lease_ms +"),
    _one("quiet without the margin", ADVANCE, "return now_ms - CLOCK_MARGIN_MS", "return now_ms"),
    # the window
    _one(
        "release without a condition", STORE,
        "if state is None or state.status not in ACTIVE or state.released != first:", "if state is None:",
    ),
    _one("release without a condition (DynamoDB)", REQUESTS, "[IS_ACTIVE, nobody_released]", "[]"),
    _one("sent again without a limit", SWEEP, "if not (await self._store.touch(state.job_id, stale, until)).ok:", "if not 1:"),
    # the course of a job
    _one("settle without a condition", STORE, "        if not holds:\n", "        if False:\n"),
    _one(
        "settle without a condition (DynamoDB)", REQUESTS,
        "return _state_update(job_id, update, conditions, values, names)",
        "return _state_update(job_id, update, [], values, names)",
    ),
    _one("cancel overwrites an end", STORE, "            holds = state.status in LIVE\n", "            holds = True\n"),
    _one("cancel overwrites an end (DynamoDB)", REQUESTS, "conditions = [IS_LIVE]", "conditions = []"),
    _one("deadline without a fence", STORE, "holds = state.status == seen", 'holds = error == "deadline" or state.status == seen'),
    _one(
        "deadline without a fence (DynamoDB)", REQUESTS,
        "conditions = [unchanged]\n", "conditions = [unchanged] if error is None else []\n",
    ),
    _one("settle keeps the caller's slot", STORE, "        self.callers.get(meta.caller, set()).discard(meta.job_id)\n", ""),
    _one(
        "settle keeps the caller's slot (DynamoDB)", DYNAMO,
        '                {"Update": requests.remove_id(keys.caller_live(meta.caller), job_id)},\n', "",
    ),
    _one("pause ends another pause", STORE, "if state is None or state.pausing_at != pausing_at:", "if state is None:"),
    _one("pause ends another pause (DynamoDB)", REQUESTS, '"pausing"}), same_pause]', '"pausing"})]'),
    _one("resume does not send again", CONTROL, "        await self._resend(job_id, state)\n", ""),
    # requests
    _one("answer that was stored asked for again", INFERRING, "if was_out and (answered", "if False and (answered"),
    _one("busy request asked for again", INFERRING, " or claimed.entry.busy_since is not None", ""),
    _one("request not aborted", INFERRING, "state is None or state.status not in ACTIVE", "state is None"),
    _one("request aborted late", INFERRING, "POLL_SECONDS = 1.5", "POLL_SECONDS = 15"),
    _one("request of another lease goes on", INFERRING, "entry is not None and entry.until == claimed.lease", "True"),
    _one("answer that has arrived thrown away", INFERRING, "if not arrived.is_set() and not asking", "if not asking"),
    _one("answer stored from its end on", INFERRING, "            response.file.seek(0)\n", ""),
    _one("answer waits for the bucket for ever", INFERRING, "                    raise\n                _log", "                    pass\n                _log"),
    _one("aborted, and the lease kept", WORK, "return await self._stop(claimed)\n        except Unavail", "return None\n        except Unavail"),
    _one("less than its time is final", WORK, "seconds < batch.whole_s - LATE_SECONDS", "False"),
    _one("fault of ours charged", WORK, "            await self._hand_back(claimed, quiet_since(self._clock.now_ms()))  #", "            #"),
    _one("cut off for ever", WORK, "claimed.entry.claims >= MAX_CLAIMS:", "claimed.entry.claims >= 10**9:"),
    _one("cut off and not charged", STORE, "left = replace(state.flight[index], until=until)", "left = Flight(until)"),
    _one("abandon without a fence (DynamoDB)", REQUESTS, '"SET flight.#i.l = :until", [_lease_is_mine(job_id, lease)]', '"SET flight.#i.l = :until", []'),
    _one("cancel does not abort first", CONTROL, 'if meta.kind == "inference":', "if False:"),
    _one("cancelled while a request runs", JOBS, "if out_of_time or not state.running(now_ms) else None\n    if out", "if True else None\n    if out"),
    _one("cancelling ends as done", JOBS, 'if finished and state.status != "cancelling":', "if finished:"),
    _one("ended job begins to cancel", STORE, "if state is None or state.status not in LIVE:", "if state is None:"),
    _one("ended job begins to cancel (DynamoDB)", REQUESTS, '"SET #s = :cancelling", [IS_LIVE]', '"SET #s = :cancelling", []'),
    _one("inputs not stored before the commit", SUBMIT, "            await store(self._blobs, inputs)\n", ""),
    _one("retry shares inputs", INPUTS, "return spec.body is None or len", "return spec.body is not None and len"),
    _one("inputs of a job under one key", "blob_keys.py", "inputs/{index}", "inputs/0"),
    _one("dead worker's request waits for its message", SWEEP, 'if kind == "fetch" else QUIET_MS', ""),
    _one("request on the wrong queue", "queue/kinds.py", "if message.kind == kind", "if message.kind != kind"),
    # caps and idempotency
    Mutation("caps checked outside the transaction", SUBMIT, (
        ("        shards = shard_count(self._terms.jobs_total)\n        first = secrets", CAP_CHECK),
        ("caller_cap=limits.jobs_per_caller,", "caller_cap=10**9,"),
    )),
    _one("caller's cap ignored (DynamoDB)", DYNAMO, "job_id, submission.caller_cap)", "job_id, 10**9)"),
    _one("release of another job's record", STORE, "held is not None and held.job_id == job_id:", "held is not None:"),
    _one(
        "release of another job's record (DynamoDB)", DYNAMO,
        '"ConditionExpression": "job_id = :mine"', '"ConditionExpression": "job_id = :mine OR job_id <> :mine"',
    ),
    _one("record not checked by the commit", STORE, "not expired and held.job_id != submission", "False and submission"),
    # after the end, and the rest
    _one("no sweeper", SWEEP, "        report = Report()\n", "        return Report()\n        report = Report()\n"),
    _one("sweeper forgets the outbox", SWEEP, "for job_id in await self._store.outbox(shard):", "for job_id in ():"),
    Mutation("off the outbox before it is announced", ADVANCE, (
        ("await self._bus.publish(", "await self._store.leave_outbox(meta.shard, job_id)\n        await self._bus.publish("),
    )),
    # webhooks
    Mutation("off the outbox before its notice is sent", ADVANCE, (
        (
            "            await self._notices.ended(meta, state)",
            "            await self._store.leave_outbox(meta.shard, job_id)\n            await self._notices.ended(meta, state)",
        ),
    )),
    _one("a notice that was refused is forgotten", NOTICES, 'raise Unavailable("The queue of notices', 'print("The queue of notices'),
    _one("notices of other targets", NOTICES, "if not state.notify & BITS[event]:", "if not state.notify:"),
    _one("an end that nobody asked for", NOTICES, 'or JOB_ENDED not in meta.webhook["events"]:', "or False:"),
    _one("a start for each target", NOTICES, "state.started_at == claimed_at and claims == 1", "True or claims == 1"),
    _one(
        "a failed post is acknowledged", NOTIFY,
        "await self._note(meta, known, delivery)\n        return wait", "return None",
    ),
    _one("a post is never given up", NOTIFY, "- notice.at > GIVE_UP_MS", "- notice.at > 10**15"),
    _one("a last chance is put off", NOTIFY, "if not self._is_last(notice, wait):", "if True:"),
    _one("a receiver rests for all callers", NOTIFY, "address = (meta.caller, ", 'address = ("", '),
    _one("a receiver never rests", NOTIFY, "self._resting[address] = now + seconds * 1000", "pass"),
    _one("a table that is away is asked without end", NOTIFY, "dead_letters, self._next_wait)", "dead_letters, lambda _: 5)"),
    _one("gone is asked again", NOTIFY, "if known is not None and known.status == GONE_STATUS:", "if False:"),
    _one("a blocked address is tried for a day", NOTIFY, 'in {"blocked_address", "invalid_url"}', 'in {"invalid_url"}'),
    _one("given up, and nobody hears of it", NOTIFY, '            await self._dead_letters.bury(received.body, f"', '            print(f"'),
    _one("the signature leaves the body out", "webhooks.py", ".encode() + body\n", ".encode()\n"),
    _one("a post that was given up is covered by the next", RECORDS, 'held is None or held.state != "failed":', "True:"),
    _one(
        "a post that was given up is covered by the next (DynamoDB)", REQUESTS,
        '"attribute_not_exists(pk) OR #state <> :given_up"',
        '"attribute_not_exists(pk) OR #state <> :given_up OR #state = :given_up"',
    ),
    _one("any key submits events", "services/schedule.py", "if not record.events:", "if False:"),
    _one("a fresh firing is two jobs", "services/schedule.py", "replace(request, fresh=False)", "request"),
    _one("anybody may look", READ, "not _may_read(identity, found[0]) or ", ""),
    _one(
        "a read that repairs", READ,
        "        return found\n\n    async def jobs",
        "        await self._advancer.advance(job_id)\n        return found\n\n    async def jobs",
    ),
    # results files
    _one("results file: of other outcomes in each part", ASSEMBLE, "dataclasses.replace(state, flight=seen.flight)", "state"),
    _one("results file: begun while leases run", ASSEMBLE, "if wait := self._last_lease(state):", "if wait := 0:"),
    _one("results file: told before it is there", ASSEMBLE, "await self._bucket.put(seen.key, body, MEDIA_TYPE)\n", "pass\n"),
    _one("results file: not completed", ASSEMBLE, "                await self._bucket.complete_upload(seen.key, upload, grown.parts)\n", "                pass\n"),
    _one("results file: parts recorded whatever came between", RECORDS, "if assembly.revision != (0 if held is None else held.revision + 1):", "if False:"),
    _one(
        "results file: parts recorded whatever came between (DynamoDB)", ASSEMBLIES,
        'request["ConditionExpression"] = "revision = :before"', 'request["ConditionExpression"] = "revision <> :before OR revision = :before"',
    ),
    _one("results file: complete and not known to be", ASSEMBLE, "if not await self._bucket.exists(seen.key):", "if True:"),
    _one("results file: of a deleted job stays", ASSEMBLE, "        await self._bucket.remove(results_prefix(job_id))\n", ""),
    _one("results file: nobody is asked for it", ADVANCE, "if not await self._assembly.send([AssemblyMessage(job_id)]):", "if False:"),
    _one("results file: not asked for again", "services/results.py", "if self._clock.now_ms() - last_seen > QUIET_MS:", "if False:"),
    _one("results file: an upload that is lost is not written anew", ASSEMBLE, "                await self._restart(seen)\n                return\n", "                return\n"),
    # turns of hosts
    _one("pace: a turn that was missed is taken", PACE, "if slot is not None and self._clock.now_ms() > slot.at:", "if False:"),
    _one("pace: a lane that is held is taken", PACING, "after.after and not after.held(slot.lane, now_ms)]", "after.after]"),
    _one("pace: no second look at a lane", PACE, "if pace.after <= slot.at and not pace.held(slot.lane, slot.at):", "if True:"),
    _one("pace: slow requests hold nothing", PACE, "                    await self._store.hold_lane(host, slot.lane, until)\n", ""),
    _one("pace: holds are not freed", PACE, "                await self._free(host, slot.lane, until)\n", "                pass\n"),
    _one("pace: what can't be held goes on", PACE, "asyncio.timeout(max(0.0, left_s))", "asyncio.timeout(None)"),
    _one("pace: the slot that is kept is forgotten", WORK, "self._pacer.turn_of(message.url, message.slot, message.pace)", "self._pacer.turn_of(message.url)"),
    _one("pace: those who queue go together", RECORDS, "start = pace.next_at if claim.queue else claim.base", "start = claim.base"),
    _one("pace: those who queue go together (DynamoDB)", HOSTS, 'next_at, condition = "next_at + :step", "next_at > :base"', 'next_at, condition = ":base + :step", "next_at > :base"'),
    _one("pace: another's hold is freed (DynamoDB)", HOSTS, 'condition = "#v = :v AND holds.#lane = :until"', 'condition = "#v = :v AND (holds.#lane = :until OR holds.#lane <> :until)"'),
    _one("spacing: a narrower one goes at once", PACING, "seen.next_at + (limits.concurrency - 1) * (before - interval)", "seen.next_at"),
    _one("spacing: it may have changed meanwhile", RECORDS, "claim.was != pace.spacing", "False"),
    _one("spacing: the longer span is forgotten", PACE, "slot.span or self._limits_of(host).span_ms", "self._limits_of(host).span_ms"),
    _one("pace: nobody hears of a busy host", PACE, "            if busy.status in SLOWED_BY:\n", "            if False:\n"),
)  # fmt: skip
