"""Connections that end within a pipeline are thrown away, and leave room for others."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Iterator
from functools import partial

import psycopg
import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from app.db.engine import open_engine, open_sessions
from app.db.together import together
from app.db.unit_of_work import UnitOfWork

SECONDS = 8.0
SLEEPS = [(text("SELECT pg_sleep(0.002), pg_backend_pid()"), {})] * 4


@pytest.fixture
def no_collection() -> Iterator[None]:
    """A server looks for cyclic garbage seldom: what only that would give back is lost."""
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("no_collection")
def test_what_breaks_in_the_middle_is_not_missing_in_the_pool(database_url: str) -> None:
    engine = open_engine(database_url, pool_size=1, tested=False)
    open_work = partial(UnitOfWork, open_sessions(engine))
    pids, ended, broken = [0], threading.Event(), 0

    def kill() -> None:
        with psycopg.connect(database_url, autocommit=True) as killer:
            while not ended.wait(0.013):
                killer.execute("SELECT pg_terminate_backend(%s)", pids)

    killing = threading.Thread(target=kill)
    killing.start()
    end = time.monotonic() + SECONDS
    try:
        while time.monotonic() < end:
            try:
                with open_work() as work:
                    pids[0] = together(work.session, SLEEPS)[0][0][1]
                    work.commit()
            except PoolTimeout:
                raise
            except DBAPIError:
                broken += 1
            assert engine.pool.checkedout() == 0, engine.pool.status()  # type: ignore[attr-defined]
    finally:
        ended.set()
        killing.join()
        engine.dispose()
    assert broken > 20
