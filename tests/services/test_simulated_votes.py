"""Simulated voters and the demonstration, on real PostgreSQL."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from threading import Event

import pytest
from sqlalchemy import Engine, text

from app.db.engine import open_engine, open_sessions
from app.db.unit_of_work import UnitOfWork
from app.domain.boards import Board, BoardDraft
from app.domain.features import Feature
from app.domain.items import ItemDraft
from app.services import demo, keys
from app.services.simulate import FEATURES, Simulation, active_items, prepare
from tests.faults.parts import await_truth

Open = Callable[[], UnitOfWork]
THREE = {name: ItemDraft() for name in ("ada", "bell", "curie")}


@pytest.fixture
def engine(make_migrated_database: Callable[[], str]) -> Iterator[Engine]:
    engine = open_engine(make_migrated_database())
    yield engine
    engine.dispose()


@pytest.fixture
def open_work(engine: Engine) -> Open:
    sessions = open_sessions(engine)
    return lambda: UnitOfWork(sessions)


def board_of(open_work: Open, **config: object) -> Board:
    return prepare(open_work, BoardDraft(slug="sim", features=FEATURES, **config), THREE)  # type: ignore[arg-type]


def cast(open_work: Open, board: Board, *, most: int, seed: int = 5) -> Counter[str]:
    simulation = Simulation(open_work, board, sorted(THREE), seed=seed)
    return sum(simulation.run(most=most, rate=None, stop=Event()), Counter())


def single(engine: Engine, query: str) -> object:
    with engine.connect() as connection:
        return connection.execute(text(query)).scalar_one()


def test_battles_are_cast_as_asked_with_their_propensities(open_work: Open, engine: Engine) -> None:
    assert cast(open_work, board_of(open_work), most=730) == {"created": 730}
    assert single(engine, "SELECT count(*) FROM votes WHERE propensity > 0 AND context_id IS NOT NULL") == 730
    assert single(engine, "SELECT count(DISTINCT outcome) FROM votes") == 4
    # A battle is one draw out of six ordered pairs: 1 / pi adds up to six times the votes.
    assert single(engine, "SELECT abs(avg(1 / propensity) - 6) < 0.6 FROM votes")


def test_equal_seeds_repeat_and_other_seeds_add(open_work: Open) -> None:
    board = board_of(open_work)
    cast(open_work, board, most=100)
    assert cast(open_work, board, most=100) == {"duplicate": 100}
    assert cast(open_work, board, most=100, seed=6) == {"created": 100}


def test_on_context_boards_offers_without_votes_are_there_too(open_work: Open, engine: Engine) -> None:
    board = board_of(open_work, unit="context", outcomes="ternary")
    fates = cast(open_work, board, most=400)
    assert fates == {"created": fates.total()}
    assert single(engine, "SELECT bool_and(offered) FROM contexts")
    assert single(
        engine, "SELECT count(*) FROM contexts c WHERE NOT EXISTS (SELECT FROM votes WHERE context_id = c.id)"
    )


def test_features_that_a_board_does_not_declare_are_not_sent(open_work: Open, engine: Engine) -> None:
    draft = BoardDraft(slug="bare", features=(Feature("language", "categorical"),))
    board = prepare(open_work, draft, THREE)
    assert cast(open_work, board, most=20) == {"created": 20}
    assert single(engine, "SELECT count(*) FROM contexts WHERE features ? 'language' AND NOT features ? 'length'") == 20


def test_votes_come_at_the_rate_until_stopped(open_work: Open) -> None:
    board, stop, fates = board_of(open_work), Event(), Counter[str]()
    simulation = Simulation(open_work, board, sorted(THREE), seed=1)

    def vote() -> None:
        for batch in simulation.run(most=None, rate=40, stop=stop):
            fates.update(batch)

    began, thread = time.monotonic(), threading.Thread(target=vote)
    thread.start()
    await_truth(lambda: fates["created"] >= 40, seconds=30)
    stop.set()
    thread.join(5)
    assert not thread.is_alive()
    assert fates["created"] <= 40 * (time.monotonic() - began) + 1


def test_retired_items_are_not_drawn(open_work: Open) -> None:
    board = prepare(open_work, BoardDraft(slug="sim"), THREE | {"old": ItemDraft(active=False)})
    assert active_items(open_work, board) == ["ada", "bell", "curie"]


def test_the_demonstration_is_there_once_with_one_live_key(open_work: Open, engine: Engine) -> None:
    first, second = demo.seed(open_work), demo.seed(open_work)
    assert single(engine, "SELECT count(*) FROM votes") == demo.VOTES
    assert single(engine, "SELECT public FROM boards WHERE slug = 'demo'") is True
    with open_work() as work:
        assert [view.key.name for view in keys.listed(work)] == [demo.KEY_NAME]
        assert keys.authenticate(work, second).has("admin")
    with open_work() as work, pytest.raises(Exception, match="not known"):
        keys.authenticate(work, first)
