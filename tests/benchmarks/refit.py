"""Time and memory of a refit: `python -m tests.benchmarks.refit --size arena33k` (or million).

In one process and one thread; seconds are of CPU. Peak memory is that of the process once the refit is through, votes
and feature documents included.
"""

from __future__ import annotations

import argparse
import resource
import time
from dataclasses import dataclass

import lightgbm
import numpy as np
from rich.console import Console
from rich.table import Table
from threadpoolctl import threadpool_limits

from app.services.refit import choosing, fit, fitting, parts, scoring
from app.services.refit.fit import Result, refit
from app.services.refit.fitting import FoldModels
from app.services.refit.policy import Planner
from app.stats.debias import scores
from app.stats.debias.layout import Layout
from app.stats.debias.one_step import Scored
from app.stats.types import Floats, Ints
from tests.benchmarks.boards import SEED, Size
from tests.benchmarks.stages import Stages

ARENA = Size(33_000, 20, 101)
TENTH, MILLION = Size(100_000, 100, 12), Size(1_000_000, 100, 12)
PEER = {
    "objective": "multiclass",
    "num_class": 4,
    "num_leaves": 15,
    "num_threads": 1,
    "seed": SEED,
    "verbosity": -1,
}
ROUNDS = 100
GIGABYTE = 1 << 30
ASSEMBLY = ("mu", "F and gradients", "clusters and sums", "layout", "unsupported shares")
"""Stages that make mu, psi and moments of fitted models."""
BESIDE = ("restricted", "contextual", "diagnostics", "votes to flip", "policy", "means", "router")
"""What is made besides, with all that it calls."""


@dataclass(frozen=True)
class Measured:
    """A refit's cost.

    Parameters
    ----------
    size : of the board.
    stages : CPU seconds by stage.
    wall : seconds.
    peak : bytes.
    """

    size: Size
    stages: dict[str, float]
    wall: float
    peak: int

    @property
    def seconds(self) -> float:
        """CPU seconds of the whole refit."""
        return sum(self.stages.values())

    @property
    def assembly(self) -> float:
        """CPU seconds that go into mu, psi and moments."""
        return sum(seconds for stage, seconds in self.stages.items() if stage.startswith(ASSEMBLY))


def measure(size: Size) -> tuple[Measured, Result]:
    """Refit a board of that size."""
    inputs = size.inputs()
    stages, began = Stages(*BESIDE), time.perf_counter()
    with stages.watching(*_WATCHED), stages.inside("other"), threadpool_limits(1):
        result = refit(inputs, size.config)
    wall = time.perf_counter() - began
    return Measured(size, dict(stages.seconds), wall, _peak()), result


def peer(result: Result) -> float:
    """CPU seconds of fitting the plain classifier to the votes outside each fold in turn."""
    sample, x = result.stored.frame.sample, result.stored.covariates.x
    fold, pattern = sample.fold[sample.votes.row], sample.pattern[sample.votes.row]
    began = time.process_time()
    for number in range(result.stored.frame.n_folds):
        own = fold != number
        votes = sample.votes.take(own)
        rows = np.concatenate(
            [x[pattern[own]], _one_hot(votes.left, sample.n_items), _one_hot(votes.right, sample.n_items)], axis=1
        )
        lightgbm.train(PEER, lightgbm.Dataset(rows, votes.outcome), ROUNDS)
    return time.process_time() - began


def _one_hot(item: Ints, n_items: int) -> Floats:
    return np.eye(n_items)[item]


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


_WATCHED = (
    (fit, "frame_of", "frame"),
    (fit, "covariates_of", "features"),
    (choosing, "fit_folds", "fits"),
    (fit, "balance_of", "balance"),
    (parts, "payoffs", "clusters and sums: payoffs"),
    (scoring, "classical", "classical"),
    (scoring, "restricted_scores", "restricted"),
    (fitting, "contextual_model", "contextual"),
    (parts, "diagnose", "diagnostics"),
    (parts, "flips_of", "votes to flip"),
    (parts, "mean_payoffs", "means"),
    (parts, "fit_router", "router"),
    (Planner, "plan", "policy"),
    (scoring, "estimate", "clusters and sums: rankings"),
    (scores, "_unsupported", "unsupported shares"),
    (Layout, "of", "layout"),
    (Scored, "pieces", lambda _, target: f"F and gradients: {target.estimand.name.partition('-')[0]}"),
    (FoldModels, "__call__", "mu"),
    (FoldModels, "at", "mu of single pairs"),
)


def main() -> None:
    """Measure, print, and fail where a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", choices=["arena33k", "million"], required=True)
    rows = _arena() if parser.parse_args().size == "arena33k" else _million()
    raise SystemExit(not all(rows))


def _arena() -> list[bool]:
    measured, result = measure(ARENA)
    _print(measured)
    classifiers = peer(result)
    return _verdicts(
        ("refit / V fits of the plain classifier", measured.seconds / classifiers, 2.5),
        ("mu, psi and moments / refit", measured.assembly / measured.seconds, 0.1),
        ("peak memory, GB", measured.peak / GIGABYTE, 2.0),
        ("seconds of V plain classifiers", classifiers, np.inf),
    )


def _million() -> list[bool]:
    tenth, _ = measure(TENTH)
    _print(tenth)
    whole, _ = measure(MILLION)
    _print(whole)
    return _verdicts(
        ("time per vote / that of a tenth", whole.seconds / 10 / tenth.seconds, 1.2),
        ("peak memory, GB", whole.peak / GIGABYTE, 8.0),
    )


def _print(measured: Measured) -> None:
    size = measured.size
    table = Table(title=f"Refit of {size.rows:,} votes, {size.items} items, {size.covariates} covariates")
    for heading in ("stage", "CPU s", "share"):
        table.add_column(heading, justify="left" if heading == "stage" else "right")
    for stage, seconds in sorted(measured.stages.items(), key=lambda each: -each[1]):
        table.add_row(stage, f"{seconds:.2f}", f"{seconds / measured.seconds:.1%}")
    table.add_row("all", f"{measured.seconds:.2f}", f"wall {measured.wall:.2f}", style="bold")
    Console().print(table)


def _verdicts(*bars: tuple[str, float, float]) -> list[bool]:
    table = Table("figure", "measured", "at most", "")
    for name, value, most in bars:
        table.add_row(name, f"{value:.3f}", f"{most:g}", "ok" if value <= most else "FAILED")
    Console().print(table)
    return [value <= most for _, value, most in bars]


if __name__ == "__main__":
    main()
