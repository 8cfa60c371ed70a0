"""Jobs of requests to the model gateway, where the deployment has one."""

from __future__ import annotations

import json
from typing import Any

from tests.e2e.service import Service, content_of


def _request(model: str, visit: str, number: int) -> dict[str, Any]:
    message = {"role": "user", "content": f"Say a number. {visit} {number}"}
    body = {"model": model, "messages": [message], "max_tokens": 8}
    return {"path": "/v1/chat/completions", "body": body, "id": f"r{number}"}


def test_requests_are_answered_by_the_gateway(service: Service, model: str, visit: str) -> None:
    requests = [_request(model, visit, number) for number in range(3)]
    job = service.ask(requests).expect(202).json
    assert (job["kind"], job["counts"]["total"]) == ("inference", 3)
    assert service.ask(requests).expect(200).json["id"] == job["id"]
    assert service.wait(job["id"])["status"] == "done"
    slots = list(service.slots(job["id"], content="true"))
    assert [slot["id"] for slot in slots] == ["r0", "r1", "r2"]
    for slot in slots:
        assert json.loads(content_of(slot))["choices"]
    listed = service.call("GET /v1/jobs", query={"kind": "inference"}).expect(200).json["jobs"]
    assert job["id"] in [found["id"] for found in listed]


def test_a_path_that_the_operator_does_not_allow(service: Service, model: str, visit: str) -> None:
    refused = service.ask([_request(model, visit, 0) | {"path": "/admin/keys"}])
    assert refused.status in (403, 422)
    assert refused.json["code"]
