"""What one target asks for, and what comes of it."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator
from pydantic_core import PydanticCustomError

from sift.patterns import MAX_PATTERN_BYTES, compile_pattern
from sift.request_headers import check_headers

#: Surrounding lines of grep, or neighbouring passages of question.
MAX_CONTEXT = 20
MAX_PROGRAM_CHARS = 4_096
MAX_QUESTION_CHARS = 1_000

Mode = Literal["auto", "article", "page", "text", "raw", "links", "meta"]


class FetchOptions(BaseModel):
    """How one URL becomes content. Every field is optional; a target's own value wins over the job's."""

    # Inputs may be credentials: no error shows them.
    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    mode: Mode = Field(
        default="auto",
        description=(
            "`auto` (by media type), `article` (main content as Markdown), `page` (whole page as Markdown), "
            "`text`, `raw` (the body as it came, decoded of its content codings only), "
            "`links` (its links, one JSON object a line), `meta` (what is known of the document, as JSON)."
        ),
    )
    pages: str | None = Field(
        default=None,
        max_length=200,
        description="1-based page ranges of a paged document: `1-3,7,12-`; `-1` is the last page.",
    )
    grep: str | None = Field(
        default=None,
        min_length=1,
        max_length=MAX_PATTERN_BYTES,
        description="RE2 pattern; the matching lines with their line numbers.",
    )
    jq: str | None = Field(
        default=None,
        min_length=1,
        max_length=MAX_PROGRAM_CHARS,
        description="jq program over a JSON document or JSON Lines; one output a line.",
    )
    question: str | None = Field(
        default=None,
        max_length=MAX_QUESTION_CHARS,
        description="The passages that answer it best, ranked; with a model configured, an answer that quotes them.",
    )
    context: int | None = Field(
        default=None,
        strict=True,
        ge=0,
        le=MAX_CONTEXT,
        description="Lines around a match of `grep`, or passages around one of `question`; 0, or 1 with a question.",
    )
    headers: dict[str, str] = Field(
        default_factory=dict,
        description=(
            "Request headers from an allow list: Accept, Accept-Language, Authorization, Cache-Control, Cookie, DNT, "
            "If-Modified-Since, If-None-Match, Pragma, Referer, Sec-GPC, User-Agent. Authorization and Cookie are "
            "dropped when a redirect leaves the origin, and never shown."
        ),
        examples=[{"Accept-Language": "de", "If-None-Match": '"33a64df5"'}],
    )
    recover: bool = Field(
        default=False,
        strict=True,
        description="When the page is gone for good, read the newest archived copy; `meta.recovered` says so.",
    )

    robots: bool | None = Field(
        default=None,
        strict=True,
        description="Whether the site's robots.txt is heeded; left out, the deployment decides.",
    )

    @field_validator("question")
    @classmethod
    def _check_question(cls, question: str | None) -> str | None:
        if question is not None and not any(character.isalnum() for character in question):
            raise PydanticCustomError("no_words", "has no word in it")
        return question

    @property
    def filters(self) -> dict[str, Any]:
        """The filters that are asked for, JSON-ready; empty without any."""
        found = {name: getattr(self, name) for name in ("jq", "grep", "question")}
        asked = {name: value for name, value in found.items() if value is not None}
        return asked | {"context": self.context} if asked else {}

    @field_validator("grep")
    @classmethod
    def _check_pattern(cls, pattern: str | None) -> str | None:
        if pattern is not None and (reason := _refuse_pattern(pattern)):
            raise PydanticCustomError("bad_grep", "is no pattern of RE2: {reason}", {"reason": reason})
        return pattern

    @field_validator("headers")
    @classmethod
    def _check_headers(cls, headers: dict[str, str]) -> dict[str, str]:
        try:
            return check_headers(headers)
        except ValueError as error:
            raise PydanticCustomError("bad_headers", "{reason}", {"reason": str(error)}) from None


@functools.lru_cache(maxsize=256)  # a job's pattern is that of each of its targets
def _refuse_pattern(pattern: str) -> str:
    """Why RE2 refuses the pattern, or ""."""
    try:
        compile_pattern(pattern)
    except ValueError as error:
        return str(error)
    return ""


@dataclass(frozen=True)
class Content:
    """A finished fetch.

    `body`: the content in bytes (UTF-8 for every text). `media_type`: the type of `body`, with its charset.
    `meta`: the envelope's `meta`, JSON-ready (see docs/api.md).
    """

    body: bytes
    media_type: str
    meta: dict[str, Any] = field(default_factory=dict)
