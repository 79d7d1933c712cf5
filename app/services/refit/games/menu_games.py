"""Mean payoffs and a router from votes on menus: outcome models of their own, told what else is on the menu."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from app.domain.boards import BoardConfig
from app.domain.outcomes import rule
from app.learners import learner
from app.learners.menus import MenuMargins, MenuPairs
from app.learners.payoffs.contextual import Nuisances, fit_nuisances
from app.services.refit.frame import Frame
from app.services.refit.games.ballots import Ballots
from app.services.refit.games.contest import Contest, favours
from app.services.refit.games.means import Behind, Means, nothing, with_status
from app.services.refit.games.router import (
    CELLS,
    MenuModels,
    Router,
    fit_stage,
    most_rows,
    pack_router,
    routing,
    with_policy,
)
from app.services.refit.games.rows import SEED
from app.services.refit.population import distinct
from app.services.refit.segments import Segments
from app.stats.feedback import OUTSIDE, Corrections, MenuSample, uniform
from app.stats.games import Terms
from app.stats.types import Bools, Covariates, Floats, Ints


@dataclass(frozen=True)
class _Fitted:
    """Models and pseudo-outcomes of some rows of the board."""

    nuisances: Nuisances
    rows: Ints


def menu_games(
    ballots: Ballots, config: BoardConfig, name: str, segments: Sequence[str], costs: Floats
) -> tuple[tuple[Means, ...], bytes | None]:
    """Mean payoffs of the board, first, and of segments; and the router, packed, None where nothing can be played.

    Parameters
    ----------
    ballots : the votes.
    config : the board's.
    name : of the outcome learner.
    segments : names.
    costs : (K,) of deployment.
    """
    frame, every = ballots.stored.frame, ("", *segments)
    if ballots.players.size < 2:
        behind = Behind(0, frame.sample.n_rows, 0, distinct(frame.sample.context))
        return tuple(nothing(each, behind) for each in every), None
    fitted, levels = _fitted(ballots, name), Segments(ballots.stored)
    inside = {each: levels.rows(each)[fitted.rows] for each in segments}
    inside[""] = np.ones(fitted.rows.size, dtype=np.bool_)
    means = tuple(_means(ballots, fitted, each, inside[each]) for each in every)
    return means, pack_router(_router(ballots, fitted, config, costs))


def _fitted(ballots: Ballots, name: str) -> _Fitted:
    """Fit to as many rows as have room."""
    covariates, players, sample = ballots.stored.covariates, ballots.players, ballots.sample
    margins = None if covariates.margins is None else covariates.margins[:, players[:, None], players]
    most = CELLS // sample.menus.cells[0].size
    rows = np.sort(np.random.default_rng(SEED).permutation(sample.n_rows)[:most])
    x, some = Covariates(covariates.x, margins), taken(sample, rows)
    return _Fitted(fit_nuisances(x, some, MenuPairs(learner(name)), uniform(sample.menus)), rows)


def taken(sample: MenuSample, rows: Ints) -> MenuSample:
    """The sample of some rows, ascending."""
    number = np.full(sample.n_rows, -1, dtype=np.int64)
    number[rows] = np.arange(rows.size)
    votes = sample.votes.take(number[sample.votes.row] >= 0)
    votes = replace(votes, row=number[votes.row])
    return MenuSample(sample.menus, votes, sample.fold[rows], sample.pattern[rows], sample.context[rows])


def _means(ballots: Ballots, fitted: _Fitted, segment: str, inside: Bools) -> Means:
    frame, sample = ballots.stored.frame, fitted.nuisances.sample
    counted = sample.votes.take(inside[sample.votes.row])
    rows, contexts = int(inside.sum()), distinct(sample.context[inside])
    behind = Behind(len(counted), rows if fitted.rows.size == frame.sample.n_rows else 0, rows, contexts)
    if not len(counted):
        return nothing(segment, behind)
    on_menu = (counted.tiers != OUTSIDE).astype(np.int64)
    votes = (on_menu.T @ on_menu)[sample.menus.pairs]
    values = fitted.nuisances.corrections.pseudo_outcomes[inside]
    error = _error(values, _clusters(frame, fitted.rows[inside]))
    made = Means(segment, "ok", behind, ballots.players, values.mean(axis=0), error, votes)
    return with_status(made, frame, consistent=True)


def _clusters(frame: Frame, rows: Ints) -> list[tuple[Ints, float]]:
    """Labels (n,) of some rows and the sign of their sum of squares; rows stay whole."""
    clustering = frame.clustering
    if clustering.splits_rows:
        clustering = replace(clustering, by="context")
    return [(term.row[rows], term.sign) for term in clustering.terms(frame.sample)]


def _error(values: Floats, clusters: Sequence[tuple[Ints, float]]) -> Floats:
    """(P,) standard errors of means (n, P); NaN where all rows are of one cluster."""
    n, square, least = len(values), np.zeros(values.shape[1]), len(values)
    for label, sign in clusters:
        _, place = np.unique(label, return_inverse=True)
        sums = np.zeros((place.max() + 1, values.shape[1]))
        np.add.at(sums, place, values - values.mean(axis=0))
        square += sign * (sums**2).sum(axis=0)
        least = min(least, len(sums)) if sign > 0 else least
    error: Floats = np.sqrt(np.maximum(square, 0.0)) / n
    return error if least > 1 else np.full(error.shape, np.nan)


def _router(ballots: Ballots, fitted: _Fitted, config: BoardConfig, costs: Floats) -> Router:
    nuisances, players = fitted.nuisances, ballots.players
    sample, found = nuisances.sample, nuisances.corrections
    most = most_rows(found.start.shape[1], sample.n_rows)
    some = np.sort(np.random.default_rng(SEED).permutation(sample.n_rows)[:most])
    x, start = nuisances.x.x[sample.pattern[some]], found.start[some]
    part = Corrections(start, found.slope[some], found.weight[some], found.excess[some])
    stage = fit_stage(x, part, sample.context[some])
    contest = Contest(players, np.full(start.shape[1], 0.5), favours(rule(config.categories)))
    models = tuple(model for model in nuisances.models.values() if isinstance(model, MenuMargins))
    router = replace(routing(ballots.stored, contest, stage), menus=MenuModels(sample.menus, models))
    terms = Terms(config.equilibrium.regularisation, config.equilibrium.regulariser, costs[players])
    return with_policy(router, x, start, terms, n_rows=sample.n_rows)
