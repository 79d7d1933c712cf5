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
from app.stats.gars import Estimand
from app.stats.types import Covariates, Floats, Ints, OutcomeModel, Sample

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
        mu = _Tabulated.of(models, part.sample)
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
    draw = frozen.thinned
    thinned = None if draw is None else (draw.times_of(rows.context_id, rows.refitted), draw.centres)
    sums = live_sums(sample, mu, targets, apart=bool(frozen.apart), thinned=thinned)
    return SegmentSums({**sums}, Counts.of(sample), int(rows.fresh.sum()), _heard(frozen, rows))


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

    def __call__(self, fold: int, patterns: Ints) -> Floats:
        margins = None if self.margins is None else self.margins.of(patterns)
        return self.models[fold].probabilities(Covariates(self.x[patterns], margins))


@dataclass(frozen=True)
class _Tabulated:
    """Chances computed once for the cells of some rows, whatever segments these are in.

    Parameters
    ----------
    patterns, chances : by fold, the patterns (u,) in ascending order and mu (u, K, K, C).
    """

    patterns: dict[int, Ints]
    chances: dict[int, Floats]

    @classmethod
    def of(cls, models: _Models, sample: Sample) -> _Tabulated:
        patterns = {int(fold): np.unique(sample.pattern[sample.fold == fold]) for fold in np.unique(sample.fold)}
        return cls(patterns, {fold: models(fold, each) for fold, each in patterns.items()})

    def __call__(self, fold: int, patterns: Ints) -> Floats:
        return self.chances[fold][np.searchsorted(self.patterns[fold], patterns)]
