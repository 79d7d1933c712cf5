"""The fast path stores what the long way would, says the same of it, and leaves the rest to the long way."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from typing import Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy import Engine, create_engine, make_url, text
from sqlalchemy.exc import OperationalError

from app.db.engine import DRIVER, open_engine, open_sessions
from app.db.keys import USE_RESOLUTION
from app.db.locks import Lock, hold
from app.db.unit_of_work import UnitOfWork
from app.domain.boards import Board
from app.domain.contexts import ContextDraft
from app.domain.items import ItemDraft
from app.domain.keys import KeyDraft
from app.embedded.postgres import PostgresServer
from app.services import boards, contexts, items, keys
from app.services.ballot_box.casts import Cast, Failed, Fate, Stored
from app.services.ballot_box.fast_path import FastPath
from app.services.ballot_box.writer import GroupWriter
from tests.conftest import RecordingQueue
from tests.services.casting import Open, Write, answered, cast, codes, make_board, writer

FEATURES = [{"name": "language", "kind": "categorical"}, {"name": "length", "kind": "numeric"}]
ROWS = text("""
SELECT external_id, one.name, other.name, outcome, voter, voter_type, propensity, revision, digest, offer_id
FROM votes LEFT JOIN contexts ON contexts.id = context_id
JOIN items AS one ON one.id = left_id JOIN items AS other ON other.id = right_id
WHERE votes.board_id = :board
""")
KILL_KEPT = text("""
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE datname = current_database() AND query LIKE '%store_pairs%' AND pid <> pg_backend_pid()
""")
PREPARED = text("SELECT statement FROM pg_prepared_statements")
CONTEXTS = text("SELECT external_id, features::text, offered FROM contexts WHERE board_id = :board")


class Watched:
    """The fast path, which counts the groups that it stored, and their votes."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.groups = self.votes = 0
        store = FastPath.store

        def counted(path: FastPath, casts: Sequence[Cast]) -> dict[Cast, Fate]:
            fates = store(path, casts)
            self.groups += len(fates) > 0
            self.votes += len(fates)
            return fates

        monkeypatch.setattr(FastPath, "store", counted)


@pytest.fixture
def fast(monkeypatch: pytest.MonkeyPatch) -> Watched:
    return Watched(monkeypatch)


def held(database: Engine, board: Board) -> tuple[list[Any], list[Any]]:
    """Votes and contexts of a board, without numbers."""
    with database.connect() as connection:
        votes = connection.execute(ROWS, {"board": board.id}).all()
        known = connection.execute(CONTEXTS, {"board": board.id}).all()
    return sorted(map(repr, votes)), sorted(map(repr, known))


def groups(seed: int) -> list[list[dict[str, Any]]]:
    """Votes that repeat ids, slots and contexts, say other features, name aliases and strangers."""
    rng = random.Random(seed)

    def vote() -> dict[str, Any]:
        names = ["alpha", "beta", "first"] + ["nobody"] * (rng.random() < 0.05)
        fields: dict[str, Any] = {"left": rng.choice(names), "right": rng.choice(["beta", "alpha"])}
        fields["outcome"] = rng.choice(["left", "right", "tie"] + ["none"] * (rng.random() < 0.05))
        if rng.random() < 0.2:
            fields["id"] = str(UUID(int=rng.randrange(12)))
        if rng.random() < 0.8:
            context: dict[str, Any] = {"id": f"c-{rng.randrange(40)}"}
            if rng.random() < 0.3:
                context["features"] = rng.choice([{}, {"length": 1}, {"length": 1.0, "language": "en"}])
            fields["context"] = context
        if rng.random() < 0.7:
            fields["voter"] = f"v-{rng.randrange(8)}"
        if rng.random() < 0.3:
            fields["created_at"] = "2026-03-01T12:00:00+01:00"
        return fields

    return [[vote() for _ in range(rng.choice([1, 1, 2, 3]))] for _ in range(120)]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("fields", [{}, {"unit": "context"}, {"votes": {"revotes": True}}])
