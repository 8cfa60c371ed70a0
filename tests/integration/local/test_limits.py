"""What AWS refuses and moto lets pass, and the atomicity that moto does not have."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from botocore.exceptions import ClientError

from sift_client.local import LocalStack
from tests.integration.local.project import Project, Start

KB = 1024


@pytest.fixture
def stack(project: Project, start: Start) -> LocalStack:
    project.add_table()
    project.add("Queue", "AWS::SQS::Queue")
    return start()


def _item(sort: str, size: int) -> dict[str, Any]:
    return {"pk": {"S": "p"}, "sk": {"S": sort}, "data": {"B": b"x" * size}}


def _put(stack: LocalStack, item: dict[str, Any]) -> dict[str, Any]:
    return {"Put": {"TableName": stack.physical("Table"), "Item": item}}


def _code(error: pytest.ExceptionInfo[ClientError]) -> str:
    return str(error.value.response["Error"]["Code"])


def test_item_over_400_kb_is_refused(stack: LocalStack) -> None:
    client, table = stack.client("dynamodb"), stack.physical("Table")
    client.put_item(TableName=table, Item=_item("fits", 394 * KB))
    for write in (
        lambda item: client.put_item(TableName=table, Item=item),
        lambda item: client.batch_write_item(RequestItems={table: [{"PutRequest": {"Item": item}}]}),
        lambda item: client.transact_write_items(TransactItems=[_put(stack, item)]),
    ):
        with pytest.raises(ClientError, match="Item size has exceeded") as refused:
            write(_item("over", 401 * KB))
        assert _code(refused) == "ValidationException"
    # Each element of a list counts one byte more, which moto does not see.
    many = {"pk": {"S": "p"}, "sk": {"S": "list"}, "data": {"L": [{"S": "x"}] * 205_000}}
    with pytest.raises(ClientError, match="Item size has exceeded"):
        client.put_item(TableName=table, Item=many)
    assert client.scan(TableName=table, Select="COUNT")["Count"] == 1


def test_update_that_grows_an_item_over_400_kb_changes_nothing(stack: LocalStack) -> None:
    client, table = stack.client("dynamodb"), stack.physical("Table")
    client.put_item(TableName=table, Item=_item("a", 300 * KB))
    update = {
        "TableName": table,
        "Key": {"pk": {"S": "p"}, "sk": {"S": "a"}},
        "UpdateExpression": "SET #more = :more",
        "ExpressionAttributeNames": {"#more": "more"},
    }
    with pytest.raises(ClientError, match="Item size to update has exceeded") as refused:
        client.update_item(**update, ExpressionAttributeValues={":more": {"B": b"y" * 101 * KB}})
    assert _code(refused) == "ValidationException"
    large = {"Update": {**update, "ExpressionAttributeValues": {":more": {"B": b"y" * 101 * KB}}}}
    with pytest.raises(client.exceptions.TransactionCanceledException) as cancelled:
        client.transact_write_items(TransactItems=[_put(stack, _item("b", 10)), large])
    reasons = cancelled.value.response["CancellationReasons"]
    assert [reason["Code"] for reason in reasons] == ["None", "ValidationError"]
    (left,) = client.scan(TableName=table)["Items"]
    assert left == _item("a", 300 * KB)
    client.update_item(**update, ExpressionAttributeValues={":more": {"B": b"y" * 90 * KB}})
    assert len(client.scan(TableName=table)["Items"][0]["more"]["B"]) == 90 * KB


def test_update_that_makes_an_item_too_large_leaves_none_behind(stack: LocalStack) -> None:
    client, table = stack.client("dynamodb"), stack.physical("Table")
    with pytest.raises(ClientError):
        client.update_item(
            TableName=table,
            Key={"pk": {"S": "p"}, "sk": {"S": "new"}},
            UpdateExpression="SET x = :x",
            ExpressionAttributeValues={":x": {"S": "x" * 410 * KB}},
        )
    assert client.scan(TableName=table)["Items"] == []


def test_transaction_over_4_mb_is_refused(stack: LocalStack) -> None:
    client = stack.client("dynamodb")
    client.transact_write_items(TransactItems=[_put(stack, _item(str(n), 390 * KB)) for n in range(10)])
    with pytest.raises(ClientError, match="4 MB") as refused:
        client.transact_write_items(TransactItems=[_put(stack, _item(f"n{n}", 390 * KB)) for n in range(11)])
    assert _code(refused) == "ValidationException"
    assert client.scan(TableName=stack.physical("Table"), Select="COUNT")["Count"] <= 10


def test_transaction_of_more_than_100_items_is_refused(stack: LocalStack) -> None:
    client = stack.client("dynamodb")
    client.transact_write_items(TransactItems=[_put(stack, _item(str(n), 1)) for n in range(100)])
    with pytest.raises(ClientError, match="less than or equal to 100") as refused:
        client.transact_write_items(TransactItems=[_put(stack, _item(str(n), 1)) for n in range(101)])
    assert _code(refused) == "ValidationException"


def test_message_over_1_mib_is_refused(stack: LocalStack) -> None:
    client, url = stack.client("sqs"), stack.physical("Queue")
    client.send_message(QueueUrl=url, MessageBody="x" * 1024 * KB)
    attribute = {"a": {"DataType": "String", "StringValue": "y"}}
    with pytest.raises(ClientError, match="shorter than 1048576 bytes"):
        client.send_message(QueueUrl=url, MessageBody="x" * 1024 * KB, MessageAttributes=attribute)


def test_batch_over_1_mib_is_refused(stack: LocalStack) -> None:
    client, url = stack.client("sqs"), stack.physical("Queue")
    entries = [{"Id": str(n), "MessageBody": "é" * 51 * KB} for n in range(10)]
    assert len(client.send_message_batch(QueueUrl=url, Entries=entries)["Successful"]) == 10
    entries = [{"Id": str(n), "MessageBody": "é" * 53 * KB} for n in range(10)]
    with pytest.raises(client.exceptions.BatchRequestTooLong) as refused:
        client.send_message_batch(QueueUrl=url, Entries=entries)
    assert _code(refused) == "AWS.SimpleQueueService.BatchRequestTooLong"
    count = client.get_queue_attributes(QueueUrl=url, AttributeNames=["ApproximateNumberOfMessages"])
    assert count["Attributes"]["ApproximateNumberOfMessages"] == "10"


def test_events_over_1_mb_are_refused(stack: LocalStack) -> None:
    client = stack.client("events")
    entry = {"Source": "s", "DetailType": "t", "Detail": '{"x": "' + "x" * 600 * KB + '"}'}
    assert client.put_events(Entries=[entry])["FailedEntryCount"] == 0
    with pytest.raises(ClientError, match="over the limit"):
        client.put_events(Entries=[entry, entry])


def test_conditional_writes_are_atomic_under_32_threads(stack: LocalStack) -> None:
    client, table = stack.client("dynamodb"), stack.physical("Table")
    rounds, winners = 4, []
    barrier = threading.Barrier(32)

    def race(number: int) -> None:
        for turn in range(rounds):
            barrier.wait()
            try:
                client.put_item(
                    TableName=table,
                    Item={"pk": {"S": "race"}, "sk": {"S": str(turn)}, "by": {"N": str(number)}},
                    ConditionExpression="attribute_not_exists(pk)",
                )
                winners.append(turn)
            except client.exceptions.ConditionalCheckFailedException:
                pass
            client.update_item(
                TableName=table,
                Key={"pk": {"S": "sum"}, "sk": {"S": "sum"}},
                UpdateExpression="ADD n :one",
                ExpressionAttributeValues={":one": {"N": "1"}},
            )

    threads = [threading.Thread(target=race, args=(number,)) for number in range(32)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(winners) == list(range(rounds))
    total = client.get_item(TableName=table, Key={"pk": {"S": "sum"}, "sk": {"S": "sum"}})["Item"]["n"]["N"]
    assert total == str(32 * rounds)


def test_message_goes_to_one_of_many_receivers(stack: LocalStack) -> None:
    client, url = stack.client("sqs"), stack.physical("Queue")
    for start in range(0, 100, 10):
        client.send_message_batch(
            QueueUrl=url, Entries=[{"Id": str(n), "MessageBody": str(n)} for n in range(start, start + 10)]
        )
    received: list[str] = []

    def receive() -> None:
        while messages := client.receive_message(QueueUrl=url, MaxNumberOfMessages=5).get("Messages"):
            received.extend(message["Body"] for message in messages)

    threads = [threading.Thread(target=receive) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(map(int, received)) == list(range(100))


def test_long_poll_does_not_hold_up_the_sender(stack: LocalStack) -> None:
    client, url = stack.client("sqs"), stack.physical("Queue")
    received: list[Any] = []
    poll = threading.Thread(
        target=lambda: received.append(client.receive_message(QueueUrl=url, WaitTimeSeconds=20)["Messages"])
    )
    poll.start()
    client.send_message(QueueUrl=url, MessageBody="late")
    poll.join()
    assert received[0][0]["Body"] == "late"


def test_two_stacks_do_not_meet(stack: LocalStack, start: Start) -> None:
    other = start()
    stack.client("sqs").send_message(QueueUrl=stack.physical("Queue"), MessageBody="mine")
    assert "Messages" not in other.client("sqs").receive_message(QueueUrl=other.physical("Queue"))


def test_an_upload_that_is_over_is_not_there(project: Project, start: Start) -> None:
    project.add("Bucket", "AWS::S3::Bucket")
    stack = start()
    client, bucket = stack.client("s3"), stack.physical("Bucket")
    upload = client.create_multipart_upload(Bucket=bucket, Key="k")["UploadId"]
    at = {"Bucket": bucket, "Key": "k", "UploadId": upload}
    tag = client.upload_part(**at, PartNumber=1, Body=b"x")["ETag"]
    parts = {"Parts": [{"PartNumber": 1, "ETag": tag}]}
    client.complete_multipart_upload(**at, MultipartUpload=parts)
    for late in (
        lambda: client.upload_part(**at, PartNumber=1, Body=b"x"),
        lambda: client.complete_multipart_upload(**at, MultipartUpload=parts),
        lambda: client.abort_multipart_upload(**at),
    ):
        with pytest.raises(ClientError) as refused:
            late()
        assert _code(refused) == "NoSuchUpload"
    assert client.get_object(Bucket=bucket, Key="k")["Body"].read() == b"x"
