"""The error of debiased payoffs is of second order in that of the nuisances: exactly, without any fit or draw."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from app.experiments.acquisition.figures import Collected, Figures
from app.experiments.curves import Spot, Verdict
from app.experiments.equilibrium.cells import FEEDBACK
from app.stats.feedback import Aggregator
from app.stats.simulate.electorate import Electorate

DELTAS = (0.16, 0.08, 0.04, 0.02)
DEBIASED, PLUG_IN, ERROR = "debiased", "plug-in", "error"
LEAST = 3.5
AGGREGATORS = {"uniform": False, "cubic": True}


@dataclass(frozen=True)
class Orthogonality:
    """mu off by delta tanh(x_1 + .5) and e by exp(delta (x_1 + x_2)), delta halved again and again.

    Parameters
    ----------
    learner : not used, as nothing is fitted.
    n : contexts.
    """

    learner: str
    n: int
    reference: str = PLUG_IN

    @property
    def title(self) -> str:
        return f"Root mean squared error of payoffs whose nuisances are off by δ, {self.n:,} contexts, exactly"

    def replicate(self, seed: int) -> Figures:
        """Errors in one world."""
        found: dict[Spot, dict[str, float]] = {}
        for feedback in FEEDBACK:
            on = Electorate(3, feedback, seed)
            x = on.covariates(np.random.default_rng(seed).random((self.n, on.n_covariates)))
            for name, cubic in AGGREGATORS.items():
                f = Aggregator(on.menus, np.ones(len(on.menus.members)), cubic=cubic)
                for delta in DELTAS:
                    debiased, plug_in = on.orthogonality(x, delta, f)
                    found[Spot(f"{feedback}, {name}", DEBIASED, f"δ = {delta}")] = {ERROR: debiased}
                    found[Spot(f"{feedback}, {name}", PLUG_IN, f"δ = {delta}")] = {ERROR: plug_in}
        return found

    def verdicts(self, found: Collected) -> Iterator[Verdict]:
        """The rate per halving."""
        for kind in dict.fromkeys(spot.estimand for spot in found.spots):
            falls = [self._fall(found, kind, method) for method in (DEBIASED, PLUG_IN)]
            claim = f"{kind}: the error falls {LEAST} × or more with every halving of δ"
            yield Verdict(claim, f"{falls[0]:.2f} (plug-in {falls[1]:.2f})", falls[0] >= LEAST)

    def _fall(self, found: Collected, kind: str, method: str) -> float:
        """The least ratio of neighbouring errors from δ = .08 on."""
        errors = np.array([found.values(Spot(kind, method, f"δ = {delta}"), ERROR).mean() for delta in DELTAS[1:]])
        return float((errors[:-1] / errors[1:]).min())
