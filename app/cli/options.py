"""What several commands share: the state folder, and the settings with the servers that run in it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from app.embedded.finding import with_embedded
from app.settings import Settings, load_settings

Data = Annotated[
    Path | None,
    typer.Option(
        "--data",
        metavar="DIR",
        help="State folder of `orthorank up`. Default: ORTHORANK_DATA, else /var/lib/orthorank as root, "
        "~/.local/share/orthorank as another user.",
        show_default=False,
    ),
]


class NotConnected(Exception):
    """No server is configured, and none runs in the state folder."""


class OtherSchema(Exception):
    """The database has a schema that this version cannot work with."""


def settings_in(data: Path | None) -> Settings:
    """Read the settings, with `--data` before the environment."""
    settings = load_settings()
    if data is None:
        return settings
    return replace(settings, storage=settings.storage.model_copy(update={"data": data}))


def connected(data: Path | None, *, redis: bool = True) -> Settings:
    """Read the settings with the URLs of the database and, unless told otherwise, of Redis.

    Raises
    ------
    NotConnected
        when a URL is neither set nor that of a server which runs in the state folder.
    """
    settings = with_embedded(settings_in(data))
    needed = {"ORTHORANK_DATABASE_URL": settings.database.url, "ORTHORANK_REDIS_URL": settings.redis.url}
    if not redis:
        del needed["ORTHORANK_REDIS_URL"]
    missing = [variable for variable, url in needed.items() if url is None]
    if missing:
        raise NotConnected(
            f"nothing runs in {settings.storage.data}: start `orthorank up` "
            f"(with the same --data or ORTHORANK_DATA), or set {' and '.join(missing)}"
        )
    return settings


def database_url(settings: Settings) -> str:
    """Return the URL of the database of connected settings."""
    assert settings.database.url is not None
    return settings.database.url


def redis_url(settings: Settings) -> str:
    """Return the URL of Redis of connected settings."""
    assert settings.redis.url is not None
    return settings.redis.url
