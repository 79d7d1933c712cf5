"""Rows of a thinned sample one by one, as they change between two refits and as new ones come.

The n rows of a refit count as n, and those that came since beside them. A refitted row stays stretched around what the
refit found, see `Thinning`; a new one is drawn with the chance M/n, by its content, and stretched alike, whatever the
mean of new rows is. F hangs on what is frozen alone, and corrections of pairwise estimands are those of all rows; of
scores estimated from the rows drawn, a late vote changes n/M times what these come to. Their mean moves with late votes
while rows stay stretched around where it was. That makes n² times their variance larger by (n²/M - n) times the square
of the move, which is a part in M of it for a move by one standard error.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from typing import Generic, TypeVar

import numpy as np

from app.stats.debias.influence import Influence, InfluenceRows, influence_of
from app.stats.debias.one_step import CrossFit, Target, checked_layout, ranked_items
from app.stats.debias.paired import PairedCrossFit, is_pairwise, scored_pairs
from app.stats.debias.segments import segment
from app.stats.debias.thinning import Thinning
from app.stats.types import Floats, Sample

Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Centre:
    """What rows of a thinned sample are stretched around.

    Parameters
    ----------
    value, correction : (d,) means of F and of the corrections at the refit.
    """

    value: Floats
    correction: Floats

    def stretched(self, rows: Iterable[InfluenceRows], times: Floats, *, pairwise: bool) -> Iterator[InfluenceRows]:
        """Rows as they count; corrections of pairwise estimands stay as they are.

        Parameters
        ----------
        rows : on their own.
        times : (n,) n/M for rows drawn, 0 for others.
        """
        for part in rows:
            factor = times[part.row, None]
            value, correction = self.value + factor * (part.value - self.value), part.correction
            if not pairwise:
                correction = self.correction + factor * (correction - self.correction)
            yield replace(part, value=value, correction=correction)


@dataclass(frozen=True)
class Stretched(Generic[Key]):
    """How the rows of a sample count.

    Parameters
    ----------
    times : (n,) see `Centre.stretched`.
    centres : by target.
    at : the fold models, asked for single pairs of rows that were not drawn.
    """

    times: Floats
    centres: Mapping[Key, Centre]
    at: PairedCrossFit

    def rows(self, sample: Sample, mu: CrossFit, targets: Mapping[Key, Target]) -> dict[Key, Iterable[InfluenceRows]]:
        """Influence rows by target, those drawn first; F is asked for at these alone."""
        found: dict[Key, Iterable[InfluenceRows]] = {}
        drawn = self.times > 0
        own, others = (segment(sample, each, propensity=sample.votes.propensity) for each in (drawn, ~drawn))
        lines = influence_of(own, mu, targets) if own.n_rows else {}
        bare = _without_values(others, self.at, targets) if others.n_rows else {}
        for key, target in targets.items():
            stretched, pairwise = self.centres[key].stretched, is_pairwise(target)
            valued = stretched(lines[key].by_row() if lines else (), self.times[drawn], pairwise=pairwise)
            found[key] = chain(valued, stretched(bare.get(key, ()), self.times[~drawn], pairwise=pairwise))
        return found


def _without_values(
    sample: Sample, mu: PairedCrossFit, targets: Mapping[Key, Target]
) -> dict[Key, Iterable[InfluenceRows]]:
    """Rows with the corrections of pairwise estimands alone; of others with nothing."""
    every, none = np.arange(sample.n_rows), Thinning(np.zeros(sample.n_rows, dtype=np.bool_), 1)
    layout = checked_layout(sample, none)
    blocks = list(scored_pairs(sample, mu, layout, none))
    found: dict[Key, Iterable[InfluenceRows]] = {}
    for key, target in targets.items():
        if is_pairwise(target):
            kept = tuple(block.kept(target) for block in blocks)
            of_votes = np.arange(len(sample.votes))
            found[key] = Influence(sample, mu, target, layout, none, every, of_votes, every.size, kept).by_row()
        else:
            nothing = np.zeros((every.size, ranked_items(target.graph).size))
            found[key] = [InfluenceRows(every, nothing, nothing)]
    return found
