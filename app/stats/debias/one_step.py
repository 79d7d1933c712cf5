"""The cross-fitted one-step estimator of ranking scores, for any estimand on any graph.

psi_i = F(mu(x_i)) + Σ_{j≠k} S_ijk / pi_jk(x_i) J_jk(mu(x_i)) (Y_ijk - mu_jk(x_i)), theta^ = mean psi (DMLRank,
arXiv 2601.21816, Section 4). J_jk = dF/dp_jk q_jk with q_jk = dp_jk/dmu_jk, and <q_jk, mu_jk> = 0 whatever the weights,
so a vote's correction is the scalar weight/pi q_jkY times dF/dp_jk.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from app.stats.debias.clusters import Clustering
from app.stats.debias.layout import SHARD, Block, Layout
from app.stats.debias.paired import PairedCrossFit, ScoredPairs, is_pairwise, scored_pairs
from app.stats.debias.summing import Evaluated, Kept, Key, OneStep, Target, ranked_items, summed
from app.stats.debias.thinning import Thinning
from app.stats.debias.weights import sums_by
from app.stats.errors import InvalidInput
from app.stats.gars import PairwiseEstimand
from app.stats.types import Floats, Ints, Sample, Votes

__all__ = [
    "CrossFit",
    "Evaluated",
    "OneStep",
    "Scored",
    "Target",
    "checked_layout",
    "effective",
    "effective_votes",
    "evaluated_blocks",
    "one_step",
    "ranked_items",
    "scored_blocks",
    "summed",
    "thinning_of",
    "weight_sums",
]

# The fold models' (u, K, K, C) probabilities at covariate patterns (u,): mu(fold, patterns).
CrossFit = Callable[[int, Ints], Floats]


@dataclass(frozen=True)
class Scored:
    """What a block's mu says, the same for every target.

    Parameters
    ----------
    block : its place in the layout.
    index, left, right : (R,) the requests' cells within the block, and their pairs.
    p : (c, K, K) scores.
    correction : (v,) weight/pi q_jkY of each of the block's votes.
    """

    block: Block
    index: Ints
    left: Ints
    right: Ints
    p: Floats
    correction: Floats

    @property
    def shown(self) -> Ints:
        """Places of the cells with scores: all."""
        return np.arange(len(self.p))

    def pieces(self, target: Target) -> tuple[Floats, Floats]:
        """F (c, K) of the cells and dF/dp (R, K) at the requests."""
        return self.value(target), self._gradient(target)

    def value(self, target: Target) -> Floats:
        """F (c, K) of the cells."""
        return target.estimand.value(self.p, target.graph)

    def kept(self, target: Target) -> Kept:
        """F, and of a pairwise estimand the requests' own scores in the place of dF/dp."""
        value, left, right = self.value(target), self.left, self.right
        if isinstance(target.estimand, PairwiseEstimand):
            p, of_pairs = self.p[self.index, left, right], target.estimand.gradient_of_pairs
            return Kept(self.block, self.correction, None, value, lambda: of_pairs(p, left, right, target.graph))
        gradient = self._gradient(target)
        return Kept(self.block, self.correction, None, value, lambda: gradient)

    def _gradient(self, target: Target) -> Floats:
        return target.estimand.gradient_at(self.p, self.index, self.left, self.right, target.graph)


def scored_blocks(sample: Sample, mu: CrossFit, layout: Layout) -> Iterator[Scored]:
    """Evaluate mu once per distinct (fold, pattern), a block at a time."""
    for block in layout.blocks():
        cells, requests = block.cells, block.requests
        probabilities = mu(int(layout.fold[cells.start]), layout.pattern[cells])
        if not np.isfinite(probabilities.sum()):
            # Below, an unknown chance would pass for a rule that has no weight left: for ½.
            raise InvalidInput(f"the model of fold {int(layout.fold[cells.start])} gave chances that are no numbers")
        index, left, right = layout.cell[requests] - cells.start, layout.left[requests], layout.right[requests]
        at_requests = sample.rule.gradient(probabilities[index, left, right])
        votes = sample.votes.take(block.votes)
        gain = at_requests[layout.request[block.votes] - requests.start, votes.outcome]
        yield Scored(
            block,
            index,
            left,
            right,
            sample.rule.scores(probabilities),
            votes.weight / votes.propensity * gain,
        )


