"""The `sift` command in process: what it prints, writes and answers."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from sift_client.cli import main
from tests.unit.client.fake_api import FakeApi

A, B = "https://site.example/a.html", "https://site.example/b.html"
Captured = pytest.CaptureFixture[str]
CapturedBytes = pytest.CaptureFixture[bytes]


def test_run_writes_the_content_and_prints_the_table(api: FakeApi, folder: Path, capsys: Captured) -> None:
    api.on_look = lambda: (api.finish(0, "# Größe"), api.finish(1, '{"a": 1}', "application/json"))  # type: ignore[func-returns-value]
    assert main(["run", A, B, "--mode", "text", "--pages", "1-2", "--window", "2"]) == 0
    assert api.bodies == [
        {"targets": [{"url": A}, {"url": B}], "options": {"mode": "text", "pages": "1-2"}, "window": 2}
    ]
    out, err = capsys.readouterr()
    assert out.splitlines() == [
        "index  url                          status  media type        characters   time  error",
        "    0  https://site.example/a.html  done    text/markdown              7  1.2 s",
        "    1  https://site.example/b.html  done    application/json           8  1.2 s",
        "job_1: done, 2 done of 2",
        "2 files in out/job_1/",
    ]
    assert err.splitlines() == [
        "job_1: 2 targets",
        f"[1/2] 0000 done {A} out/job_1/0000-a.md",
        f"[2/2] 0001 done {B} out/job_1/0001-b.json",
    ]
    assert (folder / "out/job_1/0000-a.md").read_text() == "# Größe"


def test_filters_are_options_of_every_target(api: FakeApi, folder: Path, capsys: Captured) -> None:
    asked = ["--grep=-?pier", "--question", "how high?", "--context", "0", "--jq", ".a"]
    assert main(["submit", A, *asked]) == 0
    assert api.bodies[0]["options"] == {"grep": "-?pier", "jq": ".a", "question": "how high?", "context": 0}


def test_partial_is_3_and_shows_the_error_and_its_hint(api: FakeApi, folder: Path, capsys: Captured) -> None:
    api.on_look = lambda: (api.finish(0), api.fail(1))  # type: ignore[func-returns-value]
    assert main(["run", A, B]) == 3
    out = capsys.readouterr().out
    assert "http_error (404): The server said no." in out
    assert "hint: Check the address." in out
    assert "job_1: partial, 1 done, 1 failed of 2" in out


def test_failed_is_1(api: FakeApi, folder: Path) -> None:
    api.on_look = lambda: api.fail(0)
    assert main(["run", A]) == 1


def test_control_characters_do_not_reach_the_terminal(api: FakeApi, folder: Path, capsys: Captured) -> None:
    api.on_look = lambda: api.fail(0, detail="\x1b[2Jgone\r")
    assert main(["run", "https://site.example/\x1b]0;x\x07"]) == 1
    out, err = capsys.readouterr()
    assert "\x1b" not in out + err
    assert "\r" not in out + err


def test_content_that_cannot_be_saved_is_4(api: FakeApi, folder: Path, capsys: Captured) -> None:
    api.on_look = lambda: api.finish(0)
    api.fail_next("/content", 500, {"code": "internal", "detail": "Broken.", "hint": ""})
    assert main(["run", A]) == 4
    assert "0000 could not be saved: internal: Broken." in capsys.readouterr().err


def test_a_folder_that_cannot_be_written_is_4(api: FakeApi, folder: Path, capsys: Captured) -> None:
    (folder / "file").write_text("")
    api.on_look = lambda: api.finish(0)
    assert main(["run", A, "--out", "file"]) == 4
    err = capsys.readouterr().err
    assert "cannot be written" in err
    assert "sift wait job_1 --out DIR" in err


def test_run_as_json(api: FakeApi, folder: Path, capsys: Captured) -> None:
    api.on_look = lambda: (api.finish(0), api.fail(1))  # type: ignore[func-returns-value]
    assert main(["run", A, B, "--json"]) == 3
    out, err = capsys.readouterr()
    found = json.loads(out)
    assert err == ""
    assert found["job"]["status"] == "partial"
    assert [target["file"] for target in found["targets"]] == ["out/job_1/0000-a.md", None]


def test_a_file_of_targets(api: FakeApi, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = ["# mine", "", A, json.dumps({"url": B, "options": {"pages": "2"}, "id": "b"})]
    (folder / "list.txt").write_text("\n".join(lines))
    assert main(["submit", "--targets", "list.txt"]) == 0
    monkeypatch.setattr("sys.stdin", io.StringIO(A))
    assert main(["submit", B, "--targets", "-"]) == 0
    assert [body["targets"] for body in api.bodies] == [
        [{"url": A}, {"url": B, "options": {"pages": "2"}, "id": "b"}],
        [{"url": B}, {"url": A}],
    ]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"https://a.example\n{\n", "list.txt, line 2: not JSON"),
        (b'\n{"uri": "https://a.example"}', "list.txt, line 2: no url"),
        (b"\xff\xfe", "list.txt cannot be read: it is not UTF-8"),
        (b"# nothing\n", "no targets"),
        (None, "list.txt cannot be read: No such file or directory"),
    ],
)
def test_a_file_of_targets_that_is_none(
    api: FakeApi, folder: Path, capsys: Captured, content: bytes | None, message: str
) -> None:
    if content is not None:
        (folder / "list.txt").write_bytes(content)
    assert main(["run", "--targets", "list.txt"]) == 2
    err = capsys.readouterr().err
    assert err.startswith(f"sift: {message}")
    assert "hint: " in err
    assert api.requests == []


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["nonsense"],
        ["run", "--mode", "best", A],
        ["run", "--window", "many", A],
        ["jobs", "--limit", "0"],
        ["jobs", "--limit", "-1"],
        ["wait"],
        ["status", "a", "b"],
        ["fetch"],
        ["fetch", A, B],
    ],
)
def test_wrong_usage_is_2(arguments: list[str], folder: Path, capsys: Captured) -> None:
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    assert "usage: sift" in capsys.readouterr().err


def test_run_without_targets_is_2(folder: Path, capsys: Captured) -> None:
    assert main(["run"]) == 2
    assert "no targets" in capsys.readouterr().err


def test_fetch_prints_the_content_alone(api: FakeApi, folder: Path, capsysbinary: CapturedBytes) -> None:
    assert main(["fetch", A, "--mode", "text", "--recover"]) == 0
    assert api.bodies == [{"url": A, "options": {"mode": "text", "recover": True}}]
    assert capsysbinary.readouterr() == ("# Größe\n".encode(), b"")
    api.fetched = {"content": "/+8=", "encoding": "base64", "meta": {}}
    assert main(["fetch", A]) == 0
    assert capsysbinary.readouterr().out == b"\xff\xef"
    assert main(["fetch", A, "--json"]) == 0
    assert json.loads(capsysbinary.readouterr().out) == api.fetched


def test_what_a_page_says_does_not_steer_the_terminal(
    api: FakeApi, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    api.fetched = {"content": "one\x1b[2J\ttwo\r\nthree", "meta": {}}
    assert main(["fetch", A]) == 0
    assert capsys.readouterr().out == "one\N{REPLACEMENT CHARACTER}[2J    two\nthree\n"
    api.fetched = {"content": "/+8=", "encoding": "base64", "meta": {}}
    assert main(["fetch", A]) == 2
    out, err = capsys.readouterr()
    assert (out, "2 bytes that are no text" in err) == ("", True)


@pytest.mark.parametrize(
    ("status", "extra", "code"),
    [(422, {"target_status": None}, 1), (502, {"target_status": 404}, 1), (422, {}, 2), (403, {}, 4)],
    ids=["document", "site", "request", "service"],
)
def test_a_fetch_that_fails_is_said(
    api: FakeApi, folder: Path, capsys: Captured, status: int, extra: dict[str, int | None], code: int
) -> None:
    problem = {"code": "http_error", "detail": "The server answered 404.", "hint": "There is no such page."}
    api.fail_next("/v1/fetch", status, problem | extra)
    assert main(["fetch", A]) == code
    assert capsys.readouterr() == ("", "sift: http_error: The server answered 404.\nhint: There is no such page.\n")


def test_submit_prints_the_id_alone(api: FakeApi, folder: Path, capsys: Captured) -> None:
    assert main(["submit", A]) == 0
    out, err = capsys.readouterr()
    assert out == "job_1\n"
    assert "sift wait job_1" in err


def test_status(api: FakeApi, folder: Path, capsys: Captured) -> None:
    api.make_job([{"url": A}, {"url": B}])
    api.finish(0)
    assert main(["status", "job_1"]) == 0
    assert capsys.readouterr().out.splitlines()[0] == "job_1: running, 1 done, 1 pending of 2"
    assert main(["status", "job_1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["counts"]["done"] == 1
    api.on_look = lambda: api.fail(1)
    assert main(["status", "job_1", "--wait"]) == 3


def test_results_and_cancel(api: FakeApi, folder: Path, capsys: Captured) -> None:
    api.make_job([{"url": A}, {"url": B}])
    api.finish(0, "text")
    assert main(["results", "job_1", "--json"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line.get("content") for line in lines] == ["text", None]
    assert main(["cancel", "job_1"]) == 0
    assert capsys.readouterr().out == "job_1: cancelled, 1 done, 1 cancelled of 2\n"
    assert main(["results", "job_1"]) == 0
    assert "cancelled" in capsys.readouterr().out


def test_an_api_error_is_said_and_no_traceback(api: FakeApi, folder: Path, capsys: Captured) -> None:
    assert main(["status", "job_none"]) == 4
    assert capsys.readouterr().err == "sift: not_found: There is no such job.\nhint: Check the id.\n"
    assert main(["status", "job_1", "--key", "sift_wrong"]) == 4
    assert "unauthenticated" in capsys.readouterr().err
    api.fail_next("", 500, {"code": "internal", "detail": "Oh.", "hint": "", "request_id": "req-7"})
    assert main(["status", "job_1"]) == 4
    assert capsys.readouterr().err == "sift: internal: Oh.\nrequest: req-7\n"


@pytest.mark.parametrize(
    ("status", "code"),
    [(422, "invalid_target"), (422, "invalid_request"), (422, "too_many_targets"), (413, "request_too_large")],
)
def test_what_the_service_finds_wrong_in_the_request_is_wrong_usage(
    api: FakeApi, folder: Path, capsys: Captured, status: int, code: str
) -> None:
    api.fail_next("/v1/jobs$", status, {"code": code, "detail": "It is wrong.", "hint": "Correct it."})
    assert main(["run", A]) == 2
    assert capsys.readouterr().err == f"sift: {code}: It is wrong.\nhint: Correct it.\n"


@pytest.mark.parametrize(
    ("status", "code"),
    [(401, "unauthenticated"), (403, "kind_disabled"), (404, "not_found"), (409, "invalid_state"), (500, "internal")],
)
def test_what_the_service_will_not_do_is_trouble(api: FakeApi, folder: Path, status: int, code: str) -> None:
    api.fail_next("/v1/jobs$", status, {"code": code, "detail": "No.", "hint": ""})
    assert main(["submit", A]) == 4


def test_a_service_that_goes_away_leaves_word_how_to_go_on(api: FakeApi, folder: Path, capsys: Captured) -> None:
    api.fail_next("/targets", 403, {"code": "forbidden", "detail": "No more.", "hint": "Ask for rights."})
    assert main(["run", A]) == 4
    assert "hint: Ask for rights. The job goes on: sift wait job_1" in capsys.readouterr().err


def test_nothing_configured(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    monkeypatch.delenv("SIFT_URL")
    assert main(["status", "job_1"]) == 4
    assert "no sift service is known" in capsys.readouterr().err
