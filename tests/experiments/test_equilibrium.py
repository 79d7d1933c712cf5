"""Equilibria against other methods, on a board small enough for a test."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import orjson
import pytest
from typer.testing import CliRunner

from app.cli.experiments import experiments
from app.experiments.acquisition.figures import Collected, compare
from app.experiments.curves import Spot
from app.experiments.equilibrium import serving
from app.experiments.equilibrium.cells import EXPLOITABILITY, F1, FEEDBACK, Cell, voters
from app.experiments.equilibrium.judges import Panel
from app.experiments.equilibrium.methods import (
    BRADLEY_TERRY,
    BT_PLUG_IN,
    DEBIASED,
    GLOBAL,
    PLUG_IN,
    POLICY,
    score_outcomes,
)
from app.experiments.equilibrium.orthogonality import Orthogonality
from app.experiments.equilibrium.router import Router
from app.experiments.equilibrium.serving import Serving, truth, votes_on
from app.experiments.equilibrium.speed import enumerated, random_games
from app.experiments.equilibrium.table import COVERED, CYCLIC, ERROR, MEAN, MEAN_PLUG_IN, VOTERS, Table
from app.experiments.scores import ScoreTable, read_prices
from app.formats.rows import UnusableFile
from app.stats.feedback import Corrections, all_menus, verdicts
from app.stats.games import Terms, bradley_terry_scores, equilibria
from app.stats.simulate.electorate import Electorate


@pytest.fixture(scope="module")
def cell() -> Cell:
    return Cell(Electorate(3, "pairs", 0), "davidson", 0, 700)


def test_equilibria_are_harder_to_beat_than_models_of_an_order(cell: Cell) -> None:
    found = {name: cell.judged(each) for name, each in cell.fits.lotteries(cell.x).items()}
    for rival in (BT_PLUG_IN, GLOBAL):
        assert found[DEBIASED][EXPLOITABILITY] < 0.9 * found[rival][EXPLOITABILITY]
    assert found[DEBIASED][F1] > found[BT_PLUG_IN][F1]
    assert found[POLICY][EXPLOITABILITY] < 1.3 * found[DEBIASED][EXPLOITABILITY]


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


def figures(worth: dict[str, float], *, error: float = 0.02, covered: float = 0.0) -> dict[Spot, dict[str, float]]:
    found = {
        Spot(feedback, name, voters(count)): {EXPLOITABILITY: value, F1: 0.8}
        for feedback in FEEDBACK
        for count in CYCLIC
        for name, value in worth.items()
    }
    means = {MEAN: {ERROR: error, COVERED: covered}, MEAN_PLUG_IN: {ERROR: 0.03}}
    places = [(feedback, voters(count), name) for feedback in FEEDBACK for count in VOTERS for name in means]
    return found | {Spot(feedback, name, level): means[name] for feedback, level, name in places}


def test_bars_fail_a_method_that_is_no_better() -> None:
    good = {PLUG_IN: 0.12, DEBIASED: 0.11, POLICY: 0.11, GLOBAL: 0.2} | dict.fromkeys(BRADLEY_TERRY, 0.2)
    table = Table("davidson", 100)
    assert all(each.passed for each in table.verdicts(Collected([figures(good)] * 2)))
    assert all(each.passed for each in table.verdicts(Collected([figures(good, covered=0.95)] * 5)))
    for name, value in ((PLUG_IN, 0.1), (POLICY, 0.13), (GLOBAL, 0.12), (BT_PLUG_IN, 0.14)):
        failed = [each for each in table.verdicts(Collected([figures(good | {name: value})] * 2)) if not each.passed]
        assert failed
        assert all(name in each.claim for each in failed)
    for worlds, wrong in (
        (2, figures(good, error=0.04)),
        (5, figures(good, covered=0.8)),
        (5, figures(good, covered=1)),
    ):
        (failed_one,) = (each for each in table.verdicts(Collected([wrong] * worlds)) if not each.passed)
        assert MEAN in failed_one.claim


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


def scored() -> ScoreTable:
    rng = np.random.default_rng(0)
    task = rng.integers(2, size=260)
    chance = np.array([[0.9, 0.2, 0.6], [0.2, 0.9, 0.6]])[task]
    scores = (rng.random((260, 3)) < chance).astype(np.float64)
    return ScoreTable(("a", "b", "c"), scores, task, np.zeros((260, 0)), np.arange(260) >= 200)


def test_judges_weigh_score_against_price() -> None:
    panel = Panel(scored(), np.array([1.0, 0.5, 0.1]))
    question = np.arange(260)
    payoffs = panel.payoffs(question)
    np.testing.assert_allclose(payoffs, -payoffs.transpose(0, 2, 1))
    # Equal scores: the first judge has no verdict, the two others prefer what is cheaper.
    equal = panel.table.scores[:, 0] == panel.table.scores[:, 2]
    np.testing.assert_allclose(payoffs[equal, 2, 0], 2 / 3)
    votes = panel.draw(question, seed=0)
    assert votes.propensity.tolist() == [1.0] * 780
    said = verdicts(votes.tiers, np.array([0]), np.array([2]))[:, 0][votes.menu == 1]
    assert said.mean() == pytest.approx(payoffs[:, 0, 2].mean(), abs=0.2)


def test_questions_are_routed_and_every_method_is_paired_with_the_debiased() -> None:
    router = Router(Panel(scored(), np.array([1.0, 0.5, 0.1])), "davidson", 200)
    found = {spot.estimator: figures for spot, figures in router.replicate(0).items()}
    assert found[DEBIASED]["less the debiased"] == 0.0
    assert found[DEBIASED]["value against the debiased"] == pytest.approx(0.0, abs=1e-12)
    for name in (BT_PLUG_IN, GLOBAL):
        apart = found[name][EXPLOITABILITY] - found[DEBIASED][EXPLOITABILITY]
        assert found[name]["less the debiased"] == pytest.approx(apart)
        assert 0.0 <= found[name]["its standard error"] < 0.2


def test_the_router_needs_files() -> None:
    assert CliRunner().invoke(experiments, ["equilibrium", "--part", "router"]).exit_code == 2


def test_prices_are_shares_of_the_highest(tmp_path: Path) -> None:
    file = tmp_path / "models.csv"
    file.write_text("model,output_price\nb,4\na,1\n")
    np.testing.assert_allclose(read_prices(file, ("a", "b")), [0.25, 1.0])
    with pytest.raises(UnusableFile, match="no price of 'c'"):
        read_prices(file, ("a", "c"))
    file.write_text("model,output_price\na,0\n")
    with pytest.raises(UnusableFile, match="above 0"):
        read_prices(file, ("a",))


def test_the_policy_is_timed_against_what_it_replaces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "REPEATS", {1: 3, 2000: 1})
    found = compare(Serving("davidson", 150, sizes=(20,)), 2, processes=1)
    assert [each.claim.split(" in ")[1] for each in found.verdicts] == [
        "ms a context, alone",
        "ms a context, 2,000 at once",
    ]
    times = {(each.spot.estimator, each.spot.level): each.mean for each in found.quantities if "alone" in each.name}
    assert times["policy", "20 items"] < times["payoffs and solver", "20 items"]


def test_cycles_have_no_winner_without_a_context() -> None:
    games = truth(np.zeros((7, 5)), np.zeros((1, 5)))
    np.testing.assert_allclose(games, -games.transpose(0, 2, 1))
    np.testing.assert_allclose(equilibria(games, Terms(0.05)).lotteries, 1.0 / 7.0, atol=1e-9)
    votes = votes_on(np.repeat(games, 2000, axis=0), np.random.default_rng(0))
    assert ((votes.tiers >= 0).sum(axis=1) == 2).all()
    won = votes.tiers[:, 0][votes.tiers[:, 0] >= 0] == 0
    assert abs(won.mean() - 0.5) < 4 * 0.5 / np.sqrt(won.size)
