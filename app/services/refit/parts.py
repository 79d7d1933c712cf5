"""What is made of fitted models, part by part: one after the other, or by a crew side by side where that pays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from app.domain.boards import BoardConfig
from app.learners import load_model
from app.services.refit.crew.ports import Ask, Crew
from app.services.refit.diagnosis import Fitted, diagnose
from app.services.refit.fitting import FoldModels
from app.services.refit.flips import flips_of
from app.services.refit.foreseen import Foreseen
from app.services.refit.games.ballots import Ballots
from app.services.refit.games.means import Means, mean_payoffs
from app.services.refit.games.menu_games import menu_games
from app.services.refit.games.router import fit_router, pack_router
from app.services.refit.modelled import Contextual, affordable
from app.services.refit.payoffs import Payoffs, payoffs
from app.services.refit.policy import Plan, Planner
from app.services.refit.remembered import Remembered
from app.services.refit.scoring import Scorer, estimands_of
from app.services.refit.segments import Segments
from app.services.refit.storage import Stored
from app.services.refit.tables import Table
from app.stats.contextual_bt import ContextualBT
from app.stats.debias.balance import Balance
from app.stats.debias.one_step import thinning_of
from app.stats.debias.paired import PairedCrossFit
from app.stats.types import Bools, Floats

WORTH_PROCESSES = 8_000_000
"""Rows × K², segments counted as so many boards more, from which starting processes costs less than it saves."""


@dataclass(frozen=True)
class Fits:
    """What every part is made of.

    Parameters
    ----------
    stored, models : the board's rows and fold models.
    config : the board's.
    learner : the name of the models' learner.
    chances : (m, C) what they say of votes that they never saw.
    contextual : the board's contextual model.
    balance : of the propensities.
    ballots : votes on menus, see `ballots_of`.
    """

    stored: Stored
    models: FoldModels
    config: BoardConfig
    learner: str
    chances: Floats
    contextual: ContextualBT | None
    balance: Balance | None
    ballots: Ballots | None = None


class Parts:
    """Makes the parts.

    Parameters
    ----------
    fits : what they are made of.
    """

    def __init__(self, fits: Fits) -> None:
        self._fits, frame = fits, fits.stored.frame
        self._mu = Remembered(_mu(fits))
        self._consistent = fits.balance is None or fits.balance.consistent
        contextual = Contextual(fits.stored.covariates, lambda: fits.contextual)
        self._scorer = Scorer(frame, self._mu, estimands_of(fits.config), contextual, self._consistent)
        self._segments = Segments(fits.stored)

    def tables(self, segment: str, estimators: Sequence[str]) -> list[Table]:
        """Rankings of a segment by some of the estimators."""
        return list(self._scorer.tables(segment, self._rows(segment), estimators=estimators))

    def payoffs(self) -> Payoffs:
        """Pairwise results."""
        return payoffs(self._fits.stored.frame, self._mu)

    def means(self, segment: str) -> Means:
        """Mean payoffs of a segment."""
        frame = self._fits.stored.frame
        return mean_payoffs(frame, self._mu, segment, self._rows(segment), consistent=self._consistent)

    def router(self, costs: Floats) -> bytes | None:
        """What answers for contexts, packed, given what deploying the items costs (K,)."""
        fits = self._fits
        router = fit_router(fits.stored, self._mu, fits.config.equilibrium, costs)
        return None if router is None else pack_router(router)

    def menu_games(self, segments: Sequence[str], costs: Floats) -> tuple[tuple[Means, ...], bytes | None]:
        """Both, of a board with votes on menus: from models of its own."""
        fits = self._fits
        assert fits.ballots is not None
        return menu_games(fits.ballots, fits.config, fits.learner, segments, costs)

    def flips(self, tables: Sequence[Table]) -> dict[str, Any]:
        """Votes to flip, given the rankings."""
        frame = self._fits.stored.frame
        return flips_of(frame, self._mu, self._fits.config, tables, whole=frame.view())

    def plan(self, tables: Sequence[Table], cost: Floats) -> Plan | None:
        """The labelling policy, given the rankings and what labels of the items cost (K,)."""
        fits = self._fits
        planner = Planner(fits.stored.frame, fits.models, fits.config.acquisition, estimands_of(fits.config), cost)
        return planner.plan(tables)

    def diagnostics(self, tables: Sequence[Table], found: Payoffs) -> dict[str, Any]:
        """What the rankings rest on."""
        fits, frame = self._fits, self._fits.stored.frame
        said = fits.learner, fits.chances
        fitted = Fitted(frame, frame.view(), self._mu, *said, fits.balance, found, tables)
        return diagnose(fitted, fits.config)

    def _rows(self, segment: str) -> Bools | None:
        return self._segments.rows(segment) if segment else None


def _mu(fits: Fits) -> PairedCrossFit:
    """The models; where only some rows are asked about, but by many parts, told which."""
    frame, models = fits.stored.frame, fits.models
    thinning = thinning_of(frame.sample, models)
    if thinning is None:
        return models
    modelled = affordable(frame, None)
    rows = thinning.drawn if modelled is None else thinning.drawn | modelled
    return Foreseen(models, frame.sample, fits.chances, rows)


@dataclass(frozen=True)
class Packed:
    """The same with models as bytes.

    Parameters
    ----------
    fits : without the models.
    models : by fold.
    """

    fits: Fits
    models: tuple[bytes, ...]

    @classmethod
    def of(cls, fits: Fits) -> Packed:
        """Pack the models."""
        bare = replace(fits, models=replace(fits.models, models=()))
        return cls(bare, tuple(model.to_bytes() for model in fits.models.models))

    def maker(self) -> Parts:
        """See `State`."""
        models = tuple(map(load_model, self.models))
        return Parts(replace(self.fits, models=replace(self.fits.models, models=models)))


@contextmanager
def asked(fits: Fits, segments: int, *, crew: Crew) -> Iterator[Ask]:
    """Whom to ask for parts.

    Parameters
    ----------
    fits : what they are made of.
    segments : how many will be ranked.
    crew : who makes them, where that pays.
    """
    sample = fits.stored.frame.sample
    if sample.n_rows * sample.n_items**2 * (1 + segments) < WORTH_PROCESSES:
        parts = Parts(fits)
        yield lambda name, *given: partial(getattr(parts, name), *given)
        return
    with crew.at(Packed.of(fits)) as ask:
        yield ask
