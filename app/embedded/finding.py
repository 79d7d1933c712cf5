"""Finding the servers of a running `orthorank up` by its state folder."""

from __future__ import annotations

from dataclasses import replace

from app.embedded.errors import BadFolder
from app.embedded.postgres import PostgresServer
from app.embedded.state import State, locate_state
from app.embedded.valkey import ValkeyServer
from app.settings import Settings


def with_embedded(settings: Settings) -> Settings:
    """Fill in the URLs that are not set from the servers that run in the state folder; those not found stay unset.

    Raises
    ------
    BadFolder
        when the state folder is closed to this user.
    """
    if settings.database.url is not None and settings.redis.url is not None:
        return settings
    state = locate_state(settings.storage.data)
    try:
        return with_urls(settings, database=_postgres_url(state), redis=_valkey_url(state))
    except PermissionError as error:
        raise BadFolder(
            f"{error.filename} is closed to you: run this as the user who started `orthorank up`, "
            "or set ORTHORANK_DATABASE_URL and ORTHORANK_REDIS_URL"
        ) from error


def with_urls(settings: Settings, *, database: str | None, redis: str | None) -> Settings:
    """Fill in the URLs that are not set."""
    return replace(
        settings,
        database=settings.database.model_copy(update={"url": settings.database.url or database}),
        redis=settings.redis.model_copy(update={"url": settings.redis.url or redis}),
    )


def _postgres_url(state: State) -> str | None:
    server = PostgresServer(state)
    return server.url if server.alive() else None


def _valkey_url(state: State) -> str | None:
    server = ValkeyServer(state)
    return server.url if server.alive() else None
