"""Fixtures of the tests of services."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from functools import partial

import pytest
from sqlalchemy import Engine

from app.db.engine import open_sessions
from app.db.unit_of_work import UnitOfWork
from app.domain.keys import KeyDraft
from app.services import keys
from tests.services.casting import Open, Write, writer


@pytest.fixture
def open_work(database: Engine) -> Open:
    return partial(UnitOfWork, open_sessions(database))


@pytest.fixture
def write(open_work: Open, redis_url: str) -> Iterator[Write]:
    with closing(writer(open_work, redis_url, per_minute=1_000_000)) as write:
        yield write


@pytest.fixture
def secret(open_work: Open) -> str:
    with open_work() as work:
        return keys.create(work, KeyDraft(scopes=["votes"]))[1]
