"""`sift demo` around a stack that is not real: what it asks for, says and leaves behind."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Self

import pytest

from sift_client import demo
from sift_client.cli import main
from sift_client.local import TemplateError
from sift_client.samples import SAMPLES
from tests.unit.client.fake_api import KEY, FakeApi

Captured = pytest.CaptureFixture[str]


class FakeStack:
    """Notes how it was started and whether it was drained."""

    api: FakeApi
    key: str | None = KEY
    started: list[tuple[Any, dict[str, Any]]]
    drained: int

    def __init__(self, template: Path, port: int, **options: Any) -> None:
        type(self).started.append((template, options))
        self.url = self.api.url
        self.site = SimpleNamespace(url="http://127.0.0.1:1")
        self.log_dir = options["log_dir"]

    def client(self, service: str) -> Any:
        return SimpleNamespace(meta=SimpleNamespace(endpoint_url=f"http://127.0.0.1:2/{service}"))

    def physical(self, logical_id: str) -> str:
        return logical_id.lower()

    def drain(self) -> None:
        type(self).drained += 1

    def hurry(self) -> None:
        raise AssertionError("nobody pressed Ctrl-C twice")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        assert self.drained, "the state is saved before the end"


@pytest.fixture
def stack(api: FakeApi, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[type[FakeStack]]:
    """The class that `sift demo` starts; the environment names no other service."""
    monkeypatch.delenv("SIFT_URL")
    monkeypatch.delenv("SIFT_KEY")
    fake = type("Stack", (FakeStack,), {"api": api, "started": [], "drained": 0})
    monkeypatch.setattr(demo, "LocalStack", fake)
    before = signal.getsignal(signal.SIGTERM)
    yield fake
    signal.signal(signal.SIGTERM, before)


def finish_all(api: FakeApi) -> None:
    for index, sample in enumerate(SAMPLES):
        if sample.error:
            api.fail(index, sample.error)
        else:
            api.finish(index, sample.holds)


def test_the_sample_batch(api: FakeApi, stack: type[FakeStack], folder: Path, capsys: Captured) -> None:
    found: list[Any] = []

    def look() -> None:
        found.append(json.loads((folder / ".sift/local.json").read_text()))
        finish_all(api)

    api.on_look = look
    assert main(["demo"]) == 0
    out = capsys.readouterr().out
    assert f"All {len(SAMPLES)} targets ended as the sample batch says" in out
    assert f"{len(SAMPLES) - 1} files in out/job_1/" in out
    table = {"endpoint": "http://127.0.0.1:2/dynamodb", "name": "jobstable"}
    assert found[0] == {"url": api.url, "key": KEY, "table": table}
    assert not (folder / ".sift/local.json").exists()
    ((template, options),) = stack.started
    assert template.name == "template.yaml"
    assert options["site"] is True
    assert str(options["state"]) == ".sift/state.json.gz"
    assert stack.drained == 1


def test_a_surprise_fails_the_demo(api: FakeApi, stack: type[FakeStack], capsys: Captured) -> None:
    def look() -> None:
        finish_all(api)
        api.finish(0, "something else")

    api.on_look = look
    assert main(["demo"]) == 1
    assert "unexpected: 0000 /articles/tide-tables.html: the content lacks" in capsys.readouterr().err
    assert stack.drained == 1


def test_addresses_of_your_own(api: FakeApi, stack: type[FakeStack], folder: Path) -> None:
    api.on_look = lambda: (api.finish(0), api.fail(1))  # type: ignore[func-returns-value]
    assert main(["demo", "https://a.example/x", "https://b.example/", "--mode", "text", "--out", "mine"]) == 3
    assert api.bodies == [
        {
            "targets": [{"url": "https://a.example/x"}, {"url": "https://b.example/"}],
            "options": {"mode": "text"},
            "fresh": True,
        }
    ]
    assert (folder / "mine/job_1/0000-x.md").is_file()


def test_ctrl_c_drains_and_says_how_to_go_on(
    api: FakeApi, stack: type[FakeStack], folder: Path, capsys: Captured
) -> None:
    api.on_look = lambda: os.kill(os.getpid(), signal.SIGINT)
    assert main(["demo"]) == 130
    err = capsys.readouterr().err
    assert "State saved in .sift/state.json.gz. To go on: sift local --site" in err
    assert "sift wait job_1" in err
    assert stack.drained == 1
    assert not (folder / ".sift/local.json").exists()


def test_a_stack_that_does_not_start(stack: type[FakeStack], monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise TemplateError("template.yaml: no Resources")

    monkeypatch.setattr(demo, "LocalStack", refuse)
    assert main(["demo"]) == 4
    assert "sift: the local stack did not start: template.yaml: no Resources" in capsys.readouterr().err


def test_the_state_that_a_demo_leaves_is_the_one_that_sift_local_goes_on_with() -> None:
    from sift_client.cli import make_parser

    assert str(make_parser().parse_args(["local", "--site"]).state) == ".sift/state.json.gz"
