"""What the gate puts in the place of moto's copies of whole tables: the same answers, at a cost that does not grow."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import botocore.session
import pytest
from botocore.exceptions import ClientError
from moto.backends import get_backend
from moto.core.serialize import JSONSerializer, XFormedAttributePicker, get_serializer_class
from moto.core.utils import get_service_model
from moto.dynamodb.models.dynamo_type import DynamoType, Item
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app

from sift_client.local.cloud import Cloud
from sift_client.local.dispatch import Dispatcher, ItemSerializer
from sift_client.local.naming import REGION
from sift_client.local.webserver import WebServer

PLAIN_ACCOUNT = "999999999999"
KEYS = (("pk", "HASH"), ("sk", "RANGE"))


def _make_table(client: Any) -> None:
    client.create_table(
        TableName="table",
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name, _ in KEYS],
        KeySchema=[{"AttributeName": name, "KeyType": kind} for name, kind in KEYS],
        StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"},
    )


@pytest.fixture(scope="module")
def cloud() -> Iterator[Cloud]:
    cloud = Cloud()
    try:
        yield cloud
    finally:
        cloud.close()


@pytest.fixture
def gated(cloud: Cloud) -> Iterator[Any]:
    """A client of moto behind the gate, with an empty table."""
    client = cloud.client("dynamodb")
    _make_table(client)
    yield client
    client.delete_table(TableName="table")


@pytest.fixture
def plain() -> Iterator[Any]:
    """A client of moto as it is, with an empty table."""
    application: Any = DomainDispatcherApplication(create_backend_app)
    server = WebServer(lambda environ, start: application({**environ, "HTTP_X_MOTO_ACCOUNT_ID": PLAIN_ACCOUNT}, start))
    server.start()
    client = botocore.session.Session().create_client(
        "dynamodb", region_name=REGION, endpoint_url=server.url, aws_access_key_id="a", aws_secret_access_key="b"
    )
    _make_table(client)
    yield client
    client.close()
    server.close()
    for backend in get_backend("dynamodb").pop(PLAIN_ACCOUNT).values():
        backend.reset()


def _key(sort: str) -> dict[str, Any]:
    return {"pk": {"S": "p"}, "sk": {"S": sort}}


def _put(sort: str, **more: Any) -> dict[str, Any]:
    return {"Put": {"TableName": "table", "Item": {**_key(sort), "n": {"N": "1"}}, **more}}


def _update(sort: str, expression: str = "SET n = n + :one", **more: Any) -> dict[str, Any]:
    values = {":one": {"N": "1"}}
    return {
        "Update": {
            "TableName": "table",
            "Key": _key(sort),
            "UpdateExpression": expression,
            "ExpressionAttributeValues": values,
            **more,
        }
    }


def _check(sort: str, condition: str, **more: Any) -> dict[str, Any]:
    return {
        "ConditionCheck": {"TableName": "table", "Key": _key(sort), "ConditionExpression": condition, **more},
    }


DELETE = {"Delete": {"TableName": "table", "Key": _key("old")}}
MISSING = "attribute_not_exists(pk)"
SHOW = {"ReturnValuesOnConditionCheckFailure": "ALL_OLD"}
TRANSACTIONS: dict[str, list[dict[str, Any]]] = {
    "all of it": [_put("new"), _update("old"), _check("none", MISSING)],
    "a failed check after every kind of change": [_put("new"), _put("older"), _update("old"), _check("kept", MISSING)],
    "a failed check after a delete": [DELETE, _check("older", MISSING, **SHOW)],
    "a failed check that shows the item": [_update("older"), _put("old", ConditionExpression=MISSING, **SHOW)],
    "two failed checks": [
        _put("old", ConditionExpression=MISSING),
        _put("new"),
        _check("none", "attribute_exists(pk)"),
    ],
    "a failed update after one that made its item": [_update("made", "SET n = :one"), _update("absent")],
    "an update of what is not there": [_put("new"), _update("old"), _update("absent")],
    "an item twice": [_update("old"), _put("old")],
    "an expression that does not parse": [_put("new"), _update("old", "SETTING n")],
    "a key without its range": [_put("new"), {"Update": {**_update("old")["Update"], "Key": {"pk": {"S": "p"}}}}],
    "a key of another type": [_put("new"), {"Put": {"TableName": "table", "Item": {**_key("x"), "pk": {"N": "1"}}}}],
    "a key that is a list": [
        _put("new"),
        {"Update": {**_update("x")["Update"], "Key": {**_key("x"), "sk": {"L": []}}}},
    ],
    "a table that is not there": [_put("new"), {"Delete": {"TableName": "elsewhere", "Key": _key("old")}}],
}


def _run(client: Any, actions: list[dict[str, Any]]) -> Any:
    """What the transaction answers, without what differs from call to call; and what is in the table after it."""
    for sort in ("kept", "old", "older"):
        client.put_item(TableName="table", Item={**_key(sort), "n": {"N": "5"}, "m": {"M": {"x": {"S": sort}}}})
    try:
        client.transact_write_items(TransactItems=actions)
        answer = None
    except ClientError as error:
        answer = {name: value for name, value in error.response.items() if name != "ResponseMetadata"}
    items = client.scan(TableName="table", ConsistentRead=True)["Items"]
    return answer, sorted(items, key=lambda item: item["sk"]["S"])


def _list_stream(account: str) -> list[tuple[str, str]]:
    table: Any = get_backend("dynamodb")[account][REGION].get_table("table")
    return [(record.record["eventName"], str(record.record["dynamodb"]["Keys"])) for record in table.stream_shard.items]


@pytest.mark.parametrize("name", TRANSACTIONS)
def test_a_transaction_answers_and_leaves_what_it_does_without_the_gate(
    name: str, gated: Any, plain: Any, cloud: Cloud
) -> None:
    actions = TRANSACTIONS[name]
    assert _run(gated, actions) == _run(plain, actions)
    assert _list_stream(cloud.account) == _list_stream(PLAIN_ACCOUNT)
    # Nothing stays behind that would change the next one.
    assert _run(gated, [_put("later"), _update("older")]) == _run(plain, [_put("later"), _update("older")])


def test_a_refused_transaction_leaves_every_item_as_it_was(gated: Any) -> None:
    before = _run(gated, [_check("none", MISSING)])[1]
    answer, after = _run(gated, TRANSACTIONS["a failed check after every kind of change"])
    assert [reason["Code"] for reason in answer["CancellationReasons"]] == ["None"] * 3 + ["ConditionalCheckFailed"]
    assert after == before


def _fill(client: Any, segments: range) -> None:
    for segment in segments:
        items = [{"pk": {"S": f"s{segment}"}, "sk": {"S": str(n)}, "n": {"N": "1"}} for n in range(25)]
        writes = [{"PutRequest": {"Item": item}} for item in items]
        client.batch_write_item(RequestItems={"table": writes})


@pytest.fixture
def copies(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """One entry for each item that is copied."""
    made: list[str] = []
    real = Item.__deepcopy__

    def count(self: Item, memo: Any) -> Item:
        made.append(self.hash_key.value)
        return real(self, memo)

    monkeypatch.setattr(Item, "__deepcopy__", count)
    return made


def test_a_transaction_copies_no_more_in_a_full_table(gated: Any, copies: list[str]) -> None:
    def count() -> int:
        """Copies for a transaction that goes through and for one that does not."""
        gated.put_item(TableName="table", Item=_put("old")["Put"]["Item"])
        copies.clear()
        gated.transact_write_items(TransactItems=[_put("new"), _update("old")])
        with pytest.raises(gated.exceptions.TransactionCanceledException):
            gated.transact_write_items(
                TransactItems=[_put("new"), _update("old"), _check("none", "attribute_exists(pk)")]
            )
        return len(copies)

    count()
    few = count()
    _fill(gated, range(80))
    assert 0 < count() == few


def test_a_query_looks_at_its_own_partition_only(gated: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[Any] = []
    real = DynamoType.__lt__

    def count(self: DynamoType, other: Any) -> bool:
        compared.append(self)
        return real(self, other)

    def query() -> tuple[int, Any]:
        compared.clear()
        answer = gated.query(
            TableName="table",
            KeyConditionExpression="pk = :pk AND begins_with(sk, :two)",
            ExpressionAttributeValues={":pk": {"S": "s0"}, ":two": {"S": "2"}},
            ScanIndexForward=False,
        )
        return len(compared), [item["sk"]["S"] for item in answer["Items"]]

    monkeypatch.setattr(DynamoType, "__lt__", count)
    _fill(gated, range(1))
    alone = query()
    _fill(gated, range(1, 80))
    assert query() == alone
    assert alone[1] == ["24", "23", "22", "21", "20", "2"]
    values = {":pk": {"S": "nobody"}}
    nothing = gated.query(TableName="table", KeyConditionExpression="pk = :pk", ExpressionAttributeValues=values)
    assert nothing["Items"] == []
    assert len(gated.scan(TableName="table")["Items"]) == 80 * 25


def test_items_are_written_as_moto_writes_them() -> None:
    values: list[Any] = [
        {"S": "x"}, {"S": ""}, {"N": "1"}, {"N": 1}, {"BOOL": False}, {"NULL": True}, {"SS": ["a", "b"]}, {"SS": []},
        {"M": {}}, {"L": []}, {"M": {"a": {"M": {"b": {"N": "1"}}}, "c": {"L": [{"S": "x"}, {"L": [{"NULL": True}]}]}}},
        {"NS": ["1"]}, {"B": b"b"}, {"L": [{"B": b"b"}]}, {"M": {"a": {"N": 1}}}, {}, "x",
        {"M": {"a": {"S": "x"}, "b": {"L": [{"N": "1"}, {"M": {}}, {"B": "Yg=="}]}}},
    ]  # fmt: skip
    item = {f"value{number}": value for number, value in enumerate(values)}
    operation = get_service_model("dynamodb").operation_model("GetItem")
    told = [
        made(operation_model=operation, value_picker=XFormedAttributePicker()).serialize({"Item": item})
        for made in (JSONSerializer, ItemSerializer)
    ]
    assert told[0] == told[1]
    assert get_serializer_class("dynamodb", "json") is ItemSerializer


def test_a_host_is_looked_for_once() -> None:
    dispatcher = Dispatcher()
    for host in ("dynamodb.us-east-1.amazonaws.com", "sqs.us-east-1.amazonaws.com", "moto_api"):
        known = DomainDispatcherApplication(create_backend_app).get_backend_for_host(host)
        assert dispatcher.get_backend_for_host(host) == known
        dispatcher.backend_url_patterns = []  # what is asked again is not looked for
        assert dispatcher.get_backend_for_host(host) == known
        dispatcher = Dispatcher()
