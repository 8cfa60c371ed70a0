"""A web site of tiny pages that notes when each was asked for, and may hold some back."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

#: A page that nobody lets go is given after this; it is less than a target's own time.
HELD_SECONDS = 30.0


class Pages:
    """Every path is a page; those that begin with `/held` come when `let_go` is called. `asked` has the time
    (seconds since the epoch) and path of each request."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.asked: list[tuple[float, str]] = []
        self._open = threading.Event()

    @property
    def address(self) -> str:
        """As the guard of the fetch function takes it."""
        return self.url.removeprefix("http://")

    def let_go(self) -> None:
        """Give out what is held, and hold nothing any more."""
        self._open.set()

    def answer(self, path: str) -> bytes:
        self.asked.append((time.time(), path))
        if path.startswith("/held"):
            self._open.wait(HELD_SECONDS)
        return f"The page {path}.\n".encode()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    pages: Pages

    def handle_error(self, request: object, client_address: object) -> None:
        """A fetcher that was killed hangs up."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        body = self.server.pages.answer(self.path)
        self.send_response(200)
        self.send_header("content-type", "text/plain; charset=utf-8")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Stay silent."""


@contextmanager
def serve_pages() -> Iterator[Pages]:
    """A site on a free port of this machine."""
    with _Server(("127.0.0.1", 0), _Handler) as server:
        server.pages = Pages(server.server_address[1])
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        try:
            yield server.pages
        finally:
            server.pages.let_go()
            server.shutdown()
            thread.join()
