"""Identities: whose jobs are whose, and which limits count."""

from __future__ import annotations

import json

from sift.identity import Identity, Limits


def test_a_callers_name_can_not_be_read_two_ways() -> None:
    assert Identity("a", "b", "k").caller == "a/b"
    assert Identity("a", "b", "k").caller != Identity("a/b", "", "k").caller


def test_a_snapshot_has_no_secret_and_is_json() -> None:
    snapshot = Identity("acme", "ann", "00000000000a", ("fetch",), {"jobs_per_caller": 9}).snapshot()
    assert json.loads(json.dumps(snapshot)) == {
        "tenant": "acme", "actor": "ann", "key_id": "00000000000a", "scopes": ["fetch"],
    }  # fmt: skip


def test_a_keys_own_limits_take_the_place_of_the_default_ones() -> None:
    limits = Limits(targets_per_job=32, jobs_per_caller=1, retained_jobs=1_000, job_bytes=2**26)
    assert limits.with_overrides({}) == limits
    assert limits.with_overrides({"targets_per_job": 9_000, "job_bytes": 5}) == Limits(9_000, 1, 1_000, 5)
    assert limits.with_overrides({"unknown": 5}) == limits
