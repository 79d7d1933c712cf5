"""The facade: several estimands of one sample, on all pairs and on the observed ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from app.stats.debias.clusters import Clustering
from app.stats.debias.layout import Layout
from app.stats.debias.one_step import CrossFit, OneStep, Target, checked_layout, one_step
from app.stats.debias.support import Pairs, Support, SupportStatus, automatic_pairs, support_of, support_statuses
from app.stats.gars import Estimand, needs_every_pair, unsupported_shares
from app.stats.types import Floats, Sample

# Patterns that the unsupported share is averaged over, at most, and the K³ numbers that may cost.
PROBES = 32
PROBE_WORK = 200_000_000


@dataclass(frozen=True)
class Scores:
    """An estimand's debiased scores in both modes of pairs.

    Parameters
    ----------
    every : on all pairs (`pairs=all`).
    observed : on the supported pairs (`pairs=observed`); the same object where the graphs agree, and where the
        estimand needs every pair.
    unsupported : (K,) share of the item's Jacobian mass on pairs without support, 1 outside the ranked component.
    support : the pairs of the sample.
    """

    every: OneStep
    observed: OneStep
    unsupported: Floats
    support: Support

    @property
    def auto(self) -> Pairs:
        """The mode that `pairs=auto` takes."""
        return "all" if self.observed is self.every else automatic_pairs(self.unsupported)

    def of(self, pairs: Pairs) -> OneStep:
        """The result in one mode."""
        return self.every if pairs == "all" else self.observed

    def statuses(self, pairs: Pairs) -> list[SupportStatus]:
        """(K,) status of each item as far as support decides it."""
        return support_statuses(self.support, self.unsupported, pairs=pairs)


def estimate(
    sample: Sample, mu: CrossFit, estimands: Sequence[Estimand], *, clustering: Clustering, seed: int = 0
) -> dict[str, Scores]:
    """Debias every estimand on all and on observed pairs, in one pass over mu.

    Parameters
    ----------
    sample : a board, or the segment of one.
    mu : the fold models.
    estimands : with distinct names.
    clustering : what the variance is clustered by.
    seed : of the patterns over which unsupported shares are averaged, where there are many.

    Raises
    ------
    InvalidInput
        Without rows, or with a propensity outside (0, 1].
    """
    support = support_of(sample)
    targets = {
        (each.name, mode): Target(each, support.graph(mode)) for each in estimands for mode in _modes(each, support)
    }
    results = one_step(sample, mu, targets, clustering=clustering)
    shares = _unsupported(sample, mu, [targets[each.name, "all"] for each in estimands], support=support, seed=seed)
    return {
        each.name: Scores(results[each.name, "all"], results[each.name, _modes(each, support)[-1]], share, support)
        for each, share in zip(estimands, shares, strict=True)
    }


def _modes(estimand: Estimand, support: Support) -> tuple[Pairs, ...]:
    """On which graphs the estimand differs, and has a meaning."""
    return ("all",) if support.is_complete or needs_every_pair(estimand) else ("all", "observed")


def _unsupported(sample: Sample, mu: CrossFit, targets: list[Target], *, support: Support, seed: int) -> list[Floats]:
    """(K,) of each target; 1 outside the component."""
    inside = support.every.component
    outside = np.where(inside, 0.0, 1.0)
    if support.supported[np.ix_(inside, inside)].sum() == inside.sum() * (inside.sum() - 1):
        return [outside] * len(targets)
    p, size = _probe(sample, mu, checked_layout(sample), seed=seed)
    return [
        outside + unsupported_shares(each.estimand, p, each.graph, size=size, supported=support.supported)
        for each in targets
    ]


def _probe(sample: Sample, mu: CrossFit, layout: Layout, *, seed: int) -> tuple[Floats, Floats]:
    """Scores (u, K, K) and weighted Σ_c |q_jkc| of some patterns, those of a seeded draw of rows where many."""
    limit = max(1, min(PROBES, PROBE_WORK // sample.n_items**3))
    cells, count = np.arange(layout.fold.size), layout.rows
    if cells.size > limit:
        rows = np.random.default_rng(seed).choice(sample.n_rows, size=limit, replace=False)
        cells, count = np.unique(layout.row_cell[rows], return_counts=True)
    parts = [mu(int(fold), layout.pattern[cells[layout.fold[cells] == fold]]) for fold in np.unique(layout.fold[cells])]
    probabilities = np.concatenate(parts)
    size = np.abs(sample.rule.gradient(probabilities)).sum(axis=-1)
    return sample.rule.scores(probabilities), size * count[:, None, None]
