"""What all replicates say together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import assert_never

import numpy as np

from app.experiments.coverage.bars import MOST_ERROR, MOST_WIDTH, Bar, Expectation
from app.experiments.coverage.measure import Measured


@dataclass(frozen=True)
class Place:
    """Where in the table a cell stands.

    Parameters
    ----------
    setting, case : the kind of board, and which of its kind.
    n : rows of a board.
    rule : how the board was read; the rule of the estimator or a control that ignores it.
    estimand : the score.
    """

    setting: str
    case: str
    n: int
    rule: str
    estimand: str


@dataclass(frozen=True)
class Cell:
    """One estimand under one rule, over all replicates.

    Parameters
    ----------
    place : what it is about.
    expected : whether it must cover or must fail to.
    hits, plug_in_hits : replicates whose intervals held the truth jointly.
    limit : hits that a cell which covers has at least, and one that fails has not.
    width_ratio : mean width over the oracle one-step's.
    error_ratio : mean squared error over the oracle one-step's.
    rmse, plug_in_rmse, oracle_rmse : root mean squared errors of the debiased, plug-in and oracle scores.
    extrapolated : replicates with a score marked so.
    drift : root mean square over items of the mean drift of live scores, in RMSEs; None where nothing is live. Over few
        boards chance alone makes some.
    passed : whether every bar is met.
    """

    place: Place
    expected: Expectation
    runs: int
    hits: int
    limit: int
    plug_in_hits: int
    width_ratio: float
    error_ratio: float
    rmse: float
    plug_in_rmse: float
    oracle_rmse: float
    extrapolated: int
    drift: float | None
    passed: bool


def cell(place: Place, bar: Bar, results: Sequence[Measured]) -> Cell:
    """Sum up the replicates of one place."""
    error, plug_in, ideal = (_mean(results, field) for field in ("error", "plug_in_error", "oracle_error"))
    summed = Cell(
        place=place,
        expected=bar.expected,
        runs=len(results),
        hits=sum(each.hit for each in results),
        limit=bar.limit(len(results)),
        plug_in_hits=sum(each.plug_in_hit for each in results),
        width_ratio=_mean(results, "width") / _mean(results, "oracle_width"),
        error_ratio=error / ideal,
        rmse=float(np.sqrt(error)),
        plug_in_rmse=float(np.sqrt(plug_in)),
        oracle_rmse=float(np.sqrt(ideal)),
        extrapolated=sum(each.extrapolated for each in results),
        drift=_drift(results, float(np.sqrt(error))),
        passed=False,
    )
    return replace(summed, passed=_passes(summed, bar))


def _passes(cell: Cell, bar: Bar) -> bool:
    near = not bar.ideal or (cell.width_ratio <= MOST_WIDTH and cell.error_ratio <= MOST_ERROR)
    better = not bar.below_plug_in or cell.rmse < cell.plug_in_rmse
    marked = not bar.extrapolated or cell.extrapolated == cell.runs
    return _as_expected(cell) and near and better and marked


def _as_expected(cell: Cell) -> bool:
    match cell.expected:
        case "covers":
            return cell.hits >= cell.limit
        case "fails":
            return cell.hits < cell.limit
        case "errs":
            return cell.error_ratio > MOST_ERROR
        case "shown":
            return True
        case _:
            assert_never(cell.expected)


def _drift(results: Sequence[Measured], rmse: float) -> float | None:
    drift = np.array([each.drift for each in results])
    return float(np.sqrt((drift.mean(axis=0) ** 2).mean())) / rmse if drift.size else None


def _mean(results: Sequence[Measured], field: str) -> float:
    return float(np.mean([getattr(each, field) for each in results]))
