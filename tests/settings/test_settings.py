"""Settings come from the environment, and a bad one is named."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from app import settings


@pytest.fixture(autouse=True)
def _bare(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, _, _ in settings.variables():
        monkeypatch.delenv(name, raising=False)


def test_defaults_need_no_variable() -> None:
    loaded = settings.load_settings()
    assert loaded.server.port == 8000
    assert loaded.database.url is None
    assert loaded.storage.data == settings.default_data()


def test_variables_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ORTHORANK_PORT", "9000")
    monkeypatch.setenv("ORTHORANK_DATABASE_URL", "postgresql:///orthorank")
    monkeypatch.setenv("ORTHORANK_DATA", "/srv/orthorank")
    monkeypatch.setenv("ORTHORANK_WORKER_THREADS", "3")
    loaded = settings.load_settings()
    assert (loaded.server.port, loaded.worker.threads) == (9000, 3)
    assert loaded.database.url == "postgresql:///orthorank"
    assert loaded.storage.data == Path("/srv/orthorank")


def test_an_empty_variable_counts_as_unset(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ORTHORANK_REDIS_URL", "")
    monkeypatch.setenv("ORTHORANK_PORT", "")
    loaded = settings.load_settings()
    assert (loaded.redis.url, loaded.server.port) == (None, 8000)


def test_every_bad_variable_is_named_and_urls_stay_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ORTHORANK_PORT", "70000")
    monkeypatch.setenv("ORTHORANK_LOG_LEVEL", "loud")
    monkeypatch.setenv("ORTHORANK_DATABASE_URL", "mysql://me:hunter2@db/x")
    with pytest.raises(settings.SettingsError) as caught:
        settings.load_settings()
    message = str(caught.value)
    assert "ORTHORANK_PORT='70000'" in message
    assert "ORTHORANK_LOG_LEVEL='loud'" in message
    assert "ORTHORANK_DATABASE_URL: Value error, expected a URL that starts with postgresql://" in message
    assert "hunter2" not in message


def test_settings_are_frozen() -> None:
    with pytest.raises(ValidationError):
        settings.load_settings().server.port = 1
    assert "hunter2" not in repr(settings.DatabaseSettings(url="postgresql://me:hunter2@db/x"))


def test_an_ordinary_user_gets_the_data_folder_of_the_session(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    monkeypatch.setenv("XDG_DATA_HOME", "/home/ada/data")
    assert settings.default_data() == Path("/home/ada/data/orthorank")
    monkeypatch.delenv("XDG_DATA_HOME")
    monkeypatch.setenv("HOME", "/home/ada")
    assert settings.default_data() == Path("/home/ada/.local/share/orthorank")
    monkeypatch.setattr("os.geteuid", lambda: 0)
    assert settings.default_data() == Path("/var/lib/orthorank")


@pytest.mark.parametrize(
    ("value", "complaint"),
    [
        ("tests.own_estimands", "not written as package.module:function"),
        ("tests.nowhere:spread", "tests.nowhere:spread cannot be imported: No module named 'tests.nowhere'"),
        ("tests.own_estimands:missing", "cannot be imported"),
        ("tests.own_estimands:NOT_A_FUNCTION", "is no function"),
        ("tests.own_estimands:of_no_shape", "expected 2 real scores"),
        ("tests.own_estimands:spread,tests.own_estimands:spread", "two estimands are called 'spread'"),
    ],
)
def test_an_estimand_that_is_none_stops_the_start(monkeypatch: pytest.MonkeyPatch, value: str, complaint: str) -> None:
    monkeypatch.setenv("ORTHORANK_ESTIMANDS", value)
    with pytest.raises(settings.SettingsError, match="ORTHORANK_ESTIMANDS") as caught:
        settings.load_settings()
    assert complaint in str(caught.value)


def test_estimands_are_named_after_their_functions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ORTHORANK_ESTIMANDS", "tests.own_estimands:spread, tests.own_estimands:beaten")
    assert [each.name for each in settings.load_settings().estimands.registered] == ["spread", "beaten"]
