"""Identifiers: a job id is `job_` and a 26-character ULID, so ids sort by time and tell when the job was made.

The ULID layout (48-bit milliseconds, 80 random bits, Crockford base 32) is that of github.com/ulid/spec.
"""

from __future__ import annotations

import re
import secrets

ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_VALUES = {char: value for value, char in enumerate(ALPHABET)}
_JOB_ID = re.compile(r"job_[0-7][0-9A-HJKMNP-TV-Z]{25}")


def new_job_id(now_ms: int, entropy: int | None = None) -> str:
    """A job id for this time in milliseconds; `entropy` (80 bits) is for repeatable tests."""
    number = (now_ms << 80) | (secrets.randbits(80) if entropy is None else entropy)
    return "job_" + "".join(ALPHABET[(number >> shift) & 31] for shift in range(125, -1, -5))


def is_job_id(text: str) -> bool:
    """Whether the text has the form of a job id; anything else names no job."""
    return _JOB_ID.fullmatch(text) is not None


def created_ms(job_id: str) -> int:
    """When the job was made, in milliseconds, as its id tells."""
    number = 0
    for char in job_id[4:14]:
        number = number * 32 + _VALUES[char]
    return number
