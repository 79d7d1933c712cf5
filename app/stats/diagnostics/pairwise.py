"""Debiased means of every ordered pair's score, under several rules in one pass over mu.

Borda and Bradley-Terry scores are linear in the pairs' mean shares and mean log-odds: from these means they follow
under any rule, without fitting a model again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import logit

from app.stats.debias.clusters import Clustering
from app.stats.debias.layout import Block, Layout
from app.stats.debias.one_step import CrossFit, checked_layout, thinning_of
from app.stats.debias.paired import PairedCrossFit, at_requests
from app.stats.debias.thinning import Thinning
from app.stats.debias.weights import sums_by
from app.stats.gars import Graph
from app.stats.gars.bradley_terry import CLIP
from app.stats.types import Floats, Ints, Rule, Sample


@dataclass(frozen=True, slots=True)
class PairMeans:
    """One-step means over rows of p_jk and of logit p_jk, p clipped to [1e-3, 1 - 1e-3] in the logit.

    Parameters
    ----------
    share, odds : (K, K) of each ordered pair (j first); a pair without votes has the model's mean.
    share_step, odds_step : (m,) what each vote adds to the sum over rows: weight/pi h'(p) q_Y.
    odds_variance : (m,) variance of `odds_step` by the model, given context and pair.
    """

    share: Floats
    odds: Floats
    share_step: Floats
    odds_step: Floats
    odds_variance: Floats

    def borda(self, graph: Graph) -> Floats:
        """(K,) debiased Borda scores; 0 outside the component."""
        scores: Floats = graph.shares(self.share).sum(axis=1) / np.maximum(graph.degree, 1.0)
        return scores

    def bradley_terry(self, graph: Graph) -> Floats:
        """(K,) debiased Bradley-Terry projection, log-odds; 0 outside the component."""
        flow = graph.order * self.odds
        scores: Floats = graph.laplacian_inverse @ (flow.sum(axis=1) - flow.sum(axis=0))
        return scores


def pair_means(sample: Sample, mu: CrossFit, rules: Sequence[Rule]) -> list[PairMeans]:
    """The means of a sample under each rule.

    On a sample that is thinned those of mu are means over the rows drawn; every vote corrects them.

    Parameters
    ----------
    sample : rows, votes, folds; its own rule is not used.
    mu : the fold models; called once per distinct (fold, pattern).
    rules : how outcomes are credited.

    Raises
    ------
    InvalidInput
        Without rows, or with a propensity outside (0, 1].
    """
    thinning = thinning_of(sample, mu)
    layout = checked_layout(sample, thinning)
    running = [_Running(sample, rule) for rule in rules]
    for asked in _asked(sample, mu, layout, thinning):
        for each in running:
            each.add(asked, layout)
    return [each.close() for each in running]


@dataclass(frozen=True)
class _Asked:
    """What a block asks of mu.

    Parameters
    ----------
    block : its place in the layout.
    mu : (h, K, K, C) of the cells that count.
    mass : (h,) rows of theirs, stretched where thinned.
    at : (R, C) of the requests.
    """

    block: Block
    mu: Floats
    mass: Floats
    at: Floats


def _asked(sample: Sample, mu: CrossFit, layout: Layout, thinning: Thinning | None) -> Iterator[_Asked]:
    if thinning is None or not isinstance(mu, PairedCrossFit):
        for block in layout.blocks():
            cells, requests = block.cells, block.requests
            found = mu(int(layout.fold[cells.start]), layout.pattern[cells])
            at = found[layout.cell[requests] - cells.start, layout.left[requests], layout.right[requests]]
            yield _Asked(block, found, layout.rows[cells].astype(np.float64), at)
        return
    mass = sums_by(layout.row_cell, thinning.stretch(np.arange(sample.n_rows)), layout.rows.size)
    pairs = at_requests(mu, layout, sample.rule.n_categories)
    for block in layout.blocks():
        shown = block.cells.start + np.flatnonzero(mass[block.cells])
        found = mu(int(layout.fold[block.cells.start]), layout.pattern[shown])
        yield _Asked(block, found, mass[shown], pairs[block.requests])


class _Running:
    """The sums of one rule."""

    def __init__(self, sample: Sample, rule: Rule) -> None:
        size = sample.n_items
        self._sample, self._rule = sample, rule
        self._share, self._odds = np.zeros((size, size)), np.zeros((size, size))
        self._steps = np.zeros((3, len(sample.votes)))

    def add(self, asked: _Asked, layout: Layout) -> None:
        """Add a block's cells and votes."""
        p, rule = self._rule.scores(asked.mu), self._rule
        self._share += np.tensordot(asked.mass, p, 1)
        self._odds += np.tensordot(asked.mass, logit(np.clip(p, CLIP, 1.0 - CLIP, out=p)), 1)
        self._steps[:, asked.block.votes] = self._steps_of(asked.at, rule.scores(asked.at), layout, asked.block)

    def _steps_of(self, mu: Floats, p: Floats, layout: Layout, block: Block) -> Floats:
        """(3, v) share step, log-odds step and its variance of a block's votes, from their requests' mu and p."""
        votes = self._sample.votes.take(block.votes)
        at, gradient = layout.request[block.votes] - block.requests.start, self._rule.gradient(mu)
        inside = (p > CLIP) & (p < 1.0 - CLIP)
        slope = np.divide(1.0, p * (1.0 - p), out=np.zeros(p.shape), where=inside)[at]
        weight = votes.weight / votes.propensity
        step = weight * gradient[at, votes.outcome]
        spread = (mu * gradient**2).sum(axis=1)[at]
        return np.stack([step, step * slope, (weight * slope) ** 2 * spread])

    def close(self) -> PairMeans:
        """The means."""
        sample, steps = self._sample, self._steps
        share = (self._share + pair_sums(sample, steps[0])) / sample.n_rows
        odds = (self._odds + pair_sums(sample, steps[1])) / sample.n_rows
        return PairMeans(share, odds, *steps)


def pair_sums(sample: Sample, of_vote: Floats) -> Floats:
    """(K, K) sums of a number per vote (m,) over each ordered pair."""
    size, votes = sample.n_items, sample.votes
    return sums_by(votes.left * size + votes.right, of_vote, size * size).reshape(size, size)


def clustered_error(clustering: Clustering, sample: Sample, value: Floats, correction: Floats) -> float:
    """Standard error of Σ value + Σ correction, both of mean 0, summed within the clusters first.

    Parameters
    ----------
    clustering : what the variance is clustered by.
    sample : the rows and votes.
    value, correction : (n,) of each row and (m,) of each vote.
    """
    total = 0.0
    for term in clustering.terms(sample):
        size = int(max(term.row.max(initial=0), term.vote.max(initial=0))) + 1
        sums = sums_by(term.row, value, size) + sums_by(term.vote, correction, size)
        total += term.sign * float(sums @ sums)
    return float(np.sqrt(max(total, 0.0)))


def labels_of_votes(clustering: Clustering, sample: Sample) -> Ints:
    """(m,) cluster of each vote; where two ways of clustering are asked for, that by voter."""
    terms = clustering.terms(sample)
    return terms[min(1, len(terms) - 1)].vote
