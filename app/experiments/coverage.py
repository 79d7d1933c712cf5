"""Do simultaneous 95% intervals cover the truth, and are they as narrow as they can be?

Beside every estimate stands the one-step with the true nuisances on the same draws: an interval that covers only
because it is wide is told by its width, a noisy estimate by its error (cf. DMLRank, arXiv 2601.21816, Table 1).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial

import numpy as np
from scipy.stats import binom

from app.experiments.crossfit import board, cross_fit, oracle
from app.experiments.runner import replicates
from app.stats.debias import Clustering, Scores, estimate
from app.stats.gars import Graph, estimand
from app.stats.inference import bands
from app.stats.simulate import Cyclic, truth
from app.stats.types import Estimate, Floats

ESTIMANDS = ("borda", "bt", "rc")
LEVEL = 0.95
# A true coverage of .935 falls short with probability .0003 (400 runs, which catch .85 with .99) or .002 (100 runs).
HITS = {400: 356, 100: 86}
HONEST, FALSE_ALARM = 0.935, 3e-4
MOST_WIDTH, MOST_ERROR = 1.10, 1.15
CLUSTERING = Clustering(unit="context")


@dataclass(frozen=True)
class Measured:
    """What one replicate says of one estimand.

    Parameters
    ----------
    hit, plug_in_hit : whether every item's simultaneous interval holds the truth; the plug-in's taken as wide.
    width, oracle_width : mean interval width over items.
    error, plug_in_error, oracle_error : mean squared error over items.
    """

    hit: bool
    plug_in_hit: bool
    width: float
    oracle_width: float
    error: float
    plug_in_error: float
    oracle_error: float


@dataclass(frozen=True)
class Cell:
    """One estimand at one size, over all replicates.

    Parameters
    ----------
    hits, plug_in_hits : replicates whose intervals held the truth jointly.
    hits_needed : what an honest interval reaches but for a small chance.
    width_ratio : mean width over the oracle one-step's.
    error_ratio : mean squared error over the oracle one-step's.
    rmse, plug_in_rmse, oracle_rmse : root mean squared errors of the debiased, plug-in and oracle scores.
    """

    estimand: str
    n: int
    runs: int
    hits: int
    hits_needed: int
    plug_in_hits: int
    width_ratio: float
    error_ratio: float
    rmse: float
    plug_in_rmse: float
    oracle_rmse: float

    @property
    def passed(self) -> bool:
        """Covers, and is neither wide nor noisy."""
        return self.hits >= self.hits_needed and self.width_ratio <= MOST_WIDTH and self.error_ratio <= MOST_ERROR


def hits_needed(runs: int) -> int:
    """The least number of hits out of `runs` that an honest interval reaches but for a small chance."""
    return HITS.get(runs) or int(binom.ppf(FALSE_ALARM, runs, HONEST))


def coverage(
    n: int, runs: int, *, learner: str = "davidson", processes: int = 1, on_done: Callable[[], None] = lambda: None
) -> list[Cell]:
    """Simulate `runs` cyclic boards of n contexts (seeds 0 .. runs-1) and judge each estimand.

    Parameters
    ----------
    n : contexts of a board, about 2.8 votes each.
    runs : boards.
    learner : name of the outcome learner.
    processes : how many work at once; it changes no number.
    on_done : called after each replicate.
    """
    results: dict[int, dict[str, Measured]] = {}
    for seed, result in replicates(partial(replicate, n, learner), range(runs), processes=processes):
        results[seed] = result
        on_done()
    return [_cell(name, n, [results[seed][name] for seed in range(runs)]) for name in ESTIMANDS]


def replicate(n: int, learner: str, seed: int) -> dict[str, Measured]:
    """One board: draw it, estimate it with fitted and with true nuisances, compare with the truth."""
    generator = Cyclic()
    drawn = board(generator, generator.draw(n, seed=seed), seed=seed)
    estimands = [estimand(name) for name in ESTIMANDS]
    fitted = estimate(drawn.sample, cross_fit(drawn, learner), estimands, clustering=CLUSTERING)
    ideal = estimate(drawn.sample, oracle(drawn, generator), estimands, clustering=CLUSTERING)
    return {name: _measured(fitted[name], ideal[name], _truths()[name]) for name in ESTIMANDS}


@cache
def _truths() -> dict[str, Floats]:
    generator = Cyclic()
    return {name: truth(generator, estimand(name), Graph.complete(generator.n_items)) for name in ESTIMANDS}


def _measured(fitted: Scores, ideal: Scores, true: Floats) -> Measured:
    debiased, plug_in, best = fitted.every.estimate, fitted.every.plug_in, ideal.every.estimate
    half = _half_width(debiased)
    return Measured(
        hit=bool((np.abs(debiased.value - true) <= half).all()),
        plug_in_hit=bool((np.abs(plug_in - true) <= half).all()),
        width=float(2 * half.mean()),
        oracle_width=float(2 * _half_width(best).mean()),
        error=_mean_square(debiased.value - true),
        plug_in_error=_mean_square(plug_in - true),
        oracle_error=_mean_square(best.value - true),
    )


def _half_width(estimate: Estimate) -> Floats:
    band = bands(estimate, kind="simultaneous", level=LEVEL)
    half: Floats = (band.upper - band.lower) / 2
    return half


def _mean_square(error: Floats) -> float:
    return float((error**2).mean())


def _cell(name: str, n: int, results: list[Measured]) -> Cell:
    error, ideal = (np.mean([getattr(each, field) for each in results]) for field in ("error", "oracle_error"))
    return Cell(
        estimand=name,
        n=n,
        runs=len(results),
        hits=sum(each.hit for each in results),
        hits_needed=hits_needed(len(results)),
        plug_in_hits=sum(each.plug_in_hit for each in results),
        width_ratio=float(np.mean([r.width for r in results]) / np.mean([r.oracle_width for r in results])),
        error_ratio=float(error / ideal),
        rmse=float(np.sqrt(error)),
        plug_in_rmse=float(np.sqrt(np.mean([each.plug_in_error for each in results]))),
        oracle_rmse=float(np.sqrt(ideal)),
    )
