"""Settings: what is missing or wrong is named as the variable that it is."""

from __future__ import annotations

import pytest

from sift import settings

ALL = {
    "TABLE_NAME": "jobs",
    "BUCKET_NAME": "content",
    "FETCH_QUEUE_URL": "https://sqs.example/fetch",
    "EVENT_BUS_NAME": "bus",
    "JOBS_TOTAL": "8",
    "JOBS_PER_CALLER": "1",
    "TARGETS_PER_JOB": "32",
    "RETAINED_JOBS": "1000",
    "TTL_SECONDS": "0",
    "DEADLINE_SECONDS": "86400",
    "MAX_JOB_BYTES": "67108864",
    "FETCH_DEAD_LETTER_QUEUE_URL": "https://sqs.example/dead",
    "LEASE_SECONDS": "100",
    "GUARD_ALLOW": "10.1.0.0/16, [fd00::5]:8081",
    "GUARD_DENY": "example.com, bücher.example, 192.0.2.0/24, 2001:db8::1",
    "USER_AGENT": "sift/0.1",
    "QUESTION_MODEL": "",
    "GATEWAY_URL": "",
    "GATEWAY_SECRET": "",
    "VISIBILITY_SECONDS": "540",
}
MODELS: list[type[settings.Settings]] = [settings.ApiSettings, settings.FetchSettings, settings.SweepSettings]
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


@pytest.mark.parametrize(("model", "variable"), [pair for pair in VARIABLES if ALL[pair[1]].isdigit()])
@pytest.mark.parametrize("wrong", ["", "many", "-1", "1.5"])
def test_a_wrong_number_is_named(model: type[settings.Settings], variable: str, wrong: str) -> None:
    with pytest.raises(settings.SettingsError, match=variable):
        settings.load(model, {**ALL, variable: wrong})


@pytest.mark.parametrize("variable", ["JOBS_TOTAL", "JOBS_PER_CALLER", "TARGETS_PER_JOB", "DEADLINE_SECONDS"])
def test_a_cap_of_none_is_no_cap(variable: str) -> None:
    with pytest.raises(settings.SettingsError, match=variable):
        settings.load(settings.ApiSettings, {**ALL, variable: "0"})


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
