"""The pure part of a refit: from inputs and configuration to everything that a snapshot says."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from app.domain.boards import BoardConfig
from app.services.refit.balance import balance_of, described
from app.services.refit.choosing import choose
from app.services.refit.crew.ports import IN_TURN, Ask, Crew
from app.services.refit.features import covariates_of, levels_of
from app.services.refit.fitting import FoldModels
from app.services.refit.frame import Frame, frame_of
from app.services.refit.frozen import Freezer, refits_only
from app.services.refit.games.ballots import ballots_of
from app.services.refit.games.means import Means
from app.services.refit.inputs import Inputs, Judges, Roster
from app.services.refit.menus import counts_rankings
from app.services.refit.modelled import CONTEXTUAL, RESTRICTED
from app.services.refit.parts import Fits, asked
from app.services.refit.payoffs import Payoffs
from app.services.refit.policy import Plan
from app.services.refit.population import distinct
from app.services.refit.remembered import Remembered
from app.services.refit.scoring import CLASSICAL, DEBIASED, ESTIMATORS, estimands_of
from app.services.refit.segments import Segments
from app.services.refit.selection import with_learned
from app.services.refit.storage import Stored
from app.services.refit.tables import Table
from app.stats.types import Floats

Games = tuple[tuple[Means, ...], bytes | None]
Progress = Callable[[float], None]

TOGETHER = ((DEBIASED,), (CLASSICAL, RESTRICTED), (CONTEXTUAL,))
"""Estimators that are one part of the work on the whole board."""


@dataclass(frozen=True)
class Result:
    """A refit's outcome.

    Parameters
    ----------
    stored, models, featuriser : what later questions are answered from.
    tables : every ranking.
    payoffs : pairwise results.
    summary : counts and checks, in JSON's terms.
    diagnostics : what the rankings rest on, in JSON's terms.
    plan : which pairs to label next; None where nothing is known.
    means : mean payoffs of the board, first, and of its segments.
    router : what answers for contexts, as an artifact; None where nothing can be played.
    frozen : what later votes are scored with, as artifacts; none where they wait for the next refit.
    """

    stored: Stored
    models: FoldModels
    featuriser: bytes
    tables: tuple[Table, ...]
    payoffs: Payoffs
    summary: dict[str, Any]
    diagnostics: dict[str, Any]
    plan: Plan | None
    means: tuple[Means, ...]
    router: bytes | None
    frozen: tuple[bytes, ...] = ()


def refit(inputs: Inputs, config: BoardConfig, *, crew: Crew = IN_TURN, told: Progress = lambda _: None) -> Result:
    """Fit and score a board.

    Parameters
    ----------
    inputs : what was gathered.
    config : the board's.
    crew : who fits the folds and makes the parts, where that pays.
    told : hears how far it has come, in [0, 1].
    """
    covariates, featuriser = covariates_of(inputs, config)
    frame, selection = with_learned(frame_of(inputs, config), covariates)
    told(0.1)
    whole = frame.view()
    choice = choose(
        whole,
        covariates,
        config.learner,
        folds=config.folds,
        crew=crew,
        told=lambda done: told(0.1 + 0.5 * done),
    )
    models = choice.models
    stored = Stored(frame, covariates, levels_of(inputs, config))
    balance = balance_of(frame, whole)
    segments = Segments(stored)
    chosen = segments.choose()
    ballots = ballots_of(inputs, config, stored)
    fits = Fits(stored, models, config, choice.chosen, choice.chances, choice.contextual, balance, ballots)
    with asked(fits, len(chosen.ranked), crew=crew) as ask:
        made = _made(ask, fits, chosen.ranked, inputs.roster, lambda done: told(0.6 + 0.3 * done))
    waits = refits_only(inputs, frame, made.tables)
    mu, estimands = Remembered(models.mu), {each.name: each for each in estimands_of(config)}
    frozen = () if waits else tuple(Freezer(inputs, frame, segments, mu, estimands).freeze(made.tables))
    summary = {
        **_counts(inputs, frame, config),
        "propensity": frame.kind if whole.votes.row.size else None,
        **selection,
        "folds": {"count": frame.n_folds, "rule": frame.fold_rule},
        "balance": None if balance is None else described(balance, frame),
        "learner": choice.described(whole),
        **_judges(inputs.judges),
        "segments": chosen.levels,
        "segments_left_out": chosen.left_out,
        "refits_only": waits,
        "votes_to_flip": made.flips,
    }
    parts = made.payoffs, summary, made.diagnostics, made.plan, *made.games
    return Result(stored, models, featuriser, tuple(made.tables), *parts, frozen=frozen)


class Made(NamedTuple):
    """The parts of a refit, see `Parts`."""

    tables: list[Table]
    payoffs: Payoffs
    plan: Plan | None
    flips: dict[str, Any]
    diagnostics: dict[str, Any]
    games: Games


def _made(ask: Ask, fits: Fits, segments: Sequence[str], roster: Roster, told: Progress) -> Made:
    """All parts, those first that others wait for or that take longest; `told` hears of the rankings."""
    rankings, pairwise = _rankings(ask, segments), ask("payoffs")
    games = _games(ask, fits, segments, roster.cost[roster.active])
    tables, found = _tables(rankings, told), pairwise()
    flips, diagnostics = ask("flips", tables), ask("diagnostics", tables, found)
    plan = ask("plan", tables, roster.label_cost[roster.active])
    return Made(tables, found, plan(), flips(), diagnostics(), games())


def _games(ask: Ask, fits: Fits, segments: Sequence[str], costs: Floats) -> Callable[[], Games]:
    """Asks for mean payoffs of the board and of its segments, and for the router."""
    if fits.ballots is not None:
        return ask("menu_games", segments, costs)
    router, means = ask("router", costs), [ask("means", segment) for segment in ("", *segments)]
    return lambda: (tuple(part() for part in means), router())


def _rankings(ask: Ask, segments: Sequence[str]) -> list[Callable[[], list[Table]]]:
    """Asks for rankings of the whole board by one part of the estimators after the other, then of its segments."""
    whole = [ask("tables", "", estimators) for estimators in TOGETHER]
    return whole + [ask("tables", segment, ESTIMATORS) for segment in segments]


def _tables(rankings: Sequence[Callable[[], list[Table]]], told: Progress) -> list[Table]:
    """All rankings asked for."""
    tables: list[Table] = []
    for done, made in enumerate(rankings, 1):
        tables += made()
        told(done / (len(rankings) + 1))
    return tables


def _on_menus(inputs: Inputs, config: BoardConfig) -> dict[str, int]:
    """How many votes on menus count, and how many are left out because no pair of theirs has a known propensity."""
    counted = 0 if inputs.rankings is None else int((inputs.rankings.reason < 0).sum())
    taken = counts_rankings(inputs, config)
    return {"rankings": counted if taken else 0, "rankings_left_out": 0 if taken else counted}


def _counts(inputs: Inputs, frame: Frame, config: BoardConfig) -> dict[str, Any]:
    first = slice(None) if inputs.rankings is None else np.unique(inputs.votes.ids, return_index=True)[1]
    reason = inputs.votes.reason[first]
    excluded = np.bincount(reason[reason >= 0], minlength=len(inputs.reasons)).tolist()
    return {
        "votes": int((reason < 0).sum()),
        **_on_menus(inputs, config),
        "votes_excluded": {name: count for name, count in zip(inputs.reasons, excluded, strict=True) if count},
        "rows": frame.sample.n_rows,
        "contexts": distinct(frame.sample.context),
        "items": list(frame.items),
        "retired": [name for name in inputs.roster.names if name not in frame.items],
    }


def _judges(judges: Judges | None) -> dict[str, Any]:
    """Who is heard, and who is not for want of room or of judgements that bear on the board."""
    said: dict[bool, list[dict[str, Any]]] = {True: [], False: []}
    for each in () if judges is None else judges.judges:
        said[each.used].append({"name": each.name, "judgements": each.judgements, "contexts": each.contexts})
    return {"judges": said[True], "judges_left_out": said[False]}
