"""The bodies that the HTTP API takes."""

from typing import Annotated, Any, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from sift.jobs import MAX_WINDOW
from sift.model_requests import MAX_MODEL_CHARS, MAX_PATH_CHARS
from sift.targets import FetchOptions
from sift.webhooks import JOB_ENDED, Event, check_headers

#: Longer than any URL that a browser or server takes (RFC 9110 asks for at least 8,000 octets).
URL_CHARS = 8_192


def _check_url(url: str) -> str:
    """Only what makes it no http(s) URL at all; whether it may be fetched is the guard's to say, per target."""
    if any(ord(char) <= 0x20 or ord(char) == 0x7F for char in url):
        raise PydanticCustomError("bad_url", "holds a space or a control character")
    try:
        parts = urlsplit(url)
        host = parts.hostname
        _ = parts.port
    except ValueError:
        raise PydanticCustomError("bad_url", "is not a URL") from None
    if parts.scheme.lower() not in {"http", "https"}:
        raise PydanticCustomError("bad_url", "must start with http:// or https://")
    if not host:
        raise PydanticCustomError("bad_url", "names no host")
    return url


Url = Annotated[str, Field(min_length=1, max_length=URL_CHARS), AfterValidator(_check_url)]


class _Strict(BaseModel):
    # Inputs may be credentials: no error shows them.
    # Built when first used: a cold start would pay for all of them.
    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True, defer_build=True)


class TargetRequest(_Strict):
    """One URL to fetch."""

    url: Url = Field(examples=["https://example.com/article"])
    options: FetchOptions = Field(default_factory=FetchOptions, description="They win over those of the job.")
    id: str | None = Field(default=None, min_length=1, max_length=200, description="Your own id for it.")


class ModelRequest(_Strict):
    """One request to the model gateway."""

    path: str = Field(
        description=f"Absolute, normalised, at most {MAX_PATH_CHARS} characters, and one that the deployment allows.",
        examples=["/v1/chat/completions"],
    )
    model: str | None = Field(
        default=None, description=f"At most {MAX_MODEL_CHARS} characters; where the body names one, the same."
    )
    body: dict[str, Any] = Field(description="What the gateway is sent: a JSON object of at most 1 MiB.")
    id: str | None = Field(default=None, min_length=1, max_length=200, description="Your own id for it.")


Label = Annotated[str, Field(max_length=512)]


Metadata = dict[Annotated[str, Field(min_length=1, max_length=64)], Label]


def _check_headers(headers: dict[str, str]) -> dict[str, str]:
    try:
        return check_headers(headers)
    except ValueError as error:
        raise PydanticCustomError("bad_headers", "{reason}", {"reason": str(error)}) from None


class WebhookRequest(_Strict):
    """Where the events of a job are posted, signed as Standard Webhooks are."""

    url: Url = Field(examples=["https://example.com/hooks/sift"])
    events: list[Event] = Field(default_factory=lambda: [JOB_ENDED], min_length=1, max_length=16)
    headers: Annotated[dict[str, str], AfterValidator(_check_headers)] = Field(
        default_factory=dict, description="Sent with every post: `Authorization`, and `X-` headers of your own."
    )
    metadata: Metadata = Field(default_factory=dict, max_length=16, description="Yours; it is in every post.")


class JobRequest(_Strict):
    """A batch of URLs to fetch, or of requests to the model gateway: exactly one of `targets` and `requests`."""

    targets: list[TargetRequest] = Field(default_factory=list, description="URLs, for a fetch job.")
    requests: list[ModelRequest] = Field(default_factory=list, description="Requests, for an inference job.")
    options: FetchOptions = Field(
        default_factory=FetchOptions, description="For every target without its own; not with `requests`."
    )
    window: int = Field(default=MAX_WINDOW, strict=True, ge=1, le=MAX_WINDOW, description="Targets out at once.")
    metadata: Metadata = Field(default_factory=dict, max_length=16, description="Yours; it is shown with the job.")
    webhook: WebhookRequest | None = Field(default=None, description="Where to post what happens to the job.")
    fresh: bool = Field(default=False, strict=True, description="Run it even if the same work was submitted before.")

    @model_validator(mode="after")
    def _is_of_one_kind(self) -> Self:
        sent = self.model_fields_set
        if {"targets", "requests"} <= sent:
            raise PydanticCustomError("two_kinds", "requests: not together with targets")
        if "requests" in sent and "options" in sent:
            raise PydanticCustomError("no_options", "options: requests take none")
        if not (self.targets or self.requests):
            raise PydanticCustomError("no_targets", "targets: at least one is needed")
        return self


class FetchRequest(_Strict):
    """One URL to fetch now."""

    # Whether it can be fetched is the guard's to say: `invalid_url` is one error, wherever it comes from.
    url: str = Field(min_length=1, max_length=URL_CHARS, examples=["https://example.com/article"])
    options: FetchOptions = Field(default_factory=FetchOptions)
