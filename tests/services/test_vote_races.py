"""Many writers at once: every vote is stored exactly once, and everybody is told the truth."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from datetime import UTC, datetime
from functools import partial
from itertools import count
from typing import Any
from uuid import UUID, uuid4

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from sqlalchemy import Engine, text
from sqlalchemy.exc import OperationalError

from app.db.engine import open_engine, open_sessions
from app.db.locks import Lock, hold
from app.db.unit_of_work import ATTEMPTS, Collision, UnitOfWork
from app.domain.ballots import Ballot, ContextRef
from app.domain.boards import Board, BoardDraft, Voting
from app.domain.contexts import ContextDraft
from app.domain.errors import Conflict, Invalid, Unavailable
from app.domain.features import Feature
from app.domain.fields import EARLIEST
from app.domain.judgements import JudgementDraft
from app.domain.votes import Result
from app.services import boards, contexts, items, judgements, votes
from tests.conftest import RecordingQueue

WRITERS = 6
NUMBERS = count()
Open = Callable[[], UnitOfWork]


@pytest.fixture
def open_work(database: Engine) -> Open:
    sessions = open_sessions(database)
    return lambda: UnitOfWork(sessions)


def make_board(open_work: Open, **fields: Any) -> Board:
    with open_work() as work:
        return boards.create(work, BoardDraft(slug=f"race-{next(NUMBERS)}", open_items=True, **fields))


def ballot(context: int, voter: str | None = "v", *, key: UUID | None = None, outcome: str = "left") -> Ballot:
    sides = ("x", "y") if context % 2 else ("y", "z")
    return Ballot(
        id=key,
        context=ContextRef(id=f"c{context}"),
        left=sides[0],
        right=sides[1],
        outcome=outcome,
        voter=voter,
    )


def together(open_work: Open, board: Board, batches: list[list[Ballot]]) -> list[list[Result]]:
    """Send each batch from a thread of its own, all at the same moment."""
    start = threading.Barrier(len(batches))

    def send(batch: list[Ballot]) -> list[Result]:
        start.wait()
        with open_work() as work:
            return votes.record(work, board, batch, now=datetime.now(UTC))

    with ThreadPoolExecutor(len(batches)) as pool:
        return list(pool.map(send, batches))


def stored(database: Engine, board: Board, what: str = "count(*)") -> Any:
    with database.connect() as connection:
        return connection.execute(
            text(f"SELECT {what} FROM votes WHERE board_id = :board"), {"board": board.id}
        ).scalar_one()


def test_overlapping_batches_in_any_order_store_each_vote_once(open_work: Open, database: Engine) -> None:
    board = make_board(open_work)
    ballots = [ballot(number, key=uuid4()) for number in range(300)]
    shuffled = [random.Random(seed).sample(ballots, 250) for seed in range(WRITERS)]
    results = together(open_work, board, shuffled)
    sent = {each.id for batch in shuffled for each in batch}
    fates = Counter(result.status for batch in results for result in batch)
    assert fates == {"created": len(sent), "duplicate": WRITERS * 250 - len(sent)}
    assert stored(database, board) == len(sent)
    for batch, answers in zip(shuffled, results, strict=True):
        assert [answer.vote for answer in answers] == [each.id for each in batch]


@hypothesis_settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    batches=st.lists(
        st.lists(
            st.tuples(st.integers(0, 3), st.sampled_from(["v", "w", None]), st.integers(0, 5), st.booleans()),
            min_size=1,
            max_size=8,
        ),
        min_size=2,
        max_size=3,
    )
)
def test_any_batches_together_leave_a_consistent_board(open_work: Open, database: Engine, batches: list[Any]) -> None:
    board = make_board(open_work)
    keys = [uuid4() for _ in range(6)]
    sent = [
        [
            ballot(context, voter, key=keys[key], outcome="left" if left else "right")
            for context, voter, key, left in batch
        ]
        for batch in batches
    ]
    results = together(open_work, board, sent)
    created = [answer.vote for batch in results for answer in batch if answer.status == "created"]
    assert len(created) == len(set(created)) == stored(database, board)
    named = "FILTER (WHERE voter IS NOT NULL)"
    slots = f"count(*) {named} = count(DISTINCT (context_id, left_id, right_id, voter)) {named}"
    assert stored(database, board, slots)
    with database.connect() as connection:
        known = set(
            connection.execute(text("SELECT client_id FROM votes WHERE board_id = :b"), {"b": board.id}).scalars()
        )
    for batch in results:
        assert all((answer.vote in known) == (answer.status != "rejected") for answer in batch)


def test_one_vote_of_a_slot_wins(open_work: Open, database: Engine) -> None:
    board = make_board(open_work)
    results = together(open_work, board, [[ballot(number) for number in range(100)] for _ in range(WRITERS)])
    for answers in zip(*results, strict=True):
        assert Counter(answer.status for answer in answers) == {"created": 1, "rejected": WRITERS - 1}
    assert stored(database, board) == 100


def test_revotes_leave_one_vote_that_counts(open_work: Open, database: Engine) -> None:
    board = make_board(open_work, votes=Voting(revotes=True))
    results = together(open_work, board, [[ballot(1, outcome=o) for o in ("left", "right")] for _ in range(WRITERS)])
    assert {answer.status for batch in results for answer in batch} == {"created"}
    assert stored(database, board, "array_agg(revision ORDER BY revision)") == list(range(2 * WRITERS))
    uncounted = """
        SELECT array_agg(revision ORDER BY revision) FROM exclusions JOIN votes ON votes.id = vote_id
        WHERE votes.board_id = :b
    """
    with database.connect() as connection:
        assert connection.execute(text(uncounted), {"b": board.id}).scalar_one() == list(range(2 * WRITERS - 1))


def test_new_items_and_contexts_are_made_once(open_work: Open, database: Engine) -> None:
    board = make_board(open_work)
    together(open_work, board, [[ballot(number, f"v{writer}") for number in range(50)] for writer in range(WRITERS)])
    with database.connect() as connection:
        for table, expected in (("items", 3), ("item_names", 3), ("contexts", 50), ("votes", 50 * WRITERS)):
            query = text(f"SELECT count(*) FROM {table} WHERE board_id = :board")
            assert connection.execute(query, {"board": board.id}).scalar_one() == expected


def test_the_daily_limit_holds_among_writers(open_work: Open, database: Engine) -> None:
    board = make_board(open_work, votes=Voting(per_voter_per_day=25))
    results = together(open_work, board, [[ballot(10 * w + n) for n in range(10)] for w in range(WRITERS)])
    assert Counter(answer.status for batch in results for answer in batch) == {"created": 25, "rejected": 35}
    assert stored(database, board) == 25


def test_a_watermark_waits_for_every_vote_below_it(open_work: Open, database: Engine) -> None:
    board = make_board(open_work)
    with open_work() as first:
        first.votes.lock(board.id, counted=False)
        with open_work() as reader, ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(hold, reader.session, Lock.VOTES, board.id)
            assert not wait([waiting], timeout=0.3).done, "a vote is on its way in"
            votes.record(first, board, [ballot(1)], now=datetime.now(UTC))
            waiting.result(timeout=5)
            assert stored(database, board) == 1


def test_a_change_of_outcomes_waits_for_votes_on_their_way(open_work: Open) -> None:
    board = make_board(open_work)
    with open_work() as voting, open_work() as changing, ThreadPoolExecutor(1) as pool:
        voting.votes.lock(board.id, counted=False)
        change = pool.submit(boards.change, changing, board.slug, {"outcomes": "binary"}, queue=RecordingQueue())
        assert not wait([change], timeout=0.3).done
        votes.record(voting, board, [ballot(1)], now=datetime.now(UTC))
        with pytest.raises(Conflict, match="outcomes"):
            change.result(timeout=5)


def test_a_vote_is_read_by_the_outcomes_in_force(open_work: Open, database: Engine) -> None:
    board = make_board(open_work)
    swapped = [{"name": "right", "first": 0, "second": 1}, {"name": "left", "first": 1, "second": 0}]
    with open_work() as work:
        assert boards.find(work, board.slug).config.categories[0].name == "left"
        with open_work() as other:
            boards.change(other, board.slug, {"outcomes": swapped}, queue=RecordingQueue())
        results = votes.record(work, board, [ballot(1), ballot(2, outcome="tie")], now=datetime.now(UTC))
    assert [result.status for result in results] == ["created", "rejected"]
    assert stored(database, board, "max(outcome)") == 1


def changed_meanwhile(open_work: Open, board: Board, patch: dict[str, Any], write: Callable[[UnitOfWork], Any]) -> Any:
    """What a writer says who knows the board as it was, and waits for a change that is on its way."""
    with open_work() as changing, open_work() as writing, ThreadPoolExecutor(1) as pool:
        changing.boards.lock(board)
        written = pool.submit(write, writing)
        assert not wait([written], timeout=0.3).done
        boards.change(changing, board.slug, patch, queue=RecordingQueue())
        return written.result(timeout=5)


@pytest.mark.parametrize("there", [False, True])
def test_the_first_vote_waits_for_a_change_of_outcomes(open_work: Open, database: Engine, there: bool) -> None:
    board = make_board(open_work)
    vote = ballot(1, outcome="left" if there else "tie")
    results = changed_meanwhile(
        open_work, board, {"outcomes": "binary"}, lambda work: votes.record(work, board, [vote], now=datetime.now(UTC))
    )
    assert [result.status for result in results] == ["created" if there else "rejected"]
    assert stored(database, board) == int(there)


def test_changes_are_seen_whatever_the_isolation_of_a_database(make_migrated_database: Callable[[], str]) -> None:
    url = make_migrated_database()
    plainly = open_engine(url, autocommit=True)
    with plainly.connect() as connection:
        name = connection.execute(text("SELECT current_database()")).scalar_one()
        isolated = f"ALTER DATABASE \"{name}\" SET default_transaction_isolation = 'repeatable read'"
        connection.execute(text(isolated))
    plainly.dispose()
    engine = open_engine(url)
    work = partial(UnitOfWork, open_sessions(engine))
    board, vote = make_board(work), ballot(1, outcome="tie")
    results = changed_meanwhile(
        work, board, {"outcomes": "binary"}, lambda work: votes.record(work, board, [vote], now=datetime.now(UTC))
    )
    assert [result.status for result in results] == ["rejected"]
    engine.dispose()


def test_contexts_are_read_by_the_features_in_force(open_work: Open) -> None:
    board = make_board(open_work, features=(Feature(name="lang", kind="categorical"),))
    draft = ContextDraft(id="c", features={"lang": "de"})
    with pytest.raises(Invalid, match="lang"):
        changed_meanwhile(open_work, board, {"features": []}, lambda work: contexts.register(work, board, [draft]))


def test_judgements_are_read_by_the_outcomes_in_force(open_work: Open) -> None:
    board = make_board(open_work)
    with open_work() as work:
        contexts.register(work, board, [ContextDraft(id="c")])
    with open_work() as work:
        items.ensure(work, board, {"x", "y"}, active_from=EARLIEST)
    draft = JudgementDraft(judge="j", context="c", left="x", right="y", probabilities={"tie": 1.0})
    judged = changed_meanwhile(
        open_work, board, {"outcomes": "binary"}, lambda work: judgements.record(work, board, [draft])
    )
    assert [each.status for each in judged] == ["rejected"]


def test_a_change_of_outcomes_waits_for_judgements_on_their_way(open_work: Open) -> None:
    board = make_board(open_work)
    with open_work() as work:
        contexts.register(work, board, [ContextDraft(id="c")])
    with open_work() as work:
        items.ensure(work, board, {"x", "y"}, active_from=EARLIEST)
    draft = JudgementDraft(judge="j", context="c", left="x", right="y", probabilities={"tie": 1.0})
    with open_work() as judging, open_work() as changing, ThreadPoolExecutor(1) as pool:
        judging.votes.lock(board.id, counted=False)
        change = pool.submit(boards.change, changing, board.slug, {"outcomes": "binary"}, queue=RecordingQueue())
        assert not wait([change], timeout=0.3).done
        judgements.record(judging, board, [draft])
        with pytest.raises(Conflict, match="outcomes"):
            change.result(timeout=5)


def test_deadlocks_are_tried_again(open_work: Open, database: Engine) -> None:
    pair = [make_board(open_work).id for _ in range(2)]
    met, tries = threading.Barrier(2), Counter[int]()

    def change(order: list[int]) -> None:
        with open_work() as work:

            def action() -> None:
                tries[order[0]] += 1
                for number in order:
                    work.session.execute(text("UPDATE boards SET title = title || '!' WHERE id = :id"), {"id": number})
                    if tries.total() <= 2 and number == order[0]:
                        met.wait()

            work.attempt(action)
            work.commit()

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(change, [pair, pair[::-1]]))
    assert tries.total() >= 3, "one of the two was sent back"
    with database.connect() as connection:
        titles = (
            connection.execute(text("SELECT title FROM boards WHERE id = ANY(:ids)"), {"ids": pair}).scalars().all()
        )
    assert all(title.endswith("!!") for title in titles)


def test_what_always_collides_ends(open_work: Open) -> None:
    tries = count(1)

    def collide() -> None:
        next(tries)
        raise Collision

    with open_work() as work, pytest.raises(Unavailable):
        work.attempt(collide)
    assert next(tries) == ATTEMPTS + 1


def test_other_errors_are_not_tried_again(open_work: Open) -> None:
    tries = count(1)

    def fail() -> None:
        next(tries)
        work.session.execute(text("SET LOCAL statement_timeout = '20ms'"))
        work.session.execute(text("SELECT pg_sleep(1)"))

    with open_work() as work, pytest.raises(OperationalError):
        work.attempt(fail)
    assert next(tries) == 2


def ranking(context: int, best: str) -> Ballot:
    return Ballot(context=ContextRef(id=f"c{context}"), menu=["x", "y", "z"], ranking=[[best]], voter="v")


def test_a_menu_is_ranked_once_whoever_comes_first(open_work: Open, database: Engine) -> None:
    board = make_board(open_work)
    batches = [
        [ranking(number, best) for number in order] for best, order in zip("xyz", ((0, 1), (1, 0), (0, 1)), strict=True)
    ]
    fates = together(open_work, board, batches)
    assert Counter(result.status for batch in fates for result in batch) == Counter(created=2, rejected=4)
    refused = [result.error for batch in fates for result in batch if result.error is not None]
    assert {error.code for error in refused} == {"second-vote"}
    assert stored(database, board) == 2


def test_rankings_that_replace_each_other_queue_up(open_work: Open, database: Engine) -> None:
    board = make_board(open_work, votes=Voting(revotes=True))
    fates = together(open_work, board, [[ranking(0, "x")] for _ in range(WRITERS)])
    assert Counter(result.status for batch in fates for result in batch) == Counter(created=WRITERS)
    assert stored(database, board, "array_agg(revision ORDER BY revision)") == list(range(WRITERS))


def test_batches_that_wait_for_each_other_are_tried_again(open_work: Open) -> None:
    board, size = make_board(open_work), 2000

    def batch(voter: str, keys: list[UUID | None]) -> list[Result]:
        cast = [ballot(2 * number, voter, key=key) for number, key in enumerate(keys)]
        with open_work() as work:
            return votes.record(work, board, cast, now=datetime.now(UTC))

    batch("first", [None] * size)
    for turn in range(4):
        keys = [uuid4() for _ in range(size)]
        with ThreadPoolExecutor(2) as pool:
            # The same ids from the first context to the last, and the other way round.
            fates = [pool.submit(batch, f"{turn}-one", [*keys]), pool.submit(batch, f"{turn}-two", keys[::-1])]
            told = Counter(result.status for fate in fates for result in fate.result())
        assert told == {"created": size, "rejected": size}
