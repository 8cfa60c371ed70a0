"""What each function is told by its environment: one frozen model per function, field names are variable names."""

from collections.abc import Callable, Mapping
from typing import Annotated, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError

from sift.claims import read_names
from sift.classes import read_classes
from sift.errors import SiftError

#: What is not left out.
Text = Annotated[str, Field(min_length=1)]
Positive = Annotated[int, Field(ge=1)]
#: Where the gateway is; "" for none. What follows a path in an address, or tells who asks, is not part of it.
GatewayUrl = Annotated[str, Field(pattern=r"^(https?://[^\s?#@\\]+)?$")]
#: Where an archive is; "" for none.
ArchiveUrl = Annotated[str, Field(pattern=r"^(https?://[!-~]+)?$")]


class SettingsError(SiftError):
    """A variable is missing or wrong; the detail names it."""


class Settings(BaseModel):
    """What every function needs."""

    model_config = ConfigDict(frozen=True, defer_build=True)  # a function builds its own alone

    table_name: Text
    bucket_name: Text
    fetch_queue_url: Text
    assemble_queue_url: Text
    inference_queue_url: Text
    notify_queue_url: Text
    event_bus_name: Text


def _check_classes(text: str) -> str:
    read_classes(text)
    return text


#: Limits and paces by caller class.
Classes = Annotated[str, AfterValidator(_check_classes)]


class CallerSettings(Settings):
    """What a function that callers reach needs: their identity provider; without `jwt_issuer` there is none."""

    jwt_issuer: str
    jwt_audience: str
    jwt_jwks_url: str
    jwt_claims: str

    @field_validator("jwt_audience", "jwt_jwks_url")
    @classmethod
    def _come_with_an_issuer(cls, value: str, info: ValidationInfo) -> str:
        if info.data.get("jwt_issuer") and not value:
            raise ValueError("needed with JWT_ISSUER")
        return value

    @field_validator("jwt_jwks_url")
    @classmethod
    def _is_trusted(cls, value: str) -> str:
        if value:
            from sift.jwks import is_trusted_address  # a deployment without tokens does not load it

            if not is_trusted_address(value):
                raise ValueError("not an https address")
        return value

    @field_validator("jwt_claims")
    @classmethod
    def _can_be_read(cls, value: str) -> str:
        read_names(value)
        return value


def _check_allow(text: str) -> str:
    from sift.content.addresses import parse_allow  # here: the other functions read no lists

    return _check(parse_allow, text)


def _check_deny(text: str) -> str:
    from sift.content.denials import parse_deny  # here: it needs packages that the other functions do without

    return _check(parse_deny, text)


def _check(parse: Callable[[str], object], text: str) -> str:
    try:
        parse(text)
    except ValueError as error:
        raise PydanticCustomError("bad_list", "{reason}", {"reason": str(error)}) from None
    return text


class GuardSettings(Settings):
    """What a function with the guard needs. Its lists are checked here, so that a mistake stops the function at its
    start."""

    guard_allow: Annotated[str, AfterValidator(_check_allow)]
    guard_deny: Annotated[str, AfterValidator(_check_deny)]


class SubmitSettings(Settings):
    """What a function that submits needs. Counts, seconds and bytes.

    The guard's lists are read when the first job with a webhook comes; the functions that fetch check them at their
    start.
    """

    guard_allow: str
    guard_deny: str
    jobs_total: Positive
    jobs_per_caller: Positive
    targets_per_job: Positive
    retained_jobs: Positive
    ttl_seconds: int = Field(ge=0)
    deadline_seconds: Positive
    max_job_bytes: Positive
    caller_classes: Classes
    gateway_url: GatewayUrl
    inference_paths: str

    @field_validator("inference_paths")
    @classmethod
    def _are_paths(cls, value: str) -> str:
        from sift.model_requests import read_paths

        read_paths(value)
        return value


class ApiSettings(CallerSettings, SubmitSettings):
    """functions/api."""


class ScheduleSettings(SubmitSettings):
    """functions/schedule; without `event_key_id` no event is taken."""

    event_key_id: str


class SenderSettings(GuardSettings):
    """What a function that asks other servers for something needs."""

    user_agent: str = Field(min_length=1, max_length=500, pattern=r"^[!-~]([ -~]*[!-~])?$")  # it is sent as a header


class NotifySettings(SenderSettings):
    """functions/notify."""

    notify_dead_letter_queue_url: Text


class ContentSettings(SenderSettings):
    """What a function with the pipeline needs: whatever may be fetched, all of them fetch alike."""

    archive_api: ArchiveUrl
    archive_replay: ArchiveUrl
    question_model: str
    gateway_url: GatewayUrl
    gateway_secret: str
    robots: bool
    host_rate: float = Field(ge=0)
    host_concurrency: Positive
    caller_classes: Classes

    @field_validator("host_concurrency")
    @classmethod
    def _leaves_time(cls, value: int, info: ValidationInfo) -> int:
        from sift.pacing import PaceLimits  # here: the other functions pace nothing

        if rate := info.data.get("host_rate"):
            PaceLimits(rate, value).check()
        return value


class FetchSettings(ContentSettings):
    """functions/fetch."""

    fetch_dead_letter_queue_url: Text
    lease_seconds: Positive


class FetchNowSettings(ContentSettings, CallerSettings):
    """functions/fetch_now."""


class AssembleSettings(Settings):
    """functions/assemble."""


class InferenceSettings(Settings):
    """functions/inference."""

    inference_dead_letter_queue_url: Text
    lease_seconds: Positive
    gateway_url: GatewayUrl
    gateway_secret: str


class SweepSettings(Settings):
    """functions/sweep."""

    visibility_seconds: Positive


Model = TypeVar("Model", bound=Settings)


def load(model: type[Model], environment: Mapping[str, str]) -> Model:
    """The settings of one function. Raises SettingsError, which names the first variable that is missing or wrong."""
    names = {name: name.upper() for name in model.model_fields}
    try:
        return model.model_validate({name: environment[upper] for name, upper in names.items() if upper in environment})
    except ValidationError as error:
        first = error.errors()[0]
        variable = names[str(first["loc"][0])]
        raise SettingsError(
            "bad_settings", f"{variable}: {first['msg']}", f"Set {variable} in template.yaml."
        ) from None
