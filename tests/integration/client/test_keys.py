"""`sift keys` on a table of the template, as the operator of a deployment or of a local stack uses it."""

from __future__ import annotations

import asyncio
import json
import re
import socket
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sift.clock import SystemClock
from sift.errors import Unauthenticated
from sift.identity import Identity, KeyRecord
from sift.services.keys import LAST_SECOND, KeyService
from sift.store.dynamo import DynamoStore
from sift_client import keys as commands
from sift_client.cli import main
from sift_client.connection import Connection, LocalTable, save_connection
from sift_client.errors import SiftClientError
from sift_client.local.cloud import Cloud
from sift_client.local.document import read_document
from sift_client.local.naming import Naming
from sift_client.local.planner import make_blueprint

ROOT = Path(__file__).parents[3]
Captured = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def deployed() -> Iterator[tuple[Cloud, str]]:
    cloud = Cloud()
    try:
        document = read_document(ROOT / "template.yaml", {})
        naming = Naming(document, "keys", cloud.account, cloud.url, "http://127.0.0.1:9")
        cloud.provision(make_blueprint(document, naming))
        yield cloud, naming.ref("JobsTable")
    finally:
        cloud.close()


@pytest.fixture
def table(deployed: tuple[Cloud, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DynamoStore:
    """The table, which the commands find by SIFT_TABLE, from an empty folder."""
    cloud, name = deployed
    monkeypatch.chdir(tmp_path)
    for variable, value in {
        "AWS_ENDPOINT_URL": cloud.url, "AWS_ACCESS_KEY_ID": "local", "AWS_SECRET_ACCESS_KEY": "local",
        "AWS_DEFAULT_REGION": "us-east-1", "AWS_CONFIG_FILE": "/dev/null", "SIFT_TABLE": name,
    }.items():  # fmt: skip
        monkeypatch.setenv(variable, value)
    return DynamoStore(cloud.client("dynamodb"), name)


def holder(table: DynamoStore, key: str) -> Identity:
    """Who a service that has not seen the key yet takes it for."""
    return asyncio.run(KeyService(table, SystemClock()).authenticate(key))


def create(capsys: Captured, *options: str) -> str:
    assert main(["keys", "create", "--tenant", "acme", *options]) == 0
    return capsys.readouterr().out.strip()


def test_a_key_is_shown_once_and_opens_the_api_until_it_is_revoked(table: DynamoStore, capsys: Captured) -> None:
    assert main(["keys", "create", "--tenant", "acme", "--actor", "ann"]) == 0
    out, err = capsys.readouterr()
    key = out.strip()
    _, key_id, secret = key.split("_")
    assert re.fullmatch(r"sift_[0-9a-f]{12}_[0-9a-f]{64}", key)
    assert "shown this once" in err
    assert secret not in err
    assert holder(table, key).caller == "acme/ann"
    assert main(["keys", "list"]) == 0
    listed = capsys.readouterr().out
    assert key_id in listed
    assert secret not in listed
    for _ in range(2):
        assert main(["keys", "revoke", key_id]) == 0
        assert "revoked" in capsys.readouterr().out
        with pytest.raises(Unauthenticated):
            holder(table, key)


def test_everything_that_a_key_can_carry(table: DynamoStore, capsys: Captured) -> None:
    key = create(
        capsys, "--actor", "bob", "--scope", "fetch", "--scope", "admin:acme", "--class", "batch", "--days", "30",
        "--limit", "targets_per_job=9", "--limit", "ttl_seconds=60", "--subject", "Bob", "--application", "crawler",
        "--allow-model", "m1", "--deny-model", "m2",
    )  # fmt: skip
    assert holder(table, key) == Identity(
        "acme", "bob", key.split("_")[1], ("fetch", "admin:acme"), {"targets_per_job": 9, "ttl_seconds": 60},
        subject="Bob", application="crawler", allowed_models=("m1",), denied_models=("m2",), caller_class="batch",
    )  # fmt: skip
    assert main(["keys", "list", "--json"]) == 0
    text = capsys.readouterr().out
    found = next(row for row in json.loads(text) if row["key_id"] == key.split("_")[1])
    assert key.split("_")[2] not in text
    assert "secret" not in text
    assert found["limits"] == {"targets_per_job": 9, "ttl_seconds": 60}
    assert (found["class"], found["scopes"], found["revoked_at"]) == ("batch", ["fetch", "admin:acme"], None)
    assert found["created_at"] < found["expires_at"]


def test_a_key_as_json(table: DynamoStore, capsys: Captured) -> None:
    found = json.loads(create(capsys, "--actor", "cid", "--json"))
    assert holder(table, found["key"]).actor == found["actor"] == "cid"
    assert found["key_id"] == found["key"].split("_")[1]
    assert found["expires_at"] is None
    assert main(["keys", "revoke", found["key_id"], "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["revoked_at"]


def test_the_local_stack_of_the_folder(deployed: tuple[Cloud, str], table: DynamoStore, capsys: Captured,
                                       monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    cloud, name = deployed
    for variable in ("SIFT_TABLE", "AWS_ENDPOINT_URL", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(variable)
    assert main(["keys", "list", "--local"]) == 4
    assert "no local stack runs in this folder" in capsys.readouterr().err
    save_connection(Connection("http://127.0.0.1:8700", "sift_a_b"), table=LocalTable(cloud.url, name))
    assert holder(table, create(capsys, "--actor", "dan", "--local")).actor == "dan"
    with socket.create_server(("127.0.0.1", 0)) as gone:
        port = gone.getsockname()[1]
    for endpoint in (f"http://127.0.0.1:{port}", "http://127.0.0.1:x", "None"):  # as a stack leaves it that was killed
        save_connection(Connection("http://127.0.0.1:8700", "sift_a_b"), table=LocalTable(endpoint, name))
        assert main(["keys", "list", "--local"]) == 4
        assert "the local stack of this folder does not run" in capsys.readouterr().err


def test_a_stack_names_its_table() -> None:
    outputs = [{"OutputKey": "Url", "OutputValue": "x"}, {"OutputKey": "TableName", "OutputValue": "jobs-7"}]
    answers: dict[str, Any] = {"sift": {"Stacks": [{"Outputs": outputs}]}, "other": {"Stacks": [{}]}}
    fake = SimpleNamespace(describe_stacks=lambda StackName: answers[StackName])
    assert commands._read_output(fake, "sift") == "jobs-7"
    with pytest.raises(SiftClientError, match="no output TableName"):
        commands._read_output(fake, "other")


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (["create", "--tenant", "a/b", "--actor", "ann"], "not a name"),
        (["create", "--tenant", "acme", "--actor", "ann", "--class", "a b"], "not a name"),
        (["create", "--tenant", "acme", "--actor", "ann", "--scope", "root"], "not scopes"),
        (["create", "--tenant", "acme", "--actor", "ann", "--scope", "fetch:acme"], "not scopes"),
        (
            ["create", "--tenant", "acme", "--actor", "ann", "--limit", "targets_per_job=0"],
            "targets_per_job is a number",
        ),
        (["create", "--tenant", "acme", "--actor", "ann", "--limit", "targets=5"], "no limit is called targets"),
        (["create", "--tenant", "acme", "--actor", "ann", "--limit", "window"], "NAME=N"),
    ],
)
def test_what_a_key_can_not_be(table: DynamoStore, capsys: Captured, options: list[str], word: str) -> None:
    before = asyncio.run(table.list_keys())
    assert main(["keys", *options]) == 2
    assert word in capsys.readouterr().err
    assert asyncio.run(table.list_keys()) == before


@pytest.mark.parametrize("days", ["0", "-1", "36501", "999999999", "9" * 5_000, "1.5", "soon", ""])
def test_days_that_a_key_can_not_last(table: DynamoStore, capsys: Captured, days: str) -> None:
    before = asyncio.run(table.list_keys())
    with pytest.raises(SystemExit) as caught:
        main(["keys", "create", "--tenant", "acme", "--actor", "ann", "--days", days])
    assert caught.value.code == 2
    assert "not a number from 1 to 36500" in capsys.readouterr().err
    assert asyncio.run(table.list_keys()) == before


def test_the_longest_time_that_a_key_can_last(table: DynamoStore, capsys: Captured) -> None:
    found = json.loads(create(capsys, "--actor", "eve", "--days", str(commands.MOST_DAYS), "--json"))
    assert int(found["expires_at"][:4]) - int(found["created_at"][:4]) in {99, 100}


@pytest.mark.parametrize("seconds", [LAST_SECOND + 1, 86_400 * 999_999_999, 10**400, -(10**15)])
def test_a_time_that_no_date_can_say_does_not_keep_keys_from_being_listed(
    table: DynamoStore, capsys: Captured, seconds: int
) -> None:
    assert commands._moment(seconds) == f"@{seconds}"
    if 0 < seconds < 10**38:  # what DynamoDB can hold
        record = KeyRecord("0e" * 6, "0" * 64, Identity("acme", "old", "0e" * 6), seconds, 1)
        asyncio.run(table.put_key(record))
        assert main(["keys", "list"]) == 0
        assert f"@{seconds}" in capsys.readouterr().out


def test_a_whole_key_is_revoked_and_not_shown(table: DynamoStore, capsys: Captured) -> None:
    key = create(capsys, "--actor", "fay")
    _, key_id, secret = key.split("_")
    assert main(["keys", "revoke", f" {key} "]) == 0
    out, err = capsys.readouterr()
    assert key_id in out
    assert secret not in out + err
    with pytest.raises(Unauthenticated):
        holder(table, key)
    for text in (f"sift_{'0' * 12}_{secret}", secret, f"SIFT_{key_id}_{secret}", f"{key_id}_{secret}"):
        assert main(["keys", "revoke", text]) == 4
        out, err = capsys.readouterr()
        assert "there is no key" in err
        assert secret not in out + err


def test_trouble_is_told_in_a_line(table: DynamoStore, capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    for key_id in ("0" * 12, "nonsense", ""):
        assert main(["keys", "revoke", key_id]) == 4
        assert "there is no key" in capsys.readouterr().err
    assert main(["keys", "list", "--table", "nowhere"]) == 4
    assert "ResourceNotFoundException" in capsys.readouterr().err
    monkeypatch.delenv("SIFT_TABLE")
    assert main(["keys", "list"]) == 2
    assert "no deployment is named" in capsys.readouterr().err
    for variable in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(variable)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
    assert main(["keys", "list", "--table", "nowhere"]) == 4
    assert "no AWS credentials" in capsys.readouterr().err


def test_a_key_is_for_events_only_when_it_is_said(table: DynamoStore, capsys: Captured) -> None:
    for options, events in ((["--events"], True), ([], False)):
        key = create(capsys, "--actor", "nightly", *options)
        record = asyncio.run(table.get_key(key.split("_")[1]))
        assert record is not None
        assert record.events is events
    assert main(["keys", "list", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert {entry["events"] for entry in listed if entry["actor"] == "nightly"} == {True, False}


def test_a_webhook_secret_is_shown_once_and_the_one_before_goes_on_for_a_while(
    table: DynamoStore, capsys: Captured
) -> None:
    who = ["--tenant", "acme", "--actor", "hooked"]
    shown = []
    for options in ([], ["--overlap", "2"], ["--overlap", "0"]):
        assert main(["keys", "webhook-secret", *who, *options]) == 0
        out, err = capsys.readouterr()
        shown.append(out.strip())
        assert shown[-1] not in err
        stored = asyncio.run(table.get_secrets("acme/hooked"))
        assert stored is not None
        now = SystemClock().now_ms() // 1000
        expected = shown[-2:][::-1] if options == ["--overlap", "2"] else shown[-1:]
        assert stored.valid(now) == expected
    assert len(set(shown)) == 3
    assert all(re.fullmatch(r"whsec_[A-Za-z0-9+/]{43}=", secret) for secret in shown)
    assert main(["keys", "webhook-secret", *who, "--json"]) == 0
    assert json.loads(capsys.readouterr().out).keys() == {"tenant", "actor", "secret"}


@pytest.mark.parametrize("options", [["--overlap", "-1"], ["--overlap", "721"], ["--overlap", "x"]])
def test_an_overlap_is_a_number_of_hours(table: DynamoStore, capsys: Captured, options: list[str]) -> None:
    with pytest.raises(SystemExit):
        main(["keys", "webhook-secret", "--tenant", "acme", "--actor", "ann", *options])
    assert "0 to 720" in capsys.readouterr().err
    assert main(["keys", "webhook-secret", "--tenant", "a/b", "--actor", "ann"]) == 2
