"""What commands that work on the database share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import typer

from app.cli.options import database_url
from app.db.engine import open_engine, open_sessions
from app.db.unit_of_work import UnitOfWork
from app.domain.errors import DomainError
from app.services.estimands import register
from app.settings import Settings


@contextmanager
def units_of_work(settings: Settings) -> Iterator[partial[UnitOfWork]]:
    """Open units of work on the database of connected settings, and let its connections go at the end."""
    register(settings.estimands.registered)
    engine = open_engine(database_url(settings))
    try:
        yield partial(UnitOfWork, open_sessions(engine))
    finally:
        engine.dispose()


@contextmanager
def refusals_told() -> Iterator[None]:
    """Turn a refusal into one line and exit status 1."""
    try:
        yield
    except DomainError as error:
        typer.echo(f"orthorank: {error}", err=True)
        raise typer.Exit(1) from None
