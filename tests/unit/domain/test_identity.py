"""Identities: whose jobs are whose, and which limits count."""

from __future__ import annotations

import dataclasses
import json

import pytest

from sift.errors import Forbidden
from sift.identity import LIMIT_RANGES, Identity, Limits
from tests.template.document import load


def test_a_callers_name_can_not_be_read_two_ways() -> None:
    assert Identity("a", "b", "k").caller == "a/b"
    assert Identity("a", "b", "k").caller != Identity("a/b", "", "k").caller


def test_a_snapshot_is_json_and_all_that_a_job_runs_as() -> None:
    who = Identity(
        "acme", "ann", "00000000000a", ("fetch", "admin:acme"), subject="Ann", application="crawler",
        client_ip="203.0.113.9", allowed_models=("a",), denied_models=("b",), caller_class="batch",
    )  # fmt: skip
    stored = json.loads(json.dumps(who.snapshot()))
    assert stored == {
        "tenant": "acme", "actor": "ann", "subject": "Ann", "application": "crawler", "auth_type": "key",
        "key_id": "00000000000a", "client_ip": "203.0.113.9", "scopes": ["fetch", "admin:acme"],
        "allowed_models": ["a"], "denied_models": ["b"], "caller_class": "batch",
    }  # fmt: skip
    assert Identity.from_snapshot(stored) == who


def test_a_snapshot_leaves_out_what_is_not_known_and_the_limits() -> None:
    """The limits have done their work when the job is stored: its own state has what they came to."""
    who = Identity("acme", "ann", None, limits={"jobs_per_caller": 9}, auth_type="jwt")
    assert who.snapshot() == {
        "tenant": "acme", "actor": "ann", "auth_type": "jwt", "scopes": ["fetch"], "denied_models": [],
        "caller_class": "default",
    }  # fmt: skip


def test_a_snapshot_of_an_earlier_release_is_read() -> None:
    stored = {"tenant": "acme", "actor": "ann", "key_id": "00000000000a", "scopes": ["fetch"]}
    assert Identity.from_snapshot(stored) == Identity("acme", "ann", "00000000000a")


@pytest.mark.parametrize(
    ("scopes", "asked", "allowed"),
    [
        (("fetch",), ("fetch",), True), (("fetch",), ("fetch", "admin"), True), (("fetch",), ("admin",), False),
        (("admin:acme",), ("admin",), True), (("admin:acme",), ("fetch",), False), ((), ("fetch",), False),
        (("fetch:acme",), ("fetch",), False),
    ],
)  # fmt: skip
def test_scopes(scopes: tuple[str, ...], asked: tuple[str, ...], allowed: bool) -> None:
    who = Identity("acme", "ann", "k", scopes)
    if allowed:
        who.require(*asked)
    else:
        with pytest.raises(Forbidden, match=asked[0]):
            who.require(*asked)


def test_whom_an_admin_may_read() -> None:
    everywhere, somewhere = Identity("acme", "ann", "k", ("admin",)), Identity("acme", "ann", "k", ("admin:acme",))
    nowhere = Identity("acme", "ann", "k", ("fetch", "inference"))
    assert [who.is_admin_of("acme") for who in (everywhere, somewhere, nowhere)] == [True, True, False]
    assert [who.is_admin_of("other") for who in (everywhere, somewhere, nowhere)] == [True, False, False]
    assert [who.is_admin_of(None) for who in (everywhere, somewhere, nowhere)] == [True, False, False]


def test_a_keys_own_limits_take_the_place_of_the_default_ones() -> None:
    limits = Limits(targets_per_job=32, jobs_per_caller=1, retained_jobs=1_000, job_bytes=2**26)
    assert limits.with_overrides({}) == limits
    assert limits.with_overrides({"targets_per_job": 9_000, "job_bytes": 5}) == Limits(9_000, 1, 1_000, 5)
    assert limits.with_overrides({"window": 4, "ttl_seconds": 0}) == Limits(32, 1, 1_000, 2**26, 4, 0)
    assert limits.with_overrides({"unknown": 5}) == limits


def test_every_limit_has_its_range_and_that_of_its_parameter() -> None:
    assert {found.name for found in dataclasses.fields(Limits)} == set(LIMIT_RANGES)
    parameters = {
        "targets_per_job": "TargetsPerJob", "jobs_per_caller": "JobsPerCaller", "retained_jobs": "RetainedJobs",
        "job_bytes": "MaxJobBytes", "ttl_seconds": "TtlSeconds",
    }  # fmt: skip
    declared = load()["Parameters"]
    for limit, name in parameters.items():
        # To keep jobs for ever is no limit of a class.
        least = max(declared[name]["MinValue"], 1)
        assert LIMIT_RANGES[limit] == (least, declared[name]["MaxValue"]), limit
