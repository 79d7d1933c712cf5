"""Register contexts, in the pool or offered."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from app.db.unit_of_work import UnitOfWork
from app.domain.boards import Board
from app.domain.contexts import ContextDraft, Wanted, adds, contradiction
from app.domain.errors import DomainError
from app.domain.features import FeatureReader


class Registered(NamedTuple):
    """How many of the contexts are new, and how many were known."""

    created: int
    known: int


def register(uow: UnitOfWork, board: Board, drafts: Sequence[ContextDraft]) -> Registered:
    """Store contexts and commit, all or none; a known one may gain a text, a payload, and be offered."""
    if not drafts:
        return Registered(0, 0)
    # What is offered between two readings of the board must be committed by the second one, as votes are; nor does the
    # board declare other features meanwhile.
    uow.votes.lock(board.id, counted=False)
    wanted = _read(uow.boards.fresh(board), drafts)
    needed: dict[str, Wanted] = {}
    for draft, each in zip(drafts, wanted, strict=True):
        needed[draft.id] = _joined(needed[draft.id], each) if draft.id in needed else each
    known, created = uow.contexts.ensure(board.id, needed)
    news = {known[name].id: each for name, each in needed.items() if name not in created and adds(each, known[name])}
    if news:
        uow.contexts.learn(news)
        known = uow.contexts.find(board.id, needed)
    for number, (draft, each) in enumerate(zip(drafts, wanted, strict=True)):
        error = contradiction(each, known[draft.id])
        if error is not None:
            raise error.under(f"contexts.{number}")
    uow.commit()
    return Registered(len(created), len(needed) - len(created))


def _read(board: Board, drafts: Sequence[ContextDraft]) -> list[Wanted]:
    reader, wanted = FeatureReader(board.config.features), []
    for number, draft in enumerate(drafts):
        with _within(f"contexts.{number}"):
            features = None if draft.features is None else reader.read(draft.features)
        wanted.append(Wanted(features, draft.text, draft.payload, draft.offered))
    return wanted


@contextmanager
def _within(path: str) -> Iterator[None]:
    try:
        yield
    except DomainError as error:
        raise error.under(path) from None


def _joined(first: Wanted, second: Wanted) -> Wanted:
    return Wanted(
        second.features if first.features is None else first.features,
        second.text if first.text is None else first.text,
        second.payload if first.payload is None else first.payload,
        first.offered or second.offered,
    )
