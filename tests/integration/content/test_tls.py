"""TLS: the certificate must be the host's, by an authority that is trusted, whatever address was connected to."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from sift.errors import TargetFailed
from sift.targets import Content, FetchOptions
from tests.integration.content.conftest import OpenPipeline
from tests.integration.content.loopback import Loopback, respond


def issue(folder: Path, name: str) -> tuple[Path, Path]:
    """A self-signed certificate for `name`, that is its own authority: (certificate, certificate with key)."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    public = certificate.public_bytes(serialization.Encoding.PEM)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    (folder / "ca.pem").write_bytes(public)
    (folder / "server.pem").write_bytes(private + public)
    return folder / "ca.pem", folder / "server.pem"


@pytest.fixture
def authority(tmp_path: Path) -> Path:
    return issue(tmp_path, "site.test")[0]


@pytest.fixture
def secure(authority: Path) -> Iterator[Loopback]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority.parent / "server.pem")
    loopback = Loopback(routes={"/a": respond(b"over tls", content_type="text/plain")}, tls=context)
    yield loopback
    loopback.close()


def fetch(open_pipeline: OpenPipeline, url: str, allow: str, ca_file: Path | None) -> Content:
    async def main() -> Content:
        async with open_pipeline(guard_allow=allow, ca_file=str(ca_file) if ca_file else None) as pipeline:
            return await pipeline.run(url, FetchOptions(mode="raw"), 20.0)

    return asyncio.run(main())


def test_the_name_of_the_host_is_what_counts(secure: Loopback, open_pipeline: OpenPipeline, authority: Path) -> None:
    content = fetch(open_pipeline, secure.url("/a", "site.test", "https"), secure.allow, authority)
    assert content.body == b"over tls"


def test_a_certificate_for_another_name(secure: Loopback, open_pipeline: OpenPipeline, authority: Path) -> None:
    for host in ("other.test", "127.0.0.1"):
        with pytest.raises(TargetFailed) as caught:
            fetch(open_pipeline, secure.url("/a", host, "https"), secure.allow, authority)
        assert caught.value.code == "tls_failed"
    assert secure.requests == []


def test_an_authority_that_nobody_trusts(secure: Loopback, open_pipeline: OpenPipeline) -> None:
    with pytest.raises(TargetFailed) as caught:
        fetch(open_pipeline, secure.url("/a", "site.test", "https"), secure.allow, None)
    assert caught.value.code == "tls_failed"


def test_the_environment_does_not_say_whom_to_trust(
    secure: Loopback, open_pipeline: OpenPipeline, authority: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(authority))
    with pytest.raises(TargetFailed) as caught:
        fetch(open_pipeline, secure.url("/a", "site.test", "https"), secure.allow, None)
    assert caught.value.code == "tls_failed"


def test_a_step_down_to_http_is_noted(
    secure: Loopback, server: Loopback, open_pipeline: OpenPipeline, authority: Path
) -> None:
    secure.routes["/down"] = respond(status=302, headers=(f"Location: {server.url('/b', 'site.test')}",))
    server.routes["/b"] = respond(b"plain", content_type="text/plain")
    content = fetch(
        open_pipeline, secure.url("/down", "site.test", "https"), f"{secure.allow},{server.allow}", authority
    )
    assert content.meta["warnings"] == ["A redirect went from https to http."]
