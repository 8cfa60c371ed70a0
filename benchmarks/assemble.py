"""What the results file of a job costs: memory of the process that writes it, requests, and the size of the file."""

from __future__ import annotations

import asyncio
import gzip
import json
import os
import random
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.steady_state import CALLER, TEMPLATE
from sift import ids
from sift.clock import SystemClock
from sift.jobs import Meta, State
from sift.store import codec, keys, requests
from sift.store.dynamo import DynamoStore
from sift.store.ports import Outcome, Submission
from sift_client.local.cloud import Cloud
from sift_client.local.document import read_document
from sift_client.local.naming import Naming
from sift_client.local.planner import make_blueprint

TARGETS = 9_000
OUTCOME_BYTES = 5_000
#: What the job core promises: megabytes held, and outcomes per request to the bucket.
GOAL_MB = 64
GOAL_OUTCOMES = 100
_HERE = Path(__file__).parents[1]


@dataclass(frozen=True)
class Cost:
    """`held_mb`: how much more than before its first step the process held at most. `lines` are those of the file."""

    requests: Counter[str]
    held_mb: float
    file_bytes: int
    lines: int

    def of(self, service: str) -> int:
        """Requests to one service."""
        return sum(count for name, count in self.requests.items() if name.startswith(f"{service}."))


def measure(targets: int, size: int = OUTCOME_BYTES) -> Cost:
    """Assemble the file of a job whose outcomes have `size` bytes of content that does not compress."""
    cloud = Cloud()
    try:
        document = read_document(TEMPLATE, {})
        naming = Naming(document, "assemble", cloud.account, cloud.url, "http://127.0.0.1:9")
        blueprint = make_blueprint(document, naming)
        cloud.provision(blueprint)
        environment = blueprint.functions["AssembleFunction"].environment
        job_id = asyncio.run(_fill(cloud.client("dynamodb"), environment["TABLE_NAME"], targets, size))
        child = {
            **os.environ, **environment, "AWS_ENDPOINT_URL": cloud.url, "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": "local", "AWS_SECRET_ACCESS_KEY": "local",
        }  # fmt: skip
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.assemble", job_id],
            env=child, cwd=_HERE, capture_output=True, text=True, check=True,
        )  # fmt: skip
        told = json.loads(done.stdout)
        bucket = environment["BUCKET_NAME"]
        body: bytes = cloud.client("s3").get_object(Bucket=bucket, Key=told["key"])["Body"].read()
        lines = gzip.decompress(body).count(b"\n")
        return Cost(Counter(told["requests"]), told["held_mb"], len(body), lines)
    finally:
        cloud.close()


async def _fill(client: Any, table: str, targets: int, size: int) -> str:
    """A job that has ended, with its outcomes."""
    store, chance = DynamoStore(client, table), random.Random(targets)
    now = SystemClock().now_ms()
    job_id = ids.new_job_id(now)
    meta = Meta(
        job_id, "fetch", CALLER.caller, {"tenant": CALLER.tenant, "actor": CALLER.actor}, targets, now, now + 1_000, 0,
        None, 0, "salt",
    )  # fmt: skip
    state = State(job_id, "done", targets, targets, 32, 2**30, now + 1_000, None, done=targets, ended_at=now)
    await store.commit(Submission(meta, state, None, 1, 1), now)
    writes = []
    for index in range(targets):
        document = {
            "url": f"https://example.com/{index}", "id": None, "options": {}, "media_type": "image/png", "chars": None,
            "meta": {"url": f"https://example.com/{index}", "status": 200}, "error": None, "attempts": 1,
            "finished_at": "2026-11-30T00:00:00.000Z",
        }  # fmt: skip
        outcome = Outcome(index, 1, "done", size, document, content=chance.randbytes(size))
        writes.append({"PutRequest": requests.put(keys.outcome(job_id, index), codec.outcome_item(outcome, None))})
    await store._write_batch(writes)
    return job_id


def _held_kb(field: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1])
    raise LookupError(field)


def work(job_id: str) -> dict[str, Any]:
    """In a process of its own, as functions/assemble does it."""
    from sift import environment
    from sift.bootstrap.workers import assembler as make_assembler

    counted: Counter[str] = Counter()
    assembler = make_assembler()
    for service in ("dynamodb", "s3", "sqs"):
        events = environment.client(service).meta.events
        events.register("before-call", lambda model, service=service, **_: counted.update([f"{service}.{model.name}"]))
    store = DynamoStore(environment.client("dynamodb"), os.environ["TABLE_NAME"])
    environment.run(store.get_assembly(job_id))
    counted.clear()
    before = _held_kb("VmRSS")
    left = environment.run(assembler.assemble(job_id, lambda: 120.0))
    if left is not None:
        raise RuntimeError(f"the file is not done: {left}")
    held = (_held_kb("VmHWM") - before) / 1024
    assembly = environment.run(store.get_assembly(job_id))
    if assembly is None:
        raise RuntimeError("the file was not begun")
    return {"requests": counted, "held_mb": held, "key": assembly.key}


def main() -> None:
    if len(sys.argv) > 1:
        print(json.dumps(work(sys.argv[1])))
        return
    cost = measure(TARGETS)
    print(f"{TARGETS} outcomes of {OUTCOME_BYTES} bytes: a file of {cost.file_bytes / 1e6:.1f} MB, {cost.lines} lines")
    print(f"  memory: {cost.held_mb:.1f} MB above the idle process (goal {GOAL_MB})")
    print(f"  bucket: {cost.of('s3')} requests (goal {TARGETS // GOAL_OUTCOMES}), table: {cost.of('dynamodb')}")
    for name, count in sorted(cost.requests.items()):
        print(f"    {name}: {count}")


if __name__ == "__main__":
    main()
