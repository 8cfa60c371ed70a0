"""A threaded WSGI server, quiet on the terminal."""

from __future__ import annotations

import threading
from typing import Any

from moto.moto_server.werkzeug_app import MotoRequestHandler
from werkzeug.serving import make_server

LOOPBACK = "127.0.0.1"


class _Handler(MotoRequestHandler):
    """Keeps request logs off the terminal; a request's failure is still reported by its answer."""

    def log(self, type: str, message: str, *args: Any) -> None:
        """Drops the line."""


class WebServer:
    """Serves one WSGI application; port 0 takes a free one. Bound at once, served after `start`."""

    def __init__(self, application: Any, port: int = 0, host: str = LOOPBACK) -> None:
        self._server = make_server(host, port, application, threaded=True, request_handler=_Handler)
        self._thread: threading.Thread | None = None
        self.port = int(self._server.server_port)
        self.url = f"http://{host}:{self.port}"

    def start(self) -> None:
        """Serves in a thread of its own."""
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Takes no more connections; what runs goes on."""
        if self._thread is not None:
            self._server.shutdown()
            self._thread.join()
            self._thread = None
        self._server.server_close()
