"""The debiased estimator that believes in a Bradley-Terry model of the decisive votes.

Given that a vote is decisive, P(left | x, j, k) = σ(r_j(x) - r_k(x) + b(x)); theta = E r(X), Σ r = 0. With
d_jk = (e_j - e_k, 1) and I(x) = Σ_{j≠k} pi_jk P(decisive | x, j, k) μ_jk (1 - μ_jk) d_jk d_jkᵀ,

psi_i = r(x_i) + first K of H (Hᵀ I(x_i) H)⁻¹ Hᵀ Σ_{j≠k} S_ijk D_ijk (Y_ijk - μ_jk) d_jk,

H a basis of the vectors whose first K entries sum to 0 (DMLRank, arXiv 2601.21816, Section 7 and Appendix F).
P(decisive) belongs in I: a tie says nothing about r, and without the factor the correction comes out too small.

Where the policy in I is not the one that drew, each decisive vote is weighed by their ratio: the sum's mean is then
I(x) (r - r^) to first order whatever policy stands in I; with the true one the weight is 1. Nothing is divided by a
small propensity alone. Where no such model holds, theta is whatever the pairs that were shown make of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, logit

from app.stats.debias.clusters import Clustering
from app.stats.debias.layout import Block, Layout
from app.stats.debias.one_step import CrossFit, OneStep, Target, checked_layout, ranked_items, summed
from app.stats.debias.propensity import Exposure, Labels, Unit, estimated_propensities
from app.stats.debias.support import support_of
from app.stats.errors import NotIdentified
from app.stats.gars import BradleyTerry, Graph
from app.stats.gars.bradley_terry import CLIP
from app.stats.types import Floats, Ints, Rule, Sample

# pi × eligibility at covariate patterns (u,) of rows of a fold: policy(fold, patterns) is (u, K, K) or, where it is
# the same for all of them, (K, K).
Policy = Callable[[int, Ints], Floats]


def decisive(rule: Rule) -> Rule:
    """Left or right by the sign of w1 - w2, everything else dropped.

    A graded verdict counts as a whole one: "slightly better" is decisive.

    Raises
    ------
    NotIdentified
        Where no category credits one side more than the other.
    """
    left, right = rule.first > rule.second, rule.first < rule.second
    if not (left | right).any():
        raise NotIdentified("no category of the votes is decisive")
    return Rule(left.astype(np.float64), right.astype(np.float64))


def pair_frequencies(sample: Sample, *, unit: Unit) -> Policy:
    """How often each ordered pair was labelled on the rows of the other folds, where no policy is stored.

    Parameters
    ----------
    sample : all of whose rows could have shown every item, in one offer each.
    unit : what an offer is.
    """
    size, votes = sample.n_items, sample.votes
    row, pair = np.divmod(np.unique((votes.row * size + votes.left) * size + votes.right), size * size)
    table = estimated_propensities(
        Labels(row, pair // size, pair % size),
        Exposure.always(sample.n_rows, size),
        fold=sample.fold,
        n_folds=int(sample.fold.max(initial=0)) + 1,
        unit=unit,
    )
    return lambda fold, _patterns: table[fold]


def restricted(sample: Sample, mu: CrossFit, policy: Policy, *, clustering: Clustering) -> OneStep:
    """Scores under a Bradley-Terry model of the decisive votes, on the component of observed pairs with most votes.

    Parameters
    ----------
    sample : rows, votes, folds.
    mu : the fold models; r(x) and b(x) are the least-squares projection of their decisive log-odds on d_jk.
    policy : what stands for pi in I(x), × the share of rows eligible.
    clustering : what the variance is clustered by.

    Returns
    -------
    Scores in log-odds that sum to 0; the plug-in is the mean of r(x).

    Raises
    ------
    NotIdentified
        Without decisive votes, and where the sides on which pairs were shown do not tell position from strength.
    InvalidInput
        Without rows, or with a propensity outside (0, 1].
    """
    rule = decisive(sample.rule)
    model = _Model.of(support_of(sample).observed, rule)
    if not (rule.first + rule.second)[sample.votes.outcome].any():
        raise NotIdentified("no vote is decisive")
    layout = checked_layout(sample)
    evaluated = model.blocks(sample, mu, policy, layout=layout)
    target = Target(BradleyTerry(), model.graph)
    return summed(sample, layout, evaluated, targets={"": target}, clustering=clustering)[""]


@dataclass(frozen=True)
class _Pieces:
    """A block's share in psi; see `Evaluated`."""

    block: Block
    correction: Floats
    value: Floats
    gradient: Floats

    def pieces(self, _target: Target) -> tuple[Floats, Floats]:
        """r (c, K) of the cells and the leading K of I⁺ d (R, K) at the requests."""
        return self.value, self.gradient


