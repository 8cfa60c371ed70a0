"""A real HTTP server on loopback whose answers a test writes byte by byte."""

from __future__ import annotations

import contextlib
import re
import socket
import ssl
import struct
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

Answer = Callable[[str, bytes], bytes | list[bytes]]


def respond(
    body: bytes = b"",
    *,
    status: int = 200,
    content_type: str | None = "text/html",
    headers: tuple[str | bytes, ...] = (),
) -> bytes:
    """A whole response with its length, `headers` as raw lines."""
    lines: list[bytes] = [b"HTTP/1.1 %d X" % status, b"Content-Length: %d" % len(body)]
    if content_type is not None:
        lines.append(b"Content-Type: " + content_type.encode())
    lines += [line if isinstance(line, bytes) else line.encode() for line in headers]
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


@dataclass
class Loopback:
    """Serves `routes` by path; `requests` are what came in, heads with their bodies.

    A list is sent piece by piece, and holds at "<hang>", drips at "<drip>", resets the connection at "<reset>".
    """

    routes: dict[str, bytes | list[bytes] | Answer] = field(default_factory=dict)
    requests: list[bytes] = field(default_factory=list)
    tls: ssl.SSLContext | None = None
    connections: int = 0
    host: str = "127.0.0.1"
    port: int = 0

    def __post_init__(self) -> None:
        family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
        self._listener = socket.create_server((self.host, self.port), family=family)
        self.port = self._listener.getsockname()[1]
        self._stopped = threading.Event()
        threading.Thread(target=self._accept, daemon=True).start()

    def url(self, path: str = "/", host: str = "127.0.0.1", scheme: str = "http") -> str:
        return f"{scheme}://{host}:{self.port}{path}"

    @property
    def allow(self) -> str:
        return f"{self.host}:{self.port}"

    def paths(self) -> list[str]:
        return [request.split(b" ", 2)[1].decode() for request in self.requests]

    def close(self) -> None:
        self._stopped.set()
        # A thread that waits for a connection would still be given one after `close` alone.
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        try:
            if self.tls is not None:
                connection = self.tls.wrap_socket(connection, server_side=True)
            head = b""
            while b"\r\n\r\n" not in head:
                piece = connection.recv(65536)
                if not piece:
                    return
                head += piece
                if not head[:1].isalpha():  # a handshake, say: a web server answers that at once
                    connection.sendall(respond(b"not HTTP", status=400))
                    return
            # What is left unread would make a reset of the end of the connection.
            length = re.search(rb"\r\ncontent-length: *(\d+)", head, re.IGNORECASE)
            whole = head.index(b"\r\n\r\n") + 4 + (int(length[1]) if length else 0)
            while len(head) < whole and (piece := connection.recv(65536)):
                head += piece
            self.requests.append(head)
            path = head.split(b" ", 2)[1].decode()
            answer = self.routes.get(path, respond(b"nothing here", status=404))
            answer = answer(path, head) if callable(answer) else answer
            for piece in [answer] if isinstance(answer, bytes) else answer:
                if piece == b"<hang>":
                    self._stopped.wait(30)
                elif piece == b"<reset>":
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                elif piece == b"<drip>":
                    while not self._stopped.wait(0.05):
                        connection.sendall(b"x")
                else:
                    connection.sendall(piece)
        except OSError:
            pass
        finally:
            connection.close()
