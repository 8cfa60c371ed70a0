"""Settings: what is missing or wrong is named as the variable that it is."""

from __future__ import annotations

import pytest

from sift import settings
from sift.classes import read_classes

ALL = {
    "TABLE_NAME": "jobs",
    "BUCKET_NAME": "content",
    "FETCH_QUEUE_URL": "https://sqs.example/fetch",
    "ASSEMBLE_QUEUE_URL": "https://sqs.example/assemble",
    "INFERENCE_QUEUE_URL": "https://sqs.example/inference",
    "NOTIFY_QUEUE_URL": "https://sqs.example/notify",
    "NOTIFY_DEAD_LETTER_QUEUE_URL": "https://sqs.example/given-up",
    "EVENT_KEY_ID": "00000000000a",
    "EVENT_BUS_NAME": "bus",
    "JOBS_TOTAL": "8",
    "JOBS_PER_CALLER": "1",
    "TARGETS_PER_JOB": "32",
    "RETAINED_JOBS": "1000",
    "TTL_SECONDS": "0",
    "DEADLINE_SECONDS": "86400",
    "MAX_JOB_BYTES": "67108864",
    "CALLER_CLASSES": '{"batch": {"targets_per_job": 9000}}',
    "JWT_ISSUER": "https://login.example",
    "JWT_AUDIENCE": "sift",
    "JWT_JWKS_URL": "https://login.example/keys",
    "JWT_CLAIMS": "tenant=org",
    "FETCH_DEAD_LETTER_QUEUE_URL": "https://sqs.example/dead",
    "LEASE_SECONDS": "100",
    "GUARD_ALLOW": "10.1.0.0/16, [fd00::5]:8081",
    "GUARD_DENY": "example.com, bücher.example, 192.0.2.0/24, 2001:db8::1",
    "USER_AGENT": "sift/0.1",
    "QUESTION_MODEL": "",
    "GATEWAY_URL": "",
    "GATEWAY_SECRET": "",
    "ARCHIVE_API": "https://archive.example/available",
    "ARCHIVE_REPLAY": "https://replay.example/web",
    "VISIBILITY_SECONDS": "540",
    "ROBOTS": "False",
    "HOST_RATE": "2.0",
    "HOST_CONCURRENCY": "4",
    "INFERENCE_PATHS": "/v1/*,/api/chat",
    "INFERENCE_DEAD_LETTER_QUEUE_URL": "https://sqs.example/inference-dead",
}
MODELS: list[type[settings.Settings]] = [
    settings.ApiSettings, settings.FetchSettings, settings.InferenceSettings, settings.SweepSettings,
    settings.ScheduleSettings, settings.NotifySettings,
]  # fmt: skip
VARIABLES = [(model, name.upper()) for model in MODELS for name in model.model_fields]


@pytest.mark.parametrize("model", MODELS)
def test_each_model_reads_its_own(model: type[settings.Settings]) -> None:
    found = settings.load(model, {**ALL, "PATH": "/bin", "AWS_REGION": "eu-west-1"})
    assert found.table_name == "jobs"
    for name in model.model_fields:
        assert str(getattr(found, name)) == ALL[name.upper()]


@pytest.mark.parametrize(("model", "variable"), VARIABLES)
def test_a_missing_variable_is_named(model: type[settings.Settings], variable: str) -> None:
    with pytest.raises(settings.SettingsError, match=variable) as caught:
        settings.load(model, {name: value for name, value in ALL.items() if name != variable})
    assert caught.value.code == "bad_settings"
    assert variable in caught.value.hint


@pytest.mark.parametrize(("model", "variable"), [pair for pair in VARIABLES if ALL[pair[1]].isdecimal()])
@pytest.mark.parametrize("wrong", ["", "many", "-1", "1.5"])
def test_a_wrong_number_is_named(model: type[settings.Settings], variable: str, wrong: str) -> None:
    with pytest.raises(settings.SettingsError, match=variable):
        settings.load(model, {**ALL, variable: wrong})