@dataclass(frozen=True)
class _Model:
    """Bradley-Terry with a position term, on the items of a graph.

    Parameters
    ----------
    graph : the observed pairs, of m items.
    rule : the decisive categories.
    projection : (m + 1, m + 1) pseudo-inverse of Σ o_jk d_jk d_jkᵀ.
    """

    graph: Graph
    rule: Rule
    projection: Floats

    @classmethod
    def of(cls, graph: Graph, rule: Rule) -> _Model:
        """Check that r and b can be told apart."""
        size = ranked_items(graph).size
        if size < 2:
            raise NotIdentified("no two items were compared")
        normal = _information(graph.order[np.ix_(graph.ranked, graph.ranked)][None])[0]
        if np.linalg.matrix_rank(normal, hermitian=True) < size:
            raise NotIdentified("the sides on which pairs were shown do not tell position from strength")
        return cls(graph, rule, np.linalg.pinv(normal, hermitian=True))

    def blocks(self, sample: Sample, mu: CrossFit, policy: Policy, *, layout: Layout) -> Iterator[_Pieces]:
        """Evaluate mu once per distinct (fold, pattern), a block at a time."""
        for block in layout.blocks():
            fold, pattern = int(layout.fold[block.cells.start]), layout.pattern[block.cells]
            first, decided = self._chances(mu(fold, pattern))
            strength, position = self._project(first, decided)
            chance = expit(strength[:, :, None] - strength[:, None, :] + position[:, None, None])
            shown = self._inside(np.broadcast_to(policy(fold, pattern), (pattern.size, *self.graph.order.shape)))
            shown = np.where(self._inside(self.graph.order) > 0, shown, 0.0)
            inverse = _pseudo_inverse(_information(shown * decided * chance * (1.0 - chance)))
            at = self._requests(layout, block)
            surprise = self._surprise(sample, layout, block, chance[at]) * shown[at][_request_of(layout, block)]
            yield _Pieces(block, surprise, self._spread(strength), self._spread(self._steps(inverse, at)))

    def _chances(self, probabilities: Floats) -> tuple[Floats, Floats]:
        """P(left) and P(decisive) of the ordered pairs of ranked items: (c, m, m)."""
        first = self._inside(probabilities @ self.rule.first)
        return first, first + self._inside(probabilities @ self.rule.second)

    def _project(self, first: Floats, decided: Floats) -> tuple[Floats, Floats]:
        """r (c, m) and b (c,) nearest to the decisive log-odds over the observed orders."""
        share = np.divide(first, decided, out=np.full(first.shape, 0.5), where=decided > 0)
        odds = self._inside(self.graph.order) * logit(np.clip(share, CLIP, 1.0 - CLIP))
        flow = odds.sum(axis=2) - odds.sum(axis=1)
        found = np.concatenate([flow, odds.sum(axis=(1, 2))[:, None]], axis=1) @ self.projection
        return found[:, :-1], found[:, -1]

    def _requests(self, layout: Layout, block: Block) -> tuple[Ints, Ints, Ints]:
        """Cell within the block and the pair, among the ranked items, of each request."""
        place = np.maximum(np.cumsum(self.graph.component) - 1, 0)
        asked = block.requests
        return layout.cell[asked] - block.cells.start, place[layout.left[asked]], place[layout.right[asked]]

    def _surprise(self, sample: Sample, layout: Layout, block: Block, chance: Floats) -> Floats:
        """weight/pi D (Y - μ) of each vote of the block, 0 outside the component."""
        votes = sample.votes.take(block.votes)
        says = self.graph.component[votes.left] & self.graph.component[votes.right]
        says &= (self.rule.first + self.rule.second > 0)[votes.outcome]
        residual = self.rule.first[votes.outcome] - chance[_request_of(layout, block)]
        surprise: Floats = says * votes.weight / votes.propensity * residual
        return surprise

    def _steps(self, inverse: Floats, at: tuple[Ints, Ints, Ints]) -> Floats:
        """The first m entries of I⁺ d (R, m)."""
        cell, left, right = at
        steps: Floats = (inverse[cell, left] - inverse[cell, right] + inverse[cell, -1])[:, :-1]
        return steps

    def _inside(self, values: Floats) -> Floats:
        """The pairs of ranked items: (..., m, m) of (..., K, K)."""
        row, column = np.ix_(self.graph.ranked, self.graph.ranked)
        inside: Floats = values[..., row, column]
        return inside

    def _spread(self, values: Floats) -> Floats:
        """(u, K) of (u, m), 0 for items without a score."""
        spread = np.zeros((len(values), self.graph.n_items))
        spread[:, self.graph.ranked] = values
        return spread


def _request_of(layout: Layout, block: Block) -> Ints:
    """The place among the block's requests of each of its votes."""
    place: Ints = layout.request[block.votes] - block.requests.start
    return place


def _information(weight: Floats) -> Floats:
    """Σ w_jk d_jk d_jkᵀ: (c, m + 1, m + 1) of the pairs' weights (c, m, m)."""
    size = weight.shape[-1]
    first, second = weight.sum(axis=2), weight.sum(axis=1)
    information = np.zeros((len(weight), size + 1, size + 1))
    information[:, :size, :size] = -(weight + np.swapaxes(weight, 1, 2))
    each = np.arange(size)
    information[:, each, each] += first + second
    information[:, size, :size] = information[:, :size, size] = first - second
    information[:, size, size] = first.sum(axis=1)
    return information


def _pseudo_inverse(information: Floats) -> Floats:
    """H (Hᵀ I H)⁻¹ Hᵀ: the pseudo-inverse, as (1, …, 1, 0) is all that I sends to 0."""
    size = information.shape[-1] - 1
    null = np.concatenate([np.ones(size), [0.0]]) / np.sqrt(size)
    # Any positive multiple of the missing direction serves; one of I's own size keeps the matrix well conditioned.
    scale = np.trace(information, axis1=1, axis2=2)[:, None, None] / size
    inverse: Floats = np.linalg.inv(information + scale * np.outer(null, null))
    return inverse
