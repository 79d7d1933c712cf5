"""Real servers for the tests: one PostgreSQL per run, one Valkey per test process, started when first asked for."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path

import psycopg
import pytest
from fastapi.testclient import TestClient
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict
from sqlalchemy import Engine
from sqlalchemy.orm import Session
from threadpoolctl import threadpool_limits

from app.db.engine import open_engine, open_sessions
from app.db.migrations import upgrade
from app.db.unit_of_work import UnitOfWork
from app.domain.keys import KeyDraft
from app.embedded.postgres import PostgresServer
from app.embedded.sharing import in_use
from app.embedded.state import State, open_state
from app.embedded.valkey import ValkeyServer
from app.main import create_app
from app.services import keys
from app.settings import DatabaseSettings, RedisSettings, Settings, load_settings

# As in the API and in the worker: the last bits of results hang on it.
threadpool_limits(1)

# Nobody waits for the disk: a test's database is thrown away with its server.
FLEETING = {"fsync": "off", "full_page_writes": "off", "synchronous_commit": "off", "max_connections": "100"}


def _state(name: str) -> State:
    # Not pytest's own folder: as root that one is closed to the account of the servers.
    return open_state(Path("/tmp") / f"orthorank-test-{name}")


@pytest.fixture(scope="session")
def postgres_server(testrun_uid: str) -> Iterator[PostgresServer]:
    """The PostgreSQL server that all test processes of this run share."""
    server = PostgresServer(_state(testrun_uid[:8]), settings=FLEETING)
    with in_use(server):
        yield server
    if not server.alive():
        shutil.rmtree(server.state.root, ignore_errors=True)


@pytest.fixture(scope="session")
def make_database(postgres_server: PostgresServer, worker_id: str) -> Callable[..., str]:
    """Make a database of its own, empty or a copy of `template`, and return its URL.

    A copy is quick (some 30 ms), but nobody may be connected to the template.
    """
    numbers = count()

    def make(*, template: str = "template0") -> str:
        name = f"test_{worker_id}_{next(numbers)}"
        with psycopg.connect(postgres_server.url, autocommit=True) as connection:
            statement = sql.SQL("CREATE DATABASE {} TEMPLATE {}")
            connection.execute(statement.format(sql.Identifier(name), sql.Identifier(template)))
        return postgres_server.url_of(name)

    return make


@pytest.fixture(scope="session")
def postgres_url(make_database: Callable[..., str]) -> str:
    """The URL of an empty database of this test process."""
    return make_database()


@pytest.fixture(scope="session")
def make_migrated_database(make_database: Callable[..., str]) -> Callable[[], str]:
    """Make a database of its own that has every table and no row, and return its URL.

    The migrations run once per test process; each database is a copy.
    """
    template = make_database()
    upgrade(template)
    name = str(conninfo_to_dict(template)["dbname"])
    return lambda: make_database(template=name)


@pytest.fixture(scope="module")
def database_url(make_migrated_database: Callable[[], str]) -> str:
    """The URL of a migrated database of the test module."""
    return make_migrated_database()


@pytest.fixture(scope="session")
def redis_url(testrun_uid: str, worker_id: str) -> Iterator[str]:
    """The URL of a Valkey server of this test process."""
    server = ValkeyServer(_state(f"{testrun_uid[:8]}-{worker_id}"))
    with in_use(server) as url:
        yield url
    shutil.rmtree(server.state.root, ignore_errors=True)


@pytest.fixture(scope="module")
def database(database_url: str) -> Iterator[Engine]:
    """An engine on the migrated database of the test module."""
    engine = open_engine(database_url)
    yield engine
    engine.dispose()


@pytest.fixture
def session(database: Engine) -> Iterator[Session]:
    """A session whose commits are savepoints: what a test writes is gone after it."""
    with database.connect() as connection, connection.begin() as transaction:
        with Session(connection, join_transaction_mode="create_savepoint", expire_on_commit=False) as session:
            yield session
        transaction.rollback()


@pytest.fixture(scope="module")
def settings(database_url: str, redis_url: str) -> Settings:
    """Settings of the test module's own database and of the test process's Redis."""
    return replace(
        load_settings(),
        database=DatabaseSettings(url=database_url, pool_size=10),
        redis=RedisSettings(url=redis_url),
    )


class RecordingQueue:
    """Remembers which boards a worker was woken for, instead of waking one."""

    def __init__(self) -> None:
        self.refits: list[int] = []

    def refit(self, board_id: int) -> None:
        """Remember the board."""
        self.refits.append(board_id)

    def live(self, board_id: int) -> None:
        """Remember nothing: tests update rankings themselves."""


@pytest.fixture(scope="module")
def queue() -> RecordingQueue:
    """What the API sends to workers."""
    return RecordingQueue()


@pytest.fixture(scope="module")
def client(settings: Settings, queue: RecordingQueue) -> Iterator[TestClient]:
    """The API on the test module's database; what a request commits stays until the module ends."""
    with TestClient(create_app(settings, queue=queue), raise_server_exceptions=False) as client:
        yield client


@pytest.fixture(scope="module")
def admin(database: Engine) -> dict[str, str]:
    """The header of a key that may do everything."""
    with UnitOfWork(open_sessions(database)) as work:
        _, secret = keys.create(work, KeyDraft(scopes=["admin"]))
    return {"Authorization": f"Bearer {secret}"}
