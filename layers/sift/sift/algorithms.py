"""How a token may be signed, and the public keys for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

#: The algorithms that a token may be signed with, and the key type and curve of each (RFC 7518, RFC 8037).
ALGORITHMS: Mapping[str, tuple[str, str | None]] = {
    "RS256": ("RSA", None),
    "RS384": ("RSA", None),
    "RS512": ("RSA", None),
    "PS256": ("RSA", None),
    "PS384": ("RSA", None),
    "PS512": ("RSA", None),
    "ES256": ("EC", "P-256"),
    "ES384": ("EC", "P-384"),
    "ES512": ("EC", "P-521"),
    "EdDSA": ("OKP", "Ed25519"),
}

#: A public key as RFC 7517 writes it.
Jwk = Mapping[str, Any]
