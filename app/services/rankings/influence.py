"""The influence rows behind a debiased score, one JSON line each, rebuilt from a snapshot's rows and models."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import orjson

from app.db.unit_of_work import UnitOfWork
from app.domain.boards import Board
from app.domain.errors import Conflict
from app.services.rankings.opened import Opened, estimand_named, open_snapshot
from app.services.rankings.query import RankingQuery, check
from app.services.rankings.segments import known_segment
from app.services.refit.segments import rows_of
from app.stats.debias.influence import InfluenceLines, influence_lines
from app.stats.debias.one_step import Target, one_step
from app.stats.debias.scores import estimate
from app.stats.debias.support import Pairs, support_of
from app.stats.types import Bools, Ints, Sample


def check_influence(work: UnitOfWork, board: Board, query: RankingQuery) -> None:
    """Refuse what `influence` could not write."""
    check(query, board.config)
    estimand_named(query.estimand, board.config)
    snapshot = work.snapshots.newest(board.id)
    if snapshot is None:
        raise Conflict("no-snapshot", "the board has no snapshot yet: refit it first")
    known_segment(query.segment, snapshot, board.config)


def influence(work: UnitOfWork, board: Board, query: RankingQuery) -> Iterator[bytes]:
    """Lines `{"row", "context", "cluster", "votes", "psi"}` of the newest snapshot's ranking; check the query first.

    The score is the mean of psi over the N lines and its standard error² is Σ_g (Σ_{i in g} (psi_i - score))² / N² over
    clusters g. With clusters by context and by voter at once, `cluster` has three labels: the sums over the first and
    the second add, that over the third is taken off.
    """
    snapshot = work.snapshots.newest(board.id)
    if snapshot is None:
        return
    opened = open_snapshot(work, snapshot)
    frame = opened.stored.frame
    rows = None if query.segment is None else rows_of(opened.stored, query.segment)
    sample = frame.view(rows)
    if sample.n_items < 2 or not len(sample.votes):
        return
    target = _target(sample, opened, board, query)
    mu, clustering = opened.models.mu, frame.clustering
    result = one_step(sample, mu, {"": target}, clustering=clustering)[""]
    writer = _Writer(work, opened, sample, rows, [frame.items[at] for at in result.items.tolist()])
    for chunk in influence_lines(sample, mu, result, clustering=clustering):
        yield from writer.lines(chunk)


def _target(sample: Sample, opened: Opened, board: Board, query: RankingQuery) -> Target:
    estimand = estimand_named(query.estimand, board.config)
    support = support_of(sample)
    if query.pairs != "auto":
        return Target(estimand, support.graph("all" if query.pairs == "all" else "observed"))
    mode: Pairs = "all"
    if not support.is_complete:
        clustering = opened.stored.frame.clustering
        mode = estimate(sample, opened.models.mu, [estimand], clustering=clustering)[estimand.name].auto
    return Target(estimand, support.graph(mode))


class _Writer:
    """Writes chunks of influence lines with the public names of contexts and votes."""

    def __init__(
        self, work: UnitOfWork, opened: Opened, sample: Sample, rows: Bools | None, items: Sequence[str]
    ) -> None:
        frame = opened.stored.frame
        self._work = work
        self._items = items
        self._context = frame.context_id if rows is None else frame.context_id[rows]
        self._number = np.arange(self._context.size) if rows is None else np.flatnonzero(rows)
        self._vote = frame.vote_id if rows is None else frame.vote_id[rows[frame.sample.votes.row]]
        self._order = np.argsort(sample.votes.row, kind="stable")
        self._starts = np.searchsorted(sample.votes.row[self._order], np.arange(sample.n_rows + 1))

    def lines(self, chunk: InfluenceLines) -> Iterator[bytes]:
        """The chunk's lines, each with its line feed."""
        contexts = self._work.gather.context_names(self._context[chunk.row])
        spans = [self._votes_of(row, vote) for row, vote in zip(chunk.row.tolist(), chunk.vote.tolist(), strict=True)]
        names = self._work.gather.vote_names(np.concatenate(spans) if spans else self._vote[:0])
        for at, row in enumerate(chunk.row.tolist()):
            line: dict[str, Any] = {
                "row": int(self._number[row]),
                "context": contexts.get(int(self._context[row])),
                "cluster": _cluster(chunk.cluster[at]),
                "votes": [names[vote] for vote in spans[at].tolist()],
                "psi": dict(zip(self._items, chunk.psi[at].tolist(), strict=True)),
            }
            yield orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE)

    def _votes_of(self, row: int, vote: int) -> Ints:
        """Database ids of the votes of a line: of its row, or the one whose correction it is."""
        if vote >= 0:
            return self._vote[vote : vote + 1]
        found = self._vote[self._order[self._starts[row] : self._starts[row + 1]]]
        # Once each, though a vote on a menu has many pairs.
        return found[np.sort(np.unique(found, return_index=True)[1])]


def _cluster(labels: Ints) -> int | list[int]:
    return int(labels[0]) if labels.size == 1 else [int(label) for label in labels]
