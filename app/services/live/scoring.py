"""Score live rows with a refit's models, segment by segment."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, combinations
from typing import Any

import numpy as np

from app.db.models.snapshots import Snapshot
from app.db.unit_of_work import UnitOfWork
from app.domain.boards import Board
from app.learners import Featuriser, load_model
from app.services.live.rows import LiveRows
from app.services.live.sums import SegmentSums
from app.services.refit.frozen import LIVE, FrozenBoard, FrozenSegment, unfreeze_board, unfreeze_segment
from app.services.refit.inputs import Inputs, Margins
from app.services.refit.scoring import estimands_of
from app.services.refit.segments import joined
from app.services.refit.snapshot import FEATURISER, MODEL
from app.services.refit.tables import Counts
from app.stats.debias.live import Heard, live_sums
from app.stats.debias.one_step import Target
from app.stats.debias.stretching import Stretched
from app.stats.gars import Estimand
from app.stats.types import Covariates, Floats, Ints, OutcomeModel

NUMBERS = 8_000_000
"""Chances (cells, K, K, C) held at a time."""

Documents = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Refitted:
    """A refit's models and tables; segments are read when a row is first in one.

    Parameters
    ----------
    board : what all segments share.
    models, featuriser : as they were fitted.
    estimands : by name.
    levels : names of the features that segments are made of.
    segments : the ones read so far.
    """

    board: FrozenBoard
    models: tuple[OutcomeModel, ...]
    featuriser: Featuriser | None
    estimands: Mapping[str, Estimand]
    levels: tuple[str, ...]
    segments: dict[str, FrozenSegment] = field(default_factory=dict)

    @classmethod
    def open(cls, work: UnitOfWork, board: Board, snapshot: Snapshot) -> Refitted:
        """Read them of a snapshot."""
        first = work.snapshots.artifact(snapshot.id, LIVE, 0)
        bodies = work.snapshots.artifacts(snapshot.id, FEATURISER)
        return cls(
            unfreeze_board(first),
            tuple(load_model(body) for body in work.snapshots.artifacts(snapshot.id, MODEL)),
            Featuriser.from_bytes(bodies[0]) if bodies else None,
            {each.name: each for each in estimands_of(board.config)},
            tuple(board.config.segments),
            {"": unfreeze_segment(first)},
        )

    def segment(self, work: UnitOfWork, snapshot: Snapshot, name: str) -> FrozenSegment:
        """One segment."""
        if name not in self.segments:
            number = 1 + self.board.segments.index(name)
            self.segments[name] = unfreeze_segment(work.snapshots.artifact(snapshot.id, LIVE, number))
        return self.segments[name]

    def covariates(self, documents: Documents) -> Covariates:
        """Of feature documents, those of levels unknown to the refit among them."""
        if self.featuriser is None:
            return Covariates(np.zeros((len(documents), 0)))
        return Covariates(self.featuriser.transform(documents))

    @property
    def rows_at_once(self) -> int:
        """Rows whose chances have room."""
        return max(NUMBERS // (len(self.board.items) ** 2 * self.board.rule.n_categories), 16)


def scored(
    refitted: Refitted, work: UnitOfWork, snapshot: Snapshot, *, rows: LiveRows, inputs: Inputs
) -> dict[str, SegmentSums]:
    """Sums of some rows, by segment; '' is the whole board."""
    documents, margins = inputs.documents, None if inputs.judges is None else inputs.judges.margins
    models = _Models(refitted.models, refitted.covariates(documents).x, margins)
    names = [set(_segments_of(document, refitted)) for document in documents]
    inside = {each: np.array([each in own for own in names]) for each in sorted({*chain.from_iterable(names)})}
    total: dict[str, SegmentSums] = {}
    for part in _portions(rows, refitted.rows_at_once):
        mu = _Tabulated(models)
        for name, patterns in inside.items():
            mask = patterns[part.sample.pattern]
            if not mask.any():
                continue
            frozen = refitted.segment(work, snapshot, name)
            sums = _of_segment(refitted, frozen, part.take(mask), mu)
            total[name] = total[name] + sums if name in total else sums
    return total


def _of_segment(refitted: Refitted, frozen: FrozenSegment, rows: LiveRows, mu: _Tabulated) -> SegmentSums:
    sample = frozen.nuisances.view(rows.sample, refitted=rows.refitted)
    targets = {key: Target(refitted.estimands[key[0]], frozen.graph(key[1])) for key in frozen.scores}
    thinned, used = None, ~rows.refitted
    if frozen.thinned is not None:
        times = frozen.thinned.times_of(rows.context_id, rows.refitted, rows.content)
        thinned, used = Stretched(times, frozen.thinned.centres, mu.models), used & (times > 0)
    sums = live_sums(sample, mu, targets, apart=bool(frozen.apart), thinned=thinned)
    counts = Counts.of(sample), int(rows.fresh.sum()), int(used.sum())
    return SegmentSums({**sums}, *counts, _heard(frozen, rows))


def _heard(frozen: FrozenSegment, rows: LiveRows) -> Heard | None:
    """Of the draws of some rows; an answer to a draw of the refit stands for so many offers as there were for each."""
    if not frozen.apart:
        return None
    offers, pairs, answers, late = rows.drawn.sum(axis=0).tolist()
    return Heard(offers, pairs, answers, late * frozen.per_pair)


def _portions(rows: LiveRows, size: int) -> Iterator[LiveRows]:
    number = np.arange(rows.sample.n_rows)
    for start in range(0, number.size, size):
        yield rows.take((number >= start) & (number < start + size))


def _segments_of(document: Mapping[str, Any], refitted: Refitted) -> Iterator[str]:
    """The segments that are scored, of contexts with these features."""
    yield ""
    levels = [f"{name}:{document[name]}" for name in refitted.levels if str(document.get(name, ""))]
    known = set(refitted.board.segments)
    yield from known.intersection([*levels, *(joined(pair) for pair in combinations(levels, 2))])


@dataclass(frozen=True)
class _Models:
    """Fold models of patterns whose judges' margins are spread out when they are asked for.

    Parameters
    ----------
    models : by fold.
    x : (u, d) of the patterns.
    margins : None where no judge was heard.
    """

    models: tuple[OutcomeModel, ...]
    x: Floats
    margins: Margins | None

    def __call__(self, fold: int, patterns: Ints, /) -> Floats:
        return self.models[fold].probabilities(self._of(patterns))

    def at(self, fold: int, patterns: Ints, left: Ints, right: Ints) -> Floats:
        """(m, C) of one ordered pair a pattern."""
        return self.models[fold].probabilities_at(self._of(patterns), left, right)

    def _of(self, patterns: Ints) -> Covariates:
        return Covariates(self.x[patterns], None if self.margins is None else self.margins.of(patterns))


@dataclass(frozen=True)
class _Tabulated:
    """Chances computed once for the cells of some rows, whatever segments these are in.

    Parameters
    ----------
    models : the fold models.
    known : mu (K, K, C) by fold and pattern, of those asked for so far.
    """

    models: _Models
    known: dict[tuple[int, int], Floats] = field(default_factory=dict)

    def __call__(self, fold: int, patterns: Ints) -> Floats:
        new = [number for number in patterns.tolist() if (fold, number) not in self.known]
        if new:
            found = self.models(fold, np.array(new))
            self.known.update(((fold, number), each) for number, each in zip(new, found, strict=True))
        return np.stack([self.known[fold, number] for number in patterns.tolist()])
