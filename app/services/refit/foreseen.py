"""What the parts of a large board's refit ask its fold models again and again, found once."""

from __future__ import annotations

from functools import cache

import numpy as np

from app.learners.davidson.model import DavidsonModel
from app.services.refit.fitting import FoldModels
from app.stats.types import Bools, Floats, Ints, Sample


class Foreseen:
    """Fold models that were told what they will be asked; see `PairedCrossFit`.

    Parameters
    ----------
    models : the models.
    sample : the board's rows and votes.
    chances : (m, C) the models' probabilities of each vote's outcomes, on its own pair.
    rows : (n,) rows whose pairs will all be asked about, a few at a time; their trees are asked together.
    """

    def __init__(self, models: FoldModels, sample: Sample, chances: Floats, rows: Bools) -> None:
        self._models, self._sample, self._chances, self._rows = models, sample, chances, rows
        self._scores, self._pairs = cache(self._find_scores), cache(self._find_pairs)

    def __call__(self, fold: int, patterns: Ints, /) -> Floats:
        """(u, K, K, C); see `CrossFit`."""
        model = self._models.models[fold]
        if not isinstance(model, DavidsonModel):
            return self._models(fold, patterns)
        known, scores = self._scores(fold)
        at = _places(known, patterns)
        if (at < 0).any():
            return self._models(fold, patterns)
        return model.probabilities_with(self._models.covariates.take(patterns), scores[at])

    def at(self, fold: int, patterns: Ints, left: Ints, right: Ints) -> Floats:
        """(m, C) of one ordered pair per pattern."""
        known, votes = self._pairs(fold)
        at = _places(known, self._pair(patterns, left, right))
        found: Floats = self._chances[votes[at]] if votes.size else np.zeros((at.size, self._sample.rule.n_categories))
        new = np.flatnonzero(at < 0)
        if new.size:
            found[new] = self._models.at(fold, patterns[new], left[new], right[new])
        return found

    def _find_scores(self, fold: int) -> tuple[Ints, Floats]:
        """Patterns (u,) of the fold's rows that will be asked about, ascending, and their trees' scores (u, K + F)."""
        model, sample = self._models.models[fold], self._sample
        known = np.unique(sample.pattern[self._rows & (sample.fold == fold)])
        assert isinstance(model, DavidsonModel)
        return known, model.tree_scores(self._models.covariates.x[known])

    def _find_pairs(self, fold: int) -> tuple[Ints, Ints]:
        """Distinct pairs of patterns (u,) that were voted on in the fold, ascending, and a vote on each."""
        votes = self._sample.votes
        own = np.flatnonzero(self._sample.fold[votes.row] == fold)
        pair = self._pair(self._sample.pattern[votes.row[own]], votes.left[own], votes.right[own])
        known, first = np.unique(pair, return_index=True)
        return known, own[first]

    def _pair(self, pattern: Ints, left: Ints, right: Ints) -> Ints:
        size = self._sample.n_items
        return (pattern * size + left) * size + right


def _places(known: Ints, asked: Ints) -> Ints:
    """Where numbers are among the known ones, which ascend; -1 where they are not."""
    if not known.size:
        return np.full(asked.size, -1)
    at = np.minimum(np.searchsorted(known, asked), known.size - 1)
    return np.where(known[at] == asked, at, -1)
