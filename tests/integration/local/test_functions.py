"""Execution environments: isolation, timeouts, crashes, payload limits, concurrency."""

from __future__ import annotations

import json
import os
import signal
import threading

import pytest
from botocore.exceptions import ClientError

from sift_client.local.function import Throttled
from tests.integration.local.project import Project, Start, wait_for

SLEEP = """
import time
def lambda_handler(event, context):
    time.sleep(event["seconds"])
    return "slept"
"""


def test_environment_has_only_what_is_declared(project: Project, start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    source = """
    import os, sys, other
    def lambda_handler(event, context):
        return {
            "environ": dict(os.environ), "path": sys.path, "cwd": os.getcwd(), "other": other.NAME,
            "context": [context.function_name, context.memory_limit_in_mb, context.invoked_function_arn,
                        context.aws_request_id, context.get_remaining_time_in_millis()],
        }
    """
    monkeypatch.setenv("SECRET_OF_THE_PARENT", "x")
    monkeypatch.setenv("AWS_PROFILE", "no-such-profile")
    project.add_function("Look", source, Environment={"Variables": {"OWN": "1"}}, MemorySize=256)
    project.body["Globals"]["Function"]["Environment"] = {"Variables": {"COMMON": {"Ref": "AWS::Region"}}}
    project.body["Globals"]["Function"]["Layers"] = [{"Ref": "Layer"}]
    project.add("Layer", "AWS::Serverless::LayerVersion", ContentUri="layer")
    (project.root / "layer/pack").mkdir(parents=True)
    (project.root / "layer/pack/__init__.py").touch()
    (project.root / "functions/Look/other.py").write_text("NAME = 'sibling'")
    stack = start()
    outcome = stack.invoke("Look", {})
    seen = outcome.value
    environ = seen["environ"]
    assert (environ["OWN"], environ["COMMON"]) == ("1", "us-east-1")
    assert not {"SECRET_OF_THE_PARENT", "AWS_PROFILE", "HOME"} & set(environ)
    assert environ["AWS_ENDPOINT_URL"].startswith("http://127.0.0.1:")
    assert environ["_HANDLER"] == "app.lambda_handler"
    assert seen["path"][:2] == [str(project.root / "functions/Look"), str(project.root / "layer")]
    assert not [entry for entry in seen["path"] if "sift_client" in entry]
    assert seen["other"] == "sibling"
    name, memory, arn, request_id, remaining = seen["context"]
    assert (name, memory) == ("sift-local-Look", "256")
    assert arn.endswith(":function:sift-local-Look")
    assert request_id == outcome.request_id
    assert 0 < remaining <= 5000


def test_environment_stays_warm_and_apart(project: Project, start: Start) -> None:
    source = """
    import os
    count = 0
    def lambda_handler(event, context):
        global count
        count += 1
        return [os.getpid(), count]
    """
    project.add_function("A", source)
    project.add_function("B", source)
    stack = start()
    (first, one), (again, two) = stack.invoke("A", {}).value, stack.invoke("A", {}).value
    assert (first, one, two) == (again, 1, 2)
    assert stack.invoke("B", {}).value[1] == 1
    assert stack.environments()["A"] == [first]


def test_timeout_kills_the_environment_and_its_children(project: Project, start: Start) -> None:
    source = """
    import os, pathlib, subprocess, time
    def lambda_handler(event, context):
        if event["hang"]:
            child = subprocess.Popen(["sleep", "60"])
            pathlib.Path("child").write_text(str(child.pid))
            time.sleep(60)
        return os.getpid()
    """
    project.add_function("Hang", source, Timeout=1)
    stack = start()
    before = stack.invoke("Hang", {"hang": False}).value
    outcome = stack.invoke("Hang", {"hang": True})
    assert outcome.failed
    assert "Task timed out after 1.00 seconds" in outcome.value["errorMessage"]
    assert not _is_alive(before)
    child = int((project.root / "functions/Hang/child").read_text())
    wait_for(lambda: not _is_alive(child))
    assert stack.invoke("Hang", {"hang": False}).value != before


def test_crash_is_an_error_and_the_next_event_gets_a_new_environment(project: Project, start: Start) -> None:
    source = """
    import os, signal
    def lambda_handler(event, context):
        if event.get("exit"):
            os._exit(3)
        if event.get("kill"):
            os.kill(os.getpid(), signal.SIGKILL)
        return "alive"
    """
    project.add_function("Crash", source)
    stack = start()
    left = stack.invoke("Crash", {"exit": True}).value
    assert (left["errorType"], left["errorMessage"].split("Error: ")[1]) == (
        "Runtime.ExitError",
        "Runtime exited with error: exit status 3",
    )
    assert "signal: SIGKILL" in stack.invoke("Crash", {"kill": True}).value["errorMessage"]
    assert stack.invoke("Crash", {}).value == "alive"


def test_errors_have_lambdas_shape(project: Project, start: Start) -> None:
    project.add_function("Raise", "def lambda_handler(e, c):\n    raise KeyError('gone')")
    project.add_function("Import", "import no_such_module")
    project.add_function("Marshal", "def lambda_handler(e, c): return {1, 2}")
    stack = start()
    error = stack.invoke("Raise", {}).value
    assert (error["errorType"], error["errorMessage"]) == ("KeyError", "'gone'")
    assert len(error["stackTrace"]) == 1
    assert "app.py" in error["stackTrace"][0]
    assert stack.invoke("Import", {}).value["errorType"] == "Runtime.ImportModuleError"
    assert stack.invoke("Marshal", {}).value["errorType"] == "Runtime.MarshalError"


def test_payload_over_6_mb_is_refused_both_ways(project: Project, start: Start) -> None:
    project.add_function("Size", "def lambda_handler(e, c): return 'x' * e['n'] if 'n' in e else len(e['x'])")
    client = start().client("lambda")

    def invoke(event: object) -> dict[str, object]:
        answer = client.invoke(FunctionName="sift-local-Size", Payload=json.dumps(event))
        return {"error": answer.get("FunctionError"), "value": json.loads(answer["Payload"].read())}

    assert invoke({"x": "x" * 6_000_000})["value"] == 6_000_000
    with pytest.raises(ClientError) as refused:
        invoke({"x": "x" * 6_300_000})
    assert refused.value.response["Error"]["Code"] == "RequestTooLargeException"
    assert refused.value.response["ResponseMetadata"]["HTTPStatusCode"] == 413
    assert invoke({"n": 6_200_000})["error"] is None
    large = invoke({"n": 6_300_000})
    assert large["error"] == "Unhandled"
    assert large["value"]["errorType"] == "Function.ResponseSizeTooLarge"  # type: ignore[index]


def test_asynchronous_payload_over_1_mb_is_refused(project: Project, start: Start) -> None:
    project.add_function("Size", "def lambda_handler(e, c): return 'ok'")
    client = start().client("lambda")
    sizes = {"FunctionName": "sift-local-Size", "InvocationType": "Event"}
    assert client.invoke(**sizes, Payload=json.dumps("x" * 1_000_000))["StatusCode"] == 202
    with pytest.raises(client.exceptions.RequestTooLargeException):
        client.invoke(**sizes, Payload=json.dumps("x" * 1_100_000))
    with pytest.raises(client.exceptions.ResourceNotFoundException):
        client.invoke(FunctionName="nobody", Payload="{}")


def test_reserved_concurrency_throttles(project: Project, start: Start) -> None:
    project.add_function("Two", SLEEP, ReservedConcurrentExecutions=2)
    stack = start()
    stack.invoke("Two", {"seconds": 0})
    ends: list[object] = []
    threads = [
        threading.Thread(target=lambda: ends.append(stack.invoke("Two", {"seconds": 1.5}).value)) for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    wait_for(lambda: len(stack.environments()["Two"]) == 2)
    with pytest.raises(Throttled):
        stack.invoke("Two", {"seconds": 0})
    client = stack.client("lambda")
    with pytest.raises(client.exceptions.TooManyRequestsException):
        client.invoke(FunctionName="sift-local-Two", Payload='{"seconds": 0}')
    for thread in threads:
        thread.join()
    assert ends == ["slept", "slept"]
    assert stack.invoke("Two", {"seconds": 0}).value == "slept"


def test_killed_environment_is_replaced(project: Project, start: Start) -> None:
    project.add_function("Nap", SLEEP)
    stack = start()
    stack.invoke("Nap", {"seconds": 0})
    (pid,) = stack.environments()["Nap"]
    os.kill(pid, signal.SIGKILL)
    assert stack.invoke("Nap", {"seconds": 0}).failed
    assert stack.invoke("Nap", {"seconds": 0}).value == "slept"


def _is_alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().split()[2] != "Z"
    except FileNotFoundError:
        return False
