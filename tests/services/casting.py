"""Votes as the door hands them to the ballot box, boards to cast them on, and who writes them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

from app.cache.connection import open_redis
from app.cache.limits import RateLimiter
from app.cache.tally import Tally
from app.db.unit_of_work import UnitOfWork
from app.domain.ballots import BALLOT
from app.domain.boards import DRAFT, Board
from app.domain.errors import DomainError
from app.domain.items import ItemDraft
from app.domain.parsing import parse
from app.services import boards, items
from app.services.ballot_box.box import BallotBox
from app.services.ballot_box.box import Write as Group
from app.services.ballot_box.casts import Cast, Fate, Stored, named
from app.services.ballot_box.writer import GroupWriter

NUMBERS = count()
Open = Callable[[], UnitOfWork]
Write = Callable[[Sequence[Cast]], list[Fate]]
PLENTY = 10**6


class WholeWriter(GroupWriter):
    """Writes until each vote has its fate, as the box does."""

    def __call__(self, casts: Sequence[Cast]) -> list[Fate]:
        fates: dict[Cast, Fate] = {}
        while rest := [cast for cast in casts if cast not in fates]:
            told = zip(rest, super().__call__(rest), strict=True)
            fates |= {cast: fate for cast, fate in told if fate is not None}
        return [fates[cast] for cast in casts]


def writer(open_work: Open, redis_url: str, *, per_minute: int) -> WholeWriter:
    limiter = RateLimiter(open_redis(redis_url), per_minute=per_minute)
    return WholeWriter(open_work, limiter, Tally(limiter))


def make_board(open_work: Open, **fields: Any) -> Board:
    with open_work() as work:
        board = boards.create(work, parse(DRAFT, {"slug": f"box-{next(NUMBERS)}", **fields}))
    for name in ("alpha", "beta"):
        with open_work() as work:
            items.put(work, board, name, ItemDraft())
    return board


def cast(board: Board | str, secret: str | None, **fields: Any) -> Cast:
    """A vote as the door hands it over; nobody waits for its answer."""
    document = {"left": "alpha", "right": "beta", "outcome": "left", **fields}
    try:
        ballot, named_here = named(parse(BALLOT, document))
    except DomainError as error:
        ballot, named_here = error, False
    slug = board if isinstance(board, str) else board.slug
    header = None if secret is None else f"Bearer {secret}"
    loop: Any = None
    return Cast(slug, header, "1.2.3.4", ballot, named_here, 100, loop, loop)


def codes(fates: Sequence[Fate]) -> list[str]:
    """What became of each, in a word."""
    return [_code(fate) for fate in fates]


def _code(fate: Fate) -> str:
    if isinstance(fate, Stored):
        return "new" if fate.new else "known"
    return fate.code if isinstance(fate, DomainError) else "failed"


def answered(write: Group, casts: Sequence[Cast], most: int = 100) -> list[Fate]:
    """Put votes into a box and wait for their answers."""

    async def run() -> list[Fate]:
        box = BallotBox(write, most=most, most_bytes=PLENTY)
        loop = asyncio.get_running_loop()
        for each in casts:
            each.loop, each.answer = loop, loop.create_future()
            box.put(each)
        fates = await asyncio.gather(*(each.answer for each in casts))
        await asyncio.to_thread(box.close)
        return list(fates)

    return asyncio.run(run())
