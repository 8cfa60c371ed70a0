"""The fork server: whatever a child does, the caller gets a typed error and the next document is served."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
import zipfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest

from sift.content.child import Crashed, ForkServer
from sift.content.sandbox import ChildLimits
from sift.errors import TargetFailed

T = TypeVar("T")
HERE = Path(__file__).parent


def serve(work: Callable[[ForkServer], Awaitable[T]], **options: Any) -> T:
    async def main() -> T:
        options.setdefault("path", [str(HERE), *sys.path])
        server = ForkServer("hostile_entry:act", **options)
        try:
            return await work(server)
        finally:
            await server.aclose()

    return asyncio.run(main())


async def failure(server: ForkServer, act: str, wall_s: float = 20.0) -> TargetFailed:
    with pytest.raises(TargetFailed) as caught:
        await server.run({"act": act}, b"body", wall_s)
    _, body = await server.run({"act": "echo"}, b"next", 20.0)
    assert body == b"next"
    return caught.value


@pytest.mark.parametrize(
    ("act", "code"),
    [
        ("memory", "too_large"),
        ("oom", "too_large"),
        ("segv", "damaged"),
        ("abort", "damaged"),
        ("exit", "damaged"),
        ("raise", "damaged"),
        ("recurse", "damaged"),
        ("garbage", "damaged"),
    ],
)
def test_a_bad_end_is_a_typed_error_and_the_next_document_is_served(act: str, code: str) -> None:
    assert serve(lambda server: failure(server, act)).code == code


@pytest.mark.parametrize("act", ["loop", "sleep", "fork"])
def test_the_wall_limit(act: str) -> None:
    assert serve(lambda server: failure(server, act, 0.5)).code == "timeout"


def test_the_cpu_limit() -> None:
    assert serve(lambda server: failure(server, "loop"), limits=ChildLimits(cpu_s=1)).code == "timeout"


def test_the_output_limit() -> None:
    assert serve(lambda server: failure(server, "flood"), output_bytes=1 << 20).code == "too_large"


def test_a_crash_can_be_told_from_damage() -> None:
    assert isinstance(serve(lambda server: failure(server, "segv")), Crashed)


def test_large_documents_pass_both_ways() -> None:
    async def work(server: ForkServer) -> None:
        body = os.urandom(20 << 20)
        head, back = await server.run({"act": "echo"}, body, 30.0)
        assert head["length"] == len(body)
        assert back == body

    serve(work)


def test_documents_run_side_by_side_up_to_the_limit() -> None:
    async def work(server: ForkServer) -> None:
        answers = await asyncio.gather(
            *(server.run({"act": "echo"}, str(number).encode(), 30.0) for number in range(20))
        )
        assert [body for _, body in answers] == [str(number).encode() for number in range(20)]

    serve(work, parallel=3)


def test_a_server_that_a_child_kills_is_started_again() -> None:
    error = serve(lambda server: failure(server, "kill-server"))
    assert error.code == "crashed"


def test_a_server_that_died_between_documents_is_started_again() -> None:
    async def work(server: ForkServer) -> None:
        await server.run({"act": "echo"}, b"", 20.0)
        first = server.pid
        assert first is not None
        os.kill(first, signal.SIGKILL)
        _, body = await server.run({"act": "echo"}, b"again", 20.0)
        assert body == b"again"
        assert server.pid != first

    serve(work)


def test_a_server_that_cannot_start_is_an_error_not_a_hang() -> None:
    async def main() -> TargetFailed:
        server = ForkServer("sift.content.frames:no_such_function")
        with pytest.raises(TargetFailed) as caught:
            await server.run({}, b"", 20.0)
        await server.aclose()
        return caught.value

    assert asyncio.run(main()).code == "crashed"


def test_no_process_to_be_had_is_an_error_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with pytest.raises(TargetFailed) as caught:
        serve(lambda server: server.run({"act": "echo"}, b"", 20.0))
    assert caught.value.code == "crashed"


def test_cancelling_ends_the_child() -> None:
    async def work(server: ForkServer) -> None:
        task = asyncio.create_task(server.run({"act": "sleep"}, b"", 60.0))
        await server.run({"act": "echo"}, b"", 20.0)
        assert server.pid is not None
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        children = Path(f"/proc/{server.pid}/task/{server.pid}/children")
        for _ in range(200):
            if not children.read_text().split():
                return
            await asyncio.sleep(0.02)
        pytest.fail("the child is still there")

    serve(work)


def test_closing_ends_the_server() -> None:
    async def work(server: ForkServer) -> int:
        await server.run({"act": "echo"}, b"", 20.0)
        assert server.pid is not None
        return server.pid

    pid = serve(work)
    assert not Path(f"/proc/{pid}").exists()


def test_the_environment_of_a_child_is_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "not-for-children")
    head, _ = serve(lambda server: server.run({"act": "echo"}, b"", 20.0))
    # Python itself sets LC_CTYPE where the locale is the C locale (PEP 538).
    assert set(head["environment"]) <= {"LD_LIBRARY_PATH", "LC_CTYPE"}


@pytest.mark.skipif(sys.platform != "linux", reason="/proc and prctl are Linux's")
@pytest.mark.parametrize("name", ["environ", "mem", "maps"])
def test_a_child_cannot_look_into_the_handler_or_the_server(name: str) -> None:
    async def work(server: ForkServer) -> list[dict[str, Any]]:
        limits, _ = await server.run({"act": "limits"}, b"", 20.0)
        return [
            (await server.run({"act": "read", "path": f"/proc/{pid}/{name}"}, b"", 20.0))[0]
            for pid in (os.getpid(), limits["parent"])
        ]

    assert [head["error"] for head in serve(work)] == ["PermissionError"] * 2


def test_a_child_cannot_write_files(tmp_path: Path) -> None:
    head, _ = serve(lambda server: server.run({"act": "write", "path": str(tmp_path / "x")}, b"", 20.0))
    assert head["error"]
    assert not (tmp_path / "x").exists() or (tmp_path / "x").stat().st_size == 0


def test_a_child_has_its_memory_limit() -> None:
    head, _ = serve(lambda server: server.run({"act": "limits"}, b"", 20.0))
    assert head["memory"] == 768 * 1024 * 1024


def test_the_code_may_lie_in_an_unpacked_layer(tmp_path: Path) -> None:
    import sift

    source = Path(sift.__file__).parent
    archive = tmp_path / "layer.zip"
    with zipfile.ZipFile(archive, "w") as layer:
        for file in source.rglob("*.py"):
            layer.write(file, f"python/sift/{file.relative_to(source)}")
    zipfile.ZipFile(archive).extractall(tmp_path / "opt")
    shutil.copy(HERE / "hostile_entry.py", tmp_path / "opt" / "python")
    others = [entry for entry in sys.path if not (Path(entry) / "sift").exists()]
    head, _ = serve(
        lambda server: server.run({"act": "echo"}, b"1234", 20.0), path=[str(tmp_path / "opt" / "python"), *others]
    )
    assert head["length"] == 4
