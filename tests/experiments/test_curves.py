"""Estimators compared on the same draws: judges, and the Bradley-Terry model that holds or does not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import orjson
import pytest
from typer.testing import CliRunner

from app.cli.experiments import experiments
from app.experiments import judges, misspecification
from app.experiments.curves import Outcome, Runs, Spot, run
from app.experiments.misspecification import CONTROL, LEVELS, PROJECTION, RESTRICTED, TIES, generator
from app.stats.gars import Graph, estimand
from app.stats.simulate import sobol_covariates

A, B = Spot("bt", "a", "0"), Spot("bt", "b", "0")


def noisy(seed: int) -> dict[Spot, Outcome]:
    shared, own = np.random.default_rng(seed).exponential(size=2)
    return {A: Outcome(2.0 * shared, hit=seed % 4 > 0), B: Outcome(shared + 0.01 * own)}


def test_ratios_are_of_means_and_their_error_knows_the_draws_are_shared() -> None:
    runs = run(noisy, 400, processes=1)
    ratio, reach = runs.ratio(A, B)
    assert ratio == pytest.approx(2.0 / 1.01, abs=3 * reach / 2)
    # Unpaired, the error of a ratio of two such means would be 2 * sqrt(2 / 400) of it.
    assert reach < 0.02
    assert runs.hits(A) == 300
    assert [point.hits for point in runs.points] == [300, None]


def test_points_give_the_root_of_the_mean_and_its_error() -> None:
    runs = Runs([{A: Outcome(value)} for value in (0.03, 0.05)])
    (point,) = runs.points
    assert point.rmse == pytest.approx(0.2)
    # d sqrt(m) = dm / (2 sqrt m), twice.
    assert point.two_errors == pytest.approx(0.01 / np.sqrt(2) / 0.2)


def test_a_judge_says_the_same_of_both_orders_and_knows_more_with_less_noise() -> None:
    task = judges.judged(n=200)
    drawn = judges.board(task.generator, task.generator.draw(200, seed=0), seed=0, clustering=judges.UNIT)
    margins = {level: each for level, each in task._margins(drawn, 0).items() if each is not None}
    for each in margins.values():
        np.testing.assert_allclose(each, -each.transpose(0, 2, 1, 3), atol=1e-12)
    known = (task.generator.preferences.margins(drawn.x.x) - task.generator.preferences.position)[..., None]
    spread = [np.sqrt(((margins[level] - known) ** 2)[:, 0, 1].mean()) for level in judges.NOISE]
    np.testing.assert_allclose(spread, list(judges.NOISE.values()), rtol=0.2, atol=1e-12)
    assert abs(np.corrcoef(margins[judges.USELESS][:, 0, 1, 0], known[:, 0, 1, 0])[0, 1]) < 0.25


def test_boards_depart_from_bradley_terry_by_gamma() -> None:
    gaps = []
    for level in LEVELS:
        on = generator(level)
        p = on.rule.scores(on.probabilities(sobol_covariates(on, power=6)))
        odds = np.log(p / (1.0 - p))
        scores = estimand("bt").value(p, Graph.complete(5))
        off = ~np.eye(5, dtype=bool)
        gap = odds - np.swapaxes(odds, 1, 2) - 2.0 * (scores[:, :, None] - scores[:, None, :])
        gaps.append(float(np.abs(gap[:, off]).max()))
    assert gaps[0] < 1e-9
    assert gaps[-1] < 1e-9
    assert (np.diff(gaps[:-1]) > 0).all()
    ties = generator(TIES)
    mu = ties.probabilities(sobol_covariates(ties, power=6))[:, ~np.eye(5, dtype=bool)]
    assert 0.4 < mu[..., 2].mean() < 0.6


def test_all_estimators_are_judged_where_ties_occur() -> None:
    task = misspecification.Misspecified({TIES: np.zeros(5)}, "davidson", 150)
    outcomes = {spot.estimator: outcome for spot, outcome in task(0).items()}
    assert {PROJECTION, RESTRICTED, CONTROL, *misspecification.CONTEXTUAL} < outcomes.keys()
    assert outcomes[CONTROL].error != outcomes[RESTRICTED].error
    assert outcomes[PROJECTION].hit is not None
    assert outcomes["contextual BT"].hit is None


def test_the_control_takes_every_vote_for_decisive() -> None:
    on = generator(TIES)
    x = sobol_covariates(on, power=3)
    whole = on.probabilities(x)
    blind = misspecification._decided(lambda _fold, _patterns: whole)(0, np.arange(8))
    np.testing.assert_allclose(blind.sum(axis=-1), 1.0)
    np.testing.assert_allclose(blind[..., 0] / blind[..., 1], whole[..., 0] / whole[..., 1])
    assert not blind[..., 2].any()


@pytest.mark.parametrize("command", ["judges", "misspecification"])
def test_the_commands_print_and_draw(command: str, tmp_path: Path) -> None:
    plot = tmp_path / "curves.svg"
    words = [command, "--runs", "2", "--n", "60", "--processes", "1", "--json", "--plot", str(plot)]
    answer = CliRunner().invoke(experiments, words)
    assert answer.exit_code in (0, 1)
    found = orjson.loads(answer.stdout)
    assert answer.exit_code == (0 if all(verdict["passed"] for verdict in found["verdicts"]) else 1)
    assert {"rmse", "level", "estimator"} <= found["points"][0].keys()
    assert plot.stat().st_size > 1000
