"""The labelling policy of a snapshot: what is found at a refit, and the propensities that follow for any context."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import get_args

import numpy as np

from app.domain.boards import Acquisition
from app.services.refit import storage
from app.services.refit.fitting import FoldModels
from app.services.refit.frame import Frame
from app.services.refit.tables import Table
from app.stats.acquisition import (
    Beliefs,
    Design,
    Mode,
    Policy,
    Rules,
    contrast_weight,
    d_weight,
    e_weight,
    pair_row,
    pair_square,
    reachable,
    reliability,
    uniform_propensity,
)
from app.stats.gars import Estimand, Graph
from app.stats.inference import open_neighbours as neighbours_open
from app.stats.types import Bools, Estimate, Floats

SEED = 20260122
MOST_CONTEXTS = 2_000
CELLS = 4_000_000
"""Contexts × K² that a calibration may hold."""
SEARCH = 100_000_000
"""Contexts × models × K³ of one step towards a D- or E-optimal policy."""
MODES: tuple[Mode, ...] = get_args(Mode)


@dataclass(frozen=True, slots=True)
class Calibration:
    """One mode's numbers.

    Parameters
    ----------
    scale : 1/√λ, inf where the budget does not bind.
    floor : α as used.
    cost : expected labelling cost of a context.
    relative_variance : tr Sigma of the policy over that of the uniform one at the same budget, as the models see it.
    mean : (K, K) propensities averaged over the contexts of the calibration.
    """

    scale: float
    floor: float
    cost: float
    relative_variance: float
    mean: Floats


@dataclass(frozen=True, slots=True)
class Plan:
    """A policy as a snapshot keeps it.

    Parameters
    ----------
    items : names of the items it knows, K of them.
    asked : the board's configuration that it answers.
    cost : (K,) labelling cost of each item; a pair costs the sum of both.
    weight : (K, K) W of the criterion.
    exponent : ρ, how far sensitivities are believed.
    contexts : contexts of the calibration.
    judges : whose margins the models expect.
    modes : the numbers of each mode whose budget can be spent.
    """

    items: tuple[str, ...]
    asked: Acquisition
    cost: Floats
    weight: Floats
    exponent: float
    contexts: int
    judges: int
    modes: Mapping[Mode, Calibration]


def pair_costs(cost: Floats) -> Floats:
    """(K (K-1),) costs of the ordered pairs, row by row."""
    costs: Floats = pair_row(cost[:, None] + cost)
    return costs


def rules_of(asked: Acquisition, mode: Mode) -> Rules:
    """What a board asks of its policy in a mode."""
    return Rules(mode, asked.budget, asked.floor, asked.exploration)


@dataclass(frozen=True)
class Planner:
    """Calibrates the policy of one refit.

    Parameters
    ----------
    frame, models : of the refit.
    asked : the board's configuration.
    estimands : those that the board serves.
    cost : (K,) labelling cost of each item.
    """

    frame: Frame
    models: FoldModels
    asked: Acquisition
    estimands: Sequence[Estimand]
    cost: Floats

    @property
    def estimand(self) -> Estimand:
        """The one that the policy makes certain."""
        return next(each for each in self.estimands if each.name == self.asked.estimand)

    def plan(self, tables: Sequence[Table]) -> Plan | None:
        """The policy; None where there is nothing to choose or nothing known.

        Parameters
        ----------
        tables : the refit's rankings; those of the estimand say which neighbours are open.
        """
        if not self.models.models or len(self.frame.items) < 2:
            return None
        weight = self._weight(tables)
        beliefs = self._beliefs(_contexts_at_most(self._size**2, CELLS))
        sensitivities = beliefs.sensitivities(self.estimand, self._graph, weight)
        exponent = 0.0 if self.asked.objective == "uniform" else reliability(pair_row(sensitivities))
        mean = sensitivities.mean(axis=0)
        modes = {
            mode: self._calibrated(mode, beliefs, mean, exponent=exponent) for mode in MODES if self._affords(mode)
        }
        margins = self.models.covariates.margins
        judges = 0 if margins is None else int(margins.shape[-1])
        return Plan(self.frame.items, self.asked, self.cost, weight, exponent, len(mean), judges, modes)

    @property
    def _size(self) -> int:
        return len(self.frame.items)

    @property
    def _graph(self) -> Graph:
        return Graph.complete(self._size)

    def _affords(self, mode: Mode) -> bool:
        return mode == "one" or self.asked.budget <= reachable(rules_of(self.asked, mode), pair_costs(self.cost))

    def _weight(self, tables: Sequence[Table]) -> Floats:
        match self.asked.objective:
            case "d-optimal":
                return d_weight(self._design())
            case "e-optimal":
                return e_weight(self._design())[0]
            case "contrast":
                return contrast_weight(open_neighbours(tables, self.estimand.name, self._size))
            case "a-optimal" | "uniform":
                return np.eye(self._size)

    def _design(self) -> Design:
        beliefs = self._beliefs(_contexts_at_most(len(self.models.models) * self._size**3, SEARCH))
        rules, cost = rules_of(self.asked, self.asked.mode), pair_costs(self.cost)

        def allocate(sensitivities: Floats) -> Floats:
            mean = pair_row(sensitivities.mean(axis=0))
            return pair_square(Policy.calibrated(mean, cost, rules, exponent=1.0).propensities(mean))

        return Design(beliefs, self.estimand, self._graph, allocate)

    def _beliefs(self, most: int) -> Beliefs:
        """About a seeded draw of the rows' contexts."""
        pattern = self.frame.sample.pattern
        if pattern.size > most:
            pattern = pattern[np.sort(np.random.default_rng(SEED).permutation(pattern.size)[:most])]
        distinct, index = np.unique(pattern, return_inverse=True)
        known = self.models.covariates.take(distinct)
        found = Beliefs.of((model.probabilities(known) for model in self.models.models), self.frame.sample.rule)
        return Beliefs(found.p[:, index], found.noise[:, index])

    def _calibrated(self, mode: Mode, beliefs: Beliefs, sensitivity: Floats, *, exponent: float) -> Calibration:
        rules, cost = rules_of(self.asked, mode), pair_costs(self.cost)
        policy = Policy.calibrated(pair_row(sensitivity), cost, rules, exponent=exponent)
        propensity = policy.propensities(pair_row(sensitivity))
        flat = np.full_like(propensity, uniform_propensity(rules, cost))
        return Calibration(
            policy.scale,
            policy.floor,
            float((propensity @ cost).mean()),
            self._trace(beliefs, propensity) / self._trace(beliefs, flat),
            pair_square(propensity.mean(axis=0, keepdims=True))[0],
        )

    def _trace(self, beliefs: Beliefs, propensity: Floats) -> float:
        return float(np.trace(beliefs.covariance(self.estimand, self._graph, pair_square(propensity))))


