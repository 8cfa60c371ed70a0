"""Feeds (RSS, Atom, JSON Feed) to Markdown, text or links: title, link, date and content of every entry."""

from __future__ import annotations

import io
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from sift.content.dom import collapse, parse_page, urljoin_safe
from sift.content.html import plain_text
from sift.content.links import Link, note_cut, render_links
from sift.content.markdown import Renderer
from sift.errors import TargetFailed

JSON_FEED = "https://jsonfeed.org/version/"
#: An entry takes a quarter of a millisecond, a tag ten microseconds, its own or one of the markup that it holds.
MAX_ENTRIES, MAX_FEED_TAGS = 5_000, 200_000

_TAG = re.compile("<|&lt;")
_ENTRY = re.compile(r"<(?:[\w.-]{1,40}:)?(?:item|entry)[\s/>]")
_FEED_ROOT = re.compile(r"<((?:[\w.-]{1,40}:)?(?:rss|RDF|feed))\b")


@dataclass(frozen=True)
class Body:
    """What an entry or a feed says: HTML or plain text, and the address that its links are relative to."""

    text: str
    is_html: bool
    base: str


@dataclass(frozen=True)
class Entry:
    """One entry; every field but `title` may be empty."""

    title: str
    link: str
    published: str
    author: str
    body: Body


@dataclass(frozen=True)
class Feed:
    """A feed: its own fields of meta, its entries in their order, and whether more of them were left out."""

    meta: dict[str, str]
    entries: list[Entry] = field(default_factory=list)
    is_cut: bool = False


def read_feed(feed: Feed, mode: str) -> tuple[str, str, dict[str, Any]]:
    """Content, media type and metadata of a parsed feed. Raises TargetFailed empty when it has no entry."""
    meta: dict[str, Any] = {**feed.meta, "warnings": []}
    if not feed.entries:
        raise TargetFailed("empty", "The feed has no entries.", "Use mode raw to see what the server sends.", meta=meta)
    if feed.is_cut:
        note_cut(meta, f"Only the first entries of the feed were read: {len(feed.entries)}.")
    if mode == "links":
        return render_links(_links(feed), "", meta), "application/x-ndjson", meta
    parts = [_as_text(entry) if mode == "text" else _as_markdown(entry) for entry in feed.entries]
    if title := feed.meta.get("title"):
        parts.insert(0, title if mode == "text" else f"# {title}")
    return "\n\n".join(parts) + "\n", "text/plain" if mode == "text" else "text/markdown", meta


def parse_feed(text: str, url: str) -> Feed:
    """A feed in XML, of any version, well-formed or not. Raises TargetFailed damaged for what is none."""
    import feedparser  # type: ignore[import-untyped]

    text, is_cut = _cut(text)
    found = feedparser.parse(
        # Bytes in a file: a string could be taken for an address, and be fetched.
        io.BytesIO(text.encode("utf-8", "replace")),
        response_headers={"content-type": "application/xml; charset=utf-8", "content-location": url},
        sanitize_html=False,
        resolve_relative_uris=False,
    )
    if not found.get("version") and not found.entries:
        raise TargetFailed("damaged", "The feed cannot be read.", "Use mode raw to get the bytes.")
    about = found.feed
    meta = {
        "title": _title(about),
        "author": _text(about.get("author")),
        "published": _date(about),
        "language": _text(about.get("language")),
        "description": _one_line(_body(about.get("subtitle_detail"))),
        "site_name": _title(about),
        "canonical": _join(url, about.get("link")),
        "image": _join(url, (about.get("image") or {}).get("href")),
    }
    return Feed(
        {name: value[:2000] for name, value in meta.items() if value},
        [_entry(entry, url) for entry in found.entries],
        is_cut,
    )


def _cut(text: str) -> tuple[str, bool]:
    """A feed within the bounds, whole entries where there is more than one, and whether it had more."""
    tags = (match.start() for match in _TAG.finditer(text))
    limit = next(islice(tags, MAX_FEED_TAGS, None), len(text))
    starts = [match.start() for match in islice(_ENTRY.finditer(text), MAX_ENTRIES + 1)]
    if len(text) <= limit and len(starts) <= MAX_ENTRIES:
        return text, False
    inside = [start for start in starts if start <= limit]
    kept = text[: inside[-1] if len(inside) > 1 else limit]
    # Closed again, or it would be read a second time by rules for broken feeds.
    root = _FEED_ROOT.search(text)
    name = root[1] if root else "feed"
    return f"{kept}{'</channel>' if name == 'rss' else ''}</{name}>", True


