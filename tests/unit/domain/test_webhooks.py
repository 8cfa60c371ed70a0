"""Webhooks: signatures as the package of Standard Webhooks makes them, and headers that may be set."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from standardwebhooks.webhooks import Webhook

from sift.webhooks import EVENTS, Secrets, check_headers, mask, new_secret, sign, signed_headers

BODY = '{"type":"job.ended","data":{"ü":1}}'


def test_a_signature_is_that_of_the_package() -> None:
    secret, moment = new_secret(), 1_796_000_000
    expected = Webhook(secret).sign("msg_1", datetime.fromtimestamp(moment, UTC), BODY)
    assert sign(secret, "msg_1", moment, BODY.encode()) == expected
    assert sign(secret, "msg_1", moment, BODY.encode() + b" ") != expected


def test_each_valid_secret_signs() -> None:
    secrets = Secrets("whsec_bmV3", "whsec_b2xk", previous_until=100)
    assert secrets.valid(99) == ["whsec_bmV3", "whsec_b2xk"]
    assert secrets.valid(100) == ["whsec_bmV3"]
    signatures = signed_headers(secrets.valid(99), "msg_1", 99, BODY.encode())["webhook-signature"].split()
    assert [signature[:3] for signature in signatures] == ["v1,", "v1,"]


def test_every_choice_of_events_has_a_form_of_its_own() -> None:
    assert mask(["job.ended"]) == 0
    assert mask(EVENTS) == mask([*EVENTS, *EVENTS]) == 7
    assert len({mask([event]) for event in EVENTS}) == 4


@pytest.mark.parametrize("name", ["Cookie", "X-Forwarded-Host", "x-amz-date", "X-Real-IP", "webhook-id", "X-", "X-Ä"])
def test_a_header_that_is_not_yours(name: str) -> None:
    with pytest.raises(ValueError, match="can't be set"):
        check_headers({name: "secret"})


def test_headers_of_your_own() -> None:
    assert check_headers({"Authorization": "Bearer x", "X-Api-Key": "y"}) == {
        "authorization": "Bearer x", "x-api-key": "y",
    }  # fmt: skip
