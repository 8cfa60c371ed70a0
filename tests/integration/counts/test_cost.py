"""The bill of a small job, from the real functions to the printed dollars."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]


def test_a_job_of_thirty_is_counted_and_priced() -> None:
    """In a process of its own: the functions keep loggers and clients for the life of one."""
    command = [sys.executable, "-m", "benchmarks.cost", "--targets", "30", "--content", "5000"]
    paths = [str(ROOT / "layers" / "sift"), str(ROOT / "client"), str(ROOT)]
    ran = subprocess.run(
        command, cwd=ROOT, env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    rows = {name: float(value) for name, value in re.findall(r"^\| ([^|]+) \| \**([0-9.]+)\** \|$", ran.stdout, re.M)}
    assert rows["targets an invocation"] == 10
    # Claim, outcome of three kilobytes, finish; the rest is the job's own.
    assert 5 <= rows["table_write_unit"] <= 6.5
    assert round(rows["api_request"] * 30) == 3
    assert rows["object_put"] == 0
    lines = ("worker: duration", "table: writes", "table: reads", "queue", "logs", "functions: requests")
    assert all(rows[line] > 0 for line in lines)
    assert rows["**together**"] < 12
