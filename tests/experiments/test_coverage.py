"""Simultaneous intervals cover the truth, without being wide or noisy; without the rule that matters they do not."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from app.cli.experiments import experiments
from app.experiments.boards import board
from app.experiments.coverage.bars import COVERS, ERRS, FAILS, Bar, hits_needed, never_missing, share_of_runs
from app.experiments.coverage.cells import Place, cell
from app.experiments.coverage.live import lives
from app.experiments.coverage.live_leases import IGNORED, live_leases
from app.experiments.coverage.measure import Measured
from app.experiments.coverage.plain import table1
from app.experiments.coverage.run import coverage
from app.experiments.coverage.settings import ALL, SETTINGS, cases
from app.experiments.coverage.sparse import shown_pairs
from app.experiments.coverage.watched import Watched, ever_missed
from app.stats.debias import Clustering
from app.stats.gars import components
from app.stats.simulate import Arena, Cyclic

SCORES = ("borda", "bt", "rc", "against-0")
NAMES = [f"{kind}{name}" for kind in ("", "former ", "observed ") for name in SCORES]
CORES = min(2, os.cpu_count() or 1)
PLACE = Place("a", "b", 10, "c", "bt")
HIT = Measured(True, False, 1.0, 1.0, 0.04, 0.09, 0.04)
MISS = replace(HIT, hit=False)


def test_hits_follow_the_fixed_rule() -> None:
    assert hits_needed(400) == 356
    assert hits_needed(100) == 86
    assert 0 < hits_needed(20) <= 18
    assert never_missing(400) == 372
    assert share_of_runs(0.9, 400) == 360


def test_drift_is_what_live_scores_have_in_common_over_boards() -> None:
    boards = [replace(HIT, drift=drift) for drift in ((0.1, -0.3), (0.1, 0.1), (-0.2, -0.1))]
    assert cell(PLACE, COVERS, boards).drift == pytest.approx(np.sqrt(0.1**2 / 2) / 0.2)
    assert cell(PLACE, COVERS, [HIT]).drift is None


@pytest.mark.parametrize(
    ("bar", "result", "passed"),
    [
        (COVERS, HIT, True),
        (COVERS, replace(HIT, hit=False), False),
        (COVERS, replace(HIT, width=1.11), False),
        (COVERS, replace(HIT, error=0.047), False),
        (FAILS, HIT, False),
        (FAILS, replace(HIT, hit=False), True),
        (ERRS, HIT, False),
        (ERRS, replace(HIT, error=0.047), True),
        (Bar("shown", ideal=False, below_plug_in=True), replace(HIT, hit=False, width=9.0), True),
        (Bar("shown", ideal=False, below_plug_in=True), replace(HIT, error=0.1), False),
        (Bar("fails", ideal=False, extrapolated=True), replace(HIT, hit=False), False),
        (Bar("fails", ideal=False, extrapolated=True), replace(HIT, hit=False, extrapolated=True), True),
    ],
)
def test_each_bar_tells_what_meets_it(bar: Bar, result: Measured, passed: bool) -> None:
    assert cell(PLACE, bar, [result] * 100).passed == passed


def test_the_number_of_processes_changes_no_number() -> None:
    case = next(iter(table1("davidson", [60])))
    assert coverage(case, 2, processes=1) == coverage(case, 2, processes=2)


def test_a_cell_sums_up_its_replicates() -> None:
    summed = cell(PLACE, COVERS, [HIT, replace(HIT, hit=False, error=0.12, width=2.0)])
    assert (summed.runs, summed.hits, summed.plug_in_hits) == (2, 1, 0)
    assert summed.rmse == pytest.approx(np.sqrt(0.08))
    assert summed.plug_in_rmse == pytest.approx(0.3)
    assert (summed.width_ratio, summed.error_ratio) == pytest.approx((1.5, 2.0))


def test_all_means_every_setting() -> None:
    assert {case.setting for case in cases([ALL], "davidson")} == set(SETTINGS)
    assert [case.n for case in cases(["table1"], "davidson", [50, 70])] == [50, 70]


@pytest.mark.parametrize("setting", [name for name in SETTINGS if name not in ("table1", "single-pair", "anytime")])
def test_every_setting_runs_on_a_small_board(setting: str) -> None:
    for case in cases([setting], "davidson"):
        small = replace(case, n=400)
        # Computing the truth takes longer than all the rest; whether it is met is for the experiment to say.
        results = small.replicate(dict.fromkeys(NAMES, np.zeros(case.generator.n_items)), 0)
        assert results.keys() == {(rule, name) for rule in case.rules for name in case.estimands}
        assert all(np.isfinite(each.width) and each.width > 0 for each in results.values())


def test_a_miss_at_any_look_counts() -> None:
    wide = replace(HIT, width=3.0)
    looks = [{("fixed", "bt"): HIT, ("fixed", "rc"): each, ("anytime", "rc"): HIT} for each in (HIT, MISS, wide)]
    found = ever_missed(looks)
    assert [result.hit for result in found.values()] == [True, False, True]
    assert found["fixed", "rc"].width == 3.0


def test_a_watched_board_is_looked_at_after_every_50_offers() -> None:
    case = Watched("davidson", n=200)
    whole = board(case.generator, case.generator.draw(case.n, seed=0), seed=0, clustering=Clustering(unit="context"))
    looks = list(case._looks(whole))
    assert [seen.sample.n_rows for seen, _ in looks] == [100, 150, 200]
    # Models are frozen until a refit is due.
    assert looks[0][1] is not looks[1][1]
    assert looks[1][1] is looks[2][1]


def test_excluded_battles_go_with_their_rows_and_labels_of_contexts_alone() -> None:
    for generator, unit in ((Arena(4, taste=0.0), "battle"), (Cyclic(), "context")):
        whole = board(generator, generator.draw(50, seed=1), seed=1, clustering=Clustering(unit=unit))
        excluded = np.arange(len(whole.sample.votes)) % 3 == 0
        left = whole.without(excluded).sample
        assert len(left.votes) == (~excluded).sum()
        assert left.n_rows == (len(left.votes) if unit == "battle" else 50)
        kept = whole.sample.votes.take(~excluded)
        np.testing.assert_array_equal(left.fold[left.votes.row], whole.sample.fold[kept.row])
        np.testing.assert_array_equal(left.pattern[left.votes.row], whole.sample.pattern[kept.row])


def test_an_early_board_has_the_first_rows() -> None:
    whole = board(Cyclic(), Cyclic().draw(50, seed=1), seed=1, clustering=Clustering(unit="context"))
    early = whole.up_to(20).sample
    assert early.n_rows == 20
    assert early.votes.row.max() < 20
    np.testing.assert_array_equal(early.fold, whole.sample.fold[:20])


def test_the_sparse_board_is_connected_and_lacks_46_percent() -> None:
    allowed = shown_pairs(20)
    assert allowed.sum() / 380 == pytest.approx(0.54, abs=0.003)
    assert components(allowed).max() == 0


def test_the_command_prints_and_draws(tmp_path: Path) -> None:
    plot = tmp_path / "coverage.svg"
    small = ["--runs", "2", "--n", "60", "--processes", "1", "--plot", str(plot)]
    answer = CliRunner().invoke(experiments, ["coverage", *small, "--json"])
    assert answer.exit_code in (0, 1)
    assert '"plug_in_hits"' in answer.stdout
    assert plot.stat().st_size > 1000
    table = CliRunner().invoke(experiments, ["coverage", *small])
    assert "plug-in hits" in table.stdout


@pytest.mark.parametrize("words", [["--plot", "coverage.doc"], ["--setting", "tabel1"]])
def test_what_is_not_known_is_a_usage_error(words: list[str]) -> None:
    assert CliRunner().invoke(experiments, ["coverage", *words]).exit_code == 2


@pytest.mark.slow
def test_debiased_intervals_cover() -> None:
    cells = coverage(next(iter(table1("davidson", [1000]))), 100, processes=CORES)
    assert not [cell for cell in cells if not cell.passed]


@pytest.mark.slow
def test_live_intervals_cover_while_answers_are_out() -> None:
    """With models that are much too flat, where corrections decide and plug-in scores cover nothing."""
    case = replace([*live_leases("davidson")][-1], n=3000)
    found = {cell.place.rule: cell for cell in coverage(case, 24, processes=CORES)}
    assert all(found[rule].passed for rule in ("1.5 x", "2 x", IGNORED))
    assert found["2 x"].plug_in_hits == 0


@pytest.mark.slow
def test_live_intervals_cover_with_judges_but_not_with_judges_of_what_is_shown() -> None:
    """Half as many rows again, of contexts without features of which judges speak less often than of those before."""
    found = {case.name: replace(case, n=1000) for case in lives("davidson") if case.judged}
    honest = coverage(found["judges"], 24, processes=CORES)
    assert not [cell for cell in honest if not cell.passed]
    assert [cell for cell in honest if cell.plug_in_hits < cell.hits]
    assert not [cell for cell in coverage(found["judges of what is shown"], 4, processes=CORES) if cell.hits]
