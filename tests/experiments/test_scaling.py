"""`orthorank experiment scaling`: a real service for a small board, and how points are shown."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from app.cli.experiments import commands
from app.experiments.scaling.measure import Point, Size
from app.experiments.scaling.report import as_record, plot, tables

POINTS = [
    Point(Size(votes, 20, 12, processes), 5_000.0, votes / 1e3 / processes, votes << 15, live, 900.0)
    for votes, live in ((1_000, 0.4), (10_000, None))
    for processes in (1, 2)
]


def test_points_are_rows_records_and_lines(tmp_path: Path) -> None:
    console = Console(width=200)
    with console.capture() as shown:
        console.print(tables(POINTS))
    row = next(line for line in shown.get().splitlines() if "10,000" in line and " 2 " in line)
    assert [cell.strip() for cell in row.split("│")[1:-1]][4:] == ["5,000", "5.0", "500", "0.31", "-", "900"]
    assert as_record(POINTS)[0] == {
        **{"votes": 1_000, "items": 20, "features": 12, "processes": 1},
        **{"ingest": 5_000.0, "refit": 1.0, "peak": 1_000 << 15, "live": 0.4, "reads": 900.0},
    }
    plot(POINTS, tmp_path / "costs.svg")
    assert "20 items, 2 processes" in (tmp_path / "costs.svg").read_text()


@pytest.mark.slow
def test_a_small_board_goes_all_the_way(tmp_path: Path) -> None:
    words = ["experiment", "scaling", "--n", "300", "--items", "3", "--features", "2", "--processes", "1"]
    found = CliRunner().invoke(commands, [*words, "--json", "--plot", str(tmp_path / "costs.svg")])
    assert found.exit_code == 0, found.output
    (point,) = json.loads(found.stdout)
    assert point["ingest"] > 0
    assert point["refit"] > 0
    assert point["peak"] > 50 << 20
    assert point["live"] is None or 0 < point["live"] < 15
    assert point["reads"] > 0
    assert (tmp_path / "costs.svg").exists()
