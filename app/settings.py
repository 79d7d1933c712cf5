"""What the environment decides: one frozen class per concern, read once at the start.

Every variable is named ``ORTHORANK_…``; a bad value stops the start with a message that names it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from app.domain.estimands import BUILT_IN
from app.stats.errors import InvalidInput
from app.stats.gars import CustomEstimand, custom


class SettingsError(Exception):
    """One or more variables hold a value that the service cannot use."""


def _scheme(*allowed: str) -> Callable[[str], str]:
    def check(url: str) -> str:
        if url.partition("://")[0] not in allowed or "://" not in url:
            raise ValueError(f"expected a URL that starts with {' or '.join(f'{name}://' for name in allowed)}")
        return url

    return check


def default_data() -> Path:
    """Where state lives unless told otherwise: /var/lib as root, the user's data folder else."""
    if os.geteuid() == 0:
        return Path("/var/lib/orthorank")
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "orthorank"


def custom_estimands(text: str) -> tuple[CustomEstimand, ...]:
    """The functions of a list `package.module:function,…` as estimands called by the functions' names.

    Raises
    ------
    ValueError
        for what cannot be imported, is no score of items, or has a name that is taken.
    """
    places = [place.strip() for place in text.split(",") if place.strip()]
    found = tuple(_custom_estimand(place) for place in places)
    names = [*BUILT_IN, *(each.name for each in found)]
    taken = sorted({name for name in names if names.count(name) > 1})
    if taken:
        raise ValueError(f"two estimands are called {taken[0]!r}")
    return found


def _custom_estimand(place: str) -> CustomEstimand:
    module, _, name = place.partition(":")
    if not module or not name.isidentifier():
        raise ValueError(f"{place!r} is not written as package.module:function")
    try:
        function = getattr(import_module(module), name)
    except Exception as error:
        # Whatever the module does as it is imported, the start ends with a message.
        raise ValueError(f"{place} cannot be imported: {error}") from error
    if not callable(function):
        raise ValueError(f"{place} is no function")
    try:
        return custom(name, function)
    except InvalidInput as error:
        raise ValueError(str(error)) from error


def _checked_estimands(text: str) -> str:
    custom_estimands(text)
    return text


EstimandNames = Annotated[str, AfterValidator(_checked_estimands)]
PostgresUrl = Annotated[str, AfterValidator(_scheme("postgresql", "postgres"))]
RedisUrl = Annotated[str, AfterValidator(_scheme("redis", "rediss", "unix"))]
LogLevel = Literal["debug", "info", "warning", "error"]


class DatabaseSettings(BaseSettings):
    """PostgreSQL. Without a URL the commands look for the embedded server of `orthorank up`."""

    model_config = SettingsConfigDict(env_prefix="ORTHORANK_DATABASE_", frozen=True, env_ignore_empty=True)

    url: PostgresUrl | None = Field(default=None, repr=False, description="libpq URL; unset: the embedded server")
    pool_size: int = Field(default=10, ge=1, le=1000, description="connections that one process keeps")


class RedisSettings(BaseSettings):
    """Redis or Valkey. Without a URL the commands look for the embedded server of `orthorank up`."""

    model_config = SettingsConfigDict(env_prefix="ORTHORANK_REDIS_", frozen=True, env_ignore_empty=True)

    url: RedisUrl | None = Field(default=None, repr=False, description="redis:// URL; unset: the embedded server")


class ServerSettings(BaseSettings):
    """The HTTP server and its log."""

    model_config = SettingsConfigDict(env_prefix="ORTHORANK_", frozen=True, env_ignore_empty=True)

    host: str = Field(default="127.0.0.1", min_length=1, description="address to listen on")
    port: int = Field(default=8000, ge=1, le=65535, description="TCP port to listen on")
    request_seconds: float = Field(
        default=30.0,
        gt=0,
        le=3600,
        description="seconds until a request is there, one more for each 64 KiB of its body, else 408",
    )
    log_level: LogLevel = Field(default="info", description="debug, info, warning or error")