def open_neighbours(tables: Sequence[Table], estimand: str, n_items: int) -> Bools:
    """(K, K) items next to each other in the debiased ranking whose difference could be zero."""
    found = np.zeros((n_items, n_items), dtype=np.bool_)
    for table in tables:
        wanted = (table.estimand, table.estimator, table.segment) == (estimand, "debiased", "")
        if wanted and table.pairs == table.auto and table.covariance is not None and table.ranked.size > 1:
            estimate = Estimate(table.value, table.covariance, table.n_rows)
            above, below = np.nonzero(neighbours_open(estimate))
            found[table.ranked[above], table.ranked[below]] = True
    return found


@dataclass(frozen=True, slots=True)
class Chooser:
    """Propensities of contexts at hand, for the items that can be drawn now.

    Parameters
    ----------
    plan : of the newest snapshot; None before the first, when all pairs are alike.
    asked : the board's configuration, for that case.
    items : names of the items that can be drawn.
    cost : (k,) labelling cost of each.
    mode : independent pairs, at most one, or exactly one.
    """

    plan: Plan | None
    asked: Acquisition
    items: Sequence[str]
    cost: Floats
    mode: Mode

    def propensities(self, sensitivity: Floats | None, n_contexts: int) -> Floats:
        """(u, k (k-1)) of the ordered pairs of the items, row by row.

        Parameters
        ----------
        sensitivity : (u, K, K) of the plan's items; None without a plan.
        n_contexts : u.
        """
        cost = pair_costs(self.cost)
        if self.plan is None or sensitivity is None or self.mode not in self.plan.modes:
            rules = rules_of(self.asked, self.mode)
            return np.full((n_contexts, cost.size), uniform_propensity(rules, cost))
        found = self.plan.modes[self.mode]
        rules = rules_of(self.plan.asked, self.mode)
        floor = min(found.floor, uniform_propensity(rules, cost))
        policy = Policy(rules, cost, floor, self.plan.exponent, found.scale)
        return policy.propensities(pair_row(self._among(sensitivity)))

    def _among(self, sensitivity: Floats) -> Floats:
        """(u, k, k); pairs with an item that the plan does not know have the context's mean."""
        assert self.plan is not None
        if tuple(self.items) == self.plan.items:
            return sensitivity
        place = {name: at for at, name in enumerate(self.plan.items)}
        known = np.array([place.get(name, -1) for name in self.items])
        mean = pair_row(sensitivity).mean(axis=1)
        found: Floats = sensitivity[:, known[:, None], known]
        return np.where((known[:, None] >= 0) & (known >= 0), found, mean[:, None, None])


def pack_plan(plan: Plan) -> bytes:
    """A plan as an artifact."""
    header = {
        "items": plan.items,
        "asked": asdict(plan.asked),
        "exponent": plan.exponent,
        "contexts": plan.contexts,
        "judges": plan.judges,
        "modes": {mode: {**asdict(found), "mean": None} for mode, found in plan.modes.items()},
    }
    means = {f"mean.{mode}": found.mean for mode, found in plan.modes.items()}
    return storage.pack(header, {"cost": plan.cost, "weight": plan.weight, **means})


def unpack_plan(body: bytes) -> Plan:
    """What `pack_plan` was given."""
    header, arrays = storage.unpack(body)
    modes: dict[Mode, Calibration] = {
        mode: Calibration(**{**header["modes"][mode], "mean": arrays[f"mean.{mode}"]})
        for mode in MODES
        if mode in header["modes"]
    }
    return Plan(
        items=tuple(header["items"]),
        asked=Acquisition(**header["asked"]),
        cost=arrays["cost"],
        weight=arrays["weight"],
        exponent=header["exponent"],
        contexts=header["contexts"],
        judges=header["judges"],
        modes=modes,
    )


def _contexts_at_most(price: int, limit: int) -> int:
    return int(np.clip(limit // price, 32, MOST_CONTEXTS))