@pytest.mark.parametrize("variable", ["JOBS_TOTAL", "JOBS_PER_CALLER", "TARGETS_PER_JOB", "DEADLINE_SECONDS"])
def test_a_cap_of_none_is_no_cap(variable: str) -> None:
    with pytest.raises(settings.SettingsError, match=variable):
        settings.load(settings.ApiSettings, {**ALL, variable: "0"})


@pytest.mark.parametrize(
    ("variable", "wrong"),
    [
        ("JWT_AUDIENCE", ""), ("JWT_JWKS_URL", ""), ("JWT_JWKS_URL", "http://login.example/keys"),
        ("JWT_JWKS_URL", "https://"), ("JWT_JWKS_URL", "https://[/"), ("JWT_JWKS_URL", "file:///keys"),
        ("JWT_JWKS_URL", "https://me@login.example/keys"), ("JWT_CLAIMS", "tenant"), ("JWT_CLAIMS", "owner=x"),
        ("JWT_CLAIMS", "tenant="),
    ],
)  # fmt: skip
def test_a_provider_that_can_not_be_asked_is_named(variable: str, wrong: str) -> None:
    with pytest.raises(settings.SettingsError, match=variable):
        settings.load(settings.ApiSettings, {**ALL, variable: wrong})


@pytest.mark.parametrize(
    ("wrong", "word"),
    [
        ("{", "not JSON"), ("[" * 2_000, "not JSON"), ("[]", "not an object"), ('{"batch": 7}', "batch: not an object"),
        ('{"default": {}}', "made by the other parameters"), ('{"a b": {}}', "needs a name"),
        ('{"batch": {"speed": 9}}', "batch: no limit is called speed"),
        ('{"batch": {"window": 33}}', "batch: window is a number from 1 to 32"),
        ('{"batch": {"window": 0}}', "batch: window"), ('{"batch": {"window": true}}', "batch: window"),
        ('{"batch": {"window": 1.5}}', "batch: window"), ('{"batch": {"window": "9"}}', "batch: window"),
        ('{"batch": {"window": null}}', "batch: window"), ('{"batch": {"ttl_seconds": 0}}', "batch: ttl_seconds"),
        ('{"small": {"window": 1}, "batch": {"job_bytes": 1}}', "batch: job_bytes"),
    ],
)  # fmt: skip
def test_classes_that_can_not_be_are_named(wrong: str, word: str) -> None:
    with pytest.raises(settings.SettingsError, match="CALLER_CLASSES") as caught:
        settings.load(settings.ApiSettings, {**ALL, "CALLER_CLASSES": wrong})
    assert word in caught.value.detail


def test_classes() -> None:
    assert read_classes("") == read_classes(" \n") == read_classes("{}") == {}
    assert read_classes('{"batch": {"window": 4, "ttl_seconds": 60}, "small": {}}') == {
        "batch": {"window": 4, "ttl_seconds": 60}, "small": {},
    }  # fmt: skip


def test_without_an_issuer_there_is_no_provider() -> None:
    none = {"JWT_ISSUER": "", "JWT_AUDIENCE": "", "JWT_JWKS_URL": "", "JWT_CLAIMS": ""}
    assert settings.load(settings.ApiSettings, ALL | none).jwt_issuer == ""


