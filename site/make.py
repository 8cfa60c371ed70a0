"""Makes `site/public` from `site/source`: pages in their layouts and charsets, files copied, PDFs drawn.

    python site/make.py            pages and files (standard library only)
    uv run --with reportlab==5.1.0 --no-project site/make.py --pdf     the PDFs as well

Each page starts with one comment line that holds its JSON record; `encode_as` is how its bytes are really written
where that differs from the `charset` it declares.
"""

from __future__ import annotations

import argparse
import json
import shutil
from datetime import date
from pathlib import Path
from string import Template
from typing import Any

HERE = Path(__file__).resolve().parent
SOURCE = HERE / "source"
PUBLIC = HERE / "public"
DEPTH = 150


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pdf", action="store_true", help="draw the PDFs as well (needs reportlab)")
    parser.add_argument("--out", type=Path, default=PUBLIC, help="where to write (default: site/public)")
    arguments = parser.parse_args()
    make_pages(arguments.out)
    if arguments.pdf:
        import reports

        reports.draw_reports(arguments.out / "reports")


def make_pages(out: Path) -> None:
    """Write every page and file that needs no PDF library; the same source gives the same bytes."""
    shutil.copytree(SOURCE / "static", out, dirs_exist_ok=True)
    for source in sorted((SOURCE / "pages").glob("*.html")):
        first, body = source.read_text(encoding="utf-8").split("\n", 1)
        record = json.loads(first.removeprefix("<!--").removesuffix("-->"))
        _write(out, record, body.rstrip("\n"))
    _write(out, _DEEP_RECORD, _deep_body())


def _write(out: Path, record: dict[str, Any], body: str) -> None:
    layout = Template((SOURCE / "layouts" / f"{record['layout']}.html").read_text(encoding="utf-8"))
    charset = record.get("charset", "utf-8")
    published = record["published"]
    page = layout.substitute(
        {"lang": "en", "dir": "ltr", "site_name": "Tidewater Review"} | record,
        body=body,
        charset_tag=_charset_tag(record["layout"], charset),
        jsonld=_json_ld(record),
        menu=_menu(record.get("menu", [])),
        minutes=max(1, len(body.split()) // 200),
        published_text=record.get("published_text") or f"{date.fromisoformat(published):%d %B %Y}".lstrip("0"),
        section_slug=record["section"].lower() if record["section"].isascii() else "world",
    )
    target = out / record["path"]
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(page.encode(record.get("encode_as") or charset))


def _charset_tag(layout: str, charset: str) -> str:
    if not charset:
        return ""
    if layout == "legacy":
        return f'<META HTTP-EQUIV="Content-Type" CONTENT="text/html; charset={charset}">'
    return f'<meta charset="{charset}">'


def _json_ld(record: dict[str, Any]) -> str:
    return json.dumps(
        {
            "@context": "https://schema.org",
            "@type": record.get("type", "NewsArticle"),
            "headline": record["title"],
            "description": record["description"],
            "inLanguage": record.get("lang", "en"),
            "datePublished": record["published"],
            "author": {"@type": "Person", "name": record["author"]},
            "publisher": {"@type": "Organization", "name": "Tidewater Review"},
            "mainEntityOfPage": f"https://www.tidewater-review.example/{record['path']}",
        },
        ensure_ascii=False,
        indent=1,
    )


def _menu(links: list[list[str]]) -> str:
    return "\n".join(f'<A HREF="{address}">{text}</A><BR>' for address, text in links)


_DEEP_RECORD = {
    "path": "archive/thread-deep.html",
    "layout": "plain",
    "title": "The longest argument about a knot",
    "description": f"A thread of {DEPTH} replies, each inside the one before.",
    "author": "Editors",
    "published": "2026-04-01",
    "section": "Archive",
    "type": "DiscussionForumPosting",
}

_OPENINGS = (
    "With respect, the loop goes over first",
    "My uncle tied it the other way for forty years",
    "That is a granny knot and you know it",
    "I have just tried it with wet rope",
    "The book on page 112 shows the mirror image",
    "Nobody has asked what the knot is for",
    "It held a barge in the storm of January",
)
_ENDINGS = (
    "and it slipped when the load came from the side.",
    "so the drawing above cannot be right.",
    "but only if the end is longer than your hand.",
    "and I would not hang a bucket on it.",
    "which is what the second reply said already.",
)


def _deep_body() -> str:
    opening = "".join(
        f'<div class="reply" id="r{number}"><div class="text"><p><b>Reply {number}.</b> '
        f"{_OPENINGS[number % len(_OPENINGS)]}, {_ENDINGS[number % len(_ENDINGS)]}</p></div>"
        f'<div class="children">\n'
        for number in range(1, DEPTH + 1)
    )
    last = "<p>The moderators close this thread. The knot is called a bowline, and both ways are right.</p>\n"
    return (
        "<article><h1>The longest argument about a knot</h1>\n"
        "<p>It began with a harmless question: how do you tie up a dinghy so that it is still there in the morning?"
        " What follows is the complete discussion, kept for its beauty.</p>\n"
        f"{opening}{last}{'</div></div>' * DEPTH}\n</article>"
    )


if __name__ == "__main__":
    main()
