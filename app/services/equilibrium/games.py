"""Mean payoffs as games, and their equilibria in plain values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from app.domain.boards import Equilibrium
from app.services.refit.games.means import Means
from app.stats.feedback import skew
from app.stats.games import SHARE, Budget, Terms, equilibria, exploitability, robust_lottery
from app.stats.inference import sidak
from app.stats.types import Floats

LEVEL = 0.95


def terms_of(asked: Equilibrium, costs: Floats, budget: float | None = None) -> Terms:
    """The terms of a board's games.

    Parameters
    ----------
    costs : (k,) of the players: what a mixture pays, and what a budget bounds.
    """
    limit = None if budget is None else Budget(costs, budget)
    return Terms(asked.regularisation, asked.regulariser, costs, limit)


def settings(asked: Equilibrium, costs: Mapping[str, float]) -> dict[str, Any]:
    """What equilibria are of, in JSON's terms."""
    return {
        "lambda": asked.regularisation,
        "regulariser": asked.regulariser,
        "aggregator": asked.aggregator,
        "costs": dict(costs),
    }


def named(names: Sequence[str], lottery: Floats) -> dict[str, float]:
    """A distribution by item."""
    return dict(zip(names, lottery.tolist(), strict=True))


def winners_of(distribution: Mapping[str, float]) -> list[str]:
    """Items with a share above .001, the largest first."""
    return sorted((item for item, share in distribution.items() if share > SHARE), key=lambda item: -distribution[item])


NOTHING: dict[str, Any] = {"distribution": None, "winners": [], "exploitability": None, "gap": None}


def played(means: Means, names: Sequence[str], terms: Terms) -> dict[str, Any]:
    """The equilibrium of mean payoffs, cut off at ±1."""
    game = skew(np.clip(means.value, -1.0, 1.0)[None], means.players.size)
    found = equilibria(game, terms)
    distribution = named(names, found.lotteries[0])
    return {
        "distribution": distribution,
        "winners": winners_of(distribution),
        "exploitability": float(exploitability(game, found.lotteries)[0]),
        "gap": max(float(found.gap[0]), 0.0),
    }


def reach_of(means: Means) -> Floats:
    """(P,) to either side of the means, for all pairs at once; NaN where there are no errors."""
    return sidak(means.value.size, LEVEL) * means.error


def robust(means: Means, names: Sequence[str]) -> dict[str, float] | None:
    """The lottery that is best against the worst payoffs within all intervals; None without intervals."""
    reach = reach_of(means)
    if np.isnan(reach).any():
        return None
    size = means.players.size
    spread = np.zeros((size, size))
    first, second = np.triu_indices(size, 1)
    spread[first, second] = spread[second, first] = reach
    return named(names, robust_lottery(skew(means.value[None], size)[0] - spread))


def payoff_rows(means: Means, names: Sequence[str]) -> list[dict[str, Any]]:
    """Every pair with its mean payoff."""
    first, second = np.triu_indices(means.players.size, 1)
    columns = (first, second, means.value, means.error, reach_of(means), means.votes)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return [
        {
            "first": names[j],
            "second": names[k],
            "payoff": value,
            "standard_error": None if np.isnan(error) else error,
            "interval": None if np.isnan(error) else [value - reach, value + reach],
            "votes": votes,
        }
        for j, k, value, error, reach, votes in rows
    ]
