"""The pages' port on the services: the same answers as the HTTP interface gives, from the same cache."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import orjson
from sqlalchemy.orm import Session, sessionmaker

from app.db.items import ItemLabel
from app.db.unit_of_work import UnitOfWork
from app.services import access, boards
from app.services.diagnostics import diagnostics
from app.services.equilibrium.read import segments
from app.services.rankings.history import history
from app.services.rankings.opened import Opener
from app.services.rankings.pairs import pairs
from app.services.rankings.query import ESTIMATORS, INTERVALS, RankingQuery, kinds_of
from app.services.rankings.read import ranking
from app.services.rankings.rendered import Rendered
from app.web.choices import Combination, Menu
from app.web.reader import Answer, Card
from app.web.words import ESTIMANDS

POINTS = 100
"""Of a history."""


class ServiceReader:
    """Reads boards in transactions of its own.

    Parameters
    ----------
    opener, rendered : shared with the HTTP interface.
    """

    def __init__(self, sessions: sessionmaker[Session], opener: Opener, rendered: Rendered) -> None:
        self._sessions = sessions
        self._opener = opener
        self._rendered = rendered

    def public_boards(self) -> Sequence[Card]:
        """Boards that anybody may read, by title."""
        with self._work() as work:
            cards = [Card(each.slug, each.title, each.public) for each in boards.visible(work, None)]
        return sorted(cards, key=lambda card: card.title.casefold())

    def card(self, slug: str) -> Card | None:
        """The board of this name, public or not."""
        with self._work() as work:
            board = work.boards.find(slug)
        return None if board is None else Card(board.slug, board.title, board.public)

    def admit(self, card: Card, authorization: str | None) -> None:
        """Raise the interface's own error unless this header opens the board."""
        if not card.public:
            with self._work() as work:
                access.admit(work, card.slug, access.identify(work, authorization), "read")

    def version(self, slug: str) -> Hashable:
        """Equal as long as every answer about the board is."""
        with self._work() as work:
            board = boards.find(work, slug)
            items = tuple(work.items.labels(board.id)), tuple(work.items.costs(board.id).items())
            return board.updated_at, work.snapshots.head(board.id), items

    def menu(self, slug: str) -> Menu:
        """The rankings that the board's newest snapshot holds."""
        with self._work() as work:
            board = boards.find(work, slug)
            snapshot_id = work.snapshots.head(board.id).snapshot_id
            rows = [] if snapshot_id is None else work.snapshots.combinations(snapshot_id)
        kinds = kinds_of(board.config)
        combinations = sorted((Combination(*row) for row in rows), key=_place)
        return Menu(tuple(combinations), INTERVALS, frozenset(name for name in kinds if kinds[name] == "bt"))

    def ranking(self, slug: str, settled: Mapping[str, str]) -> Answer:
        """`GET …/rankings` for choices that exist, each row with the item's title, organisation and url."""
        with self._work() as work:
            board = boards.find(work, slug)
            head, labels = work.snapshots.head(board.id), work.items.labels(board.id)
            query = _query(settled)

            def make() -> bytes:
                return orjson.dumps(ranking(work, board, query, self._opener, snapshot_id=head.snapshot_id))

            key = (board.id, board.updated_at, head.snapshot_id, head.version, query.key)
            body = self._rendered.get(key, make) if head.snapshot_id else make()
        answer = orjson.loads(body)
        live = answer["live"] is not None and answer["live"]["included"]
        return _labelled(answer | {"votes_pending": head.waiting(live=live)}, labels)

    def history(self, slug: str, settled: Mapping[str, str]) -> Answer:
        """`GET …/rankings/history` for choices that exist."""
        with self._work() as work:
            board = boards.find(work, slug)
            answer: Answer = orjson.loads(orjson.dumps(history(work, board, _query(settled), points=POINTS)))
        return answer

    def pairs(self, slug: str) -> Answer:
        """`GET …/pairs`."""
        with self._work() as work:
            board = boards.find(work, slug)
            snapshot_id = work.snapshots.head(board.id).snapshot_id
            return pairs(work, board, level=0.95, snapshot_id=snapshot_id)

    def equilibria(self, slug: str) -> Answer:
        """`GET …/equilibrium/segments`."""
        with self._work() as work:
            board = boards.find(work, slug)
            snapshot_id = work.snapshots.head(board.id).snapshot_id
            found = segments(work, board, work.items.costs(board.id), snapshot_id=snapshot_id)
            answer: Answer = orjson.loads(orjson.dumps(found))
        return answer

    def diagnostics(self, slug: str) -> Answer:
        """`GET …/diagnostics`."""
        with self._work() as work:
            board = boards.find(work, slug)
            snapshot_id = work.snapshots.head(board.id).snapshot_id
            answer: Answer = orjson.loads(orjson.dumps(diagnostics(work, board, snapshot_id=snapshot_id)))
        return answer

    def _work(self) -> UnitOfWork:
        return UnitOfWork(self._sessions)


def _query(settled: Mapping[str, str]) -> RankingQuery:
    """The choices as a query; those that the ranking has no use for keep their defaults."""
    fields: dict[str, Any] = {name: value for name, value in settled.items() if value}
    return RankingQuery(**fields | {"level": float(settled["level"] or 0.95)})


def _labelled(answer: dict[str, Any], labels: Sequence[ItemLabel]) -> Answer:
    known = {label.name: label for label in labels}
    for row in (*answer["rankings"], *answer["retired"]):
        label = known.get(row["item"])
        if label is not None:
            row.update(title=label.title, organisation=label.organisation, url=label.url)
    return answer


def _place(row: Combination) -> tuple[int, str, int, str, str]:
    """The order in which selectors offer: known estimands and estimators as they are listed, then by name."""
    estimands, estimators = list(ESTIMANDS), list(ESTIMATORS)
    estimand = estimands.index(row.estimand) if row.estimand in estimands else len(estimands)
    estimator = estimators.index(row.estimator) if row.estimator in estimators else len(estimators)
    return estimand, row.estimand, estimator, row.segment, row.pairs
