"""Write rows of a file, some thousand at a time, and tell which did not get in."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from itertools import groupby
from typing import NamedTuple
from uuid import UUID

from app.db.unit_of_work import UnitOfWork
from app.domain.ballots import Ballot, ContextRef
from app.domain.boards import Board
from app.domain.contexts import ContextDraft, Known, Wanted, contradiction
from app.domain.errors import DomainError
from app.domain.exclusions import SUPERSEDED
from app.domain.features import FeatureReader
from app.domain.fields import EARLIEST
from app.domain.judgements import JudgementDraft
from app.formats.rows import JudgementRow, Place, VoteRow
from app.services import contexts, items, judgements, votes
from app.services.imports.orders import Reject, Summary

OpenUnit = Callable[[], UnitOfWork]


class PlacedVote(NamedTuple):
    """A vote, where it comes from, and why it does not count if so."""

    place: Place
    ballot: Ballot
    excluded: str | None


class PlacedJudgement(NamedTuple):
    """A judgement and where it comes from."""

    place: Place
    row: JudgementRow


def ballot_of(row: VoteRow, vote: UUID) -> Ballot:
    """The vote as it is sent; features without a context belong to a context of the vote's own."""
    context = row.context if row.context is not None or not row.features else str(vote)
    return Ballot(
        id=vote,
        context=None if context is None else ContextRef(id=context, features=row.features),
        offer=row.offer,
        left=row.left,
        right=row.right,
        outcome=row.outcome,
        menu=row.menu,
        ranking=row.ranking,
        kind=row.kind,
        voter=row.voter,
        voter_type="llm" if row.voter_type == "llm" else "human",
        propensity=row.propensity,
        created_at=row.created_at,
    )


class BatchWriter:
    """Writes batches to one board, each in transactions of its own, and counts.

    Parameters
    ----------
    open_unit : opens a unit of work.
    board : where the rows go.
    create_items : whether unknown items are created, as active ever since: a file tells no spans.
    """

    def __init__(self, open_unit: OpenUnit, board: Board, *, create_items: bool, summary: Summary) -> None:
        self._open_unit = open_unit
        self._board = board
        self._create_items = create_items
        self._summary = summary
        self._known_items: set[str] = set()
        self._features = FeatureReader(board.config.features)

    def votes(self, batch: Sequence[PlacedVote]) -> list[Reject]:
        """Store votes; those that were refused."""
        with self._open_unit() as uow:
            named = {name for _, ballot, _ in batch for name in (ballot.left, ballot.right) if name}
            named |= {name for _, ballot, _ in batch if ballot.menu is not None for name in ballot.menu}
            self._name_items(uow, named)
            results = votes.record(uow, self._board, [ballot for _, ballot, _ in batch], now=datetime.now(UTC))
            self._exclude(uow, [vote for vote, result in zip(batch, results, strict=True) if result.error is None])
        self._summary.votes.update(result.status for result in results)
        return _rejects((vote.place, result.error) for vote, result in zip(batch, results, strict=True))

    def judgements(self, batch: Sequence[PlacedJudgement]) -> list[Reject]:
        """Store judgements and the contexts that they speak of; those that were refused."""
        with self._open_unit() as uow:
            self._name_items(uow, {name for _, row in batch for name in (row.left, row.right)})
            refused = self._register(uow, batch)
            placed = [each for each in batch if each.place not in refused]
            results = judgements.record(uow, self._board, [_draft(each.row) for each in placed])
        self._summary.judgements.update(result.status for result in results)
        self._summary.judgements["rejected"] += len(batch) - len(placed)
        late = {each.place: result.error for each, result in zip(placed, results, strict=True)}
        return _rejects((each.place, refused.get(each.place) or late[each.place]) for each in batch)

    def _name_items(self, uow: UnitOfWork, names: set[str]) -> None:
        new = names - self._known_items
        if self._create_items and new:
            items.ensure(uow, self._board, new, active_from=EARLIEST)
            self._known_items |= new

    def _exclude(self, uow: UnitOfWork, batch: Sequence[PlacedVote]) -> None:
        """Exclude what the file says does not count; a superseded vote is told by the vote that follows it."""
        reasons = {
            ballot.id: excluded
            for _, ballot, excluded in batch
            if excluded is not None and excluded != SUPERSEDED and ballot.id is not None
        }
        if reasons:
            uow.votes.lock(self._board.id, counted=False)
            self._summary.excluded += uow.exclusions.exclude(self._board.id, reasons)
            uow.commit()

    def _register(self, uow: UnitOfWork, batch: Sequence[PlacedJudgement]) -> dict[Place, DomainError]:
        """Register the contexts; why those that contradict a known or an earlier one are refused."""
        known = uow.contexts.find(self._board.id, {row.context for _, row in batch})
        refused: dict[Place, DomainError] = {}
        for place, row in batch:
            try:
                self._compare(row, known)
            except DomainError as error:
                refused[place] = error.under("context")
        drafts = [ContextDraft(id=name, features=dict(context.features)) for name, context in known.items()]
        contexts.register(uow, self._board, drafts)
        return refused

    def _compare(self, row: JudgementRow, known: dict[str, Known]) -> None:
        """Add the row's context to the known ones, or refuse the row where it contradicts them."""
        features = None if row.features is None else self._features.read(row.features)
        context = known.setdefault(row.context, Known(0, features or {}, None, None, False))
        error = contradiction(Wanted(features), context)
        if error is not None:
            raise error


def _draft(row: JudgementRow) -> JudgementDraft:
    return JudgementDraft(
        judge=row.judge, context=row.context, left=row.left, right=row.right, probabilities=dict(row.probabilities)
    )


def _rejects(fates: Iterable[tuple[Place, DomainError | None]]) -> list[Reject]:
    """The refusals, those of one record for one reason counted together."""
    told = [(place, _reason(error)) for place, error in fates if error is not None]
    return [Reject(place, reason, len(list(group))) for (place, reason), group in groupby(told)]


def _reason(error: DomainError) -> str:
    detail = error.detail if error.path is None else f"{error.path}: {error.detail}"
    return detail if error.got is None or str(error.got) in detail else f"{detail}, got {error.got!r}"
