"""Draw pairs for contexts from the policy in force."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import numpy as np

from app.db.assignments import Candidate
from app.domain.acquire import Mode, beyond_budget, few_items
from app.domain.boards import BoardConfig
from app.services.loaded.advisor import Advisor
from app.services.refit.policy import Chooser, pair_costs, rules_of
from app.stats.acquisition import draw, floor_of, reachable, sides
from app.stats.types import Floats

UNIFORM = "uniform"


@dataclass(frozen=True, slots=True)
class Drawn:
    """An ordered pair drawn for a context.

    Parameters
    ----------
    at : position of the context.
    left, right : the items.
    propensity : of the draw.
    """

    at: int
    left: Candidate
    right: Candidate
    propensity: float


@dataclass(frozen=True)
class Drawer:
    """Draws for one request.

    Parameters
    ----------
    config : the board's.
    advisor : the policy; None before there is one.
    items : the active ones.
    mode : of the request.
    generator : of the randomness.
    """

    config: BoardConfig
    advisor: Advisor | None
    items: Sequence[Candidate]
    mode: Mode
    generator: np.random.Generator

    def check(self) -> None:
        """Refuse what no policy could draw."""
        if len(self.items) < 2:
            raise few_items([item.name for item in self.items])
        rules = rules_of(self.config.acquisition, self.mode)
        most = reachable(rules, pair_costs(self._cost))
        if self.mode != "one" and rules.budget > most:
            raise beyond_budget(rules.budget, most, self.mode)

    def draw(self, features: Sequence[Mapping[str, Any]]) -> list[Drawn]:
        """Pairs of each context, by context."""
        propensity = self.propensities(features)
        context, pair = draw(propensity, self.mode, self.generator)
        left, right = sides(len(self.items))
        return [
            Drawn(at, self.items[left[chosen]], self.items[right[chosen]], float(propensity[at, chosen]))
            for at, chosen in zip(context.tolist(), pair.tolist(), strict=True)
        ]

    def propensities(self, features: Sequence[Mapping[str, Any]]) -> Floats:
        """(u, k (k-1)) of the ordered pairs of the active items, row by row."""
        advisor = self.advisor
        sensitivity = None if advisor is None else advisor.sensitivities(features)
        return self._chooser.propensities(sensitivity, len(features))

    @property
    def floor(self) -> float:
        """The least propensity of any pair."""
        found = None if self.advisor is None else self.advisor.plan.modes.get(self.mode)
        if found is not None:
            return found.floor
        return floor_of(rules_of(self.config.acquisition, self.mode), pair_costs(self._cost))

    def policy(self) -> dict[str, Any]:
        """What the request was answered by."""
        asked = self.config.acquisition
        advisor = self.advisor
        if advisor is None or self.mode not in advisor.plan.modes:
            return {
                "id": UNIFORM,
                "objective": UNIFORM,
                "estimand": asked.estimand,
                "lambda": None,
                "expected_cost": float((self._chooser.propensities(None, 1) @ pair_costs(self._cost))[0]),
            }
        found = advisor.plan.modes[self.mode]
        return {
            "id": str(advisor.snapshot_id),
            "objective": advisor.plan.asked.objective,
            "estimand": advisor.plan.asked.estimand,
            "lambda": float(found.scale**-2.0),
            "expected_cost": found.cost,
        }

    @property
    def snapshot_id(self) -> UUID | None:
        """Of the policy."""
        return None if self.advisor is None else self.advisor.snapshot_id

    @property
    def _cost(self) -> Floats:
        return np.array([item.label_cost for item in self.items])

    @property
    def _chooser(self) -> Chooser:
        plan = None if self.advisor is None else self.advisor.plan
        return Chooser(plan, self.config.acquisition, [item.name for item in self.items], self._cost, self.mode)
