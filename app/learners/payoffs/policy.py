"""The amortised equilibrium: a booster from the context straight to the lottery (NashEval, Section 5.3)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from app.learners.archive import pack, unpack
from app.learners.trees import Forest, Ground, Nursery, Shape
from app.stats.errors import InvalidInput
from app.stats.games import Terms, equilibria, gap, project
from app.stats.games.game import checked
from app.stats.types import Floats

KIND = "policy"
SHAPE = Shape(leaves=31, hessian=10.0, ridge=0.0, rate=0.1, rounds=200)
"""The Hessian is taken as 1, so that a leaf holds at least 10 rows."""


@dataclass(frozen=True, slots=True)
class GapLoss:
    """Σ_i G(pi_i; A_i), pi_i the projection of K scores onto the simplex; scores item by item, a row each.

    Parameters
    ----------
    games : (n, K, K) payoffs with the costs in them.
    strength : lambda > 0.
    """

    games: Floats
    strength: float

    def newton(self, scores: Floats) -> tuple[Floats, Floats]:
        """The gradient through the sparsemax link, and 1.

        grad_pi G = -A q + lambda pi with q the best reply (Danskin); on the support its mean is taken off, 0 elsewhere.
        """
        lotteries = project(scores.reshape(self.games.shape[1], -1).T)
        reply = project((self.games @ lotteries[..., None])[..., 0] / self.strength)
        slope = self.strength * lotteries - (self.games @ reply[..., None])[..., 0]
        held = lotteries > 0
        mean = (slope * held).sum(axis=1, keepdims=True) / held.sum(axis=1, keepdims=True)
        gradient = np.where(held, slope - mean, 0.0).T.ravel()
        return gradient, np.ones(gradient.size)

    def held_loss(self, scores: Floats) -> float:  # noqa: ARG002
        """Nothing is held out: the number of rounds is fixed."""
        return 0.0


@dataclass(frozen=True, slots=True)
class Policy:
    """Lotteries of contexts.

    Parameters
    ----------
    forest : one booster an item, without trees where one lottery does for all contexts.
    base : (K,) what the trees' scores are added to.
    """

    forest: Forest
    base: Floats

    def lotteries(self, x: Floats) -> Floats:
        """(u, K) shares at covariates x (u, d), NaN where missing."""
        return project(self.base + self.forest.all_scores(x))

    def to_bytes(self) -> bytes:
        """The policy as bytes that `read_policy` takes."""
        return pack({"kind": KIND, "trees": self.forest.texts}, {"base": self.base})


def read_policy(body: bytes) -> Policy:
    """The policy that `to_bytes` wrote; it predicts the same to the bit."""
    header, arrays = unpack(body)
    if header["kind"] != KIND:
        raise InvalidInput(f"bytes of kind {header['kind']!r}, expected {KIND!r}")
    return Policy(Forest(header["trees"]), arrays["base"])


def fit_policy(x: Floats, payoffs: Floats, terms: Terms, *, seed: int, shape: Shape = SHAPE) -> Policy:
    """Fit by the gap loss on debiased payoffs.

    Trees cannot move what no split tells apart, so where the equilibrium of the mean payoffs has the lower loss, as on
    contexts without features, it is the policy.

    Parameters
    ----------
    x : (n, d) covariates, NaN where missing.
    payoffs : (n, K, K) skew-symmetric payoffs there.
    terms : of the games: `l2`, a strength above 0, no budget.
    seed : LightGBM's.
    shape : of the trees.

    Raises
    ------
    InvalidInput : terms that have no gap loss of this kind.
    """
    if terms.strength == 0 or terms.regulariser != "l2" or terms.budget is not None:
        raise InvalidInput("a policy is fitted under l2 with a strength above 0 and no budget")
    games = checked(payoffs, terms)
    strength = Terms(terms.strength)
    one = equilibria(games.mean(axis=0)[None], strength).lotteries[0]
    same = Policy(Forest([""] * one.size), one)
    ground = Ground(x)
    if not ground.splits:
        return same
    nursery = Nursery(ground, [np.arange(len(x))] * one.size)
    forest, scores = nursery.grow(GapLoss(games, terms.strength), shape, seed=seed)
    grown = gap(games, project(scores.reshape(one.size, -1).T), strength).mean()
    better = grown < gap(games, np.tile(one, (len(games), 1)), strength).mean()
    return Policy(forest, np.zeros(one.size)) if better else same
