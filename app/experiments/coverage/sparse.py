"""A board on which many pairs are never shown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from app.experiments.boards import board
from app.experiments.coverage.bars import COVERS, Bar
from app.experiments.coverage.case import ESTIMANDS, Reading, Results, Truths, read, truths_of
from app.stats.debias import Clustering
from app.stats.gars import Graph
from app.stats.simulate import Arena, Shown, Strength
from app.stats.types import Bools

UNIT = Clustering(unit="battle")
NEVER_SHOWN = 0.46
# Slopes that are mild, so that what the model cannot know are the pair terms.
TWISTED = Arena(20, taste=0.0, strength=Strength(slope=0.7, cycle=0.0, pairs=0.7))


@dataclass(frozen=True)
class Sparse:
    """Of 190 pairs 46% are never shown, and every pair has a term of its own that no model can guess.

    `observed` claims the scores on the pairs that are shown, `all` those on every pair: it cannot know them, and says
    `extrapolated`.
    """

    learner: str
    generator: Arena = TWISTED
    n: int = 8000
    setting: str = "sparse"
    name: str = "46% never shown"

    @property
    def rules(self) -> Mapping[str, Bar]:
        return {"pairs=observed": COVERS, "pairs=all": Bar("fails", ideal=False, extrapolated=True)}

    @property
    def estimands(self) -> Sequence[str]:
        return [each.name for each in ESTIMANDS]

    def truths(self) -> Truths:
        allowed = shown_pairs(self.generator.n_items)
        graph = Graph(allowed / 2.0, np.ones(self.generator.n_items, dtype=np.bool_))
        observed = truths_of(self.generator, graph)
        return {**truths_of(self.generator), **{f"observed {name}": true for name, true in observed.items()}}

    def replicate(self, truths: Truths, seed: int) -> Results:
        allowed = shown_pairs(self.generator.n_items)
        draws = self.generator.draw_among(Shown(allowed[None], np.zeros(self.n, dtype=np.int64)), seed=seed)
        drawn = board(self.generator, draws, seed=seed, clustering=UNIT)
        sample = replace(drawn.sample, possible=allowed)
        own = {name: truths[f"observed {name}"] for name in self.estimands}
        readings = {
            "pairs=observed": Reading(sample, UNIT, own, "observed"),
            "pairs=all": Reading(sample, UNIT, truths, "all"),
        }
        return read(drawn, readings, probabilities=self.generator.probabilities, learner=self.learner)


def shown_pairs(n_items: int) -> Bools:
    """(K, K) ordered pairs that are shown, drawn once and for all; they hang together."""
    left, right = np.triu_indices(n_items, 1)
    chosen = np.random.default_rng(46).permutation(left.size)[: round((1.0 - NEVER_SHOWN) * left.size)]
    allowed = np.zeros((n_items, n_items), dtype=np.bool_)
    allowed[left[chosen], right[chosen]] = True
    return allowed | allowed.T


def sparse(learner: str) -> Iterator[Sparse]:
    """Pairs without votes."""
    yield Sparse(learner)
