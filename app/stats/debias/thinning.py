"""Large samples: F averaged over a seeded draw of rows, the corrections of pairwise estimands over every vote.

With K items, F costs K² numbers a row and more, a correction of a pairwise estimand C numbers a vote. Let D be M of the
n rows, drawn without regard to anything: theta^ = mean_D F + mean C, whose variance is that of psi over n plus
Var F (1/M - 1/n). The stretched rows psi_i = mean_D F + (n/M) [i in D] (F_i - mean_D F) + C_i have just this mean and,
summed by cluster, this variance. Other estimands are estimated from the rows of D alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from app.stats.debias.segments import segment
from app.stats.types import Bools, Floats, Ints, Sample

LEAST_ROWS = 20_000
"""So many rows are never thinned."""
PAIRS = 200_000_000
"""Rows × K² from which F is averaged over a draw of rows."""
SEED = 20260121


@dataclass(frozen=True, slots=True)
class Thinning:
    """The rows that F is averaged over.

    Parameters
    ----------
    drawn : (n,) whether a row is one of them.
    rows_used : M, how many are.
    """

    drawn: Bools
    rows_used: int

    @classmethod
    def of(cls, sample: Sample) -> Thinning | None:
        """A draw by the rows' order, which is one of content; None where all rows, or all distinct cells, are few."""
        most = max(LEAST_ROWS, PAIRS // max(sample.n_items, 1) ** 2)
        if sample.n_rows <= most or _cells(sample) <= most:
            return None
        drawn = np.zeros(sample.n_rows, dtype=np.bool_)
        drawn[np.random.default_rng(SEED).permutation(sample.n_rows)[:most]] = True
        return cls(drawn, most)

    def stretch(self, rows: Ints) -> Floats:
        """n/M for those of the rows (b,) that were drawn, 0 for others; over all rows it sums to n."""
        stretched: Floats = np.where(self.drawn[rows], self.drawn.size / self.rows_used, 0.0)
        return stretched

    def part(self, sample: Sample) -> Sample:
        """The rows drawn, as a sample of their own with the propensities of the whole."""
        return segment(sample, self.drawn, propensity=sample.votes.propensity)


def _cells(sample: Sample) -> int:
    stride = int(sample.pattern.max(initial=0)) + 1
    return int(np.count_nonzero(np.bincount(sample.fold * stride + sample.pattern)))
