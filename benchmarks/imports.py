"""How long the fetch function takes before its first target, over boto3 alone, and which packages take it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

RUNS = 9
ROOT = Path(__file__).parent.parent
#: Enough of the template's values for the worker to be put together; nothing is called.
ENVIRONMENT = {
    "AWS_DEFAULT_REGION": "eu-north-1",
    "TABLE_NAME": "t",
    "BUCKET_NAME": "b",
    "FETCH_QUEUE_URL": "https://sqs.test/q",
    "FETCH_DEAD_LETTER_QUEUE_URL": "https://sqs.test/d",
    "INFERENCE_QUEUE_URL": "https://sqs.test/i",
    "NOTIFY_QUEUE_URL": "https://sqs.test/n",
    "ASSEMBLE_QUEUE_URL": "https://sqs.test/a",
    "EVENT_BUS_NAME": "e",
    "LEASE_SECONDS": "100",
    "GUARD_ALLOW": "",
    "GUARD_DENY": "",
    "ROBOTS": "false",
    "HOST_RATE": "0",
    "HOST_CONCURRENCY": "4",
    "CALLER_CLASSES": "",
    "USER_AGENT": "sift",
    "ARCHIVE_API": "",
    "ARCHIVE_REPLAY": "",
    "QUESTION_MODEL": "",
    "GATEWAY_URL": "",
    "GATEWAY_SECRET": "",
}
_CLIENTS = "import boto3\nfor service in ('dynamodb', 'sqs'): boto3.client(service)\n"
#: What runs in each process: boto3 and the clients that a target needs; the same and the function, ready to begin.
PROGRAMS = {
    "boto3": _CLIENTS,
    "fetch": f"{_CLIENTS}import sys; sys.path.insert(0, 'functions/fetch')\nimport app\napp.worker()\n",
}
_TIMED = (
    "import time\nstarted = time.perf_counter(), time.process_time()\n{}print(*(end - start for end, start in zip((\
time.perf_counter(), time.process_time()), started)))\n"
)
_LINE = re.compile(r"import time:\s+(\d+) \|\s+\d+ \|\s*(\S+)")


def run(program: str, *flags: str) -> subprocess.CompletedProcess[str]:
    """One process with compiled bytecode at hand, as in the built layers."""
    paths = [str(ROOT / "layers" / "sift"), str(ROOT)]
    environment = {**ENVIRONMENT, "PYTHONPATH": os.pathsep.join(paths), "PATH": os.environ.get("PATH", "")}
    command = [sys.executable, *flags, "-c", program]
    return subprocess.run(command, capture_output=True, text=True, check=True, env=environment, cwd=ROOT)


def measure(runs: int = RUNS) -> dict[str, tuple[float, float]]:
    """Milliseconds of each program, by the clock and of the processor, each the least of its runs; they take turns."""
    times: dict[str, list[tuple[float, ...]]] = {name: [] for name in PROGRAMS}
    for number in range(runs + 1):
        for name, program in PROGRAMS.items():
            output = run(_TIMED.format(program)).stdout
            if number:  # the first may compile
                times[name].append(tuple(float(part) * 1000 for part in output.split()))
    # What is more than the least is the machine's other work.
    return {name: (min(wall for wall, _ in rows), min(cpu for _, cpu in rows)) for name, rows in times.items()}


def packages(runs: int = 3) -> Counter[str]:
    """Milliseconds by package of what the function imports over boto3, the least of some runs."""
    least: dict[str, dict[str, int]] = {name: {} for name in PROGRAMS}
    for _ in range(runs):
        for name, program in PROGRAMS.items():
            for match in _LINE.finditer(run(program, "-X", "importtime").stderr):
                least[name][match[2]] = min(least[name].get(match[2], sys.maxsize), int(match[1]))
    total: Counter[str] = Counter()
    for module, microseconds in least["fetch"].items():
        if module not in least["boto3"]:
            total[module.split(".")[0]] += microseconds
    return Counter({name: round(microseconds / 1000) for name, microseconds in total.items()})


def main() -> None:
    """Print both tables."""
    found = measure()
    print("| | ms by the clock | ms of the processor |\n|---|---:|---:|")
    for name, (wall, cpu) in found.items():
        print(f"| {name} | {wall:.0f} | {cpu:.0f} |")
    over = [after - before for after, before in zip(found["fetch"], found["boto3"], strict=True)]
    print(f"| over boto3 | {over[0]:.0f} | {over[1]:.0f} |\n\n| package | ms |\n|---|---:|")
    for name, milliseconds in packages().most_common(15):
        print(f"| {name} | {milliseconds} |")


if __name__ == "__main__":
    main()
