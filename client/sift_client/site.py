"""The sample web site of the repository: real-looking pages and addresses that misbehave."""

from __future__ import annotations

import gzip
import hashlib
import html
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from email.utils import formatdate
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qs, unquote, urlsplit

from sift_client.errors import SiftClientError

#: As a careless web server declares them: the pages in old charsets say their own in a meta tag, or nowhere.
MEDIA_TYPES = {
    ".html": "text/html",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".json": "application/json",
    ".csv": "text/csv; charset=utf-8",
    ".txt": "text/plain; charset=utf-8",
    ".xml": "application/rss+xml; charset=utf-8",
    ".pdf": "application/pdf",
}

#: Folders whose pages are UTF-8 and say so in the header as well.
UTF8_FOLDERS = ("articles", "docs", "harbours", "de", "ar", "archive")

LOOPBACK = "127.0.0.1"
SLOW_S = 2.0
BUSY_TIMES = 2
BIGGEST_KB = 32 * 1024

Headers = dict[str, str]


class _Server(ThreadingHTTPServer):
    #: A slow page still being served must not hold up the end of the process.
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up is not worth a traceback; anything else is."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


class Site:
    """A running site. `url` is its root without a trailing slash; it serves until `close()`."""

    def __init__(self, folder: Path, port: int, host: str = LOOPBACK) -> None:
        handler = type("Handler", (_Handler,), {"folder": folder, "tries": Counter(), "lock": threading.Lock()})
        self._server = _Server((host, port), handler)
        self.port: int = self._server.server_address[1]
        self.url = f"http://{host}:{self.port}"
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, name="site", daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        """Stop listening; doing so again is no error."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def start_site(port: int = 0, folder: Path | None = None, host: str = LOOPBACK) -> Site:
    """Serve the site on an address of this machine; port 0 takes a free one.

    Raises `SiftClientError` when the pages are not there (they live in the repository, not in a wheel) or the
    port is taken.
    """
    folder = folder.resolve() if folder else find_site()
    try:
        return Site(folder, port, host)
    except OSError as error:
        raise SiftClientError(
            f"the sample site cannot listen on port {port}: {error.strerror}", "Choose another port."
        ) from None


def find_site() -> Path:
    """The folder of the pages, found from this file's place in a checkout (also when installed with `-e`)."""
    folder = Path(__file__).resolve().parents[2] / "site" / "public"
    if not (folder / "index.html").is_file():
        raise SiftClientError(
            f"the sample site is not at {folder}",
            "It is part of the repository: run from a checkout, or install that with `pip install -e .`.",
        )
    return folder


