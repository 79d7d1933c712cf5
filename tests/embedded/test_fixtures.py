"""The servers that every other test stands on."""

from __future__ import annotations

from collections.abc import Callable

import psycopg
from redis import Redis


def test_postgres_url_is_an_empty_database(postgres_url: str) -> None:
    with psycopg.connect(postgres_url) as connection:
        found = connection.execute("SELECT count(*) FROM information_schema.tables WHERE table_schema = 'public'")
        assert found.fetchone() == (0,)


def test_a_copy_of_a_template_holds_its_rows(make_database: Callable[..., str]) -> None:
    template = make_database()
    with psycopg.connect(template) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 7 AS number")
        name = connection.info.dbname
    with psycopg.connect(make_database(template=name)) as connection:
        assert connection.execute("SELECT number FROM kept").fetchone() == (7,)


def test_a_migrated_database_has_the_tables_and_no_row(make_migrated_database: Callable[[], str]) -> None:
    first, second = make_migrated_database(), make_migrated_database()
    with psycopg.connect(first) as connection:
        connection.execute("INSERT INTO boards (slug, title, public, config) VALUES ('a', 'A', false, '{}')")
    with psycopg.connect(second) as connection:
        assert connection.execute("SELECT count(*) FROM boards").fetchone() == (0,)


def test_redis_url_answers(redis_url: str) -> None:
    with Redis.from_url(redis_url) as client:
        client.set("key", "value")
        assert client.get("key") == b"value"
