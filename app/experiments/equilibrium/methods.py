"""Lotteries from the same votes by every method, on contexts that nobody voted on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from app.learners.classifier.learner import GRID, LightGBMLearner
from app.learners.davidson.cells import dealt
from app.learners.menus import MenuPairs
from app.learners.payoffs.contextual import ContextualPayoffs, Nuisances, fit_nuisances
from app.learners.payoffs.policy import Policy, fit_policy
from app.learners.payoffs.regression import FOLDS, Targets, regress
from app.learners.payoffs.second_stage import Form, PayoffRegression
from app.learners.registry import learner
from app.stats.feedback import Corrections, Menus, MenuSample, MenuVotes, mean_payoffs, uniform
from app.stats.games import (
    Terms,
    borda_scores,
    bradley_terry_game,
    bradley_terry_scores,
    equilibria,
    robust_lottery,
    sole_winner,
)
from app.stats.inference import bands
from app.stats.types import Covariates, Estimate, Floats, OutcomeLearner

PLUG_IN, PAPER, OFFSET, DEBIASED = "plug-in", "debiased, paper's form", "debiased, offset", "debiased"
"""The last chooses between the others by their out-of-fold loss, as boards do."""
POLICY = "amortised"
BT_PLUG_IN, BT_DEBIASED, BT_REGULARISED = "contextual BT", "contextual BT, debiased", "contextual BT, regularised"
BORDA, GLOBAL, ROBUST = "contextual Borda", "global lottery", "robust global lottery"
BRADLEY_TERRY = (BT_PLUG_IN, BT_DEBIASED, BT_REGULARISED)
V = 3
MILD = 0.9
"""Payoffs are cut off here before the slope of their log-odds is taken."""


def outcome_learner(name: str) -> OutcomeLearner:
    """The learner called `name`; the classifier's trees have 15 leaves, its rounds alone are tuned."""
    return LightGBMLearner(GRID[1:2]) if name == "lightgbm" else learner(name)


def menu_sample(menus: Menus, votes: MenuVotes, n_rows: int, *, seed: int) -> MenuSample:
    """Votes on contexts of their own, in V folds."""
    context = np.arange(n_rows)
    return MenuSample(menus, votes, dealt(context, V, seed=seed), context, context)


@dataclass(frozen=True)
class Fits:
    """All that is fitted to one board's votes.

    Parameters
    ----------
    nuisances : outcome models and pseudo-outcomes.
    terms : of the games.
    seed : of the second stages.
    """

    nuisances: Nuisances
    terms: Terms
    seed: int

    @classmethod
    def of(cls, x: Floats, sample: MenuSample, name: str, terms: Terms, *, seed: int) -> Fits:
        """Fit the nuisances with the outcome learner called `name`."""
        fitted = fit_nuisances(Covariates(x), sample, MenuPairs(outcome_learner(name)), uniform(sample.menus))
        return cls(fitted, terms, seed)

    @cached_property
    def stages(self) -> Mapping[str, PayoffRegression]:
        """The second stages by method."""
        forms: dict[str, Form] = {PLUG_IN: "plug-in", PAPER: "paper", OFFSET: "offset"}
        found = {name: self.nuisances.second_stage(form, seed=self.seed) for name, form in forms.items()}
        best = min(found, key=lambda name: found[name].loss[found[name].form])
        return {**found, DEBIASED: found[best]}

    def payoffs(self, method: str, x: Floats) -> Floats:
        """(u, K, K) A(x) by a method with a second stage."""
        return ContextualPayoffs(self.nuisances, self.stages[method]).payoffs(Covariates(x))

    def lotteries(self, x: Floats) -> dict[str, Floats]:
        """(u, K) by every method."""
        payoffs = {method: self.payoffs(method, x) for method in (PLUG_IN, PAPER, OFFSET, DEBIASED)}
        found = {method: equilibria(each, self.terms).lotteries for method, each in payoffs.items()}
        found[POLICY] = self.policy(DEBIASED).lotteries(x)
        found |= self._transitive(payoffs, x)
        for name, lottery in self._everywhere().items():
            found[name] = np.tile(lottery, (len(x), 1))
        return found

    def policy_rows(self, method: str) -> tuple[Floats, Floats]:
        """Covariates and payoffs (n, K, K) of the rows, f(mu) out of fold."""
        rows = self.nuisances.x.x[self.nuisances.sample.pattern]
        parts = self.nuisances.corrections
        values = self.stages[method].values(rows, parts.start, parts.slope)
        return rows, self.nuisances.sample.menus.matrix(values)

    def policy(self, method: str) -> Policy:
        """The amortised equilibrium of a method's payoffs."""
        return fit_policy(*self.policy_rows(method), self.terms, seed=self.seed)

    def mean_payoffs(self) -> Estimate:
        """Debiased mean payoffs of the pairs."""
        return mean_payoffs(self.nuisances.corrections.pseudo_outcomes, self.nuisances.sample.context)

    def _transitive(self, payoffs: Mapping[str, Floats], x: Floats) -> dict[str, Floats]:
        scores = bradley_terry_scores(payoffs[PLUG_IN])
        return {
            BT_PLUG_IN: sole_winner(scores),
            BT_DEBIASED: sole_winner(self._debiased_scores(x)),
            BT_REGULARISED: equilibria(bradley_terry_game(scores), self.terms).lotteries,
            BORDA: sole_winner(borda_scores(payoffs[DEBIASED])),
        }

    def _debiased_scores(self, x: Floats) -> Floats:
        """(u, K) regressions of the one-step pseudo-outcomes of the Bradley-Terry scores."""
        nuisances = self.nuisances
        rows = nuisances.x.x[nuisances.sample.pattern]
        pseudo = score_outcomes(nuisances.sample.menus, nuisances.corrections)
        part = dealt(nuisances.sample.context, FOLDS, seed=self.seed)
        return regress(Targets(rows, pseudo, np.ones(pseudo.shape), part), seed=self.seed).predict(x)

    def _everywhere(self) -> dict[str, Floats]:
        menus, mean = self.nuisances.sample.menus, self.mean_payoffs()
        band = bands(mean)
        lower = menus.matrix(band.lower[None])[0]
        upper = menus.matrix(band.upper[None])[0]
        # Below the diagonal A_kj = -A_jk, so the lower end is minus the upper one.
        ends = np.where(np.triu(np.ones(lower.shape, dtype=np.bool_)), lower, upper)
        matrix = menus.matrix(np.clip(mean.value, -1.0, 1.0)[None])
        return {GLOBAL: equilibria(matrix, Terms(0.0)).lotteries[0], ROBUST: robust_lottery(ends)}


def score_outcomes(menus: Menus, parts: Corrections) -> Floats:
    """(n, K) r(A) + Σ_k dr/dA_jk excess_jk, r the Bradley-Terry scores of A cut off at .9, flat beyond."""
    start = menus.matrix(parts.start)
    inside = np.abs(start) < MILD
    slope = np.where(inside, 2.0 / (1.0 - np.clip(start, -MILD, MILD) ** 2), 0.0)
    step: Floats = (slope * menus.matrix(parts.excess)).mean(axis=2)
    return bradley_terry_scores(start, clip=MILD) + step
