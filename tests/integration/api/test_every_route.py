"""Every route of the OpenAPI document, with the credentials of everybody who must not get through."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from sift.api import openapi
from sift.api.openapi import PUBLIC
from sift.clock import SystemClock
from sift.services.keys import KeyService
from sift.targets import Content
from tests.integration.api.stage import Reply, Stage, forget_services
from tests.unit.services import provider
from tests.unit.services.provider import token

URL = "https://example.com/"
DOCUMENT = json.loads(openapi.text())
ROUTES = sorted(
    (method.upper(), path)
    for path, methods in DOCUMENT["paths"].items()
    for method in methods
    if path not in PUBLIC
)  # fmt: skip
#: A good body for each route that takes one: a new one must be written here before it passes.
BODIES = {
    ("POST", "/v1/jobs"): {"targets": [{"url": f"{URL}another"}]},
    ("POST", "/v1/fetch"): {"url": URL},
}
#: Routes that answer without naming a job.
WITHOUT_JOB = {("POST", "/v1/jobs"), ("GET", "/v1/jobs"), ("POST", "/v1/fetch")}
#: They are wrong for as long as anybody tests.
WRONG_TOKENS = provider.wrong_tokens()
each_route = pytest.mark.parametrize(("method", "path"), ROUTES, ids=[" ".join(route) for route in ROUTES])


@dataclass(frozen=True)
class Door:
    """The API with a job of ann's that has ended, one target done and one failed."""

    stage: Stage
    job_id: str

    def knock(self, method: str, path: str, headers: dict[str, str] | None = None) -> Reply:
        """A request that would be good from the right caller."""
        filled = path.replace("{job_id}", self.job_id).replace("{index}", "0")
        assert "{" not in filled, f"what stands for {path}?"
        takes_body = "requestBody" in DOCUMENT["paths"][path][method.lower()]
        body = BODIES[method, path] if takes_body else None
        return self.stage.request(method, filled, body, key=None, headers=headers)

    def everything(self) -> Any:
        """All that is stored, keys aside."""
        items = self.stage.deployment.client("dynamodb").scan(TableName=self.stage.table)["Items"]
        return [item for item in items if not item["pk"]["S"].startswith("KEY")]


class Pipeline:
    """Every target is a small text."""

    def __init__(self, settings: Any, **_: Any) -> None:
        pass

    async def run(self, *_: Any) -> Content:
        return Content(b"x", "text/plain", {"status": 200})


