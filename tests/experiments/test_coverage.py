"""Simultaneous intervals cover the truth, without being wide or noisy."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from typer.testing import CliRunner

from app.cli.experiments import experiments
from app.experiments.coverage import Cell, coverage, hits_needed


def test_hits_follow_the_fixed_rule() -> None:
    assert hits_needed(400) == 356
    assert hits_needed(100) == 86
    assert 0 < hits_needed(20) <= 18


def test_the_number_of_processes_changes_no_number() -> None:
    assert coverage(60, 2, processes=1) == coverage(60, 2, processes=2)


def test_the_command_prints_and_draws(tmp_path: Path) -> None:
    plot = tmp_path / "coverage.svg"
    answer = CliRunner().invoke(
        experiments, ["coverage", "--runs", "2", "--n", "60", "--processes", "1", "--json", "--plot", str(plot)]
    )
    assert answer.exit_code in (0, 1)
    assert '"plug_in_hits"' in answer.stdout
    assert plot.stat().st_size > 1000


def test_a_plot_of_unknown_kind_is_a_usage_error() -> None:
    answer = CliRunner().invoke(experiments, ["coverage", "--plot", "coverage.doc"])
    assert answer.exit_code == 2


@pytest.mark.slow
def test_debiased_intervals_cover() -> None:
    cells = coverage(1000, 100, processes=min(2, os.cpu_count() or 1))
    failed: list[Cell] = [cell for cell in cells if not cell.passed]
    assert not failed
