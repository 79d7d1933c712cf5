"""What an equilibrium costs: interior point, support enumeration, linear programme, and the policy that needs none."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import combinations
from time import perf_counter
from typing import TypeVar

import numpy as np

from app.experiments.acquisition.figures import Collected, Figures
from app.experiments.curves import Spot, Verdict
from app.stats.games import Terms, equilibria, programmed
from app.stats.types import Floats

SIZES = (5, 8, 12, 20, 50, 100)
STRENGTH = 0.05
SOLVER, ENUMERATION, PROGRAMME = "interior point", "support enumeration", "linear programme (HiGHS), λ = 0"
TIME, GAP, APART = "ms a game", "largest gap", "apart"
MOST_ENUMERATED = 12
Result = TypeVar("Result")
FEW = 3
"""Games that the slow methods are timed on."""


@dataclass(frozen=True)
class Speed:
    """Random games, K = 5 … 100, one thread.

    Parameters
    ----------
    learner : not used, as nothing is fitted.
    n : games of five items; fewer of larger ones.
    """

    learner: str
    n: int
    reference: str = SOLVER

    @property
    def title(self) -> str:
        return "Milliseconds a game, one thread"

    def replicate(self, seed: int) -> Figures:
        """Times and certificates of every method."""
        found: dict[Spot, dict[str, float]] = {}
        for size in SIZES:
            games = random_games(seed, max(self.n * 5 // size**2, 10), size)
            for name, figures in _measured(games).items():
                found[Spot("games", name, f"{size} items")] = figures
        return found

    def verdicts(self, found: Collected) -> Iterator[Verdict]:
        """Exact, and quicker than what it replaces."""
        worst = max(float(found.values(spot, GAP).max()) for spot in found.spots if spot.estimator == SOLVER)
        yield Verdict("gaps of all games are at most 1e-9", f"{worst:.1e}", worst <= 1e-9)
        slow = [spot for spot in found.spots if spot.estimator == ENUMERATION]
        apart = max(float(found.values(spot, APART).max()) for spot in slow)
        yield Verdict("the same lotteries as by support enumeration, to 1e-8", f"{apart:.1e}", apart <= 1e-8)
        for spot in slow:
            yield found.at_most((Spot("games", SOLVER, spot.level), spot), TIME, 1.0)


def _measured(games: Floats) -> dict[str, dict[str, float]]:
    time, solved = _timed(lambda: equilibria(games, Terms(STRENGTH)))
    found = {SOLVER: {TIME: time / len(games), GAP: float(solved.gap.max())}}
    time, _ = _timed(lambda: [programmed(game) for game in games[:FEW]])
    found[PROGRAMME] = {TIME: time / FEW}
    if games.shape[1] <= MOST_ENUMERATED:
        time, slow = _timed(lambda: [enumerated(game) for game in games[:FEW]])
        found[ENUMERATION] = {TIME: time / FEW, APART: float(np.abs(solved.lotteries[:FEW] - slow).max())}
    return found


def random_games(seed: int, count: int, size: int) -> Floats:
    """(count, size, size) skew-symmetric, entries uniform on [-1, 1]."""
    upper = np.triu(np.random.default_rng([seed, size]).uniform(-1.0, 1.0, (count, size, size)), 1)
    games: Floats = upper - upper.transpose(0, 2, 1)
    return games


def enumerated(payoffs: Floats) -> Floats:
    """The equilibrium by trying all supports, the smallest first (NashEval, Appendix B.6)."""
    size = len(payoffs)
    for count in range(1, size + 1):
        for support in combinations(range(size), count):
            lottery = _on(payoffs, np.array(support))
            gains = payoffs @ lottery - STRENGTH * lottery
            if lottery.min() >= 0 and gains.max() <= gains[support[0]] + 1e-12:
                return lottery
    raise AssertionError("every game has an equilibrium")


def _on(payoffs: Floats, support: np.ndarray[tuple[int], np.dtype[np.int64]]) -> Floats:
    count = support.size
    system = np.ones((count + 1, count + 1))
    system[:-1, :-1] = STRENGTH * np.eye(count) - payoffs[np.ix_(support, support)]
    system[-1, -1] = 0.0
    lottery = np.zeros(len(payoffs))
    lottery[support] = np.linalg.solve(system, np.append(np.zeros(count), 1.0))[:-1]
    return lottery


def _timed(task: Callable[[], Result]) -> tuple[float, Result]:
    start = perf_counter()
    result = task()
    return 1e3 * (perf_counter() - start), result
