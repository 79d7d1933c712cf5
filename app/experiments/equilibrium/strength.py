"""How much the strength of the regulariser matters, and what a budget costs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from app.experiments.acquisition.figures import Collected, Figures
from app.experiments.curves import Spot, Verdict
from app.experiments.equilibrium.cells import EXPLOITABILITY, Cell
from app.experiments.equilibrium.methods import DEBIASED, PLUG_IN
from app.stats.games import Budget, Terms, equilibria, exploitability, frontier
from app.stats.simulate.electorate import Electorate

STRENGTHS = (0.0, 1e-3, 1e-2, 0.05, 0.1, 1.0)
PRICES = np.array([0.1, 0.3, 0.5, 0.7, 0.9])
LIMITS = np.linspace(0.1, 0.9, 9)
BEST, COST = "least possible", "cost"
SLACK = 1e-9
FEW = 100
"""Contexts on which the frontier is drawn, a linear programme for each and every budget."""


@dataclass(frozen=True)
class Regularisation:
    """Pairs of three voters, solved at several strengths of l2 (NashEval, Appendix B.5), and of kl."""

    learner: str
    n: int
    reference: str = PLUG_IN

    @property
    def title(self) -> str:
        return f"Strength of the regulariser, pairs of three voters, {self.n:,} contexts with votes, {self.learner}"

    def replicate(self, seed: int) -> Figures:
        """One board, solved at every strength."""
        cell = Cell(Electorate(3, "pairs", seed), self.learner, seed, self.n)
        payoffs = {method: cell.fits.payoffs(method, cell.x) for method in (PLUG_IN, DEBIASED)}
        terms = {f"l2, {strength:g}": Terms(strength) for strength in STRENGTHS}
        terms |= {f"kl, {strength:g}": Terms(strength, "kl") for strength in STRENGTHS if strength}
        return {
            Spot("pairs", method, name): cell.judged(equilibria(each, at).lotteries, at)
            for name, at in terms.items()
            for method, each in payoffs.items()
        }

    def verdicts(self, found: Collected) -> Iterator[Verdict]:
        """Weak regularisation changes little."""
        least = found.values(Spot("pairs", DEBIASED, "l2, 0"), EXPLOITABILITY).mean()
        for strength in (1e-3, 1e-2):
            value = found.values(Spot("pairs", DEBIASED, f"l2, {strength:g}"), EXPLOITABILITY).mean()
            claim = f"exploitability at a strength of {strength:g} within 5% of that at 0"
            yield Verdict(claim, f"{value / least:.3f}", bool(abs(value / least - 1.0) <= 0.05))


@dataclass(frozen=True)
class Frontier:
    """Hard budgets on pairs of three voters: equilibria within them, and the least exploitability they allow."""

    learner: str
    n: int
    reference: str = BEST

    @property
    def title(self) -> str:
        return f"Cost frontier, prices {', '.join(f'{price:g}' for price in PRICES)}, {FEW} contexts, {self.learner}"

    def replicate(self, seed: int) -> Figures:
        """One board, solved under every budget."""
        cell = Cell(Electorate(3, "pairs", seed), self.learner, seed, self.n)
        truth, payoffs = cell.truth[:FEW], cell.fits.payoffs(DEBIASED, cell.x[:FEW])
        least = np.mean([frontier(game, PRICES, LIMITS) for game in truth], axis=0)
        found: dict[Spot, dict[str, float]] = {}
        for limit, value in zip(LIMITS, least, strict=True):
            terms = Terms(0.05, budget=Budget(PRICES, float(limit)))
            lotteries = equilibria(payoffs, terms).lotteries
            level = f"budget {limit:.1f}"
            worst = float(exploitability(truth, lotteries).mean())
            found[Spot("pairs", DEBIASED, level)] = {EXPLOITABILITY: worst, COST: float((lotteries @ PRICES).max())}
            found[Spot("pairs", BEST, level)] = {EXPLOITABILITY: float(value)}
        return found

    def verdicts(self, found: Collected) -> Iterator[Verdict]:
        """Budgets hold, and more of it never hurts what is possible."""
        levels = [f"budget {limit:.1f}" for limit in LIMITS]
        over = max(
            float(found.values(Spot("pairs", DEBIASED, level), COST).max()) - limit
            for level, limit in zip(levels, LIMITS, strict=True)
        )
        yield Verdict("every lottery is within its budget to 1e-9", f"{over:.1e} over", over <= SLACK)
        values = [found.values(Spot("pairs", BEST, level), EXPLOITABILITY).mean() for level in levels]
        rise = float(np.diff(values).max())
        yield Verdict("the least exploitability falls as the budget grows", f"largest rise {rise:.1e}", rise <= SLACK)