@pytest.mark.parametrize(
    ("wrong", "word"),
    [
        ("tenant=' acme'", "tenant is not a name"), ("tenant=''", "tenant is not a name"),
        ("actor='a/b'", "actor is not a name"), ("class=''", "class is not a name"),
        ("scopes=''", "scopes are not scopes"), ("scopes='fetch root'", "scopes are not scopes"),
        ("scopes='admin:a/b'", "scopes are not scopes"), ("tenant='acme", "tenant has a single quote"),
        ("tenant='a,actor=b'", "tenant has a single quote"), ("tenant=x'acme'", "tenant has a single quote"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("model", [settings.ApiSettings, settings.FetchNowSettings])
def test_a_constant_that_would_turn_every_token_away_is_named(
    model: type[settings.Settings], wrong: str, word: str
) -> None:
    with pytest.raises(settings.SettingsError, match="JWT_CLAIMS") as caught:
        settings.load(model, {**ALL, "JWT_CLAIMS": wrong})
    assert caught.value.code == "bad_settings"
    assert word in caught.value.detail


def test_constants_that_can_be() -> None:
    text = "tenant='acme',actor=email,class='batch',scopes='fetch sift:fetch admin:acme',subject='',application='a b'"
    assert settings.load(settings.ApiSettings, {**ALL, "JWT_CLAIMS": text}).jwt_claims == text


def test_a_provider_on_this_machine_may_do_without_tls() -> None:
    for url in ("http://127.0.0.1:9/keys", "http://localhost/keys", "http://[::1]:9/keys"):
        assert settings.load(settings.ApiSettings, {**ALL, "JWT_JWKS_URL": url}).jwt_jwks_url == url


@pytest.mark.parametrize("variable", ["ARCHIVE_API", "ARCHIVE_REPLAY"])
def test_an_archive_is_an_address_or_none(variable: str) -> None:
    for wrong in ("archive.example", "ftp://archive.example/", "https://archive.example/a b", "https://"):
        with pytest.raises(settings.SettingsError, match=variable):
            settings.load(settings.FetchSettings, {**ALL, variable: wrong})
    assert settings.load(settings.FetchSettings, {**ALL, "ARCHIVE_API": "", "ARCHIVE_REPLAY": ""}).archive_api == ""


@pytest.mark.parametrize(
    "wrong", ["gateway.example", "ftp://gateway.example/v1", "https://me:pw@gateway.example/v1", "https://a.example/v1?k=1",
              "https://a.example/v1#x", "https://a.example/ v1", "https://a.example\\v1", "https://"],
)  # fmt: skip
@pytest.mark.parametrize("model", [settings.ApiSettings, settings.FetchSettings, settings.InferenceSettings])
def test_a_gateway_is_an_address_or_none(model: type[settings.Settings], wrong: str) -> None:
    with pytest.raises(settings.SettingsError, match="GATEWAY_URL"):
        settings.load(model, {**ALL, "GATEWAY_URL": wrong})
    for url in ("", "https://gateway.example/llm/v1", "http://10.0.0.7:11434/v1/"):
        assert settings.load(model, {**ALL, "GATEWAY_URL": url}).model_dump()["gateway_url"] == url


@pytest.mark.parametrize("wrong", ["", "v1/*", "/v1/../*", "/v1/*, admin"])
def test_paths_that_can_not_be_are_named(wrong: str) -> None:
    with pytest.raises(settings.SettingsError, match="INFERENCE_PATHS"):
        settings.load(settings.ApiSettings, {**ALL, "INFERENCE_PATHS": wrong})


def test_the_error_tells_no_value() -> None:
    """A value may be a secret; the name is enough."""
    with pytest.raises(settings.SettingsError) as caught:
        settings.load(settings.ApiSettings, {**ALL, "JOBS_TOTAL": "s3cret"})
    assert "s3cret" not in f"{caught.value.detail} {caught.value.hint}"
    assert caught.value.__cause__ is None


@pytest.mark.parametrize(
    ("variable", "wrong", "reason"),
    [
        ("GUARD_ALLOW", "10.0.0.0/8, intranet", "allow list: 'intranet'"),
        ("GUARD_DENY", "example.com, 10.0.0.1/8", "deny list: '10.0.0.1/8'"),
        ("GUARD_DENY", "*.example.com", "deny list: '*.example.com'"),
        ("USER_AGENT", "sift\r\nX-Other: 1", "pattern"),
        ("USER_AGENT", " sift", "pattern"),
        ("USER_AGENT", "s\u0131ft", "pattern"),
    ],
)
def test_what_the_worker_can_not_use_stops_it_at_its_start(variable: str, wrong: str, reason: str) -> None:
    with pytest.raises(settings.SettingsError) as caught:
        settings.load(settings.FetchSettings, {**ALL, variable: wrong})
    assert caught.value.code == "bad_settings"
    assert caught.value.detail.startswith(f"{variable}: ")
    assert reason in caught.value.detail