@pytest.fixture
def door(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> Iterator[Door]:
    monkeypatch.setattr("sift.content.pipeline.Pipeline", Pipeline)
    with provider.serve() as (address, _):
        for variable, value in {
            "JWT_ISSUER": provider.ISSUER, "JWT_AUDIENCE": provider.AUDIENCE, "JWT_JWKS_URL": f"{address}/keys",
        }.items():  # fmt: skip
            monkeypatch.setenv(variable, value)
        forget_services()
        job_id = stage.submit(URL, f"{URL}404")
        stage.work({f"{URL}404": ValueError("no")})
        yield Door(stage, job_id)


def bearer(credential: str) -> dict[str, str]:
    return {"authorization": f"Bearer {credential}"}


def strangers(stage: Stage) -> dict[str, dict[str, str]]:
    """Headers of those who are nobody, by what is wrong with them."""
    revoked, expired = stage.new_key(), stage.new_key(expires_at=1)
    asyncio.run(KeyService(stage.store, SystemClock()).revoke(revoked.split("_")[1]))
    _, key_id, secret = stage.key.split("_")
    keys = {
        "a revoked key": revoked,
        "an expired key": expired,
        "an unknown key": f"sift_{'0' * 12}_{secret}",
        "a wrong secret": f"sift_{key_id}_{'0' * 64}",
        "half a key": f"sift_{key_id}",
        "a longer key": f"{stage.key}0",
        "an oversized key": f"sift_{key_id}_{'0' * 9_000}",
        "a far oversized key": "x" * 1_000_000,
        "odd bytes": "\x00\xff\u2028",
    }
    found = {name: bearer(credential) for name, credential in {**keys, **WRONG_TOKENS}.items()}
    found |= {f"{name} in x-api-key": {"x-api-key": credential} for name, credential in keys.items()}
    other_scheme = {"authorization": f"Basic {stage.key}"}
    return {"nothing": {}, "an empty key": {"x-api-key": ""}, "another scheme": other_scheme, **found}


def test_the_routes_are_found_and_only_the_public_ones_are_open() -> None:
    assert len(ROUTES) > 10
    for path, methods in DOCUMENT["paths"].items():
        for described in methods.values():
            assert (described.get("security") == []) == (path in PUBLIC), path
    assert set(BODIES) | WITHOUT_JOB <= set(ROUTES)


@each_route
def test_nobody_gets_through(door: Door, method: str, path: str) -> None:
    before = door.everything()
    answers = set()
    for name, headers in strangers(door.stage).items():
        reply = door.knock(method, path, headers)
        assert (reply.status, reply.code) == (401, "unauthenticated"), name
        answers.add((reply.raw, tuple(sorted(reply.headers.items()))))
    assert len(answers) == 1, "what is wrong can be told from the answer"
    assert door.everything() == before


@each_route
def test_the_caller_gets_through(door: Door, method: str, path: str) -> None:
    """With a key and with a token of the same tenant and actor, or the tests beside this one would show nothing."""
    for headers in (bearer(door.stage.key), bearer(token()), {"x-api-key": token("RS256")}):
        reply = door.knock(method, path, headers)
        assert reply.status not in {401, 403, 404, 422, 500}, reply.raw
        if method == "DELETE":
            break  # it has gone


@each_route
def test_another_caller_learns_nothing(door: Door, method: str, path: str) -> None:
    others = [
        door.stage.new_key("bob"), token(sub="bob"), token(tenant="globex"), token(sub="bob", scope="fetch inference"),
        token(sub="bob", scope="fetch admin:globex"),
    ]  # fmt: skip
    before = door.everything()
    answers = set()
    for other in others:
        reply = door.knock(method, path, bearer(other))
        assert door.job_id.encode() not in reply.raw
        if (method, path) in WITHOUT_JOB:
            assert reply.status in {200, 202, 429, 503}
            continue
        assert (reply.status, reply.code) == (404, "not_found")
        answers.add(reply.raw)
        missing = Door(door.stage, "job_01ARZ3NDEKTSV4RRFFQ69G5FAV").knock(method, path, bearer(other))
        assert missing.raw == reply.raw, "a job of another is as one that is not there"
    if answers:
        assert len(answers) == 1
        assert door.everything() == before


@each_route
@pytest.mark.parametrize("scopes", ["inference", "openid profile"])
def test_without_the_scope_even_the_caller_is_refused(door: Door, method: str, path: str, scopes: str) -> None:
    before = door.everything()
    credentials = [token(scope=scopes)]
    if scopes == "inference":
        credentials.append(door.stage.new_key("ann", scopes=["inference"]))
    for credential in credentials:
        reply = door.knock(method, path, bearer(credential))
        if method == "GET" and scopes == "inference":
            assert reply.status in {200, 202}, "any kind of job may be read with the scope of any"
            continue
        assert (reply.status, reply.code) == (403, "forbidden")
        assert "scope fetch" in reply.json["detail"]
    assert door.everything() == before


@each_route
@pytest.mark.parametrize("scope", ["admin", "admin:acme"])
def test_an_admin_reads_everything_and_changes_nothing(door: Door, method: str, path: str, scope: str) -> None:
    by_token = token(tenant="ops", sub="eve", scope=f"fetch {scope}")
    admins = [by_token, door.stage.new_key("eve", scopes=["fetch", scope])]
    before = door.everything()
    for admin in admins:
        reply = door.knock(method, path, bearer(admin))
        if (method, path) in WITHOUT_JOB:
            assert reply.status in {200, 202, 429}
            continue
        assert reply.status in ({200, 202} if method == "GET" else {403})
        if method == "GET":
            assert reply.raw
        else:
            assert reply.code == "forbidden"
        assert door.everything() == before


@each_route
def test_an_admin_without_the_scope_to_fetch_may_read_only(door: Door, method: str, path: str) -> None:
    reply = door.knock(method, path, bearer(door.stage.new_key("eve", scopes=["admin"])))
    assert reply.status in ({200, 202} if method == "GET" else {403})


@each_route
def test_every_route_says_that_it_can_refuse(method: str, path: str) -> None:
    described = DOCUMENT["paths"][path][method.lower()]["responses"]
    assert {"401", "403", "500"} <= set(described)
    assert ((method, path) in WITHOUT_JOB) != ("404" in described)


# lists


def listed(door: Door, credential: str, **query: Any) -> list[str] | tuple[int, str]:
    reply = door.stage.request("GET", "/v1/jobs", key=credential, **query)
    if reply.status != 200:
        return reply.status, reply.code
    return [f"{job['tenant']}/{job['actor']}" for job in reply.json["jobs"]]


def test_whose_jobs_are_listed(door: Door) -> None:
    for who in (token(sub="bob"), token(tenant="globex", sub="cid")):
        assert door.stage.request("POST", "/v1/jobs", {"targets": [{"url": URL}]}, key=who).status == 202
    everywhere, somewhere = token(sub="eve", scope="admin"), token(sub="eve", scope="admin:acme")
    ann, bob, cid = "acme/ann", "acme/bob", "globex/cid"
    for admin in (everywhere, somewhere):
        assert listed(door, admin) == []
        assert listed(door, admin, tenant="acme") == [bob, ann]
        assert listed(door, admin, actor="bob") == listed(door, admin, tenant="acme", actor="bob") == [bob]
        assert listed(door, admin, tenant="acme", status="queued") == [bob]
    assert listed(door, everywhere, all=True) == [cid, bob, ann]
    assert listed(door, everywhere, tenant="globex") == listed(door, everywhere, tenant="globex", actor="cid") == [cid]
    assert listed(door, everywhere, tenant="acme", actor="cid") == []
    refused = (403, "forbidden")
    for query in ({"all": True}, {"tenant": "globex"}, {"tenant": "globex", "actor": "cid"}):
        assert listed(door, somewhere, **query) == refused
    for query in ({"all": True}, {"tenant": "acme"}, {"actor": "ann"}, {"tenant": "acme", "actor": "ann"}):
        assert listed(door, door.stage.key, **query) == refused
    for query in ({"all": True, "tenant": "acme"}, {"all": True, "actor": "ann"}, {"tenant": ""}, {"actor": "x" * 129}):
        assert listed(door, everywhere, **query) == (422, "invalid_request")


@pytest.mark.parametrize("word", ["1", "0", "yes", "no", "on", "t", "TRUE", "True", "False", "", " true"])
def test_a_flag_is_true_or_false_and_no_other_word(door: Door, word: str) -> None:
    """A word that is taken for false would answer another list than was meant, and say nothing."""
    admin = token(sub="eve", scope="admin")
    assert listed(door, admin, all=word) == (422, "invalid_request")
    assert listed(door, admin, all="true") == ["acme/ann"]
    assert listed(door, admin, all="false") == []


def test_a_list_of_everybody_goes_on_by_its_own_cursor(door: Door) -> None:
    job_ids = [door.job_id]
    for number in range(3):
        who = token(sub=f"bob-{number}")
        job_ids.append(door.stage.request("POST", "/v1/jobs", {"targets": [{"url": URL}]}, key=who).json["id"])
    admin, found, cursor = token(sub="eve", scope="admin"), [], None
    while cursor is not None or not found:
        query = {"cursor": cursor} if cursor else {}
        reply = door.stage.request("GET", "/v1/jobs", key=admin, all=True, limit=2, **query)
        found += [job["id"] for job in reply.json["jobs"]]
        cursor = reply.json["next"]
        if cursor:
            for other in ({}, {"tenant": "acme"}):
                wrong = door.stage.request("GET", "/v1/jobs", key=admin, cursor=cursor, **other)
                assert (wrong.status, wrong.code) == (400, "bad_cursor")
            assert door.stage.get("/v1/jobs", cursor=cursor).code == "bad_cursor"
    assert found == job_ids[::-1]


# tokens as callers


def test_a_job_of_a_token_runs_as_its_holder(door: Door) -> None:
    said = token(sub="auth0|7", azp="crawler", scope="sift:fetch")
    job_id = door.stage.request("POST", "/v1/jobs", {"targets": [{"url": URL}]}, key=said).json["id"]
    meta, _ = asyncio.run(door.stage.store.get_job(job_id)) or (None, None)
    assert meta is not None
    assert meta.identity == {
        "tenant": "acme", "actor": "auth0|7", "subject": "auth0|7", "application": "crawler", "auth_type": "jwt",
        "client_ip": "203.0.113.7", "scopes": ["fetch"], "denied_models": [], "caller_class": "default",
    }  # fmt: skip
    items = door.stage.deployment.client("dynamodb").scan(TableName=door.stage.table)["Items"]
    assert said.split(".")[2] not in json.dumps(items, default=str)


def test_a_provider_that_is_away_is_no_reason_to_refuse_a_token(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable, value in {
        "JWT_ISSUER": provider.ISSUER, "JWT_AUDIENCE": provider.AUDIENCE, "JWT_JWKS_URL": "http://127.0.0.1:9/keys",
    }.items():  # fmt: skip
        monkeypatch.setenv(variable, value)
    forget_services()
    reply = stage.request("GET", "/v1/jobs", key=token())
    assert (reply.status, reply.code) == (503, "unavailable")
    assert int(reply.headers["retry-after"]) > 0
    assert stage.request("GET", "/v1/jobs").status == 200, "keys need no provider"


def test_without_a_provider_a_token_is_nobodys(stage: Stage) -> None:
    reply = stage.request("GET", "/v1/jobs", key=token())
    assert (reply.status, reply.code) == (401, "unauthenticated")


def test_classes_come_from_the_document_of_the_deployment(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CALLER_CLASSES", '{"small": {"targets_per_job": 1, "window": 3}}')
    forget_services()
    key, gold = stage.new_key("sam", caller_class="small"), stage.new_key("sam", caller_class="gold")
    two = {"targets": [{"url": f"{URL}{number}"} for number in range(2)]}
    assert stage.request("POST", "/v1/jobs", two, key=key).json["limit"] == 1
    reply = stage.request("POST", "/v1/jobs", {"targets": two["targets"][:1]}, key=key)
    assert (reply.status, reply.json["window"]) == (202, 3)
    reply = stage.request("POST", "/v1/jobs", two, key=gold)
    assert (reply.status, reply.code) == (403, "forbidden")
    assert stage.request("GET", "/v1/jobs", key=gold).status == 200, "what is there can still be read"
