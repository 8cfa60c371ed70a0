"""What a page's head says of it: Open Graph, schema.org in JSON-LD, and meta tags, as fields of the envelope's meta."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import urljoin

MAX_NODES = 500

# Names of meta tags by field, in the order of trust; a name is that of `property`, `name` or `itemprop`.
_TAGS = {
    "title": ("og:title", "citation_title", "dc.title", "dcterms.title", "twitter:title", "parsely-title"),
    "author": ("author", "citation_author", "dc.creator", "dcterms.creator", "parsely-author", "article:author", "byl"),
    "published": (
        "article:published_time",
        "datepublished",
        "citation_publication_date",
        "dc.date.issued",
        "dcterms.issued",
        "dc.date",
        "dcterms.created",
        "parsely-pub-date",
        "pubdate",
        "date",
    ),
    "description": ("description", "og:description", "dc.description", "dcterms.description", "twitter:description"),
    "language": ("content-language", "dc.language", "dcterms.language", "og:locale"),
    "site_name": ("og:site_name", "application-name", "apple-mobile-web-app-title"),
    "image": ("og:image", "og:image:secure_url", "og:image:url", "twitter:image", "twitter:image:src", "image"),
}
_WORKS = frozenset(
    "article newsarticle blogposting report scholarlyarticle techarticle socialmediaposting reportagenewsarticle "  # noqa: SIM905
    "webpage faqpage itempage qapage discussionforumposting product recipe book event videoobject howto course".split()
)
_URL = re.compile(r"(?:https?:)?//", re.I)


def read_head(document: Any, base: str) -> dict[str, str]:
    """title, author, published, description, language, site_name and image of a parsed page (turbohtml), as stated.

    Fields that nothing states are missing. `image` is absolute; `author` is names, never an address.
    """
    tags = _meta_tags(document)
    found = {}
    for field, names in _TAGS.items():
        values = (tags[name] for name in names if name in tags)
        value = next((value for value in values if field != "author" or not _URL.match(value)), "")
        if value:
            found[field] = value
    # What a page says of its work for machines is more exact than its tags; of its place in the site, less.
    stated = _schema_fields(document)
    exact = {name: stated[name] for name in ("author", "published") if stated.get(name)}
    found = {**stated, **found, **exact}
    if image := found.pop("image", ""):
        with contextlib.suppress(ValueError):
            found["image"] = urljoin(base, image)
    if "language" in found:
        found["language"] = found["language"].replace("_", "-")[:35]
    return {name: " ".join(value.split())[:2000] for name, value in found.items() if value.strip()}


def _meta_tags(document: Any) -> dict[str, str]:
    tags: dict[str, str] = {}
    for meta in document.find_all("meta"):
        attrs = meta.attrs
        content = _text(attrs.get("content"))
        for key in ("property", "name", "itemprop", "http-equiv"):
            name = _text(attrs.get(key)).lower()
            if name and content:
                tags.setdefault(name, content)
    return tags


def _schema_fields(document: Any) -> dict[str, str]:
    work: dict[str, Any] = {}
    site = ""
    for node in _nodes(document.json_ld()):
        kinds = {kind.rpartition("/")[2].lower() for kind in _texts(node.get("@type"))}
        if "website" in kinds and not site:
            site = _name(node.get("name"))
        # The page that the work stands on says less than the work itself.
        if kinds & _WORKS and (not work or (kinds - {"webpage"} and work.get("@type") == "WebPage")):
            work = node
    fields = {
        "title": _name(work.get("headline")) or _name(work.get("name")),
        "author": _names(work.get("author")) or _names(work.get("creator")),
        "published": _name(work.get("datePublished")),
        "description": _name(work.get("description")),
        "language": _name(work.get("inLanguage")),
        "site_name": site or _name(work.get("publisher")),
        "image": _image(work.get("image")) or _image(work.get("thumbnailUrl")),
    }
    return {name: value for name, value in fields.items() if value}


def _nodes(values: list[Any]) -> Iterator[dict[str, Any]]:
    """Objects at the top, in lists and in graphs, in order."""
    waiting = list(reversed(values))
    for _ in range(MAX_NODES):
        if not waiting:
            return
        value = waiting.pop()
        if isinstance(value, list):
            waiting += reversed(value[:MAX_NODES])
        elif isinstance(value, dict):
            yield value
            waiting += [value[key] for key in ("mainEntity", "mainEntityOfPage", "@graph") if key in value]


def _name(value: Any) -> str:
    if isinstance(value, list):
        value = value[0] if value else None
    if isinstance(value, dict):
        value = value.get("name") or value.get("alternateName") or value.get("@value")
    return value.strip() if isinstance(value, str) else ""


def _names(value: Any) -> str:
    names = [_name(one) for one in (value if isinstance(value, list) else [value])][:20]
    return ", ".join(dict.fromkeys(name for name in names if name and not _URL.match(name)))


def _image(value: Any) -> str:
    if isinstance(value, list):
        value = value[0] if value else None
    if isinstance(value, dict):
        value = value.get("url") or value.get("contentUrl") or value.get("@id")
    return value if isinstance(value, str) else ""


def _texts(value: Any) -> list[str]:
    return [one for one in (value if isinstance(value, list) else [value]) if isinstance(one, str)]


def _text(value: Any) -> str:
    return (" ".join(value) if isinstance(value, list) else value or "").strip()
