"""Equilibria of contexts that are sent: solved from their payoffs, or read off the amortised policy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from app.db.unit_of_work import UnitOfWork
from app.domain.boards import Board, Equilibrium
from app.domain.equilibrium import EquilibriumDraft, check, infeasible, no_policy, nothing_yet, two_costs, unknown_item
from app.domain.errors import DomainError
from app.domain.features import FeatureReader
from app.services.equilibrium.games import named, settings, terms_of, winners_of
from app.services.loaded.routes import Routes
from app.services.loaded.shelf import Shelf
from app.services.refit.games.router import Router
from app.stats.games import equilibria
from app.stats.types import Floats


@dataclass(frozen=True, slots=True)
class Question:
    """A request as it was understood.

    Parameters
    ----------
    asked : the board's configuration.
    features : of each context.
    costs : of the board's items.
    budget : on the expected cost of each mixture, or None.
    """

    asked: Equilibrium
    features: Sequence[Mapping[str, Any]]
    costs: Mapping[str, float]
    budget: float | None


def solve(work: UnitOfWork, board: Board, draft: EquilibriumDraft, shelf: Shelf) -> dict[str, Any]:
    """The equilibria of the contexts, in order, by the newest snapshot."""
    asked = board.config.equilibrium
    check(draft, asked.regulariser)
    question = Question(asked, _features(board, draft), _costs(work, board, draft), draft.budget)
    snapshot_id = work.snapshots.head(board.id).snapshot_id
    work.release()
    routes = shelf.routes(board.id, snapshot_id)
    if routes is None:
        raise nothing_yet()
    answer = by_policy if draft.method == "policy" else by_solver
    return {
        "board": board.slug,
        "method": draft.method,
        "snapshot": str(routes.snapshot_id),
        **answer(routes, question),
    }


def by_solver(routes: Routes, question: Question) -> dict[str, Any]:
    """Solve the games of the contexts' payoffs."""
    router = routes.router
    costs = {item: question.costs.get(item, 0.0) for item in router.names}
    if question.budget is not None and question.budget < min(costs.values()):
        raise infeasible(question.budget, min(costs.values()))
    terms = terms_of(question.asked, np.array(list(costs.values())), question.budget)
    found = equilibria(routes.payoffs(question.features), terms)
    gaps = [max(gap, 0.0) for gap in found.gap.tolist()]
    return {"settings": settings(question.asked, costs), "equilibria": _rows(router, found.lotteries, gaps)}


def by_policy(routes: Routes, question: Question) -> dict[str, Any]:
    """Read the policy, which was fitted for the costs and the strength of its refit."""
    router, asked = routes.router, question.asked
    fitted = router.amortised
    if fitted is None:
        raise no_policy(asked.regulariser, asked.regularisation)
    lotteries = routes.lotteries(fitted, question.features)
    kept = replace(asked, regularisation=fitted.strength, regulariser="l2")
    about = settings(kept, named(router.names, fitted.costs))
    return {
        "settings": {**about, "contexts": fitted.contexts, "mean_gap": fitted.gap},
        "equilibria": _rows(router, lotteries, [None] * len(lotteries)),
    }


def _features(board: Board, draft: EquilibriumDraft) -> list[dict[str, Any]]:
    reader = FeatureReader(board.config.features)
    found = []
    for at, context in enumerate(draft.contexts):
        try:
            found.append(reader.read(context.features or {}))
        except DomainError as error:
            raise error.under(f"contexts.{at}") from None
    return found


def _costs(work: UnitOfWork, board: Board, draft: EquilibriumDraft) -> dict[str, float]:
    """Of all items of the board: as sent, by name or alias, else their own."""
    costs, sent = work.items.costs(board.id), draft.costs or {}
    known = work.items.resolve(board.id, sent)
    named_by: dict[str, str] = {}
    for item, cost in sent.items():
        if item not in known:
            raise unknown_item(item, list(costs)[:50])
        name = known[item].name
        if name in named_by:
            raise two_costs(item, named_by[name])
        named_by[name] = item
        costs[name] = cost
    return costs


def _rows(router: Router, lotteries: Floats, gaps: Sequence[float | None]) -> list[dict[str, Any]]:
    rows = []
    for lottery, gap in zip(lotteries, gaps, strict=True):
        distribution = named(router.names, lottery)
        rows.append({"distribution": distribution, "winners": winners_of(distribution), "gap": gap})
    return rows
