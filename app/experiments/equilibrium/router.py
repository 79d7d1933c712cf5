"""Which model to send a question to: equilibria under judges who weigh score and price, the truth complete."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from app.experiments.acquisition.figures import Collected, Figures
from app.experiments.curves import Spot, Verdict
from app.experiments.equilibrium.cells import EXPLOITABILITY, F1, STRENGTH
from app.experiments.equilibrium.judges import Panel
from app.experiments.equilibrium.methods import (
    BORDA,
    BT_PLUG_IN,
    DEBIASED,
    GLOBAL,
    PLUG_IN,
    Fits,
    menu_sample,
)
from app.stats.games import Terms, equilibria, exploitability, head_to_head, support_f1
from app.stats.types import Floats

RIVALS = (PLUG_IN, BT_PLUG_IN, BORDA, GLOBAL)
LESS, LESS_ERROR = "less the debiased", "its standard error"
VALUE, VALUE_ERROR = "value against the debiased", "standard error of the value"
PRICE = "price"


@dataclass(frozen=True)
class Router:
    """Questions of the training split are voted on, those of the test split are routed.

    Parameters
    ----------
    panel : the judges.
    learner : name of the outcome learner.
    n : most questions with votes.
    """

    panel: Panel
    learner: str
    n: int
    reference: str = PLUG_IN

    @property
    def title(self) -> str:
        items = len(self.panel.table.items)
        return f"Routing {int(self.panel.table.test.sum())} questions to {items} models, {self.learner}"

    @property
    def covariates(self) -> Floats:
        """(Q, d) the task, and the questions' features."""
        table = self.panel.table
        return np.hstack([np.eye(table.task.max() + 1)[table.task], table.features])

    def replicate(self, seed: int) -> Figures:
        """One draw of votes."""
        test = np.flatnonzero(self.panel.table.test)
        train = np.random.default_rng([seed, 5]).permutation(np.flatnonzero(~self.panel.table.test))[: self.n]
        votes = self.panel.draw(train, seed=seed)
        sample = menu_sample(self.panel.menus, votes, train.size, seed=seed)
        terms = Terms(STRENGTH)
        fits = Fits.of(self.covariates[train], sample, self.learner, terms, seed=seed)
        lotteries, truth = fits.lotteries(self.covariates[test]), self.panel.payoffs(test)
        return {
            Spot("pairs", name, "test questions"): self._figures(each, lotteries[DEBIASED], truth)
            for name, each in lotteries.items()
        }

    def _figures(self, own: Floats, debiased: Floats, truth: Floats) -> dict[str, float]:
        """Errors are of means over the test questions, each paired with itself."""
        worst = exploitability(truth, own)
        less, value = worst - exploitability(truth, debiased), head_to_head(truth, own, debiased)
        true = equilibria(truth, Terms(STRENGTH)).lotteries
        return {
            EXPLOITABILITY: float(worst.mean()),
            F1: float(support_f1(own, true).mean()),
            PRICE: float((own @ self.panel.prices).mean()),
            LESS: float(less.mean()),
            LESS_ERROR: _error(less),
            VALUE: float(value.mean()),
            VALUE_ERROR: _error(value),
        }

    def verdicts(self, found: Collected) -> Iterator[Verdict]:
        """The debiased at or below each."""
        for rival in RIVALS:
            spot = Spot("pairs", rival, "test questions")
            less, error = (float(found.values(spot, name).mean()) for name in (LESS, LESS_ERROR))
            yield Verdict(f"{DEBIASED} at or below {rival} in exploitability", f"{less:.4f} ± {error:.4f}", less >= 0)


def _error(values: Floats) -> float:
    return float(values.std() / np.sqrt(values.size))