class StorageSettings(BaseSettings):
    """The folder of the embedded servers and of the logs."""

    model_config = SettingsConfigDict(env_prefix="ORTHORANK_", frozen=True, env_ignore_empty=True)

    data: Path = Field(default_factory=default_data, description="state folder of `orthorank up`")


class EstimandSettings(BaseSettings):
    """Estimands that this installation adds to the built-in ones."""

    model_config = SettingsConfigDict(env_prefix="ORTHORANK_", frozen=True, env_ignore_empty=True)

    estimands: EstimandNames = Field(default="", description="estimands of your own: `package.module:function`, …")

    @property
    def registered(self) -> tuple[CustomEstimand, ...]:
        """What is named, in that order, tried and with a Jacobian."""
        return custom_estimands(self.estimands)


class LimitSettings(BaseSettings):
    """What one key may ask for."""

    model_config = SettingsConfigDict(env_prefix="ORTHORANK_", frozen=True, env_ignore_empty=True)

    rate_limit: int = Field(
        default=60_000,
        ge=0,
        description=(
            "requests a minute of one key, or of one address without a key, a whole minute's at once after silence; "
            "pages count for the address; 0: no limit"
        ),
    )


class VoteSettings(BaseSettings):
    """Votes that wait for their commit."""

    model_config = SettingsConfigDict(env_prefix="ORTHORANK_VOTES_", frozen=True, env_ignore_empty=True)

    waiting: int = Field(
        default=5000,
        ge=1,
        le=1_000_000,
        description="votes that may wait behind the group being written (512 at most), else 503",
    )
    waiting_bytes: int = Field(default=64 * 1024**2, ge=1, description="bytes of the requests of both, else 503")
    patience: float = Field(default=10.0, gt=0, le=300, description="seconds that a vote waits, else 503")


class WorkerSettings(BaseSettings):
    """The background worker."""

    model_config = SettingsConfigDict(env_prefix="ORTHORANK_WORKER_", frozen=True, env_ignore_empty=True)

    threads: int = Field(default=2, ge=1, le=64, description="tasks that one worker runs at a time")
    processes: int = Field(default=2, ge=1, le=256, description="processes with which a worker shares in a refit")
    sweep_seconds: float = Field(default=5.0, gt=0, le=3600, description="seconds between two looks for lagging boards")


@dataclass(frozen=True, slots=True)
class Settings:
    """All concerns together."""

    database: DatabaseSettings
    redis: RedisSettings
    server: ServerSettings
    storage: StorageSettings
    limits: LimitSettings
    votes: VoteSettings
    worker: WorkerSettings
    estimands: EstimandSettings


CONCERNS: dict[str, type[BaseSettings]] = {
    "database": DatabaseSettings,
    "redis": RedisSettings,
    "server": ServerSettings,
    "storage": StorageSettings,
    "limits": LimitSettings,
    "votes": VoteSettings,
    "worker": WorkerSettings,
    "estimands": EstimandSettings,
}


def load_settings() -> Settings:
    """Read the environment.

    Raises
    ------
    SettingsError
        naming each variable that holds a value out of range, and what was expected.
    """
    read: dict[str, Any] = {}
    problems: list[str] = []
    for name, concern in CONCERNS.items():
        try:
            read[name] = concern()
        except ValidationError as error:
            problems.extend(_complaints(concern, error))
    if problems:
        raise SettingsError("\n".join(problems))
    return Settings(**read)


def variables() -> Iterator[tuple[str, str, str]]:
    """Yield (variable, default, description) of every setting, in the order of the classes."""
    for concern in CONCERNS.values():
        for name, field in concern.model_fields.items():
            default = field.get_default(call_default_factory=True, validated_data={})
            yield _variable(concern, name), "" if default is None else str(default), field.description or ""


def _variable(concern: type[BaseSettings], field: str) -> str:
    return f"{concern.model_config.get('env_prefix', '')}{field}".upper()


def _complaints(concern: type[BaseSettings], error: ValidationError) -> Iterator[str]:
    for detail in error.errors(include_url=False):
        variable = _variable(concern, str(detail["loc"][0]))
        value = "" if variable.endswith("_URL") else f"={detail['input']!r}"
        yield f"{variable}{value}: {detail['msg']}"
