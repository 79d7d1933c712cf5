"""What a cell must show."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import ceil, sqrt
from typing import Literal

from scipy.stats import binom

LEVEL = 0.95
# A true coverage of .935 falls short with probability .0003 (400 runs, which catch .85 with .99) or .002 (100 runs).
HITS = {400: 356, 100: 86}
HONEST, FALSE_ALARM = 0.935, 3e-4
MOST_WIDTH, MOST_ERROR = 1.10, 1.15

Expectation = Literal["covers", "fails", "errs", "shown"]


def hits_needed(runs: int) -> int:
    """The least number of hits out of `runs` that an honest interval reaches but for a small chance."""
    return HITS.get(runs) or int(binom.ppf(FALSE_ALARM, runs, HONEST))


def share_of_runs(share: float, runs: int) -> int:
    """The least number of hits that is this share of the runs or more."""
    return ceil(share * runs - 1e-9)


def never_missing(runs: int) -> int:
    """Hits needed where at most 5% and two standard errors of it may ever miss."""
    return share_of_runs(LEVEL - 2.0 * sqrt(LEVEL * (1.0 - LEVEL) / runs), runs)


@dataclass(frozen=True)
class Bar:
    """What is expected of one rule.

    Parameters
    ----------
    expected : `covers`, at least `limit` hits; `fails`, fewer; `errs`, an error beyond what is allowed, however wide
        the intervals are; `shown`, no bar on hits.
    limit : hits as a function of the number of runs.
    ideal : whether width and error are held against the one-step with the true nuisances.
    below_plug_in : whether the error must be below that of the plug-in.
    extrapolated : whether every replicate must carry that status.
    """

    expected: Expectation = "covers"
    limit: Callable[[int], int] = hits_needed
    ideal: bool = True
    below_plug_in: bool = False
    extrapolated: bool = False


COVERS = Bar()
# Where the ideal at hand is that of another rule.
COVERS_ALONE = Bar(ideal=False)
FAILS = Bar("fails", ideal=False)
ERRS = Bar("errs", ideal=False)


def at_least(share: float, *, ideal: bool = True) -> Bar:
    """Covers in this share of the runs."""
    return Bar(limit=partial(share_of_runs, share), ideal=ideal)


def below(share: float) -> Bar:
    """Covers in less than this share of the runs."""
    return Bar("fails", partial(share_of_runs, share), ideal=False)