def test_both_ways_say_and_store_the_same(
    fast: Watched, open_work: Open, redis_url: str, database: Engine, secret: str, seed: int, fields: dict[str, Any]
) -> None:
    quick, slow = (make_board(open_work, features=FEATURES, **fields) for _ in range(2))
    for board in (quick, slow):
        with open_work() as work:
            items.put(work, board, "alpha", ItemDraft(aliases=["first"]))
    said, expected = [], []
    with closing(writer(open_work, redis_url, per_minute=0)) as remembering:
        for group in groups(seed):
            said.append(codes(remembering([cast(quick, secret, **vote) for vote in group])))
    stored = fast.groups
    for group in groups(seed):
        with closing(writer(open_work, redis_url, per_minute=0)) as forgetful:
            expected.append(codes(forgetful([cast(slow, secret, **vote) for vote in group])))
    assert said == expected
    assert held(database, quick) == held(database, slow)
    assert stored > 20
    assert fast.groups == stored


def rename(open_work: Open, board: Board, _: str) -> None:
    """Between items that were there, which leaves the board as it was."""
    with open_work() as work:
        items.put(work, board, "alpha", ItemDraft(aliases=[]))
    with open_work() as work:
        items.put(work, board, "gamma", ItemDraft(aliases=["first"]))


def retitle(open_work: Open, board: Board, _: str) -> None:
    with open_work() as work:
        boards.change(work, board.slug, {"title": "another"}, queue=RecordingQueue())


def revoke(open_work: Open, _: Board, secret: str) -> None:
    with open_work() as work:
        caller = keys.authenticate(work, secret)
        keys.revoke(work, caller.key_id)


def delete(open_work: Open, board: Board, _: str) -> None:
    with open_work() as work:
        boards.delete(work, board)


@pytest.mark.parametrize(
    ("change", "code"),
    [(rename, "new"), (retitle, "new"), (revoke, "unknown-key"), (delete, "unknown-board")],
)
def test_what_changed_since_it_was_remembered_is_looked_up(
    fast: Watched,
    write: Write,
    open_work: Open,
    database: Engine,
    secret: str,
    change: Callable[[Open, Board, str], None],
    code: str,
) -> None:
    board = make_board(open_work)
    for name, aliases in (("alpha", ["first"]), ("gamma", [])):
        with open_work() as work:
            items.put(work, board, name, ItemDraft(aliases=aliases))
    assert codes(write([cast(board, secret, left="first")])) == ["new"]
    assert codes(write([cast(board, secret, left="first")])) == ["new"]
    assert fast.groups == 1
    change(open_work, board, secret)
    assert codes(write([cast(board, secret, left="first")])) == [code]
    assert fast.groups == 1
    assert len(held(database, board)[0]) == 2 + (code == "new")
    if change is rename:
        assert any("'gamma'" in row for row in held(database, board)[0])


def test_the_use_of_a_key_is_noted_now_and_then(
    fast: Watched, write: Write, open_work: Open, database: Engine, secret: str
) -> None:
    board = make_board(open_work)
    for _ in range(2):
        write([cast(board, secret)])
    with database.begin() as connection:
        connection.execute(text("UPDATE keys SET last_used_at = now() - :ago"), {"ago": 2 * USE_RESOLUTION})
    for _ in range(2):
        assert codes(write([cast(board, secret)])) == ["new"]
    with database.connect() as connection:
        noted = connection.execute(text("SELECT max(last_used_at) > now() - :ago FROM keys"), {"ago": USE_RESOLUTION})
        assert noted.scalar_one()
    assert fast.groups == 2, "one before, one after"


def test_several_boards_and_keys_are_stored_together(
    fast: Watched, write: Write, open_work: Open, database: Engine, secret: str
) -> None:
    one, other = make_board(open_work), make_board(open_work)
    with open_work() as work:
        bound = keys.create(work, KeyDraft(scopes=["votes"], board=one.slug))[1]

    def group() -> list[Cast]:
        return [cast(one, secret), cast(other, secret), cast(one, bound, context={"id": "new"}, voter="v")]

    assert codes(write(group())) == ["new"] * 3
    assert codes(write([*group()[:2], cast(one, bound)])) == ["new"] * 3
    assert fast.groups == 1
    assert codes(write([cast(other, bound)])) == ["other-board"]
    assert (len(held(database, one)[0]), len(held(database, other)[0])) == (4, 2)


