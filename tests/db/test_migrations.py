"""The schema: migrations match the models, on filled databases too."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from alembic.util import CommandError
from sqlalchemy import Engine, inspect, text
from sqlalchemy.exc import OperationalError, ProgrammingError

from app.db import migrations
from app.db.engine import open_engine
from app.db.schema import Base

FILL = """
INSERT INTO boards (slug, title, public, config) VALUES ('b', 'B', true, '{}');
INSERT INTO items (board_id, name, title, cost, label_cost)
SELECT id, n, n, 0, 0.5 FROM boards, unnest('{x,y}'::text[]) n;
INSERT INTO item_names SELECT board_id, name, id FROM items;
INSERT INTO item_spans (item_id, active_from) SELECT id, now() FROM items;
INSERT INTO contexts (board_id, external_id, features, offered) SELECT id, 'c', '{}', true FROM boards;
INSERT INTO votes (board_id, client_id, digest, context_id, left_id, right_id, outcome, voter_type, kind, created_at)
SELECT boards.id, gen_random_uuid(), '', contexts.id, min(items.id), max(items.id), 0, 'human', 'pair', now()
FROM boards, contexts, items GROUP BY boards.id, contexts.id;
INSERT INTO exclusions (board_id, vote_id, reason) SELECT board_id, id, 'bot' FROM votes;
INSERT INTO keys (name, prefix, hash, scopes) VALUES ('k', 'or_x', '\\x00', '{admin}');
"""


@pytest.fixture
def url(make_database: Callable[[], str]) -> str:
    return make_database()


@pytest.fixture
def engine(url: str) -> Iterator[Engine]:
    engine = open_engine(url)
    yield engine
    engine.dispose()


def tables(engine: Engine) -> set[str]:
    return set(inspect(engine).get_table_names())


def test_the_migrations_make_what_the_models_say(url: str, engine: Engine) -> None:
    migrations.upgrade(url)
    migrations.check(url)
    assert tables(engine) == {*Base.metadata.tables, "alembic_version"}
    with engine.begin() as connection:
        connection.execute(text("ALTER TABLE votes ADD COLUMN more text"))
    with pytest.raises(CommandError):
        migrations.check(url)


def test_a_filled_database_goes_down_and_up(url: str, engine: Engine) -> None:
    migrations.upgrade(url)
    with engine.begin() as connection:
        connection.execute(text(FILL))
        assert connection.execute(text("SELECT count(*) FROM votes")).scalar_one() == 1
    migrations.upgrade(url)
    migrations.downgrade(url, "base")
    assert tables(engine) == {"alembic_version"}
    with engine.connect() as connection:
        assert connection.execute(text("SELECT count(*) FROM pg_proc WHERE proname = 'refuse_change'")).scalar() == 0
    migrations.upgrade(url)
    migrations.check(url)


def test_current_is_exactly_the_newest(url: str, engine: Engine) -> None:
    with engine.connect() as connection:
        assert not migrations.schema_of(connection).current
    migrations.upgrade(url)
    with engine.connect() as connection:
        assert migrations.schema_of(connection).current


@pytest.mark.parametrize("statement", ["UPDATE votes SET voter = 'x'", "DELETE FROM votes", "TRUNCATE votes CASCADE"])
def test_votes_are_append_only(url: str, engine: Engine, statement: str) -> None:
    migrations.upgrade(url)
    with engine.begin() as connection:
        connection.execute(text(FILL))
    with pytest.raises(ProgrammingError, match="append-only"), engine.begin() as connection:
        connection.execute(text(statement))


def test_a_migration_gives_up_rather_than_wait(url: str, engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    migrations.upgrade(url)
    monkeypatch.setattr(migrations, "LOCK_TIMEOUT", "100ms")
    with engine.begin() as busy:
        busy.execute(text("LOCK TABLE votes IN ACCESS SHARE MODE"))
        with pytest.raises(OperationalError, match="lock timeout"):
            migrations.downgrade(url, "base")
    assert "votes" in tables(engine)


def test_names_follow_the_convention() -> None:
    for table in Base.metadata.tables.values():
        for constraint in table.constraints:
            assert constraint.name, (table.name, constraint)
        for index in table.indexes:
            assert index.name, (table.name, index)
