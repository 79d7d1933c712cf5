"""A draw for one context in a single statement: what annotation tools ask for, again and again."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import numpy as np

from app.db.offers import Footing
from app.db.unit_of_work import UnitOfWork
from app.domain.acquire import AcquireDraft, check
from app.domain.boards import Board
from app.services.acquire.answer import Answer
from app.services.acquire.drawing import Drawer
from app.services.acquire.leasing import SENT, Lessor, seen, wanted
from app.services.loaded.shelf import Shelf


class Moved(Exception):
    """The key, the board, its items or its policy are not what they were when they were looked up."""


@dataclass(frozen=True, slots=True)
class Visit:
    """A board opened to a caller, and what a draw is made by, as they were looked up."""

    board: Board
    footing: Footing


def may_be(draft: AcquireDraft) -> bool:
    """Whether a request that nobody sends again is of this kind."""
    return draft.count is None and draft.contexts is not None and len(draft.contexts) == 1


def acquire_at_once(
    work: UnitOfWork, visit: Visit, draft: AcquireDraft, *, shelf: Shelf, now: datetime
) -> Answer | None:
    """Draw, and record the context, its offer and its leases; None where that takes longer, with nothing recorded.

    It takes longer where the context is known and says something else, or was maybe shown to the annotator before.

    Parameters
    ----------
    work : each of its statements is committed as it ends.
    shelf, now : see `acquire`.

    Raises
    ------
    Moved
        Where the visit is no more what it was; nothing is recorded.
    """
    check(draft)
    board, standing = visit.board, visit.footing.standing
    advisor = shelf.advisor(board.id, standing.snapshot_id)
    mode = draft.mode or board.config.acquisition.mode
    drawer = Drawer(board.config, advisor, standing.items, mode, np.random.default_rng())
    drawer.check()
    ((name, context),) = wanted(board, draft.contexts or ()).items()
    lessor = Lessor.of(board, draft.annotator, policy=drawer.snapshot_id, now=now)
    drawn = drawer.draw([seen(board, context)])
    pairs = [lessor.pair(each, "leased") for each in drawn]
    written = work.offers.write(visit.footing, name, context, pairs, source=SENT)
    if written == "moved":
        raise Moved
    if written == "differs":
        return None
    rows = [
        lessor.shown(pair.id, (name, context.payload), (each.left, each.right), each.propensity)
        for pair, each in zip(pairs, drawn, strict=True)
    ]
    return Answer({"policy": drawer.policy(), "assignments": rows})
