"""From the claims of a verified token to an identity, by the claim names that the deployment sets."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from sift.identity import DEFAULT_CLASS, NAME_FORM, Identity, is_name, is_scope

#: What an identity is made of, and the claim that each is read from unless the deployment names another: those of
#: RFC 7519, RFC 9068 and OpenID Connect where there is one.
DEFAULTS: Mapping[str, str] = {
    "tenant": "tenant",
    "subject": "sub",
    "actor": "sub",
    "scopes": "scope",
    "application": "azp",
    "class": "sift_class",
}
#: Subject and application are kept with each job, in an item that should stay small.
TEXT_CHARS = 256

#: Scopes may stand for themselves, or behind the name of the API, as some providers write them.
_PREFIX = re.compile(r"^sift[:./]")
_CONSTANT = re.compile(r"'([^']*)'")


def read_names(text: str) -> dict[str, str]:
    """Claim names from `tenant=org_id,scopes=permissions`; what is not named has its default. A value in single
    quotes is no claim but the value itself, the same for every token: `tenant='acme'`.

    Raises ValueError, with the part that is wrong.
    """
    found = dict(DEFAULTS)
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, equals, claim = part.partition("=")
        if name not in DEFAULTS or not equals or not claim:
            raise ValueError(f"{name or part!r} is not one of {', '.join(DEFAULTS)}, with = and the name of a claim")
        found[name] = claim
        _check_constant(name, claim)
    return found


def _check_constant(name: str, claim: str) -> None:
    """Raises ValueError for a value that would turn every token away: no name or scope, or quotes left open."""
    if "'" not in claim:
        return
    constant = _CONSTANT.fullmatch(claim)
    if constant is None:
        raise ValueError(f"{name} has a single quote that is not around the whole of its value, or a comma in it")
    value = constant[1]
    if name in {"tenant", "actor", "class"} and not is_name(value):
        raise ValueError(f"{name} is not a name ({NAME_FORM})")
    if name == "scopes" and not (value.split() and all(map(_read_scopes, value.split()))):
        raise ValueError("scopes are not scopes (fetch, inference, admin or admin:TENANT, with spaces between)")


def identify(claims: Mapping[str, Any], names: Mapping[str, str]) -> Identity:
    """Who a token is for. Raises ValueError, which names the claim and not its value, when that is nobody."""
    tenant, actor = _read(claims, names["tenant"]), _read(claims, names["actor"])
    for what, name in (("tenant", tenant), ("actor", actor)):
        if not is_name(name):
            raise ValueError(f"the claim {names[what]} names no {what}")
    caller_class = _read(claims, names["class"])
    if caller_class is None:
        caller_class = DEFAULT_CLASS
    if not is_name(caller_class):
        raise ValueError(f"the claim {names['class']} names no class")
    return Identity(
        tenant=tenant,
        actor=actor,
        key_id=None,
        scopes=_read_scopes(_read(claims, names["scopes"])),
        subject=_read_text(_read(claims, names["subject"])),
        application=_read_text(_read(claims, names["application"])),
        auth_type="jwt",
        caller_class=caller_class,
    )


def _read(claims: Mapping[str, Any], name: str) -> Any:
    constant = _CONSTANT.fullmatch(name)
    return constant[1] if constant else claims.get(name)


def _read_scopes(value: Any) -> tuple[str, ...]:
    """A text with spaces (RFC 8693) or a list; what means nothing here is for somebody else and left out."""
    words = value.split() if isinstance(value, str) else value if isinstance(value, list) else []
    found = (_PREFIX.sub("", word) for word in words if isinstance(word, str))
    return tuple(dict.fromkeys(scope for scope in found if is_scope(scope)))


def _read_text(value: Any) -> str | None:
    return value[:TEXT_CHARS] if isinstance(value, str) and value else None
