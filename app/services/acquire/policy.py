"""The policy in force, for people: how often each pair is drawn, at what cost, and what it gains."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np

from app.db.unit_of_work import UnitOfWork
from app.domain.boards import Board
from app.services.acquire.drawing import Drawer
from app.services.loaded.advisor import Advisor
from app.services.loaded.shelf import Shelf
from app.services.refit.policy import Calibration


def policy(work: UnitOfWork, board: Board, shelf: Shelf) -> dict[str, Any]:
    """The document of the policy by which requests are answered that name no mode.

    `relative_variance` is the trace of the scores' covariance under the policy over that under the uniform policy of
    the same budget, as the models see it; `reliability` says how far the models are believed (0: not at all).
    """
    asked = board.config.acquisition
    standing = work.assignments.standing(board.id)
    advisor = shelf.advisor(board.id, standing.snapshot_id)
    drawer = Drawer(board.config, advisor, standing.items, asked.mode, np.random.default_rng())
    drawer.check()
    found = None if advisor is None else advisor.plan.modes.get(asked.mode)
    # Draws are made by what the policy was made for, until a refit knows what was asked since.
    kept = asked if advisor is None or found is None else advisor.plan.asked
    return {
        "board": board.slug,
        **drawer.policy(),
        "mode": asked.mode,
        "budget": kept.budget,
        "exploration": kept.exploration,
        "floor": drawer.floor,
        "reliability": None if advisor is None else advisor.plan.exponent,
        "contexts": 0 if advisor is None else advisor.plan.contexts,
        "relative_variance": 1.0 if found is None else found.relative_variance,
        "pairs": _pairs(drawer, advisor, found),
    }


def _pairs(drawer: Drawer, advisor: Advisor | None, found: Calibration | None) -> list[dict[str, Any]]:
    """Each ordered pair of active items with its mean propensity; null where an item is newer than the policy."""
    place = {} if advisor is None else {name: at for at, name in enumerate(advisor.plan.items)}
    rows = []
    flat = iter(drawer.propensities([{}])[0].tolist()) if found is None else None
    for left, right in permutations([item.name for item in drawer.items], 2):
        mean: float | None = None
        if flat is not None:
            mean = next(flat)
        elif found is not None and left in place and right in place:
            mean = float(found.mean[place[left], place[right]])
        rows.append({"left": left, "right": right, "propensity": mean})
    return rows
