"""Standings with what came in since the refit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, cast

import numpy as np

from app.db.models.live import LiveState
from app.db.models.snapshots import Snapshot
from app.db.unit_of_work import UnitOfWork
from app.domain.boards import Board
from app.services.live.run import takes_votes
from app.services.live.sums import SegmentSums
from app.services.rankings.query import RankingQuery
from app.services.rankings.standings import Standings, of_scores
from app.services.refit.snapshot import spec_hash
from app.services.refit.tables import ItemStatus, Tally
from app.stats.debias.live import Heard, LiveSums
from app.stats.debias.support import MOST_UNSUPPORTED, Pairs
from app.stats.types import Estimate, Floats

CONFIGURATION, NOTHING_YET, AS_REFITTED = "configuration", "no_votes_yet", "as_refitted"
"""Why an answer has no live votes: the board is set up otherwise since the refit; none came, or none in this segment;
the estimator, a window, scores without errors or a segment left out of the tables are answered as of the refit."""


@dataclass(frozen=True, slots=True)
class Live:
    """What an answer says of the votes since the last refit.

    Parameters
    ----------
    included : whether the scores hold them.
    version : of the update, 0 before the first.
    votes, rows : since the refit, as far as they are in the scores.
    votes_through : when the last vote came in that the scores hold.
    clusters : `exact` where every row is a cluster of its own, else `refitted`: rows of the refit are clustered, each
        live row stands alone.
    reasons : why there are none, or what waits for the next refit.
    """

    included: bool
    version: int
    votes: int
    rows: int
    votes_through: datetime | None
    clusters: str
    reasons: tuple[str, ...]

    def document(self) -> dict[str, Any]:
        """In JSON's terms."""
        names = ("included", "version", "votes", "rows", "clusters", "reasons")
        return {name: getattr(self, name) for name in names}


def with_live(
    work: UnitOfWork, board: Board, query: RankingQuery, snapshot: Snapshot, standings: Standings, *, stored: bool
) -> tuple[Standings, Live]:
    """The standings with the live votes, and what to say of these.

    Parameters
    ----------
    stored : whether the standings are from the snapshot's tables.
    """
    clusters = _clusters(board, snapshot)
    nothing = Live(False, 0, 0, 0, snapshot.votes_through, clusters, ())
    reason = _as_refitted(board, query, snapshot, summed=stored and _summed(work, query, snapshot, standings))
    if reason is not None:
        return standings, replace(nothing, reasons=(reason,))
    state = work.live.find(snapshot.id)
    if state is None:
        return standings, replace(nothing, reasons=(NOTHING_YET,))
    return _added(work, board, query, standings, (snapshot, state, clusters))


def _added(
    work: UnitOfWork,
    board: Board,
    query: RankingQuery,
    standings: Standings,
    found: tuple[Snapshot, LiveState, str],
) -> tuple[Standings, Live]:
    snapshot, state, clusters = found
    segment = query.segment or ""
    body = work.live.read(state, segment)
    reasons = tuple(state.document["reasons"])
    live = Live(True, state.version, 0, 0, state.votes_through, clusters, reasons)
    newcomers = state.document["newcomers"] if query.whole else {}
    if body is None:
        return _listed(standings, newcomers), live
    sums = SegmentSums.unpack(body)
    added = _scored(query, snapshot, standings, sums, prompts=board.config.population != "fixed")
    since = state.counted if query.whole else added.votes - standings.votes
    if clusters == "exact" and board.config.unit == "battle" and added.contexts < added.n_rows:
        clusters = "refitted"
    live = replace(live, votes=since, rows=sums.rows, clusters=clusters)
    return _listed(added, newcomers), live


def _as_refitted(board: Board, query: RankingQuery, snapshot: Snapshot, *, summed: bool) -> str | None:
    if not takes_votes(snapshot):
        return str(snapshot.summary.get("refits_only") or AS_REFITTED)
    if spec_hash(board.config) != snapshot.spec:
        return CONFIGURATION
    return None if summed and query.is_live else AS_REFITTED


def _summed(work: UnitOfWork, query: RankingQuery, snapshot: Snapshot, standings: Standings) -> bool:
    """Whether the refit left sums to add to: it does where its debiased scores have a covariance."""
    if query.estimator == "debiased":
        return standings.covariance is not None
    debiased = work.snapshots.scores(snapshot.id, query.estimand, "debiased", query.segment or "")
    found = of_scores(debiased, query.pairs)
    return found is not None and found.covariance is not None


def _clusters(board: Board, snapshot: Snapshot) -> str:
    """Whether each row of the refit is a cluster of its own."""
    config, summary = board.config, snapshot.summary
    alone = config.population == "fixed" or config.unit == "context" or summary["contexts"] == summary["rows"]
    return "exact" if config.cluster == "context" and alone else "refitted"


def _scored(
    query: RankingQuery, snapshot: Snapshot, standings: Standings, sums: SegmentSums, *, prompts: bool
) -> Standings:
    """Scores, counts and statuses from both sums."""
    pairs = cast(Pairs, standings.pairs)
    scores = sums.scores.get((query.estimand, pairs)) or sums.scores.get((query.estimand, "all"))
    if scores is None:
        return standings
    balance, contexts = snapshot.summary["balance"], standings.contexts + sums.contexts
    consistent = balance is None or balance["consistent"]
    # What is scored here has a covariance, and with it two clusters or more.
    tally = Tally.made(sums.counts, contexts, clusters=2, consistent=consistent, prompts=prompts)
    unsupported: Floats = np.array([row["unsupported"] for row in standings.standing], dtype=np.float64)
    standing = tally.standing(list(_support(standings, unsupported)), unsupported)
    value, covariance = _numbers(standings, scores, sums.heard)
    counted = (standing.votes.tolist(), standing.effective_votes.tolist(), standing.status)
    columns = zip(standings.standing, *counted, strict=True)
    return replace(
        standings,
        status=tally.status(standing),
        value=value,
        covariance=covariance,
        n_rows=standings.n_rows + sums.rows,
        rows_used=standings.rows_used + sums.rows_used,
        contexts=contexts,
        standing=[
            {**row, "votes": votes, "effective_votes": effective, "status": status}
            for row, votes, effective, status in columns
        ],
    )


def _numbers(standings: Standings, scores: LiveSums, heard: Heard | None) -> tuple[Floats, Floats | None]:
    if standings.covariance is None:
        return scores.plug_in(standings.value, standings.n_rows), None
    found = scores.estimate(Estimate(standings.value, standings.covariance, standings.n_rows), heard)
    return found.value, found.covariance


def _support(standings: Standings, unsupported: Floats) -> Iterator[ItemStatus]:
    """What the refit's graph says of each item; it does not change before the next one."""
    ranked = set(standings.items)
    for row, share in zip(standings.standing, unsupported.tolist(), strict=True):
        if row["item"] not in ranked:
            yield "disconnected"
        else:
            yield "extrapolated" if standings.pairs == "all" and share > MOST_UNSUPPORTED else "ok"


def _listed(standings: Standings, newcomers: Mapping[str, int]) -> Standings:
    """The items unknown to the models beside the others, with their votes."""
    known = {row["item"] for row in standings.standing}
    rows = [
        {"item": name, "votes": votes, "effective_votes": None, "unsupported": None, "status": "few_votes"}
        for name, votes in newcomers.items()
        if name not in known and votes
    ]
    return replace(standings, standing=[*standings.standing, *rows])
