"""Policies that choose pairs: they spend what they may, know what they should, and are compared on the same luck."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console
from typer.testing import CliRunner

from app.cli.experiments import acquisition, experiments
from app.experiments.acquisition import policies
from app.experiments.acquisition.criteria import Criteria
from app.experiments.acquisition.figures import Collected, compare
from app.experiments.acquisition.labelling import Site, Stage, even, steep
from app.experiments.acquisition.oracle import FAINT, AgainstOracle, Look
from app.experiments.acquisition.report import tables
from app.experiments.acquisition.rounds import Adaptive, adaptive
from app.experiments.acquisition.table2 import ERROR, OPEN, TRACE, TwoStages
from app.experiments.coverage.case import ESTIMANDS
from app.experiments.curves import Spot
from app.stats.acquisition import Rules, pair_square
from app.stats.gars import estimand
from app.stats.simulate import Cyclic
from app.stats.types import Votes

BT = estimand("bt")
RULES = Rules("bernoulli", 1.5)
SMALL = Criteria(sizes=(5,), labelled=200, contexts=60)


@cache
def a_stage() -> Stage:
    site = Site(steep(5), 300, 3)
    labels = site.label(0, even(5, RULES, 220), RULES.mode)
    return Stage.of(site, site.board([labels], 220), np.arange(220, 300), RULES, learner="davidson")


def test_equal_propensities_meet_equal_luck() -> None:
    flat = even(5, RULES, 60)
    first, again = (Site(steep(5), 60, 4).label(0, flat, "bernoulli") for _ in range(2))
    np.testing.assert_array_equal(first.outcome, again.outcome)
    more = Site(steep(5), 60, 4).label(0, 1.5 * flat, "bernoulli")
    # Whoever draws a pair with a greater chance draws it again, and it is judged alike.
    assert _labels(first) < _labels(more)
    assert len(Site(steep(5), 60, 5).label(0, flat, "bernoulli")) != len(first)


def _labels(votes: Votes) -> set[tuple[int, ...]]:
    return set(zip(*(each.tolist() for each in (votes.row, votes.left, votes.right, votes.outcome)), strict=True))


def test_stages_are_pooled_as_they_were_logged() -> None:
    site, flat = Site(steep(5), 180, 4), even(5, RULES, 120)
    stages = [site.label(0, flat, "bernoulli"), site.label(120, 2.0 * flat[:60], "bernoulli")]
    early, whole = site.board(stages[:1], 120), site.board(stages, 180)
    assert (early.sample.n_rows, whole.sample.n_rows) == (120, 180)
    assert stages[1].row.min() >= 120
    later = whole.sample.votes.row >= 120
    np.testing.assert_allclose(whole.sample.votes.propensity, np.where(later, 0.15, 0.075))
    np.testing.assert_array_equal(whole.sample.fold[:120], early.sample.fold)
    assert whole.sample.possible is not None
    assert whole.sample.possible.sum() == 20


@pytest.mark.parametrize("name", policies.POLICIES)
def test_every_policy_spends_the_budget(name: str) -> None:
    propensity = policies.POLICIES[name](a_stage(), BT)
    assert propensity.sum(axis=1).mean() == pytest.approx(1.5, rel=1e-6)
    assert propensity.min() >= 0.2 * 0.075 - 1e-12
    assert propensity.max() <= 1.0


def test_policies_know_what_they_are_told() -> None:
    stage = a_stage()
    trace = {
        name: np.trace(stage.true.covariance(BT, stage.graph, pair_square(choose(stage, BT))))
        for name, choose in policies.POLICIES.items()
    }
    assert min(trace, key=lambda name: trace[name]) == policies.ORACLE
    assert trace[policies.A_OPTIMAL] < trace[policies.UNIFORM]
    assert trace[policies.CONTRAST] < 1.4 * trace[policies.A_OPTIMAL]
    without_models = replace(stage, mu=lambda *_: pytest.fail("the oracle asked a model"))
    np.testing.assert_array_equal(policies.oracle(without_models, BT), policies.oracle(stage, BT))


def test_the_arena_rule_asks_for_pairs_with_few_labels_whatever_the_context() -> None:
    stage = a_stage()
    propensity = policies.arena(stage, BT)
    assert np.ptp(propensity, axis=0).max() == 0.0
    votes = stage.board.sample.votes
    count = np.zeros((5, 5))
    np.add.at(count, (votes.left, votes.right), 1.0)
    count += count.T
    square = pair_square(propensity[:1])[0]
    np.testing.assert_allclose(square, square.T)
    above = np.triu_indices(5, 1)
    assert np.corrcoef(count[above], square[above])[0, 1] < -0.8


def test_ratios_are_of_means_on_the_same_draws() -> None:
    own, other = (Spot("bt", name, "b") for name in ("a-optimal", "uniform"))
    found = Collected([{own: {"v": 1.0}, other: {"v": 2.0}}, {own: {"v": 3.0}, other: {"v": 6.0}}])
    assert found.ratio(own, other, "v") == pytest.approx((0.5, 0.0))
    assert found.at_most((own, other), "v", 0.5).passed
    assert not found.at_most((own, other), "v", 0.49).passed
    shown = {each.spot: each for each in found.quantities("uniform")}
    assert shown[own].mean == 2.0
    assert shown[own].two_errors == pytest.approx(2.0 / np.sqrt(2.0))
    assert shown[other].ratio == 1.0


def test_two_stages_score_every_policy_on_every_estimand() -> None:
    part = TwoStages(dict.fromkeys(("borda", "bt", "rc"), np.zeros(5)), n=180, first=90, labels=270)
    part = replace(part, chosen=(policies.CONTRAST,))
    figures = part.replicate(0)
    assert {(spot.estimand, spot.estimator) for spot in figures} == {
        (each.name, name) for each in ESTIMANDS for name in (*policies.BLIND, policies.CONTRAST)
    }
    assert all(values[TRACE] > 0 and 0 <= values[OPEN] <= 4 for values in figures.values())
    assert len({values[ERROR] for values in figures.values()}) == len(figures)


def test_table_2_tells_a_gain_from_none() -> None:
    part = TwoStages({})
    names = policies.A_OPTIMAL, policies.CONTRAST, policies.UNIFORM
    spots = {(each.name, name): Spot(each.name, name, part.level) for each in ESTIMANDS for name in names}

    def verdicts(gain: float, still_open: float) -> list[bool]:
        traces = {policies.A_OPTIMAL: gain, policies.CONTRAST: gain, policies.UNIFORM: 1.0}
        neighbours = {policies.A_OPTIMAL: 2.0, policies.CONTRAST: still_open, policies.UNIFORM: 2.0}
        figures = {spot: {TRACE: traces[name], OPEN: neighbours[name]} for (_, name), spot in spots.items()}
        return [verdict.passed for verdict in part.verdicts(Collected([figures] * 3))]

    assert all(verdicts(0.92, 2.0))
    assert verdicts(0.97, 3.0) == [True, True, False, True, True, False, False, True, False]
    assert not any(verdicts(1.0, 3.0)[::3])


def test_policies_are_held_against_the_one_that_knows_the_preferences() -> None:
    faint = Look("faint", Cyclic(4, strength=FAINT), 200, {"borda": 1.0, "bt": 1.2, "rc": 1.5})
    part = AgainstOracle(looks=(faint,), fresh=80)
    found = compare(part, 2, processes=1)
    ratios = {(each.spot.estimand, each.spot.estimator): each.ratio for each in found.quantities}
    for each in ESTIMANDS:
        assert all((ratios[each.name, name] or 0.0) >= 1.0 - 1e-9 for name in (policies.UNIFORM, policies.A_OPTIMAL))
    passed = {verdict.claim: verdict.passed for verdict in found.verdicts}
    assert not passed["faint, 200 labels, borda: a-optimal ≤ 1 × oracle in tr Sigma"]
    assert passed["faint, 200 labels, rc: a-optimal ≤ 1.5 × oracle in tr Sigma"]
    assert sum("never" in claim for claim in passed) == 3


def test_criteria_do_what_they_are_for() -> None:
    found = compare(SMALL, 2, processes=1)
    assert [verdict for verdict in found.verdicts if not verdict.passed] == []
    assert len(found.verdicts) == 4 * 3
    printed = StringIO()
    Console(width=200, file=printed).print(tables(found))
    assert "gap to the bound" in printed.getvalue()


@pytest.mark.parametrize("mode", ["bernoulli", "one"])
def test_rounds_learn_from_all_labels_before(mode: str) -> None:
    case = Adaptive(policies.CONTRAST, steep(5), Rules("one" if mode == "one" else "bernoulli", 2.0), 120)
    labelled = case.labelled(1)
    votes = labelled.sample.votes
    start = votes.row < 30
    assert np.ptp(votes.propensity[start]) == 0.0
    assert np.ptp(votes.propensity[~start]) > 0.01
    if mode == "one":
        np.testing.assert_array_equal(votes.row, np.arange(120))


def test_rounds_are_read_by_their_logged_propensities() -> None:
    case = Adaptive(policies.A_OPTIMAL, steep(5), RULES, 120)
    results = case.replicate({name: np.zeros(5) for name in case.estimands}, 1)
    assert results.keys() == {("logged", name) for name in case.estimands}
    assert all(each.width > 0 and each.oracle_width > 0 for each in results.values())


def test_rounds_are_of_both_sizes_objectives_and_modes() -> None:
    assert {(case.generator.n_items, case.objective, case.asked.mode) for case in adaptive()} == {
        *((size, name, "bernoulli") for size in (5, 10) for name in (policies.A_OPTIMAL, policies.CONTRAST)),
        *((size, policies.A_OPTIMAL, "one") for size in (5, 10)),
    }


def test_the_command_prints_and_draws(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(acquisition, "PARTS", {"criteria": lambda learner: replace(SMALL, learner=learner)})
    plot = tmp_path / "criteria.svg"
    words = ["--part", "criteria", "--runs", "2", "--processes", "1", "--json", "--plot", str(plot)]
    answer = CliRunner().invoke(experiments, ["acquisition", *words])
    assert answer.exit_code == 0
    assert '"policy": "d-optimal"' in answer.stdout
    assert plot.stat().st_size > 1000


def test_a_part_that_is_not_known_is_a_usage_error() -> None:
    assert CliRunner().invoke(experiments, ["acquisition", "--part", "table3"]).exit_code == 2
