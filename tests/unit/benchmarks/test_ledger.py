"""What a request costs by the rules of DynamoDB, SQS and S3."""

from __future__ import annotations

import base64
import io
import json
from types import SimpleNamespace
from typing import Any

import pytest

from benchmarks.ledger import Ledger, item_size, queue_units, table_units


def item(size: int) -> dict[str, Any]:
    """An item of so many bytes: a name of one, and a text."""
    return {"a": {"S": "x" * (size - 1)}}


@pytest.mark.parametrize(("size", "units"), [(2, 1), (1_024, 1), (1_025, 2), (2_048, 2), (10_241, 11)])
def test_a_put_costs_a_unit_for_each_kilobyte(size: int, units: int) -> None:
    assert table_units("PutItem", {"Item": item(size)}, {}) == {"table_write_unit": units}


def test_an_update_is_charged_for_the_item_that_it_makes_and_a_refused_one_for_what_it_found() -> None:
    assert table_units("UpdateItem", {}, {"Attributes": item(1_500)}) == {"table_write_unit": 2}
    assert table_units("UpdateItem", {}, {"Item": item(2_500)}) == {"table_write_unit": 3}
    assert table_units("UpdateItem", {}, {}) == {"table_write_unit": 1}


def test_a_transaction_costs_twice() -> None:
    writes = [{"Put": {"Item": item(3_000)}}, {"Update": {"Key": item(5)}}, {"ConditionCheck": {"Key": item(5)}}]
    assert table_units("TransactWriteItems", {"TransactItems": writes}, {}) == {"table_write_unit": 2 * (3 + 1 + 1)}


def test_a_batch_costs_as_its_writes() -> None:
    writes = [{"PutRequest": {"Item": item(1_025)}}, {"DeleteRequest": {"Key": item(5)}}]
    assert table_units("BatchWriteItem", {"RequestItems": {"t": writes}}, {}) == {"table_write_unit": 3}


@pytest.mark.parametrize(("strong", "units"), [(True, 2), (False, 1), (None, 1)])
def test_a_read_costs_a_unit_for_four_kilobytes_and_half_when_it_may_be_late(strong: bool | None, units: float) -> None:
    request = {} if strong is None else {"ConsistentRead": strong}
    assert table_units("GetItem", request, {"Item": item(4_097)}) == {"table_read_unit": units}
    assert table_units("GetItem", request, {}) == {"table_read_unit": 1 if strong else 0.5}


def test_a_query_adds_its_items_up_before_it_rounds() -> None:
    request = {"ConsistentRead": True}
    assert table_units("Query", request, {"Items": [item(3_000)] * 4, "ScannedCount": 4}) == {"table_read_unit": 3}
    assert table_units("Query", request, {"Count": 40, "ScannedCount": 40}) == {"table_read_unit": 2}


def test_a_batch_of_reads_rounds_each_item() -> None:
    request = {"RequestItems": {"t": {"Keys": [{}, {}, {}], "ConsistentRead": True}}}
    answer = {"Responses": {"t": [item(100), item(5_000)]}}
    assert table_units("BatchGetItem", request, answer) == {"table_read_unit": 1 + 2 + 1}


def test_an_operation_that_nobody_priced_is_no_free_one() -> None:
    with pytest.raises(KeyError):
        table_units("Scan", {}, {})


@pytest.mark.parametrize(("size", "requests"), [(10, 1), (32_768, 1), (32_769, 2)])
def test_the_queue_charges_for_64_kilobytes_in_either_direction(size: int, requests: int) -> None:
    body = "x" * size
    sent = queue_units("SendMessageBatch", {"Entries": [{"MessageBody": body}] * 2}, {})
    received = queue_units("ReceiveMessage", {}, {"Messages": [{"Body": body}] * 2})
    assert sent == received == {"queue_request": requests, "queue_fair_request": requests}
    assert queue_units("DeleteMessageBatch", {"Entries": [{"ReceiptHandle": body}]}, {})["queue_request"] == 1


def test_sizes_are_of_stored_bytes_whichever_way_an_item_comes() -> None:
    data = b"\x00" * 300
    sent = {"b": {"B": base64.b64encode(data).decode()}}
    answered = {"b": {"B": data}}
    assert item_size(sent) == item_size(answered) == 301
    assert item_size({"ids": {"SS": ["abc", "de"]}}) == 8
    assert item_size({"m": {"M": {"k": {"N": "12"}}}}) > item_size({"k": {"N": "12"}})


def call(ledger: Ledger, service: str, operation: str, body: Any, parsed: dict[str, Any]) -> None:
    """As botocore tells its hooks of a request."""
    model = SimpleNamespace(name=operation, service_model=SimpleNamespace(service_name=service))
    context: dict[str, Any] = {}
    ledger.before(params={"body": body}, context=context)
    ledger.after(model=model, parsed=parsed, context=context)


def test_requests_units_and_bytes_add_up() -> None:
    ledger = Ledger()
    put = json.dumps({"Item": item(1_025)}).encode()
    call(ledger, "dynamodb", "PutItem", put, {})
    call(ledger, "s3", "PutObject", io.BytesIO(b"x" * 500), {})
    call(ledger, "s3", "GetObject", b"", {"ContentLength": 700})
    call(ledger, "s3", "DeleteObject", b"", {})
    ledger.add(lambda_request=2)
    assert dict(ledger.quantities) == {"table_write_unit": 2, "object_put": 1, "object_get": 1, "lambda_request": 2}
    assert (ledger.sent, ledger.received) == (len(put) + 500, 700)
    assert ledger.requests.total() == 4
