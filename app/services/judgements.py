"""Take judges' predictions in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from app.db.judgements import Subject
from app.db.unit_of_work import UnitOfWork
from app.domain.boards import Board
from app.domain.errors import Conflict, DomainError, Invalid
from app.domain.judgements import JudgementDraft, check


@dataclass(frozen=True, slots=True)
class Judged:
    """The fate of a judgement; `error` where it was refused."""

    status: Literal["created", "duplicate", "rejected"]
    error: DomainError | None = None


def record(uow: UnitOfWork, board: Board, drafts: Sequence[JudgementDraft]) -> list[Judged]:
    """Store what can be stored and commit; the fate of each judgement, in order."""
    judged = _settle(uow, board, drafts)
    uow.commit()
    return judged


def record_all(uow: UnitOfWork, board: Board, drafts: Sequence[JudgementDraft]) -> list[Judged]:
    """Store all judgements and commit, or none: the first refusal is raised."""
    judged = _settle(uow, board, drafts)
    for number, each in enumerate(judged):
        if each.error is not None:
            raise each.error.under(f"judgements.{number}")
    uow.commit()
    return judged


def _settle(uow: UnitOfWork, board: Board, drafts: Sequence[JudgementDraft]) -> list[Judged]:
    uow.votes.lock(board.id, counted=False)
    board = uow.boards.fresh(board)
    items = uow.items.resolve(board.id, {name for draft in drafts for name in (draft.left, draft.right)})
    contexts = uow.contexts.find(board.id, {draft.context for draft in drafts})
    item_ids, context_ids = {name: ref.id for name, ref in items.items()}, {name: k.id for name, k in contexts.items()}
    outcomes = [category.name for category in board.config.categories]
    read = [_read(draft, outcomes, item_ids, context_ids) for draft in drafts]
    wanted: dict[Subject, dict[str, float]] = {}
    for each in read:
        if not isinstance(each, DomainError):
            wanted.setdefault(*each)
    if not wanted:
        return [Judged("rejected", each) for each in read if isinstance(each, DomainError)]
    created = uow.judgements.create(board.id, wanted)
    stored = uow.judgements.find(board.id, sorted(wanted))
    return [_fate(each, created, stored) for each in read]


def _read(
    draft: JudgementDraft, outcomes: Sequence[str], items: dict[str, int], contexts: dict[str, int]
) -> tuple[Subject, dict[str, float]] | DomainError:
    try:
        chances = dict(check(draft, outcomes))
    except DomainError as error:
        return error
    for path, name, known in (
        ("context", draft.context, contexts),
        ("left", draft.left, items),
        ("right", draft.right, items),
    ):
        if name not in known:
            kind = "context" if path == "context" else "item"
            return Invalid(f"unknown-{kind}", f"the board has no {kind} {name!r}", path=path, got=name)
    return (contexts[draft.context], draft.judge, items[draft.left], items[draft.right]), chances


def _fate(
    read: tuple[Subject, dict[str, float]] | DomainError, created: set[Subject], stored: dict[Subject, dict[str, float]]
) -> Judged:
    if isinstance(read, DomainError):
        return Judged("rejected", read)
    subject, chances = read
    if stored[subject] != chances:
        detail = "this judge has judged this context and ordered pair otherwise"
        error = Conflict("judgement-differs", detail, path="probabilities", expected=stored[subject], got=chances)
        return Judged("rejected", error)
    if subject in created:
        created.discard(subject)
        return Judged("created")
    return Judged("duplicate")
