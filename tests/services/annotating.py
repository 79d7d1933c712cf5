"""An annotation tool: draws pairs of a board, answers some of them, in time or late."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
from sqlalchemy import text

from app.domain.acquire import AcquireDraft, AskedContext
from app.domain.boards import Board
from app.domain.contexts import ContextDraft
from app.services import contexts
from app.services.acquire import run as acquire
from app.services.loaded.shelf import Shelf
from app.services.rankings.opened import Opener
from app.services.rankings.query import RankingQuery
from app.services.rankings.read import ranking
from app.services.refit.gathering import gather
from app.services.refit.inputs import Inputs
from tests.refitting import ITEMS, Bench, cast, features_of

AGE = text("""
UPDATE offers SET created_at = offers.created_at + (offers.id - first.id) * INTERVAL '7 seconds' - INTERVAL '1 hour'
FROM (SELECT min(id) AS id FROM offers WHERE board_id = :board) AS first
WHERE board_id = :board
""")
LAPSE = text(
    "UPDATE assignments SET expires_at = now() - INTERVAL '1 second' WHERE board_id = :board AND id = ANY(:ids)"
)
Row = dict[str, Any]


@dataclass
class Tool:
    """An annotation tool at work on a board.

    Parameters
    ----------
    bench, shelf, board : it asks.
    rng : of its answers.
    """

    bench: Bench
    shelf: Shelf
    board: Board
    rng: np.random.Generator

    def ask(self, **wanted: Any) -> list[Row]:
        with self.bench.work() as work:
            draft = AcquireDraft(**wanted)
            answer = acquire.acquire(work, self.board, draft, shelf=self.shelf, key=None, now=datetime.now(UTC))
        rows: list[Row] = answer.document["assignments"]
        return rows

    def draw(self, names: Sequence[int], **wanted: Any) -> list[Row]:
        asked = [AskedContext(id=f"p{number}", features=features_of(number)) for number in names]
        return self.ask(contexts=asked, **wanted)

    def answer(self, rows: Sequence[Row], *, voter: str = "") -> None:
        """In the earlier item's favour, most of the time."""
        sent = []
        for number, row in enumerate(rows):
            edge = (
                ITEMS.index(row["right"]) - ITEMS.index(row["left"]) if {row["right"], row["left"]} <= {*ITEMS} else 0
            )
            wins = self.rng.random() < 1 / (1 + np.exp(-0.8 * edge - 0.3))
            vote = {"assignment": row["id"], "outcome": "left" if wins else "right"}
            sent.append({**vote, "voter": voter or f"v{number % 23}-{row['context']}"})
        cast(self.bench, self.board, sent)

    def age(self) -> None:
        """All offers were made one after the other, an hour ago and later."""
        with self.bench.engine.begin() as connection:
            connection.execute(AGE, {"board": self.board.id})

    def lapse(self, rows: Sequence[Row]) -> None:
        """Their leases have run out."""
        with self.bench.engine.begin() as connection:
            connection.execute(LAPSE, {"board": self.board.id, "ids": [row["id"] for row in rows]})

    def register(self, names: Sequence[int], *, offered: bool) -> None:
        drafts = [ContextDraft(id=f"p{n}", features=features_of(n), offered=offered) for n in names]
        with self.bench.work() as work:
            contexts.register(work, self.board, drafts)

    def inputs(self) -> Inputs:
        with self.bench.work() as work:
            marks = work.gather.marks(self.board.id)
        with self.bench.work() as work:
            return gather(work.gather, self.board, marks)

    def read(self, **fields: Any) -> dict[str, Any]:
        with self.bench.work() as work:
            head = work.snapshots.head(self.board.id)
            query = RankingQuery(**{"pairs": "all", **fields})
            document = ranking(work, self.board, query, Opener(), snapshot_id=head.snapshot_id)
            return document | {"votes_pending": head.waiting(live=document["live"]["included"])}
