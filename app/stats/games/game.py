"""Contextual games: payoffs, what regularises them, what they may cost (NashEval, Definition 2 and Appendix F.3)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from app.stats.errors import InvalidInput
from app.stats.types import Floats

Regulariser = Literal["l2", "kl"]
SOFTNESS = 10.0
"""rho of a soft budget."""


@dataclass(frozen=True, slots=True)
class Budget:
    """A limit B on the expected price b'pi of a lottery.

    Parameters
    ----------
    prices : (K,) b.
    limit : B.
    softness : rho of the penalty rho/2 (b'pi - B)_+^2; None where the limit is hard.
    """

    prices: Floats
    limit: float
    softness: float | None = None


@dataclass(frozen=True, slots=True)
class Terms:
    """Omega, and the budget.

    Parameters
    ----------
    strength : lambda >= 0 of lambda/2 |pi|^2 (`l2`) or lambda Σ pi log(K pi) (`kl`); 0 asks for the maximal lottery of
        least norm, the limit of `l2`.
    regulariser : which.
    costs : (K,) c of the linear term c'pi, in units of payoff; empty where there are none.
    budget : a limit on the price, or None.
    """

    strength: float = 0.05
    regulariser: Regulariser = "l2"
    costs: Floats = field(default_factory=lambda: np.zeros(0))
    budget: Budget | None = None

    def __post_init__(self) -> None:
        if not (np.isfinite(self.strength) and self.strength >= 0):
            raise InvalidInput(f"regularisation {self.strength} is not a number >= 0")
        if self.regulariser not in ("l2", "kl"):
            raise InvalidInput(f"no regulariser is called {self.regulariser!r}; there is l2, kl")
        if self.regulariser == "kl" and (self.strength == 0 or self.budget is not None):
            raise InvalidInput("the regulariser kl needs a strength above 0 and knows no budget")


def checked(payoffs: Floats, terms: Terms) -> Floats:
    """The payoffs with the costs in them: A - c1' + 1c', the same game on the simplex (c'pi is linear there).

    Parameters
    ----------
    payoffs : (n, K, K), skew-symmetric.
    terms : of the games.

    Raises
    ------
    InvalidInput
        Payoffs that are not skew-symmetric matrices of numbers, costs or prices that do not fit, a budget below the
        lowest price.
    """
    if payoffs.ndim != 3 or payoffs.shape[1] != payoffs.shape[2] or payoffs.shape[1] < 1:
        raise InvalidInput(f"payoffs of shape {payoffs.shape}, expected (n, K, K)")
    if not np.isfinite(payoffs).all() or not np.allclose(payoffs, -payoffs.transpose(0, 2, 1), rtol=0.0, atol=1e-9):
        raise InvalidInput("payoffs must be finite and skew-symmetric")
    size = payoffs.shape[1]
    if terms.budget is not None:
        _check_budget(terms.budget, size)
    if not terms.costs.size:
        return payoffs
    _check_row(terms.costs, size, "costs")
    return payoffs - terms.costs[:, None] + terms.costs


def _check_budget(budget: Budget, size: int) -> None:
    _check_row(budget.prices, size, "prices")
    if not np.isfinite(budget.limit):
        raise InvalidInput(f"a budget of {budget.limit}")
    if budget.softness is None and budget.limit < budget.prices.min():
        raise InvalidInput(f"a budget of {budget.limit:g} is below the lowest price, {budget.prices.min():g}")
    if budget.softness is not None and not budget.softness > 0:
        raise InvalidInput(f"a budget's softness {budget.softness} is not above 0")


def _check_row(values: Floats, size: int, name: str) -> None:
    if values.shape != (size,) or not np.isfinite(values).all():
        raise InvalidInput(f"{name} of shape {values.shape}, expected {size} numbers")
