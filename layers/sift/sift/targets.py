"""What one target asks for, and what comes of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Mode = Literal["auto", "article", "page", "text", "raw"]


class FetchOptions(BaseModel):
    """How one URL becomes content. Every field is optional; a target's own value wins over the job's."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    mode: Mode = Field(
        default="auto",
        description=(
            "`auto` (by media type), `article` (main content as Markdown), `page` (whole page as Markdown), "
            "`text`, `raw` (the body as it came, decoded of its content codings only)."
        ),
    )
    pages: str | None = Field(
        default=None,
        max_length=200,
        description="1-based page ranges of a paged document: `1-3,7,12-`; `-1` is the last page.",
    )


@dataclass(frozen=True)
class Content:
    """A finished fetch.

    `body`: the content in bytes (UTF-8 for every text). `media_type`: the type of `body`, with its charset.
    `meta`: the envelope's `meta`, JSON-ready (see docs/api.md).
    """

    body: bytes
    media_type: str
    meta: dict[str, Any] = field(default_factory=dict)
