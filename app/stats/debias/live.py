"""Rows that come in between two refits, scored with what the last refit found.

Frozen are the fold models, the frequencies and rates behind propensities, and the graphs. The increments are added to
the sums behind the refitted estimate: with logged propensities they are martingale differences around theta + R(mu^),
where R is 0 for Borda and of second order in the error of mu^ for other scores (DMLRank, arXiv 2601.21816, Section 4);
it does not shrink as live rows pile up, so that a refit has to come before they are many.

Where pairs are drawn and answered later, or never, there are two averages. Values F(mu^) are averaged over all N rows.
Let ρ_i be the chance that what was drawn for row i has been heard by now, whatever it hangs on besides the pair. Then
corrections have the expectation ρ_i Q_i with Q_i = Σ J (mu - mu^), and Σ corrections / Σ ρ_i is an average of Q, over
rows that are heard independently of what is in them. So psi_i = F_i + λ correction_i, with λ = N / Σ ρ_i one number
that counts tell. Rows change as they are drawn and as they are answered, never with their age, and λ is never larger
than the rows that there are over those of the refit.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from app.stats.debias.clusters import Clustering
from app.stats.debias.influence import InfluenceRows, influence_of
from app.stats.debias.moments import Moments
from app.stats.debias.one_step import CrossFit, Target, one_step, ranked_items
from app.stats.debias.propensity import KeptRates, Unit, corrected_for_exclusions, used_propensities
from app.stats.debias.stretching import Stretched
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
class Apart:
    """Values and corrections of rows on their own, for corrections that count λ times.

    Parameters
    ----------
    value : n, Σ F and Σ F Fᵀ.
    correction : (d, d) Σ (psi - F)(psi - F)ᵀ.
    """

    value: Moments
    correction: Floats

    @classmethod
    def behind(cls, whole: Estimate, half: Estimate, values: Estimate) -> Apart:
        """Of the rows behind three estimates that count corrections once, half, and not at all.

        What covariances say of rows, clustered or not, is quadratic in that number, so that three tell all.
        """
        n, mean = whole.n_rows, whole.value - values.value
        scatter = 2.0 * whole.covariance + 2.0 * values.covariance - 4.0 * half.covariance
        return cls(Moments.behind(values), n**2 * scatter + n * np.outer(mean, mean))

    def __add__(self, other: Apart) -> Apart:
        return Apart(self.value + other.value, self.correction + other.correction)

    def __sub__(self, other: Apart) -> Apart:
        return Apart(self.value - other.value, self.correction - other.correction)

    def stretched(self, psi: Moments, stretch: float) -> Moments:
        """The moments of F + λ (psi - F), from those of psi: λ psi + (1 - λ) F, squared."""
        total = stretch * psi.total + (1.0 - stretch) * self.value.total
        square = stretch * psi.square + (1.0 - stretch) * self.value.square
        return Moments(psi.n, total, square - stretch * (1.0 - stretch) * self.correction)


@dataclass(frozen=True, slots=True)
class Heard:
    """What became of pairs that were drawn, in shares of their rows.

    Parameters
    ----------
    offers : drawn since the refit.
    pairs : drawn for these.
    answers : of those pairs, an answer divided by its pair's chance, see `ResponseRates.oldest`.
    late : offers of the refit that answers since then stand for.
    """

    offers: float = 0.0
    pairs: float = 0.0
    answers: float = 0.0
    late: float = 0.0

    def __add__(self, other: Heard) -> Heard:
        return Heard(*(getattr(self, name) + getattr(other, name) for name in self.__slots__))

    def __sub__(self, other: Heard) -> Heard:
        return Heard(*(getattr(self, name) - getattr(other, name) for name in self.__slots__))

    def stretch(self, n_rows: int) -> float:
        """λ of `n_rows` rows, the refit's among them: those over the rows that corrections stand for.

        What answers of the refit's own draws came to it has in psi.
        """
        return n_rows / (n_rows - self.silent + self.late)

    @property
    def silent(self) -> float:
        """Offers since the refit less those that answers stand for. They are heard as often as their pairs are."""
        return self.offers * (1.0 - self.answers / self.pairs) if self.pairs > 0 else 0.0


@dataclass(frozen=True, slots=True)
class LiveSums:
    """Sums over live rows, less what these rows had been before: they add and subtract, exactly and in any order.

    Parameters
    ----------
    psi : n, Σ psi and Σ psi psiᵀ.
    value : (d,) Σ F.
    apart : where pairs are drawn, of the refitted rows and the live ones together; None elsewhere.
    """

    psi: Moments
    value: Floats
    apart: Apart | None = None

    @classmethod
    def none(cls, size: int, apart: Apart | None = None) -> LiveSums:
        """No live row, of `size` scores."""
        return cls(_nothing(size), np.zeros(size), apart)

    @classmethod
    def of(cls, rows: Iterable[InfluenceRows], size: int, *, apart: bool = False) -> LiveSums:
        """Of some rows."""
        total = cls.none(size, Apart(_nothing(size), np.zeros((size, size))) if apart else None)
        for each in rows:
            value = Moments.of(each.value)
            parts = Apart(value, each.correction.T @ each.correction) if apart else None
            total += cls(Moments.of(each.psi), value.total, parts)
        return total

    def __add__(self, other: LiveSums) -> LiveSums:
        apart = None if self.apart is None or other.apart is None else self.apart + other.apart
        return LiveSums(self.psi + other.psi, self.value + other.value, apart)

    def __sub__(self, other: LiveSums) -> LiveSums:
        apart = None if self.apart is None or other.apart is None else self.apart - other.apart
        return LiveSums(self.psi - other.psi, self.value - other.value, apart)

    def estimate(self, refitted: Estimate, heard: Heard | None = None) -> Estimate:
        """The refitted estimate with these rows.

        Where the refit clustered its rows its own part stays clustered, and each live row is a cluster of its own.

        Parameters
        ----------
        refitted : the estimate.
        heard : of the draws, where there are any.

        Raises
        ------
        NotIdentified
            Without a row.
        """
        psi = Moments.behind(refitted) + self.psi
        if self.apart is not None and heard is not None:
            psi = self.apart.stretched(psi, heard.stretch(psi.n))
        return psi.estimate()

    def plug_in(self, refitted: Floats, n_rows: int) -> Floats:
        """(d,) the plug-in of `n_rows` refitted rows with these rows."""
        plug_in: Floats = (n_rows * refitted + self.value) / (n_rows + self.psi.n)
        return plug_in


def _nothing(size: int) -> Moments:
    return Moments(0, np.zeros(size), np.zeros((size, size)))


def live_sums(
    sample: Sample,
    mu: CrossFit,
    targets: Mapping[Key, Target],
    *,
    apart: bool = False,
    thinned: Stretched[Key] | None = None,
) -> dict[Key, LiveSums]:
    """Sums of several targets over all rows of a sample, in one pass over mu.

    Parameters
    ----------
    sample : live rows.
    mu : the refit's fold models.
    targets : on the refit's graphs.
    apart : whether values and corrections are wanted on their own too.
    thinned : how rows count where the refit thinned its own.
    """
    rows: Mapping[Key, Iterable[InfluenceRows]]
    if thinned is None:
        rows = {key: each.by_row() for key, each in influence_of(sample, mu, targets).items()}
    else:
        rows = thinned.rows(sample, mu, targets)
    return {key: LiveSums.of(each, ranked_items(targets[key].graph).size, apart=apart) for key, each in rows.items()}


def parts_behind(
    sample: Sample,
    mu: CrossFit,
    targets: Mapping[Key, Target],
    estimates: Mapping[Key, Estimate],
    clustering: Clustering,
) -> dict[Key, Apart]:
    """Values and corrections of refitted rows on their own, clustered as their estimates are.

    Parameters
    ----------
    sample, mu, targets, clustering : of the refit.
    estimates : by target, what `one_step` says of them, of all rows where they were thinned.
    """
    half, values = (
        one_step(
            replace(sample, votes=replace(sample.votes, weight=share * sample.votes.weight)),
            mu,
            targets,
            clustering=clustering,
        )
        for share in (0.5, 0.0)
    )
    return {
        key: Apart.behind(estimates[key], half[key].estimate, replace(values[key].estimate, n_rows=sample.n_rows))
        for key in targets
    }
