"""Where the client looks for the service and its key."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from sift_client.connection import Connection, find_connection, forget_connection, save_connection
from sift_client.errors import SiftClientError

LOCAL = Connection("http://127.0.0.1:8700", "sift_local_key")


@pytest.fixture
def local_file(tmp_path: Path) -> Path:
    return tmp_path / ".sift" / "local.json"


def test_arguments_win_over_the_environment(local_file: Path) -> None:
    environment = {"SIFT_URL": "https://env.example", "SIFT_KEY": "sift_env"}
    found = find_connection("https://arg.example/", "sift_arg", environment, local_file)
    assert found == Connection("https://arg.example", "sift_arg")


def test_the_environment_wins_over_the_file(local_file: Path) -> None:
    save_connection(LOCAL, local_file)
    environment = {"SIFT_URL": "https://env.example", "SIFT_KEY": "sift_env"}
    assert find_connection(None, None, environment, local_file) == Connection("https://env.example", "sift_env")


def test_the_file_is_for_its_owner_only(local_file: Path) -> None:
    save_connection(LOCAL, local_file)
    assert stat.S_IMODE(local_file.stat().st_mode) == 0o600
    assert find_connection(None, None, {}, local_file) == LOCAL


def test_the_local_key_never_goes_elsewhere(local_file: Path) -> None:
    save_connection(LOCAL, local_file)
    assert find_connection(LOCAL.url + "/", None, {}, local_file) == LOCAL
    with pytest.raises(SiftClientError, match=r"no key is known for https://other\.example"):
        find_connection("https://other.example", None, {}, local_file)


def test_nothing_known(local_file: Path) -> None:
    with pytest.raises(SiftClientError) as caught:
        find_connection(None, None, {}, local_file)
    assert "sift local" in caught.value.hint


@pytest.mark.parametrize("text", ["", "{", "[]", '{"url": "http://127.0.0.1:1"}'])
def test_a_broken_file_is_named(local_file: Path, text: str) -> None:
    local_file.parent.mkdir()
    local_file.write_text(text)
    with pytest.raises(SiftClientError, match=r"local\.json cannot be read"):
        find_connection(None, None, {}, local_file)


@pytest.mark.parametrize("url", ["example.com", "ftp://a.example", "https://", "https://[", "http://a.example:x"])
def test_an_address_that_is_none(local_file: Path, url: str) -> None:
    with pytest.raises(SiftClientError, match="is not an address"):
        find_connection(url, "sift_a_b", {}, local_file)


@pytest.mark.parametrize("key", ["sift_ä", "sift a", "sift_a\n"])
def test_a_key_that_is_none(local_file: Path, key: str) -> None:
    with pytest.raises(SiftClientError, match="the key has characters"):
        find_connection("https://a.example", key, {}, local_file)


def test_a_stack_forgets_only_its_own_file(local_file: Path) -> None:
    save_connection(LOCAL, local_file)
    forget_connection(Connection("http://127.0.0.1:8701", "sift_other"), local_file)
    assert json.loads(local_file.read_text()) == {"url": LOCAL.url, "key": LOCAL.key}
    forget_connection(LOCAL, local_file)
    assert not local_file.exists()
