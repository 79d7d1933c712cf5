"""Replicates of a case over processes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from app.experiments.coverage.case import Case, Results
from app.experiments.coverage.cells import Cell, Place, cell
from app.experiments.runner import replicates


def coverage(case: Case, runs: int, *, processes: int = 1, on_done: Callable[[], None] = lambda: None) -> list[Cell]:
    """Simulate `runs` boards (seeds 0 .. runs-1) and judge each rule and estimand.

    Parameters
    ----------
    case : the kind of board.
    runs : how many.
    processes : how many work at once; it changes no number.
    on_done : called after each replicate.
    """
    results: dict[int, Results] = {}
    for seed, result in replicates(partial(case.replicate, case.truths()), range(runs), processes=processes):
        results[seed] = result
        on_done()
    return [
        cell(
            Place(case.setting, case.name, case.n, rule, estimand),
            bar,
            [results[seed][rule, estimand] for seed in range(runs)],
        )
        for rule, bar in case.rules.items()
        for estimand in case.estimands
    ]
