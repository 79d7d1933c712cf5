"""Payoffs and lotteries at any context: fitted at a refit, kept as an artifact, read where requests are answered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from app.domain.boards import Equilibrium
from app.learners import load_model
from app.learners.menus import MenuMargins
from app.learners.payoffs.policy import SHAPE, Policy, fit_policy, read_policy
from app.learners.payoffs.second_stage import Form, PayoffRegression, fit_payoffs, read
from app.learners.trees import Shape
from app.services.refit import storage
from app.services.refit.games.contest import Contest, linked
from app.services.refit.games.rows import SEED, corrections_of, drawn
from app.services.refit.storage import Stored
from app.stats.debias.one_step import CrossFit
from app.stats.feedback import Corrections, Menus, skew, uniform
from app.stats.games import Terms, gap
from app.stats.types import Covariates, Floats, Ints

CELLS = 8_000_000
"""Rows × pairs that a second stage is fitted to."""
MOST_GROWN = 45
"""Pairs up to which each has trees of its own in the second stage; a ridge beyond."""
MOST_ROWS = 10_000
"""Rows that trees are grown on."""
MOST_SMALL, SMALL_ROWS = 10, 4_000
"""Pairs up to which the paper's form competes, which grows trees on all rows for each; and the rows then."""
MOST_CONTEXTS = 2_000
SHARES = 40_000
"""Contexts × items that a policy is fitted to."""
ROWS_A_TREE, LEAST_TREES, MOST_TREES = 10, 100, 1_200
"""Trees of a policy, by the board's rows: their time grows as that of the whole refit."""
LEAST_ROUNDS, MOST_RATE = 10, 0.3


@dataclass(frozen=True, slots=True)
class Amortised:
    """The amortised equilibrium and what it was fitted for.

    Parameters
    ----------
    policy : lotteries of contexts.
    strength : lambda.
    costs : (k,) of the players.
    contexts : that it was fitted to.
    gap : its mean gap there.
    """

    policy: Policy
    strength: float
    costs: Floats
    contexts: int
    gap: float


@dataclass(frozen=True, slots=True)
class MenuModels:
    """Outcome models of votes on menus of the players, one a fold; all menus of a pair count alike."""

    menus: Menus
    models: tuple[MenuMargins, ...]

    def payoffs(self, x: Covariates) -> Floats:
        """(u, P), the models averaged."""
        margins: Floats = np.mean([model.margins(x, self.menus) for model in self.models], axis=0)
        return uniform(self.menus).payoffs(margins)


@dataclass(frozen=True, slots=True)
class Router:
    """What answers for single contexts.

    Parameters
    ----------
    names : of the k players.
    n_items : K, that the fold models know.
    judges : whose margins the models expect.
    contest : how probabilities become payoffs.
    stage : what the votes add to the models.
    amortised : None under terms that a policy is not fitted for.
    menus : models of votes on menus, where there are such votes.
    """

    names: tuple[str, ...]
    n_items: int
    judges: int
    contest: Contest
    stage: PayoffRegression
    amortised: Amortised | None
    menus: MenuModels | None = None

    def payoffs(self, x: Floats, start: Floats) -> Floats:
        """(u, k, k) of covariates (u, d) with the models' payoffs (u, P)."""
        return skew(self.stage.values(x, start, np.ones(start.shape)), self.contest.size)


def fit_router(stored: Stored, mu: CrossFit, asked: Equilibrium, costs: Floats) -> Router | None:
    """Fit the second stage and the policy; None where nothing can be played.

    Parameters
    ----------
    stored, mu : the board's rows and fold models.
    asked : the board's configuration.
    costs : (K,) of deployment.
    """
    whole = stored.frame.view()
    if not len(whole.votes):
        return None
    _, contest = linked(whole)
    if contest.size < 2:
        return None
    part = drawn(whole, most_rows(contest.ahead.size, whole.n_rows))
    found, x = corrections_of(part, mu, contest), stored.covariates.x[part.pattern]
    stage = fit_stage(x, found, part.context)
    terms = Terms(asked.regularisation, asked.regulariser, costs[contest.players])
    return with_policy(routing(stored, contest, stage), x, found.start, terms, n_rows=whole.n_rows)


