"""Draw pairs from propensities."""

from __future__ import annotations

import numpy as np

from app.stats.acquisition.allocation import Mode
from app.stats.types import Floats, Ints


def draw(propensity: Floats, mode: Mode, generator: np.random.Generator) -> tuple[Ints, Ints]:
    """Draw pairs of every context.

    Parameters
    ----------
    propensity : (u, r) chances; in the modes `single` and `one` a row sums to at most 1, what is missing draws nothing.
    mode : independent coins, or one pair a context.
    generator : of the randomness.

    Returns
    -------
    context, pair : (m,) and (m,) positions of what was drawn, by context.
    """
    if mode == "bernoulli":
        context, pair = np.nonzero(generator.random(propensity.shape) < propensity)
        return context.astype(np.int64), pair.astype(np.int64)
    ladder = np.cumsum(propensity, axis=1)
    if mode == "one":
        # The last step ends at 1 up to rounding; a draw beyond it must not fall through.
        ladder[:, -1] = np.inf
    pair = (ladder <= generator.random(len(ladder))[:, None]).sum(axis=1)
    found = np.flatnonzero(pair < propensity.shape[1]).astype(np.int64)
    return found, pair[found].astype(np.int64)
