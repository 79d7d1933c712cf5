"""What live scores have to be where the refit averaged over a draw of its rows, written out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from app.db.models.snapshots import Snapshot
from app.db.unit_of_work import UnitOfWork
from app.services.rankings.standings import of_scores
from app.services.refit.frame import Frame
from app.services.refit.inputs import Inputs
from app.services.refit.segments import Segments
from app.services.refit.storage import Stored
from app.stats.debias.folds import Hashes, mix
from app.stats.debias.influence import influence_of
from app.stats.debias.one_step import CrossFit, Target
from app.stats.debias.thinning import Thinning
from app.stats.gars import PairwiseEstimand
from app.stats.types import Bools, Floats, Ints, Sample


@dataclass(frozen=True)
class Known:
    """What a refit drew, and what it found.

    Parameters
    ----------
    contexts : database ids of the contexts drawn.
    rows, drawn : n and M.
    plug_in, score : (d,) of the refit.
    """

    contexts: Ints
    rows: int
    drawn: int
    plug_in: Floats
    score: Floats

    @classmethod
    def of(cls, work: UnitOfWork, snapshot: Snapshot, stored: Stored, estimand: str, level: str) -> Known:
        """Draw again from the refit's rows."""
        inside = Segments(stored).rows(level) if level else np.ones(stored.frame.sample.n_rows, dtype=np.bool_)
        thinning = Thinning.of(stored.frame.view(inside))
        assert thinning is not None
        found = (
            of_scores(work.snapshots.scores(snapshot.id, estimand, estimator, level), "all")
            for estimator in ("plugin", "debiased")
        )
        values = [each.value for each in found if each is not None]
        contexts = stored.frame.context_id[inside][thinning.drawn]
        return cls(contexts[contexts > 0], thinning.drawn.size, thinning.rows_used, *values)

    def of_rows(self, context_id: Ints, earlier: Bools, content: Hashes) -> Floats:
        """(n,) how often each row counts; hashes of content draw new rows."""
        drawn = np.where(earlier, np.isin(context_id, self.contexts), content / 2.0**64 < self.drawn / self.rows)
        return np.where(drawn, self.rows / self.drawn, 0.0)


def content_of(inputs: Inputs, frame: Frame) -> Hashes:
    """(n,) hashes of the rows' contexts, of the vote's number where there is none."""
    keys = inputs.contexts.key[np.searchsorted(inputs.contexts.ids, frame.context_id)]
    content, row = mix(keys.astype(np.uint64)), frame.sample.votes.row
    alone = frame.context_id[row] == 0
    content[row[alone]] = mix(frame.vote_id[alone])
    return content


def parts_of(sample: Sample, mu: CrossFit, target: Target) -> tuple[Floats, Floats]:
    """F and correction (n, d) of each row, of a sample that is not thinned."""
    lines = list(influence_of(sample, lambda fold, patterns: mu(fold, patterns), {"": target})[""].by_row())
    order = np.argsort(np.concatenate([each.row for each in lines]))
    value, correction = (
        np.concatenate([getattr(each, name) for each in lines])[order] for name in ("value", "correction")
    )
    return value, correction


def stretched(known: Known, parts: tuple[Floats, Floats], times: Floats, target: Target) -> tuple[Floats, Floats]:
    """F and correction (n, d) of each row as the refit counts it."""
    value, correction = parts
    value = known.plug_in + times[:, None] * (value - known.plug_in)
    if isinstance(target.estimand, PairwiseEstimand):
        return value, correction
    centre = known.score - known.plug_in
    return value, centre + times[:, None] * (correction - centre)
