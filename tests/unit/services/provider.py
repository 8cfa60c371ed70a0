"""An identity provider for tests: keys, tokens of every sort, and what it publishes."""

from __future__ import annotations

import base64
import contextlib
import functools
import hashlib
import hmac
import json
import threading
import time
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

ISSUER, AUDIENCE = "https://login.example", "sift"

_MAKERS = {
    "RS256": lambda: rsa.generate_private_key(65_537, 2_048),
    "PS384": lambda: rsa.generate_private_key(65_537, 2_048),
    "ES256": lambda: ec.generate_private_key(ec.SECP256R1()),
    "ES384": lambda: ec.generate_private_key(ec.SECP384R1()),
    "EdDSA": ed25519.Ed25519PrivateKey.generate,
    "short": lambda: rsa.generate_private_key(65_537, 1_024),
    "other": lambda: ec.generate_private_key(ec.SECP256R1()),
}


@functools.cache
def private_key(name: str) -> Any:
    """The provider's key of this name, which is that of its algorithm where it has one."""
    return _MAKERS[name]()  # type: ignore[operator]


def public_jwk(name: str, **values: Any) -> dict[str, Any]:
    algorithm = {"short": "RS256", "other": "ES256"}.get(name, name)
    found = json.loads(jwt.get_algorithm_by_name(algorithm).to_jwk(private_key(name).public_key()))
    found.pop("key_ops", None)
    return {**found, "kid": name, "alg": algorithm, "use": "sig", **values}


def public_pem(name: str) -> bytes:
    encoding, form = serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    found: bytes = private_key(name).public_key().public_bytes(encoding, form)
    return found


def jwks(*keys: Mapping[str, Any]) -> bytes:
    """What it publishes: these keys, or one of each kind."""
    published = keys or [public_jwk(name) for name in ("RS256", "PS384", "ES256", "ES384", "EdDSA")]
    return json.dumps({"keys": published}).encode()


def claims(**values: Any) -> dict[str, Any]:
    """Good claims; a value of None takes one away."""
    now = int(time.time())
    found = {
        "iss": ISSUER, "aud": AUDIENCE, "sub": "ann", "tenant": "acme", "scope": "fetch", "iat": now, "exp": now + 300,
    }  # fmt: skip
    return {name: value for name, value in {**found, **values}.items() if value is not None}


def token(key: str = "ES256", *, header: Mapping[str, Any] | None = None, algorithm: str = "", **values: Any) -> str:
    """A token that is signed with this key. `header` changes its header, `values` its claims."""
    algorithm = algorithm or {"short": "RS256", "other": "ES256"}.get(key, key)
    headers = {"kid": key, **(header or {})}
    return jwt.encode(claims(**values), private_key(key), algorithm, headers)


def assemble(header: Any, payload: Any, signature: bytes) -> str:
    """A token of any parts; bytes go in as they are."""
    parts = [part if isinstance(part, bytes) else json.dumps(part).encode() for part in (header, payload)]
    return ".".join(base64.urlsafe_b64encode(part).decode().rstrip("=") for part in (*parts, signature))


def forge_none(algorithm: str = "none") -> str:
    return assemble({"alg": algorithm, "kid": "ES256", "typ": "JWT"}, claims(), b"")


def forge_hmac(secret: bytes, key_id: str = "RS256") -> str:
    """Signed with a public key as the secret: what a library falls for that lets the token choose the algorithm."""
    unsigned = assemble({"alg": "HS256", "kid": key_id, "typ": "JWT"}, claims(), b"").rpartition(".")[0]
    signature = hmac.digest(secret, unsigned.encode(), hashlib.sha256)
    return f"{unsigned}.{base64.urlsafe_b64encode(signature).decode().rstrip('=')}"


