"""Has a score changed between two estimates, or does the difference lie within their noise?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from app.stats.errors import InvalidInput
from app.stats.types import Bools, Estimate, Floats

REFITTED = 0.05
"""Share of the earlier variance that is granted to nuisances fitted anew: folds and models differ between estimates."""


@dataclass(frozen=True, slots=True)
class Change:
    """The later scores minus the earlier ones.

    Parameters
    ----------
    value, error : (d,) differences and their standard errors.
    """

    value: Floats
    error: Floats

    def beyond_noise(self, *, level: float, comparisons: int) -> Bools:
        """(d,) differences that noise explains with probability 1 - level at most, of so many comparisons together.

        Raises
        ------
        InvalidInput
            When the level is outside (0, 1).
        """
        if not 0.0 < level < 1.0:
            raise InvalidInput(f"level must lie in (0, 1), got {level}")
        multiple = -ndtri((1.0 - level) / (2.0 * max(comparisons, 1)))
        return np.asarray(np.abs(self.value) > multiple * self.error)


def change(before: Estimate, after: Estimate, *, nested: bool) -> Change:
    """The change of each score, with what its variance can be said to be.

    Where the later estimate rests on the rows of the earlier one and more, the two share noise: a mean over n rows and
    one over the first m of them have covariance sigma²/n, so Var(after - before) = V_before - V_after. Both variances
    are estimated, so their difference can come out too small: it is taken no smaller than V_after (n/m - 1), which it
    is for independent rows, and `REFITTED` is added. Otherwise nothing is known of the covariance but that both are
    means over much the same board: the sum V_before + V_after, which is valid where the covariance is not negative.

    Parameters
    ----------
    before, after : d scores of the same items each.
    nested : whether every row of the earlier estimate is a row of the later one, unchanged.
    """
    v_before, v_after = np.diagonal(before.covariance), np.diagonal(after.covariance)
    if nested:
        growth = max(after.n_rows / max(before.n_rows, 1) - 1.0, 0.0)
        variance = np.maximum(v_before - v_after, v_after * growth) + REFITTED * v_before
    else:
        variance = v_before + v_after
    return Change(after.value - before.value, np.sqrt(variance))
