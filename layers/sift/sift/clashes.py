"""Options that exclude each other: what can be known to be wrong before anything is fetched."""

from __future__ import annotations

from dataclasses import dataclass

from sift.targets import FetchOptions

#: jq reads what these make of a JSON document; the other modes are for pages.
JSON_MODES = frozenset({"auto", "text", "raw"})


@dataclass(frozen=True)
class Clash:
    """The option to change, the code of a target that fails for it, what is wrong, and what to do."""

    option: str
    code: str
    detail: str
    hint: str


def find_clash(options: FetchOptions) -> Clash | None:
    """The first thing that is wrong with options together; None when they fit each other."""
    if options.mode in ("raw", "meta") and options.pages is not None:
        hint = f"Leave `pages` out, or the mode {options.mode}."
        return Clash("pages", "bad_pages", f"What mode {options.mode} gives has no pages.", hint)
    if options.mode == "raw" and options.question is not None:
        hint = "Leave the mode out; `grep` and `jq` read raw content."
        return Clash("question", "unsupported_option", "Raw content has no passages.", hint)
    if options.mode in ("links", "meta") and options.question is not None:
        hint = "Leave the mode out; `grep` reads what it gives."
        return Clash("question", "unsupported_option", f"What mode {options.mode} gives has no passages.", hint)
    if options.jq is not None and options.grep is not None:
        hint = "Use one of them; jq has `test` for patterns."
        return Clash("grep", "bad_grep", "`jq` and `grep` exclude each other.", hint)
    if options.jq is not None and options.mode not in JSON_MODES:
        hint = "Leave the mode out, or use raw for JSON under another name."
        return Clash("jq", "bad_jq", f"jq is for JSON, and mode {options.mode} is not.", hint)
    if options.jq is not None and options.pages is not None:
        return Clash("jq", "bad_jq", "jq is for JSON, and `pages` for PDFs.", "Leave one of the two out.")
    if options.context is not None and options.grep is None and options.question is None:
        detail = "There is nothing for `context` to be around."
        return Clash("context", "unsupported_option", detail, "Set `grep` or `question`, or leave it out.")
    return None