def wrong_tokens() -> dict[str, str]:
    """Tokens that a deployment for this provider must refuse, by what is wrong with them."""
    now = int(time.time())
    good = token()
    head, payload, signature = good.split(".")
    deep = b"[" * 3_000 + b"]" * 3_000
    return {
        "expired": token(exp=now - 60),
        "not yet valid": token(nbf=now + 600),
        "of the future": token(iat=now + 600),
        "of another issuer": token(iss="https://other.example"),
        "of an issuer with a slash": token(iss=ISSUER + "/"),
        "without an issuer": token(iss=None),
        "for another audience": token(aud="other"),
        "for several others": token(aud=["other", "more"]),
        "without an audience": token(aud=None),
        "without an end": token(exp=None),
        "with an end that is none": token(exp="soon"),
        "with a subject that is no text": token(sub=7),
        "without a tenant": token(tenant=None),
        "with a tenant that is no name": token(tenant="a/b"),
        "with a tenant that is a list": token(tenant=["acme"]),
        "without an actor": token(sub=None),
        "with a class that is no name": token(sift_class={"a": 1}),
        "alg none": forge_none(),
        "alg None": forge_none("None"),
        "alg none with a signature": assemble({"alg": "none", "kid": "ES256"}, claims(), b"x"),
        "HS256 with the public key": forge_hmac(public_pem("RS256")),
        "HS256 with the public key of another id": forge_hmac(public_pem("ES256"), "ES256"),
        "HS256 with nothing": forge_hmac(b""),
        "without an alg": assemble({"kid": "ES256"}, claims(), b"x"),
        "an alg that is a list": assemble({"alg": ["ES256"], "kid": "ES256"}, claims(), b"x"),
        "an alg that nobody knows": assemble({"alg": "ES999", "kid": "ES256"}, claims(), b"x"),
        "another alg than the key's": token("RS256", algorithm="RS512"),
        "another key's alg": token("RS256", header={"kid": "ES256"}),
        "an unknown kid": token(header={"kid": "nobody"}),
        "a kid that is no text": assemble({"alg": "ES256", "kid": 7}, claims(), b"x"),
        "no kid where several keys fit": token("RS256", header={"kid": ""}),
        "signed by somebody else": token("other", header={"kid": "ES256"}),
        "with a key of its own": token("other", header={"kid": "ES256", "jwk": public_jwk("other")}),
        "with a critical extension": token(header={"crit": ["x"], "x": 1}),
        "another's signature": f"{head}.{payload}.{token('other').split('.')[2]}",
        "another payload": f"{head}.{assemble({}, claims(tenant='other'), b'').split('.')[1]}.{signature}",
        "a signature cut short": good[:-4],
        "a signature that is empty": f"{head}.{payload}.",
        "padded": f"{head}=.{payload}.{signature}",
        "four parts": f"{good}.{signature}",
        "two parts": f"{head}.{payload}",
        "dots": "..",
        "a header that is no JSON": assemble(b"{", claims(), b"x"),
        "a header that is a list": assemble([], claims(), b"x"),
        "a header without end": assemble(deep, claims(), b"x"),
        "a payload that is a list": jwt.PyJWS().encode(b"[]", private_key("ES256"), "ES256", {"kid": "ES256"}),
        "a payload without end": jwt.PyJWS().encode(deep[:5_000], private_key("ES256"), "ES256", {"kid": "ES256"}),
        "a number without end": jwt.PyJWS().encode(
            b'{"exp": 1e999, "iss": "https://login.example", "aud": "sift"}', private_key("ES256"), "ES256",
            {"kid": "ES256"},
        ),
        "oversized": token(filler="x" * 7_000),
        "far oversized": f"{head}.{'A' * 1_000_000}.{signature}",
    }  # fmt: skip


@contextlib.contextmanager
def serve(answers: Mapping[str, bytes] | None = None) -> Iterator[tuple[str, list[str]]]:
    """A server on loopback that publishes the keys at /keys, or these answers by path: its address, and the paths
    that it was asked for. /moved redirects to /keys."""
    published = {"/keys": jwks(), **(answers or {})}
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            body = published.get(self.path)
            self.send_response(302 if self.path == "/moved" else 404 if body is None else 200)
            self.send_header("Location", "/keys")
            # One byte more than comes, where an answer is to break off.
            self.send_header("Content-Length", str(len(body or b"") + (self.path == "/cut")))
            self.end_headers()
            self.wfile.write(body or b"")

        def log_message(self, format: str, *args: object) -> None:
            """Nothing is written."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
