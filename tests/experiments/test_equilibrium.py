"""Equilibria against other methods, on a board small enough for a test."""

from __future__ import annotations

import numpy as np
import orjson
import pytest
from typer.testing import CliRunner

from app.cli.experiments import experiments
from app.experiments.acquisition.figures import Collected, compare
from app.experiments.curves import Spot
from app.experiments.equilibrium.cells import EXPLOITABILITY, F1, FEEDBACK, Cell, voters
from app.experiments.equilibrium.methods import (
    BRADLEY_TERRY,
    BT_PLUG_IN,
    GLOBAL,
    OFFSET,
    PLUG_IN,
    POLICY,
    score_outcomes,
)
from app.experiments.equilibrium.orthogonality import Orthogonality
from app.experiments.equilibrium.speed import enumerated, random_games
from app.experiments.equilibrium.table import CYCLIC, Table
from app.stats.feedback import Corrections, all_menus
from app.stats.games import Terms, bradley_terry_scores, equilibria
from app.stats.simulate.electorate import Electorate


@pytest.fixture(scope="module")
def cell() -> Cell:
    return Cell(Electorate(3, "pairs", 0), "davidson", 0, 700)


def test_equilibria_are_harder_to_beat_than_models_of_an_order(cell: Cell) -> None:
    found = {name: cell.judged(each) for name, each in cell.fits.lotteries(cell.x).items()}
    for rival in (BT_PLUG_IN, GLOBAL):
        assert found[OFFSET][EXPLOITABILITY] < 0.9 * found[rival][EXPLOITABILITY]
    assert found[OFFSET][F1] > found[BT_PLUG_IN][F1]
    assert found[POLICY][EXPLOITABILITY] < 1.3 * found[OFFSET][EXPLOITABILITY]


def test_the_truth_is_what_all_are_measured_by(cell: Cell) -> None:
    exact = cell.judged(equilibria(cell.truth, cell.terms).lotteries)
    assert exact[F1] == 1.0
    assert exact[EXPLOITABILITY] < 0.05


def test_score_outcomes_have_the_slope_of_the_scores() -> None:
    menus = all_menus(4, 2)
    start = np.random.default_rng(0).uniform(-0.85, 0.85, (5, 6))
    small = 1e-6 * np.random.default_rng(1).normal(size=(5, 6))
    moved = score_outcomes(menus, Corrections(start, np.ones((5, 6)), np.ones((5, 6)), small))
    exact = bradley_terry_scores(menus.matrix(start + small), clip=0.9)
    np.testing.assert_allclose(moved, exact, atol=1e-10)


def figures(worth: dict[str, float]) -> dict[Spot, dict[str, float]]:
    return {
        Spot(feedback, name, voters(count)): {EXPLOITABILITY: value, F1: 0.8}
        for feedback in FEEDBACK
        for count in CYCLIC
        for name, value in worth.items()
    }


def test_bars_fail_a_method_that_is_no_better() -> None:
    good = {PLUG_IN: 0.12, OFFSET: 0.11, POLICY: 0.11, GLOBAL: 0.2} | dict.fromkeys(BRADLEY_TERRY, 0.2)
    table = Table("davidson", 100)
    assert all(each.passed for each in table.verdicts(Collected([figures(good)] * 2)))
    for name, value in ((PLUG_IN, 0.1), (POLICY, 0.13), (GLOBAL, 0.12), (BT_PLUG_IN, 0.14)):
        failed = [each for each in table.verdicts(Collected([figures(good | {name: value})] * 2)) if not each.passed]
        assert failed
        assert all(name in each.claim for each in failed)


def test_errors_of_nuisances_pass_on_in_second_order() -> None:
    found = compare(Orthogonality("", 300), 2, processes=1)
    assert len(found.verdicts) == 6
    assert found.passed


def test_enumeration_finds_the_solver_s_lotteries() -> None:
    games = random_games(0, 10, 6)
    expected = equilibria(games, Terms(0.05)).lotteries
    np.testing.assert_allclose([enumerated(game) for game in games], expected, atol=1e-10)


def test_the_command_says_what_it_measured_and_refuses_unknown_parts() -> None:
    command = ["equilibrium", "--part", "orthogonality", "--runs", "2", "--n", "100", "--processes", "1", "--json"]
    told = CliRunner().invoke(experiments, command)
    assert told.exit_code == 0
    assert len(orjson.loads(told.stdout)["verdicts"]) == 6
    assert CliRunner().invoke(experiments, ["equilibrium", "--part", "none"]).exit_code == 2
