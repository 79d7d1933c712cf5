"""Votes of many requests written together: nobody suffers from a neighbour, and nothing is lost or doubled."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from statistics import median_high, median_low
from time import sleep
from typing import Any
from uuid import UUID, uuid4

import pytest
from psycopg.errors import LockNotAvailable
from sqlalchemy import Engine, text
from sqlalchemy.exc import OperationalError

from app.api.door import Call
from app.api.vote_door import VoteDoor
from app.db.engine import open_engine, open_sessions
from app.db.unit_of_work import UnitOfWork
from app.domain.boards import Board
from app.domain.errors import Unavailable
from app.services.ballot_box.box import BallotBox
from app.services.ballot_box.casts import Cast, Failed, Fate, Stored
from tests.services.casting import PLENTY, Open, Write, answered, cast, codes, make_board, writer


def stored(database: Engine, board: Board) -> set[UUID]:
    query = text("SELECT client_id FROM votes WHERE board_id = :board")
    with database.connect() as connection:
        return set(connection.execute(query, {"board": board.id}).scalars())


def test_each_vote_of_a_group_has_a_fate_of_its_own(
    write: Write, open_work: Open, database: Engine, secret: str
) -> None:
    one, other = make_board(open_work), make_board(open_work, propensity="logged")
    key = uuid4()
    group = [
        cast(one, secret, id=str(key)),
        cast(one, secret, right="nobody"),
        cast(one, "or_wrong"),
        cast(one, None),
        cast("nowhere", secret),
        cast(one, secret, outcome=3),
        cast(one, secret, id=str(key)),
        cast(one, secret, id=str(key), outcome="right"),
        cast(other, secret),
        cast(other, secret, propensity=0.5),
        cast(one, secret, context={"id": "c"}, voter="v"),
        cast(one, secret, context={"id": "c"}, voter="v"),
    ]
    expected = ["new", "unknown-item", "unknown-key", "key-missing", "unknown-board", "bad-field", "known"]
    expected += ["vote-id-taken", "propensity-missing", "new", "new", "second-vote"]
    assert codes(write(group)) == expected
    assert (len(stored(database, one)), len(stored(database, other))) == (2, 1)


def test_a_try_whose_commit_was_not_heard_of_is_repeated_without_a_second_vote(
    write: Write, open_work: Open, database: Engine, secret: str
) -> None:
    board = make_board(open_work)
    tries: list[int] = []

    def unheard(group: Sequence[Cast]) -> list[Fate]:
        fates = write(group)
        tries.append(len(group))
        if len(tries) == 1:
            raise OperationalError("COMMIT", {}, Exception("connection lost"))
        return fates

    fates = answered(unheard, [cast(board, secret), cast(board, secret, id=str(uuid4()))])
    assert len(stored(database, board)) == 2
    assert all(isinstance(fate, Stored) for fate in fates)
    assert codes(fates)[0] == "new", "its id was given here, so this request brought it"


def test_a_vote_refused_by_the_rate_limit_stays_refused_when_its_group_is_tried_again(
    open_work: Open, redis_url: str, database: Engine, secret: str
) -> None:
    board = make_board(open_work)
    group = [cast(board, secret) for _ in range(4)]
    with closing(writer(open_work, redis_url, per_minute=2)) as write:
        first, again = codes(write(group)), codes(write(group))
    assert first.count("rate-limit") >= 1
    assert [code == "rate-limit" for code in again] == [code == "rate-limit" for code in first]
    assert len(stored(database, board)) == first.count("new")


def test_a_board_that_another_writer_holds_keeps_no_other_board_waiting(
    database_url: str, open_work: Open, database: Engine, secret: str, redis_url: str
) -> None:
    engine = open_engine(database_url, lock_timeout=0.1)
    write = writer(partial(UnitOfWork, open_sessions(engine)), redis_url, per_minute=0)
    held, free = make_board(open_work, votes={"per_voter_per_day": 10}), make_board(open_work)

    async def run() -> list[Fate]:
        box, loop = BallotBox(write, most=100, most_bytes=PLENTY), asyncio.get_running_loop()
        votes = [replace(cast(each, secret, voter="v"), loop=loop) for each in (held, free, held, free)]
        for vote in votes:
            vote.answer = loop.create_future()
        with open_work() as long:
            long.votes.lock(held.id, counted=True)
            for vote in votes:
                box.put(vote)
            others = await asyncio.wait_for(asyncio.gather(votes[1].answer, votes[3].answer), 20)
            await asyncio.sleep(0.3)
            assert not votes[0].answer.done()
        mine = await asyncio.wait_for(asyncio.gather(votes[0].answer, votes[2].answer), 20)
        await asyncio.to_thread(box.close)
        return [*others, *mine]

    assert codes(asyncio.run(run())) == ["new"] * 4
    assert (len(stored(database, held)), len(stored(database, free))) == (2, 2)
    write.close()
    engine.dispose()


def test_half_of_those_who_vote_are_written_while_the_others_are_answered() -> None:
    sizes: list[int] = []

    def slow(group: Sequence[Cast]) -> list[Fate]:
        sizes.append(len(group))
        sleep(0.02)
        return [Unavailable("fine", "") for _ in group]

    async def client(box: BallotBox) -> None:
        loop = asyncio.get_running_loop()
        for _ in range(20):
            vote = cast("a", None)
            vote.loop, vote.answer = loop, loop.create_future()
            box.put(vote)
            await vote.answer

    async def run() -> None:
        box = BallotBox(slow, most=100, most_bytes=PLENTY)
        await asyncio.gather(*(client(box) for _ in range(64)))
        await asyncio.to_thread(box.close)

    asyncio.run(run())
    steady = sizes[5:-5]
    assert 24 <= median_low(steady) <= median_high(steady) <= 40, sizes


def test_a_vote_that_breaks_the_writer_breaks_it_alone() -> None:
    def fragile(group: Sequence[Cast]) -> list[Fate]:
        if any(each.slug == "bad" for each in group):
            raise ValueError("broken")
        return [Unavailable("fine", "") for _ in group]

    fates = answered(fragile, [cast(slug, None) for slug in ("a", "bad", "b")])
    assert [isinstance(fate, Failed) for fate in fates] == [False, True, False]


def test_a_full_box_and_a_long_wait_are_503_with_the_time_to_come_back() -> None:
    gate, began = threading.Event(), threading.Event()

    def slow(group: Sequence[Cast]) -> list[Fate]:
        began.set()
        gate.wait()
        return [Unavailable("late", "") for _ in group]

    async def run() -> list[Any]:
        box = BallotBox(slow, most=2, most_bytes=PLENTY)
        door = VoteDoor(box, patience=0.5)
        call = Call("x", None, "", b'{"left": "a", "right": "b", "outcome": "left"}', True)
        first = asyncio.create_task(door.respond(call))
        await asyncio.to_thread(began.wait)
        rest = [asyncio.create_task(door.respond(call)) for _ in range(3)]
        answers = await asyncio.gather(first, *rest)
        gate.set()
        await asyncio.to_thread(box.close)
        return list(answers)

    answers = asyncio.run(run())
    assert [answer.status_code for answer in answers] == [503] * 4
    assert all(int(answer.headers["retry-after"]) >= 1 for answer in answers)
    told = [b"too-many-votes" in answer.body for answer in answers]
    assert told == [False, False, False, True]


def test_the_bytes_that_wait_are_bounded_and_one_large_vote_still_gets_in() -> None:
    gate, began = threading.Event(), threading.Event()

    def slow(group: Sequence[Cast]) -> list[Fate]:
        began.set()
        gate.wait()
        return [Unavailable("late", "") for _ in group]

    async def run() -> list[Fate]:
        box = BallotBox(slow, most=100, most_bytes=1000)
        loop = asyncio.get_running_loop()

        def put(size: int) -> asyncio.Future[Fate]:
            vote = replace(cast("x", None), size=size, loop=loop, answer=loop.create_future())
            box.put(vote)
            return vote.answer

        answers = [put(5000)]
        await asyncio.to_thread(began.wait)
        with pytest.raises(Unavailable, match="more votes wait"):
            put(1)
        gate.set()
        await answers[0]
        gate.clear()
        while len(answers) == 1:
            # The answer is on its way before the box has counted the group out.
            with contextlib.suppress(Unavailable):
                answers.append(put(600))
            await asyncio.sleep(0.01)
        answers += [put(300), put(100)]
        with pytest.raises(Unavailable, match="more votes wait"):
            put(1)
        gate.set()
        fates = await asyncio.gather(*answers)
        await asyncio.to_thread(box.close)
        return list(fates)

    assert codes(asyncio.run(asyncio.wait_for(run(), 20))) == ["late"] * 4


def test_the_bytes_of_votes_that_wait_for_their_board_stay_counted() -> None:
    tries, free = threading.Semaphore(0), threading.Event()

    def held(group: Sequence[Cast]) -> list[Fate]:
        tries.release()
        if not free.wait(0.01):
            raise OperationalError("lock", {}, LockNotAvailable())
        return [Unavailable("late", "") for _ in group]

    async def run() -> Fate:
        box = BallotBox(held, most=100, most_bytes=1000)
        loop = asyncio.get_running_loop()
        votes = [replace(cast("x", None), size=600, loop=loop, answer=loop.create_future()) for _ in range(2)]
        box.put(votes[0])
        for _ in range(4):
            await asyncio.to_thread(tries.acquire)
        with pytest.raises(Unavailable, match="more votes wait"):
            box.put(votes[1])
        free.set()
        fate = await votes[0].answer
        await asyncio.to_thread(box.close)
        return fate

    assert codes([asyncio.run(asyncio.wait_for(run(), 20))]) == ["late"]


def test_a_closed_box_answers_what_is_in_it_and_takes_no_more() -> None:
    fates = answered(lambda group: [Unavailable("fine", "") for _ in group], [cast("a", None) for _ in range(50)])
    assert len(fates) == 50
    box = BallotBox(lambda _: [], most=1, most_bytes=PLENTY)
    box.close()
    with pytest.raises(Unavailable):
        box.put(cast("a", None))
