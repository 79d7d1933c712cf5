"""The scores that a synthetic board really has."""

from __future__ import annotations

import numpy as np
from scipy.stats import qmc

from app.stats.gars import Estimand, Graph
from app.stats.simulate.generator import Generator
from app.stats.types import Floats

POWER = 15
CELLS = 2**18


def sobol_covariates(generator: Generator, *, power: int = POWER, seed: int = 0) -> Floats:
    """2^power covariate rows from a scrambled Sobol sequence: (2^power, d)."""
    points = qmc.Sobol(generator.n_covariates, scramble=True, rng=seed).random_base2(power)
    return generator.covariates(points)


def truth(generator: Generator, estimand: Estimand, graph: Graph, *, power: int = POWER) -> Floats:
    """theta = E F(mu(X)) over scrambled Sobol points.

    Parameters
    ----------
    generator : the board.
    estimand, graph : the score and the pairs on which it is taken.
    power : 2^power points; at the default the error is far below any standard error of a board.

    Returns
    -------
    (K,).
    """
    x = sobol_covariates(generator, power=power)
    rows = max(CELLS // generator.n_items**2, 1)
    total = np.zeros(generator.n_items)
    for start in range(0, len(x), rows):
        scores = generator.rule.scores(generator.probabilities(x[start : start + rows]))
        total += estimand.value(scores, graph).sum(axis=0)
    return total / len(x)