def test_boards_that_are_remembered_do_not_wait_for_those_that_are_not(
    fast: Watched, write: Write, open_work: Open, database: Engine, secret: str
) -> None:
    known, new = make_board(open_work), make_board(open_work)
    write([cast(known, secret)])
    key = str(uuid4())
    with open_work() as work:
        items.put(work, new, "gamma", ItemDraft())
    group = [
        cast(new, secret),
        cast(known, secret),
        cast(new, secret, right="nobody"),
        cast(known, secret, id=key),
        cast("nowhere", secret),
    ]
    assert codes(write(group)) == ["new", "new", "unknown-item", "new", "unknown-board"]
    assert (fast.groups, fast.votes) == (1, 2)
    taken = [cast(new, secret), cast(known, secret, id=key), cast(known, secret)]
    assert codes(write(taken)) == ["new", "known", "new"]
    assert fast.votes == 2
    assert codes(write([cast(known, secret), cast(new, secret, right="nobody")])) == ["new", "unknown-item"]
    assert fast.votes == 3
    assert codes(write([cast(new, secret, right="gamma")])) == ["new"]
    assert fast.votes == 4, "all names on a board are remembered with it"
    assert (len(held(database, known)[0]), len(held(database, new)[0])) == (5, 3)


def test_votes_that_are_stored_are_answered_where_the_next_ones_fail(
    fast: Watched, write: Write, open_work: Open, database: Engine, secret: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    known, new = make_board(open_work), make_board(open_work)
    write([cast(known, secret)])

    def broken(*_: Any) -> dict[Cast, Fate]:
        raise ValueError("broken")

    monkeypatch.setattr(GroupWriter, "_store", broken)
    told = answered(partial(GroupWriter.__call__, write), [cast(board, secret) for board in (known, new, known)])
    assert ["broken" if isinstance(fate, Failed) else codes([fate])[0] for fate in told] == ["new", "broken", "new"]
    assert (fast.votes, len(held(database, known)[0]), len(held(database, new)[0])) == (2, 3, 0)


def test_votes_are_told_of_whichever_way_they_went(
    fast: Watched, open_work: Open, database: Engine, redis_url: str, secret: str
) -> None:
    board, heard = make_board(open_work), list[int]()
    telling = partial(UnitOfWork, open_sessions(database), announce=heard.append)
    with closing(writer(telling, redis_url, per_minute=0)) as write:
        for told in (1, 2, 3):
            assert codes(write([cast(board, secret)])) == ["new"]
            assert heard == [board.id] * told
        assert codes(write([cast(board, secret, right="nobody")])) == ["unknown-item"]
    assert (fast.groups, len(heard)) == (2, 3)


def test_a_context_of_the_pool_is_offered_by_its_first_vote(
    fast: Watched, write: Write, open_work: Open, database: Engine, secret: str
) -> None:
    board = make_board(open_work)
    with open_work() as work:
        contexts.register(work, board, [ContextDraft(id="c")])
    write([cast(board, secret)])
    assert codes(write([cast(board, secret, context={"id": "c"})])) == ["new"]
    assert held(database, board)[1] == ["('c', '{}', True)"]
    assert fast.groups == 0


def test_more_than_a_seconds_worth_is_counted_by_the_limiter(
    fast: Watched, open_work: Open, redis_url: str, secret: str
) -> None:
    with closing(writer(open_work, redis_url, per_minute=120)) as write:
        board = make_board(open_work)
        write([cast(board, secret)])
        for expected in (1, 2, 2):
            assert codes(write([cast(board, secret)])) == ["new"]
            assert fast.groups == expected
        last = codes(write([replace(cast(board, secret)) for _ in range(125)]))
        assert last.count("rate-limit") >= 5


def test_a_new_context_is_what_any_of_its_first_votes_says(
    fast: Watched, write: Write, open_work: Open, database: Engine, secret: str
) -> None:
    board = make_board(open_work, features=FEATURES)
    write([cast(board, secret)])
    silent, said = {"id": "c"}, {"id": "c", "features": {"length": 2}}
    assert codes(write([cast(board, secret, context=each) for each in (silent, said)])) == ["new"] * 2
    assert fast.groups == 1
    two = [{"id": "d", "features": {"length": length}} for length in (1, 2)]
    assert codes(write([cast(board, secret, context=each) for each in two])) == ["new", "context-differs"]
    assert fast.groups == 1
    assert held(database, board)[1] == ["""('c', '{"length": 2.0}', True)""", """('d', '{"length": 1.0}', True)"""]


def test_a_connection_that_is_gone_is_replaced(
    fast: Watched, write: Write, open_work: Open, database: Engine, secret: str
) -> None:
    board = make_board(open_work)
    write([cast(board, secret)])
    assert codes(write([cast(board, secret)])) == ["new"]
    with database.connect() as connection:
        assert connection.execute(KILL_KEPT).scalars().all() == [True]
    lost = cast(board, secret)
    with pytest.raises(OperationalError):
        write([lost])
    assert lost.counted, "the next try costs its sender nothing"
    assert codes(write([lost])) == ["new"], "the box tries again"
    assert fast.groups == 2
    assert len(held(database, board)[0]) == 3


def test_a_connection_is_kept_where_a_board_is_held(
    fast: Watched, database_url: str, open_work: Open, redis_url: str, secret: str
) -> None:
    engine, board = open_engine(database_url, lock_timeout=0.01), make_board(open_work)
    with closing(writer(partial(UnitOfWork, open_sessions(engine)), redis_url, per_minute=0)) as write:
        write([cast(board, secret)])
        assert codes(write([cast(board, secret)])) == ["new"]
        with open_work() as other:
            hold(other.session, Lock.VOTES, board.id)
            for _ in range(5):
                with pytest.raises(OperationalError, match="lock timeout"):
                    write([cast(board, secret)])
        assert codes(write([cast(board, secret)])) == ["new"]
    assert fast.groups == 2
    with engine.connect() as one, engine.connect() as other:
        kept = [text for each in (one, other) for text in each.execute(PREPARED).scalars()]
    assert sum("store_pairs" in statement for statement in kept) == 1
    engine.dispose()


@pytest.mark.parametrize("setting", ["client_encoding = 'LATIN1'", "DateStyle = 'SQL, DMY'", "array_nulls = off"])
def test_settings_of_a_database_change_no_vote(
    fast: Watched, make_migrated_database: Callable[[], str], redis_url: str, setting: str
) -> None:
    url = make_migrated_database()
    plainly = create_engine(make_url(url).set(drivername=DRIVER))
    with plainly.begin() as connection:
        name = connection.execute(text("SELECT current_database()")).scalar_one()
        connection.execute(text(f'ALTER DATABASE "{name}" SET {setting}'))
    plainly.dispose()
    engine = open_engine(url)
    open_work = partial(UnitOfWork, open_sessions(engine))
    with open_work() as work:
        secret = keys.create(work, KeyDraft(scopes=["votes"]))[1]
    board = make_board(open_work)
    with closing(writer(open_work, redis_url, per_minute=0)) as write:
        said = [write([cast(board, secret, voter=f"é-{turn}")])[0] for turn in range(3)]
    with open_work() as work:
        found = [vote for _, vote in work.votes.page(board.id, after=0, limit=9)]
    assert [fate.vote for fate in said if isinstance(fate, Stored)] == found
    assert [vote.voter for vote in found] == ["é-0", "é-1", "é-2"]
    assert fast.groups == 2
    engine.dispose()


def test_votes_go_the_long_way_where_the_function_is_not_there(
    fast: Watched, write: Write, open_work: Open, database: Engine, secret: str, caplog: pytest.LogCaptureFixture
) -> None:
    board = make_board(open_work)
    write([cast(board, secret)])
    assert codes(write([cast(board, secret)])) == ["new"]
    for old, new in (("store_pairs", "away"), ("away", "store_pairs")):
        with database.begin() as connection:
            connection.execute(text(f"ALTER FUNCTION {old} RENAME TO {new}"))
        assert codes(write([cast(board, secret) for _ in range(2)])) == ["new"] * 2
    assert "votes are not stored by the function for them" in caplog.text
    assert fast.groups == 2
    assert len(held(database, board)[0]) == 6


def test_what_is_refused_undoes_nothing_else_and_is_not_logged(
    fast: Watched, write: Write, open_work: Open, secret: str, postgres_server: PostgresServer
) -> None:
    board = make_board(open_work)
    write([cast(board, secret)])
    twice = [cast(board, secret, context={"id": "c"}, voter="v") for _ in range(2)]
    assert codes(write(twice)) == ["new", "second-vote"]
    assert fast.groups == 0
    assert codes(write([cast(board, secret)])) == ["new"]
    assert fast.groups == 1
    assert "votes could be stored" not in (postgres_server.state.logs / "postgres.log").read_text()
