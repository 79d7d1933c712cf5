"""A simulated electorate votes over HTTP; what is served is as good as what is fitted offline to the same votes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from sqlalchemy import Engine

from app.experiments.equilibrium.cells import STRENGTH, Cell
from app.experiments.equilibrium.methods import DEBIASED
from app.stats.feedback import OUTSIDE, MenuVotes
from app.stats.games import equilibria, exploitability
from app.stats.simulate.electorate import N_ITEMS, Electorate, Feedback
from app.stats.types import Floats
from tests.api.conftest import BoardCaller
from tests.refitting import Bench

ITEMS = tuple(f"model-{number}" for number in range(N_ITEMS))
ROWS, TESTED, AT_ONCE = 1_500, 500, 1_000
FEATURES = [{"name": "x", "kind": "vector", "dimensions": 5}]


@pytest.fixture(scope="module")
def bench(database: Engine) -> Bench:
    return Bench(database)


def ballots(votes: MenuVotes) -> Iterator[dict[str, Any]]:
    """Votes on menus as they are sent: of pairs with a random side, which halves their chance."""
    sides = np.random.default_rng(0)
    for row, tiers, propensity in zip(votes.row.tolist(), votes.tiers, votes.propensity.tolist(), strict=True):
        order = [ITEMS[at] for at in np.argsort(np.where(tiers == OUTSIDE, N_ITEMS, tiers), kind="stable")]
        about = {"context": {"id": f"c{row}"}, "voter": "panel"}
        if tiers.max() > 1:
            yield {
                **about,
                "menu": sorted(order[:3]),
                "ranking": [[item] for item in order[:3]],
                "propensity": propensity,
            }
            continue
        outcome, swap = ("left", 1) if sides.random() < 0.5 else ("right", -1)
        left, right = order[:2][::swap]
        yield {**about, "left": left, "right": right, "outcome": outcome, "propensity": propensity / 2}


def posted(board: BoardCaller, x: Floats, votes: MenuVotes) -> None:
    contexts = [{"id": f"c{row}", "features": {"x": each.tolist()}, "offered": True} for row, each in enumerate(x)]
    for start in range(0, len(contexts), AT_ONCE):
        assert board("POST", "/contexts", {"contexts": contexts[start : start + AT_ONCE]}).status_code == 201
    sent = list(ballots(votes))
    for start in range(0, len(sent), AT_ONCE):
        assert {row["status"] for row in board.batch(*sent[start : start + AT_ONCE])} == {"created"}


def served(board: BoardCaller, x: Floats, method: str) -> Floats:
    """(n, K) lotteries of new contexts."""
    body = {"contexts": [{"features": {"x": each.tolist()}} for each in x], "method": method}
    found = board("POST", "/equilibrium", body).json()["equilibria"]
    return np.array([[row["distribution"][item] for item in ITEMS] for row in found])


@pytest.mark.slow
@pytest.mark.parametrize(("voters", "feedback"), [(3, "rankings"), (3, "pairs")])
def test_what_is_served_is_as_good_as_what_is_fitted_offline(
    make_board: Callable[..., BoardCaller], bench: Bench, voters: int, feedback: Feedback
) -> None:
    cell = Cell(Electorate(voters, feedback, 0), "davidson", 0, ROWS)
    drawn = cell.electorate.draw(ROWS, seed=0)
    board = make_board(items=ITEMS, unit="context", features=FEATURES, folds=3)
    posted(board, drawn.x, drawn.votes)
    bench.refit(board.slug)
    x, truth = cell.x[:TESTED], cell.truth[:TESTED]
    worst = {
        name: float(exploitability(truth, lotteries).mean())
        for name, lotteries in {
            "offline": equilibria(cell.fits.payoffs(DEBIASED, x), cell.terms).lotteries,
            "offline policy": cell.fits.policy(DEBIASED).lotteries(x),
            "solver": served(board, x, "solver"),
            "policy": served(board, x, "policy"),
            "uniform": np.full((TESTED, N_ITEMS), 1 / N_ITEMS),
        }.items()
    }
    assert worst["solver"] <= 1.1 * worst["offline"]
    assert worst["policy"] <= 1.15 * worst["offline policy"]
    assert worst["solver"] < 0.7 * worst["uniform"]
    equilibrium = board("GET", "/equilibrium").json()
    mean = cell.fits.mean_payoffs()
    found = [row["payoff"] for row in equilibrium["payoffs"]]
    np.testing.assert_allclose(found, mean.value, atol=3 * float(mean.standard_error.max()))
    assert equilibrium["settings"]["lambda"] == STRENGTH
    assert equilibrium["status"] == "ok"