def most_rows(pairs: int, n_rows: int) -> int:
    """Rows that a second stage of so many pairs is fitted to."""
    if pairs > MOST_GROWN:
        return min(CELLS // pairs, n_rows)
    return SMALL_ROWS if pairs <= MOST_SMALL else MOST_ROWS


def fit_stage(x: Floats, found: Corrections, group: Ints) -> PayoffRegression:
    """The second stage that predicts other rows' votes best, or none."""
    pairs = found.start.shape[1]
    forms: Sequence[Form] = ("plug-in", "offset") if pairs <= MOST_GROWN else ("plug-in", "linear")
    return fit_payoffs(x, found, group, stage="auto" if pairs <= MOST_SMALL else forms, seed=SEED)


def routing(stored: Stored, contest: Contest, stage: PayoffRegression) -> Router:
    """A router without a policy."""
    names, margins = stored.frame.items, stored.covariates.margins
    judges = 0 if margins is None else int(margins.shape[-1])
    return Router(tuple(names[at] for at in contest.players.tolist()), len(names), judges, contest, stage, None)


def with_policy(router: Router, x: Floats, start: Floats, terms: Terms, *, n_rows: int) -> Router:
    """The router with a policy, under terms that one is fitted for.

    Parameters
    ----------
    x, start : covariates (n, d) and the models' payoffs (n, P) of rows.
    terms : of the games.
    n_rows : of the board.
    """
    if terms.regulariser != "l2" or terms.strength == 0:
        return router
    return replace(router, amortised=_amortised(router, x, start, terms, n_rows=n_rows))


def _amortised(router: Router, x: Floats, start: Floats, terms: Terms, *, n_rows: int) -> Amortised:
    """The policy, fitted to payoffs of a seeded draw of rows."""
    size = router.contest.size
    most = min(MOST_CONTEXTS, max(SHARES // size, 1))
    rows = np.random.default_rng(SEED).permutation(len(x))[:most]
    games = router.payoffs(x[rows], start[rows])
    policy = fit_policy(x[rows], games, terms, seed=SEED, shape=_shape(n_rows, size))
    mean = float(gap(games, policy.lotteries(x[rows]), terms).mean())
    return Amortised(policy, terms.strength, terms.costs, rows.size, mean)


def _shape(n_rows: int, size: int) -> Shape:
    """As many rounds as the board's size pays for, with longer steps where they are few."""
    trees = int(np.clip(n_rows // ROWS_A_TREE, LEAST_TREES, MOST_TREES))
    rounds = int(np.clip(trees // size, LEAST_ROUNDS, SHAPE.rounds))
    rate = min(MOST_RATE, SHAPE.rate * SHAPE.rounds / rounds)
    return replace(SHAPE, rounds=rounds, rate=rate, leaves=SHAPE.leaves // 2)


def pack_router(router: Router) -> bytes:
    """A router as an artifact."""
    fitted, arrays = router.amortised, _arrays(router)
    header: dict[str, Any] = {"names": router.names, "n_items": router.n_items, "judges": router.judges, "policy": None}
    header["menus"] = 0 if router.menus is None else len(router.menus.models)
    if fitted is not None:
        header["policy"] = {"strength": fitted.strength, "contexts": fitted.contexts, "gap": fitted.gap}
    return storage.pack(header, arrays)


def _arrays(router: Router) -> dict[str, Any]:
    contest = router.contest
    arrays: dict[str, Any] = {"players": contest.players, "ahead": contest.ahead, "favour": contest.favour}
    arrays["stage"] = _numbers(router.stage.to_bytes())
    if router.amortised is not None:
        arrays |= {"costs": router.amortised.costs, "policy": _numbers(router.amortised.policy.to_bytes())}
    if router.menus is not None:
        arrays["members"] = router.menus.menus.members
        arrays |= {f"menus.{at}": _numbers(model.to_bytes()) for at, model in enumerate(router.menus.models)}
    return arrays


def unpack_router(body: bytes) -> Router:
    """What `pack_router` was given; it answers the same to the bit."""
    header, arrays = storage.unpack(body)
    contest = Contest(arrays["players"], arrays["ahead"], arrays["favour"])
    stage, menus = read(_bytes(arrays["stage"])), _menus(header["menus"], arrays)
    about = tuple(header["names"]), header["n_items"], header["judges"]
    return Router(*about, contest, stage, _fitted(header, arrays), menus)


def _menus(models: int, arrays: storage.Arrays) -> MenuModels | None:
    if not models:
        return None
    menus = Menus(arrays["members"])
    loaded = (load_model(_bytes(arrays[f"menus.{at}"])) for at in range(models))
    return MenuModels(menus, tuple(MenuMargins(model, menus.wide) for model in loaded))


def _fitted(header: Mapping[str, Any], arrays: storage.Arrays) -> Amortised | None:
    if header["policy"] is None:
        return None
    return Amortised(read_policy(_bytes(arrays["policy"])), costs=arrays["costs"], **header["policy"])


def _numbers(body: bytes) -> Any:
    return np.frombuffer(body, dtype=np.uint8)


def _bytes(numbers: Any) -> bytes:
    return bytes(numbers.astype(np.uint8))