def parse_json_feed(feed: dict[str, Any], url: str) -> Feed:
    """A feed of JSON Feed 1.0 or 1.1, as parsed JSON; fields of a wrong type count as missing."""
    meta = {
        "title": _text(feed.get("title")),
        "author": _authors(feed),
        "language": _text(feed.get("language")),
        "description": _text(feed.get("description")),
        "site_name": _text(feed.get("title")),
        "canonical": _join(url, feed.get("home_page_url")),
        "image": _join(url, feed.get("icon")),
    }
    items = feed.get("items")
    items = items if isinstance(items, list) else []
    entries: list[Entry] = []
    is_cut, left = len(items) > MAX_ENTRIES, MAX_FEED_TAGS
    for item in items[:MAX_ENTRIES]:
        if not isinstance(item, dict):
            continue
        link = _text(item.get("url")) or _text(item.get("external_url"))
        html = _text(item.get("content_html"))
        plain = _text(item.get("content_text")) or _text(item.get("summary"))
        left -= html.count("<")
        if left < 0 and entries:
            is_cut = True
            break
        entries.append(
            Entry(
                title=collapse(_text(item.get("title"))).strip(),
                link=urljoin_safe(url, link) if link else "",
                published=_text(item.get("date_published")) or _text(item.get("date_modified")),
                author=_authors(item),
                body=Body(html or plain, bool(html), urljoin_safe(url, link) or url),
            )
        )
    return Feed({name: value[:2000] for name, value in meta.items() if value}, entries, is_cut)


def _entry(entry: Any, url: str) -> Entry:
    contents = [*entry.get("content", ()), entry.get("summary_detail") or {}]
    # Podcasts and others give the same more than once; the longest says most.
    body = max((_body(content) for content in contents), key=lambda body: len(body.text))
    link = _text(entry.get("link"))
    return Entry(
        title=_title(entry),
        link=urljoin_safe(url, link) if link else "",
        published=_date(entry),
        author=_text(entry.get("author")),
        body=body if body.base else Body(body.text, body.is_html, url),
    )


def _body(detail: Any) -> Body:
    detail = detail or {}
    return Body(_text(detail.get("value")), "html" in _text(detail.get("type")), _text(detail.get("base")))


def _title(holder: Any) -> str:
    detail = holder.get("title_detail")
    return _one_line(_body(detail)) if detail else ""


def _one_line(body: Body) -> str:
    return collapse(_to_text(body)).replace("\n", " ").strip()


def _date(holder: Any) -> str:
    """The date as RFC 3339 where it could be read, else as it stands."""
    for name in ("published", "updated", "created"):
        parsed, said = holder.get(f"{name}_parsed"), _text(holder.get(name))
        if parsed:
            return time.strftime("%Y-%m-%dT%H:%M:%SZ", parsed)
        if said:
            return said[:100]
    return ""


def _authors(holder: dict[str, Any]) -> str:
    authors = holder.get("authors")
    if not isinstance(authors, list) or not authors:
        authors = [holder.get("author")]
    named = [_text(author.get("name")) for author in authors if isinstance(author, dict)]
    return ", ".join(name for name in named if name)


def _join(url: str, link: Any) -> str:
    return urljoin_safe(url, _text(link)) if _text(link) else ""


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _links(feed: Feed) -> Iterator[Link]:
    for entry in feed.entries:
        if entry.link:
            yield Link(entry.link, entry.title, entry.link)


def _as_markdown(entry: Entry) -> str:
    heading = f"## {entry.title or entry.link or entry.published or 'Untitled'}"
    facts = [fact for fact in (f"<{entry.link}>" if entry.link else "", entry.published, entry.author) if fact]
    body = entry.body.text.strip()
    if entry.body.is_html and body:
        page = parse_page(body, entry.body.base)
        body = Renderer(page.base, images=True).render(page.body).strip()
    return "\n\n".join(part for part in (heading, " · ".join(facts), body) if part)


def _as_text(entry: Entry) -> str:
    lines = (entry.title, entry.link, entry.published, entry.author, _to_text(entry.body).strip())
    return "\n".join(line for line in lines if line)


def _to_text(body: Body) -> str:
    if not body.is_html or ("<" not in body.text and "&" not in body.text):
        return body.text
    return plain_text(parse_page(body.text, body.base))
