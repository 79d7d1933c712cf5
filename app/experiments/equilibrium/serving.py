"""What an answer costs: the policy, against payoffs and the solver (NashEval, Section 5.3)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from statistics import median
from time import perf_counter

import numpy as np
from scipy.special import expit

from app.experiments.acquisition.figures import Collected, Figures
from app.experiments.curves import Spot, Verdict
from app.experiments.equilibrium.cells import EXPLOITABILITY, STRENGTH
from app.experiments.equilibrium.methods import menu_sample, outcome_learner
from app.learners.menus import MenuPairs
from app.learners.payoffs.contextual import ContextualPayoffs, fit_nuisances
from app.learners.payoffs.policy import fit_policy
from app.stats.feedback import MenuVotes, all_menus, uniform
from app.stats.games import Terms, equilibria, exploitability
from app.stats.types import Covariates, Floats

SIZES = (5, 20, 50)
BATCHES: Mapping[int, float] = {1: 8.0, 2000: 2.0}
"""Contexts asked for together, and how many times as long the solver has to take at 20 items."""
JUDGED = 20
COVARIATES = 5
VOTES_OF_ROW = 3
REPEATS = {1: 30, 2000: 3}
TERMS = Terms(STRENGTH)
SOLVER, POLICY = "payoffs and solver", "policy"
TIME = "ms a context"


@dataclass(frozen=True)
class Serving:
    """Boards of ever more items whose preferences go round in a circle, bent by the context; one thread.

    Parameters
    ----------
    learner : name of the outcome learner.
    n : contexts with votes.
    sizes : of the boards; 20 is judged.
    """

    learner: str
    n: int
    sizes: tuple[int, ...] = SIZES
    reference: str = SOLVER

    @property
    def title(self) -> str:
        return f"Milliseconds a context, {self.n:,} contexts with votes, {self.learner}, one thread"

    def replicate(self, seed: int) -> Figures:
        """Times and exploitability at every size."""
        found: dict[Spot, dict[str, float]] = {}
        for size in self.sizes:
            for name, figures in self._measured(seed, size).items():
                found[Spot("pairs", name, _level(size))] = figures
        return found

    def _measured(self, seed: int, size: int) -> dict[str, dict[str, float]]:
        rng = np.random.default_rng([seed, size])
        world, x = rng.normal(size=(size, COVARIATES)), rng.uniform(-1.0, 1.0, (self.n, COVARIATES))
        methods = self._fitted(x, votes_on(truth(world, x), rng), seed)
        asked = rng.uniform(-1.0, 1.0, (max(BATCHES), COVARIATES))
        games = truth(world, asked)
        return {
            name: {
                EXPLOITABILITY: float(exploitability(games, method(asked)).mean()),
                **{_time(batch): _milliseconds(method, asked[:batch]) for batch in BATCHES},
            }
            for name, method in methods.items()
        }

    def _fitted(self, x: Floats, votes: MenuVotes, seed: int) -> dict[str, Callable[[Floats], Floats]]:
        sample = menu_sample(all_menus(votes.tiers.shape[1], 2), votes, len(x), seed=seed)
        nuisances = fit_nuisances(
            Covariates(x), sample, MenuPairs(outcome_learner(self.learner)), uniform(sample.menus)
        )
        fitted = ContextualPayoffs(nuisances, nuisances.second_stage("auto", seed=seed))
        policy = fit_policy(x, fitted.payoffs(Covariates(x)), TERMS, seed=seed)
        return {
            SOLVER: lambda at: equilibria(fitted.payoffs(Covariates(at)), TERMS).lotteries,
            POLICY: policy.lotteries,
        }

    def verdicts(self, found: Collected) -> Iterator[Verdict]:
        """Quicker by the bars at 20 items; how hard it is to exploit is judged where votes suffice, in the table."""
        spots = Spot("pairs", POLICY, _level(JUDGED)), Spot("pairs", SOLVER, _level(JUDGED))
        for batch, times in BATCHES.items():
            yield found.at_most(spots, _time(batch), 1.0 / times)


def truth(world: Floats, x: Floats) -> Floats:
    """(n, K, K) payoffs tanh(.3 (u_j - u_k) + c_jk), u linear in x; c is 1 for the half circle of items after j."""
    size = len(world)
    ahead = np.mod(np.arange(size)[None, :] - np.arange(size)[:, None], size)
    cycle = np.where(ahead == 0, 0.0, np.sign(size - 2.0 * ahead))
    utilities = x @ world.T
    payoffs: Floats = np.tanh(0.3 * (utilities[:, :, None] - utilities[:, None, :]) + cycle)
    return payoffs


def votes_on(games: Floats, rng: np.random.Generator) -> MenuVotes:
    """A few votes on each row, on pairs drawn evenly."""
    n, size = games.shape[:2]
    first, second = np.triu_indices(size, 1)
    row = np.repeat(np.arange(n), VOTES_OF_ROW)
    menu = np.argsort(rng.random((n, first.size)), axis=1)[:, :VOTES_OF_ROW].ravel()
    wins = rng.random(row.size) < expit(2.0 * np.arctanh(np.clip(games[row, first[menu], second[menu]], -0.99, 0.99)))
    tiers = np.full((row.size, size), -1, dtype=np.int16)
    tiers[np.arange(row.size), first[menu]], tiers[np.arange(row.size), second[menu]] = ~wins, wins
    return MenuVotes(row, menu, tiers, np.ones(row.size), np.full(row.size, VOTES_OF_ROW / first.size))


def _milliseconds(method: Callable[[Floats], Floats], asked: Floats) -> float:
    taken = []
    for _ in range(REPEATS[len(asked)]):
        start = perf_counter()
        method(asked)
        taken.append(perf_counter() - start)
    return 1e3 * median(taken) / len(asked)


def _time(batch: int) -> str:
    return f"{TIME}, {batch:,} at once" if batch > 1 else f"{TIME}, alone"


def _level(size: int) -> str:
    return f"{size} items"