class _Handler(BaseHTTPRequestHandler):
    folder: Path
    tries: Counter[str]
    lock: threading.Lock
    protocol_version = "HTTP/1.1"
    server_version = "tidewater/1"
    sys_version = ""
    # Headers and body leave in separate writes; without this an answer may wait 40 ms for an acknowledgement.
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        path = unquote(urlsplit(self.path).path)
        route = _ROUTES.get(path)
        try:
            if route is not None:
                route(self)
            elif path.startswith("/gzip/"):
                self.send_file(path.removeprefix("/gzip"), packed=True)
            else:
                self.send_file(path)
        except (BrokenPipeError, ConnectionResetError):
            # The visitor left in the middle, as fetchers do at their limits.
            self.close_connection = True

    do_HEAD = do_GET

    def query(self, name: str, default: str = "") -> str:
        return parse_qs(urlsplit(self.path).query).get(name, [default])[0]

    def send_file(self, path: str, *, packed: bool = False) -> None:
        found = self.find_file(path)
        if found is None:
            self.send_page(HTTPStatus.NOT_FOUND, (self.folder / "404.html").read_bytes())
            return
        body = found.read_bytes()
        headers = {
            "content-type": _media_type(found.relative_to(self.folder)),
            "etag": f'"{hashlib.sha256(body).hexdigest()[:16]}"',
            "last-modified": formatdate(found.stat().st_mtime, usegmt=True),
        }
        if packed:
            body = gzip.compress(body, mtime=0)
            headers |= {"content-encoding": "gzip", "vary": "accept-encoding"}
        if self.headers.get("if-none-match") == headers["etag"]:
            self.send(HTTPStatus.NOT_MODIFIED, b"", headers)
            return
        self.send(HTTPStatus.OK, body, headers)

    def find_file(self, path: str) -> Path | None:
        if "\0" in path:
            return None
        asked = (self.folder / path.lstrip("/")).resolve()
        if not asked.is_relative_to(self.folder):
            return None
        if asked.is_dir():
            asked /= "index.html"
        return asked if asked.is_file() else None

    def send_page(self, status: HTTPStatus, body: bytes, headers: Headers | None = None) -> None:
        self.send(status, body, {"content-type": "text/html; charset=utf-8"} | (headers or {}))

    def send(self, status: HTTPStatus, body: bytes, headers: Headers) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if status != HTTPStatus.NOT_MODIFIED:
            self.send_header("content-length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD" and status != HTTPStatus.NOT_MODIFIED:
            self.wfile.write(body)

    def send_redirect(self, status: HTTPStatus, location: str) -> None:
        self.send_page(status, f'<p>Moved <a href="{location}">here</a>.'.encode(), {"location": location})

    def send_busy(self) -> None:
        with self.lock:
            self.tries[self.path] += 1
            tries = self.tries[self.path]
        if tries <= BUSY_TIMES:
            page = _short_page("Too many visitors", "Our gauge server takes a breath. Please come back in a second.")
            self.send_page(HTTPStatus.TOO_MANY_REQUESTS, page, {"retry-after": "1"})
        else:
            self.send_file("/articles/river-gauges.html")

    def send_slow(self) -> None:
        time.sleep(SLOW_S)
        self.send_file("/articles/lighthouse-keepers.html")

    def send_error_page(self) -> None:
        page = _short_page("Something went wrong", "The editors have been told. Error reference: TW-500.")
        self.send_page(HTTPStatus.INTERNAL_SERVER_ERROR, page)

    def send_big(self) -> None:
        asked = self.query("kb", "2048")
        kb = min(int(asked), BIGGEST_KB) if asked.isascii() and asked.isdigit() else 2048
        if urlsplit(self.path).path.endswith(".txt"):
            body = "".join(_log_lines(kb * 1024)).encode()
            self.send(HTTPStatus.OK, body, {"content-type": MEDIA_TYPES[".txt"]})
            return
        rows = (f"<p>{html.escape(line.strip())}</p>\n" for line in _log_lines(kb * 1024))
        self.send_page(HTTPStatus.OK, _short_page("The harbour log, complete", "".join(rows), escape=False))

    def log_message(self, format: str, *args: object) -> None:
        """Stay silent: the terminal belongs to the command that runs the site."""


_ROUTES: dict[str, Callable[[_Handler], None]] = {
    "/moved": lambda h: h.send_redirect(HTTPStatus.MOVED_PERMANENTLY, "/moved/again"),
    "/moved/again": lambda h: h.send_redirect(HTTPStatus.FOUND, "/articles/tide-tables.html"),
    "/moved/round": lambda h: h.send_redirect(HTTPStatus.FOUND, "/moved/round"),
    "/slow": _Handler.send_slow,
    "/busy": _Handler.send_busy,
    "/error": _Handler.send_error_page,
    "/big.html": _Handler.send_big,
    "/big.txt": _Handler.send_big,
}


def _media_type(path: Path) -> str:
    declared = MEDIA_TYPES.get(path.suffix, "application/octet-stream")
    if path.suffix == ".html" and (path.parts[0] in UTF8_FOLDERS or len(path.parts) == 1):
        return f"{declared}; charset=utf-8"
    return declared


def _short_page(title: str, body: str, *, escape: bool = True) -> bytes:
    body = f"<p>{html.escape(body)}</p>" if escape else body
    head = f'<meta charset="utf-8"><title>{title} | Tidewater Review</title>'
    main = f'<header><a href="/">Tidewater Review</a></header><main><h1>{title}</h1>\n{body}</main>'
    return f'<!doctype html><html lang="en"><head>{head}</head><body>{main}</body></html>'.encode()


def _log_lines(size: int) -> Iterator[str]:
    """Plausible lines until at least `size` characters have been given."""
    ships = ("Anna Marie", "Kestrel", "Sandpiper", "Good Intent", "Petrel", "Two Brothers", "Halcyon")
    given = number = 0
    while given < size:
        ship = ships[number % len(ships)]
        line = (
            f"Entry {number:06d}: the {ship} passed the mole at {number % 24:02d}:{number * 7 % 60:02d}, "
            f"draught {1.2 + number % 31 / 10:.1f} m, water at the gauge {2 + number % 47 / 10:.1f} m.\n"
        )
        yield line
        given += len(line)
        number += 1
