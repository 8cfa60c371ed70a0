"""LiteLLM's proxy, a gateway that people run, with models that answer by heart; `make litellm` installs it."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path

PYTHON = Path(__file__).parents[3] / ".venv-litellm" / "bin" / "python"
KEY = "sk-of-the-proxy"
ANSWER = "Forty-one metres."
#: It loads for half a minute on a machine with nothing else to do.
START_SECONDS = 600.0


def find_missing() -> str | None:
    """What is not here, as one line; None when all is."""
    return None if PYTHON.is_file() else "LiteLLM is not in .venv-litellm (make litellm puts it there)"


class Proxy:
    """The proxy in a process of its own on a free port of the loopback address, until `close`."""

    def __init__(self, folder: Path) -> None:
        models = {"small": ANSWER, "limited": "litellm.RateLimitError"}
        config = {
            "model_list": [
                {
                    "model_name": name,
                    "litellm_params": {"model": f"openai/{name}", "api_key": "x", "mock_response": text},
                }
                for name, text in models.items()
            ],
            "litellm_settings": {"telemetry": False, "num_retries": 0},
            "router_settings": {"num_retries": 0},
            "general_settings": {"master_key": KEY},
        }
        file = folder / "config.yaml"
        file.write_text(json.dumps(config))  # JSON is YAML
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}/v1"
        self._output = open(folder / "output", "w+b")  # noqa: SIM115 - open as long as the proxy runs
        self._process = subprocess.Popen(
            [
                PYTHON.with_name("litellm"), "--config", file, "--host", "127.0.0.1", "--port", str(port),
                "--telemetry", "False",
            ],
            cwd=folder,
            # Its own list of prices is enough; it would ask for the newest.
            env={"PATH": os.environ["PATH"], "HOME": str(folder), "LITELLM_LOCAL_MODEL_COST_MAP": "True"},
            stdin=subprocess.DEVNULL, stdout=self._output, stderr=subprocess.STDOUT,
        )  # fmt: skip
        deadline = time.monotonic() + START_SECONDS
        while not self._answers(port):
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.close()
                raise RuntimeError(f"LiteLLM did not start: {(folder / 'output').read_text(errors='replace')[-2000:]}")
            time.sleep(0.2)

    def _answers(self, port: int) -> bool:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/health/liveliness", timeout=10) as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, OSError):
            return False

    def close(self) -> None:
        """Ends it."""
        self._process.kill()
        self._process.wait()
        self._output.close()
