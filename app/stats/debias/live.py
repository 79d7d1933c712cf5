"""Rows that come in between two refits, scored with what the last refit found.

Frozen are the fold models, the frequencies and rates behind propensities, and the graphs. The increments are added to
the sums behind the refitted estimate: with logged propensities they are martingale differences around theta + R(mu^),
where R is 0 for Borda and of second order in the error of mu^ for other scores (DMLRank, arXiv 2601.21816, Section 4);
it does not shrink as live rows pile up, so that a refit has to come before they are many.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from app.stats.debias.influence import InfluenceRows, influence_of
from app.stats.debias.moments import Moments
from app.stats.debias.one_step import CrossFit, Target, ranked_items
from app.stats.debias.propensity import KeptRates, Unit, corrected_for_exclusions, used_propensities
from app.stats.types import Bools, Estimate, Floats, Sample

Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Nuisances:
    """What propensities are made of besides what was logged, frozen at a refit.

    Parameters
    ----------
    frequency : (V, K, K) of each ordered pair by fold, given that a row is eligible; None where pi is logged.
    rates : what exclusions left.
    share : (K, K) share of the refitted rows that were eligible for each pair.
    unit : what an offer is.
    """

    frequency: Floats | None
    rates: KeptRates
    share: Floats
    unit: Unit

    def view(self, sample: Sample, *, refitted: Bools) -> Sample:
        """The sample with the propensities to use; a vote on a pair unknown to the refit gets no weight.

        A row that the refit had stands among rows of which only a share was eligible; rows that are new since, made
        while every item could be drawn, are eligible all.

        Parameters
        ----------
        sample : rows with the folds of the refit's rule, propensities as they were logged.
        refitted : (n,) rows that the refit had already.
        """
        votes, pi = sample.votes, self._given(sample)
        among = used_propensities(pi, self.share, left=votes.left, right=votes.right)
        used = np.where(refitted[votes.row], among, pi)
        weight, used = np.where(used > 0, votes.weight, 0.0), np.where(used > 0, used, 1.0)
        return replace(sample, votes=replace(votes, weight=weight, propensity=used))

    def _given(self, sample: Sample) -> Floats:
        """(m,) given that the row is eligible."""
        votes = sample.votes
        if self.frequency is not None:
            pi: Floats = self.frequency[sample.fold[votes.row], votes.left, votes.right]
            return pi
        return corrected_for_exclusions(
            votes.propensity, self.rates, left=votes.left, right=votes.right, unit=self.unit
        )


@dataclass(frozen=True, slots=True)
class LiveSums:
    """Sums over live rows, less what these rows had been before: they add and subtract, exactly and in any order.

    Parameters
    ----------
    psi : n, Σ psi and Σ psi psiᵀ.
    value : (d,) Σ F.
    """

    psi: Moments
    value: Floats

    @classmethod
    def none(cls, size: int) -> LiveSums:
        """No row, of `size` scores."""
        return cls(Moments(0, np.zeros(size), np.zeros((size, size))), np.zeros(size))

    @classmethod
    def of(cls, rows: Iterable[InfluenceRows], size: int) -> LiveSums:
        """Of some rows."""
        total = cls.none(size)
        for each in rows:
            total += cls(Moments.of(each.psi), each.value.sum(axis=0))
        return total

    def __add__(self, other: LiveSums) -> LiveSums:
        return LiveSums(self.psi + other.psi, self.value + other.value)

    def __sub__(self, other: LiveSums) -> LiveSums:
        return LiveSums(self.psi - other.psi, self.value - other.value)

    def estimate(self, refitted: Estimate) -> Estimate:
        """The refitted estimate with these rows.

        Where the refit clustered its rows its own part stays clustered, and each live row is a cluster of its own.

        Raises
        ------
        NotIdentified
            Without a row.
        """
        return (Moments.behind(refitted) + self.psi).estimate()

    def plug_in(self, refitted: Floats, n_rows: int) -> Floats:
        """(d,) the plug-in of `n_rows` refitted rows with these rows."""
        plug_in: Floats = (n_rows * refitted + self.value) / (n_rows + self.psi.n)
        return plug_in


def live_sums(sample: Sample, mu: CrossFit, targets: Mapping[Key, Target]) -> dict[Key, LiveSums]:
    """Sums of several targets over all rows of a sample, in one pass over mu.

    Parameters
    ----------
    sample : live rows.
    mu : the refit's fold models.
    targets : on the refit's graphs.
    """
    influence = influence_of(sample, mu, targets)
    return {key: LiveSums.of(each.by_row(), ranked_items(targets[key].graph).size) for key, each in influence.items()}