def evaluated_blocks(
    sample: Sample, mu: CrossFit, layout: Layout, thinning: Thinning | None
) -> Iterator[Scored | ScoredPairs]:
    """Every cell with all its pairs; of a thinned sample those with a row drawn, and of the others the requests."""
    if thinning is None or not isinstance(mu, PairedCrossFit):
        yield from scored_blocks(sample, mu, layout)
    else:
        yield from scored_pairs(sample, mu, layout, thinning)


def one_step(
    sample: Sample, mu: CrossFit, targets: Mapping[Key, Target], *, clustering: Clustering
) -> dict[Key, OneStep]:
    """Debiased scores of several targets in one pass over mu.

    Samples that are too large for F at every row are thinned, see `Thinning`, where mu can be asked for single pairs.

    Parameters
    ----------
    sample : rows, votes, folds.
    mu : the fold models; called once per distinct (fold, pattern), for blocks of patterns of one fold.
    targets : what to estimate.
    clustering : what the variance is clustered by.

    Raises
    ------
    InvalidInput
        Without rows, or with a propensity outside (0, 1].
    """
    thinning = thinning_of(sample, mu)
    if thinning is None:
        layout = checked_layout(sample)
        return summed(sample, layout, scored_blocks(sample, mu, layout), targets=targets, clustering=clustering)
    pairwise = {key: each for key, each in targets.items() if is_pairwise(each)}
    others = {key: each for key, each in targets.items() if key not in pairwise}
    found: dict[Key, OneStep] = {}
    if others:
        part = thinning.part(sample)
        layout = checked_layout(part)
        evaluated = scored_blocks(part, mu, layout)
        found |= summed(part, layout, evaluated, targets=others, clustering=clustering)
    if pairwise:
        layout = checked_layout(sample, thinning)
        pairs = evaluated_blocks(sample, mu, layout, thinning)
        found |= summed(sample, layout, pairs, targets=pairwise, clustering=clustering, thinning=thinning)
    return {key: found[key] for key in targets}


def thinning_of(sample: Sample, mu: CrossFit) -> Thinning | None:
    """How a sample is thinned; None where it is not, and where mu cannot be asked for single pairs."""
    return Thinning.of(sample) if isinstance(mu, PairedCrossFit) else None


def effective_votes(votes: Votes, n_items: int) -> Floats:
    """(Σw)²/Σw² of each item's votes, w = weight / propensity: (K,), 0 without votes."""
    return effective(*weight_sums(votes, n_items))


def weight_sums(votes: Votes, n_items: int) -> tuple[Floats, Floats]:
    """Σw and Σw² (K,) of each item's votes, w = weight / propensity."""
    weight = np.concatenate([votes.weight / votes.propensity] * 2)
    item = np.concatenate([votes.left, votes.right])
    return sums_by(item, weight, n_items), sums_by(item, weight**2, n_items)


def effective(total: Floats, square: Floats) -> Floats:
    """(Σw)²/Σw² (K,), 0 without votes."""
    return np.divide(total**2, square, out=np.zeros(total.size), where=square > 0)


def checked_layout(sample: Sample, thinning: Thinning | None = None, *, shard: int = SHARD) -> Layout:
    """The layout of a sample that has rows and valid propensities."""
    pi = sample.votes.propensity
    if sample.n_rows < 1:
        raise InvalidInput("a sample without rows")
    if not ((pi > 0) & (pi <= 1)).all():
        raise InvalidInput("propensities outside (0, 1]")
    return Layout.of(sample, shard=shard, valued=None if thinning is None else thinning.drawn)
