"""Live states: how far votes have come into the rankings since a refit, and the sums that they left."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import numpy as np
from sqlalchemy import TextClause, select, text
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from app.db.marks import Marks
from app.db.models.live import LiveState, LiveSum
from app.db.packed import HASH
from app.stats.types import Ints

LAGGING = text("""
SELECT boards.id
FROM boards
CROSS JOIN LATERAL (
    SELECT id, watermark, summary FROM snapshots WHERE board_id = boards.id ORDER BY computed_at DESC LIMIT 1
) AS newest
LEFT JOIN live_states ON snapshot_id = newest.id
WHERE deleted_at IS NULL
    AND summary ? 'refits_only' AND summary ->> 'refits_only' IS NULL
    AND (
        EXISTS (
            SELECT FROM votes
            WHERE votes.board_id = boards.id AND votes.id > coalesce(live_states.votes, newest.watermark)
        )
        OR EXISTS (
            SELECT FROM exclusions
            WHERE exclusions.board_id = boards.id
                AND coalesce(lifted_at, created_at)
                    > coalesce(live_states.moment, (summary -> 'marks' ->> 'moment')::timestamptz)
        )
    )
ORDER BY boards.id
""")
"""Boards with votes or rules that no update has seen."""

NTH_VOTE = text("SELECT id FROM votes WHERE board_id = :board AND id > :after ORDER BY id LIMIT 1 OFFSET :skip")
NTH_OFFER = text("SELECT id FROM offers WHERE board_id = :board AND id > :after ORDER BY id LIMIT 1 OFFSET :skip")
NTH_OFFERED = text("""
SELECT offered_at FROM contexts
WHERE board_id = :board AND offered_at > :after ORDER BY offered_at LIMIT 1 OFFSET :skip
""")
NTH_JUDGED = text("""
SELECT created_at FROM judgements
WHERE board_id = :board AND created_at > :after AND judge = ANY(:judges) ORDER BY created_at LIMIT 1 OFFSET :skip
""")
LAST_OFFERED = text("""
WITH next AS (SELECT id, offer_id FROM votes WHERE board_id = :board AND id > :after AND id <= :until)
SELECT coalesce(max(id), :after) FROM next
WHERE id < coalesce((SELECT min(id) FROM next WHERE offer_id > :offers), CAST(:until AS bigint) + 1)
""")

RULES_CHANGED = text("""
SELECT EXISTS (
    SELECT FROM exclusions
    WHERE board_id = :board AND reason <> 'superseded' AND (id > :rules OR lifted_at > :since)
)
""")
REVISED = text("""
SELECT id FROM votes WHERE id = ANY(:ids) AND (revision > 0 OR (:draws AND assignment_id IS NOT NULL))
""")

JUDGE_HASHES = text(f"""
SELECT {HASH.format("judge")} FROM unnest(CAST(:judges AS text[])) WITH ORDINALITY AS named (judge, place)
ORDER BY place
""")
JUDGED_BETWEEN = text("""
SELECT DISTINCT context_id FROM judgements
WHERE board_id = :board AND created_at > :after AND created_at <= :until AND judge = ANY(:judges)
""")
JUDGED_BY_OTHERS = text("""
SELECT EXISTS (
    SELECT FROM judgements
    WHERE board_id = :board AND created_at > :after AND created_at <= :until AND judge <> ALL(:judges)
)
""")


class LiveRepository:
    """Live states of all boards."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def find(self, snapshot_id: UUID) -> LiveState | None:
        """What came after a snapshot; None where nothing was looked at."""
        return self._session.get(LiveState, snapshot_id)

    def held(self, start: LiveState) -> LiveState:
        """The state of a snapshot, `start` where it has none; nobody else changes it before this transaction ends."""
        fields = {name: value for name, value in vars(start).items() if not name.startswith("_")}
        self._session.execute(insert(LiveState).values(fields).on_conflict_do_nothing())
        query = select(LiveState).where(LiveState.snapshot_id == start.snapshot_id)
        return self._session.scalars(query.with_for_update().execution_options(populate_existing=True)).one()

    def sums(self, snapshot_id: UUID, segments: Iterable[str]) -> dict[str, bytes]:
        """The sums of these segments, of those that have any."""
        query = select(LiveSum.segment, LiveSum.body)
        query = query.where(LiveSum.snapshot_id == snapshot_id, LiveSum.segment.in_(list(segments)))
        return {row[0]: row[1] for row in self._session.execute(query)}

    def read(self, state: LiveState, segment: str) -> bytes | None:
        """The sums of a segment, None where it has none, and the state brought to the update that they are of."""
        query = (
            select(LiveState.version, LiveSum.body)
            .outerjoin(LiveSum, (LiveSum.snapshot_id == LiveState.snapshot_id) & (LiveSum.segment == segment))
            .where(LiveState.snapshot_id == state.snapshot_id)
        )
        while True:
            version, body = self._session.execute(query).one_or_none() or (state.version, None)
            if version == state.version:
                return body
            # An update came in between: its sums do not go with what was said of the one before.
            self._session.refresh(state)

    def store(self, snapshot_id: UUID, sums: Mapping[str, bytes]) -> None:
        """Put these sums in the place of those of before."""
        if not sums:
            return
        rows = [{"snapshot_id": snapshot_id, "segment": name, "body": body} for name, body in sums.items()]
        statement = insert(LiveSum)
        keys = ("snapshot_id", "segment")
        self._session.execute(
            statement.on_conflict_do_update(index_elements=keys, set_={"body": statement.excluded.body}), rows
        )

    def reach(
        self, board_id: int, after: Marks, until: Marks, *, size: int, offers: bool, judges: Sequence[str]
    ) -> Marks:
        """The marks of a step that begins at some and ends at others at the latest, of bounded size.

        Parameters
        ----------
        size : votes, judgements, offers, and contexts newly offered, at most so many each.
        offers : whether offers and contexts are read.
        judges : whose judgements are read.
        """
        votes = self._nth(NTH_VOTE, board_id, after.votes, size) or until.votes
        judged = self._nth(NTH_JUDGED, board_id, after.moment, size, judges=list(judges)) if judges else None
        reached = until._replace(votes=min(votes, until.votes), moment=min(judged or until.moment, until.moment))
        if not offers:
            return reached
        offer = self._nth(NTH_OFFER, board_id, after.offers, size) or until.offers
        moment = self._nth(NTH_OFFERED, board_id, after.moment, size) or until.moment
        reached = reached._replace(offers=min(offer, until.offers), moment=min(moment, reached.moment))
        # No vote is read before the offer that it names.
        values = {"board": board_id, "after": after.votes, "until": reached.votes, "offers": reached.offers}
        return reached._replace(votes=self._session.execute(LAST_OFFERED, values).scalar_one())

    def waits(self, board_id: int, after: int) -> bool:
        """Whether there is a vote after a number."""
        return self._nth(NTH_VOTE, board_id, after, 1) is not None

    def _nth(self, query: TextClause, board_id: int, after: object, size: int, **values: object) -> Any:
        values |= {"board": board_id, "after": after, "skip": size - 1}
        return self._session.execute(query, values).scalar_one_or_none()

    def revised(self, votes: Iterable[int], *, draws: bool) -> set[int]:
        """Those of the votes that replace another one, and with `draws` those that answer a draw."""
        return set(self._session.scalars(REVISED, {"ids": list(votes), "draws": draws}))

    def rules_changed(self, board_id: int, *, rules: int, since: object) -> bool:
        """Whether rules about votes came or went: other ones than up to this number, as they stood then."""
        values = {"board": board_id, "rules": rules, "since": since}
        return bool(self._session.execute(RULES_CHANGED, values).scalar_one())

    def judge_hashes(self, judges: Sequence[str]) -> Ints:
        """Hashes of judges' names, in the order of these."""
        return np.fromiter(self._session.scalars(JUDGE_HASHES, {"judges": list(judges)}), dtype=np.int64)

    def judged_between(self, board_id: int, after: datetime, until: datetime, *, judges: Sequence[str]) -> Ints:
        """Contexts that these judges judged between two times."""
        values = {"board": board_id, "after": after, "until": until, "judges": list(judges)}
        return np.fromiter(self._session.scalars(JUDGED_BETWEEN, values), dtype=np.int64)

    def judged_by_others(self, board_id: int, after: datetime, until: datetime, *, judges: Sequence[str]) -> bool:
        """Whether other judges than these judged anything between two times."""
        values = {"board": board_id, "after": after, "until": until, "judges": list(judges)}
        return bool(self._session.execute(JUDGED_BY_OTHERS, values).scalar_one())

    def lagging(self) -> list[int]:
        """Boards with votes or rules that no update has seen."""
        return list(self._session.scalars(LAGGING))
