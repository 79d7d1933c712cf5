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
    Point(
        Size(votes, 20, 12, processes, workers),
        5_000.0,
        votes / 1e3 / processes / workers,
        3.0,
        votes << 15,
        live,
        900.0,
    )
    for votes, live in ((1_000, 0.4), (10_000, None))
    for workers, processes in ((1, 1), (1, 2), (2, 2))
]


def test_points_are_rows_records_and_lines(tmp_path: Path) -> None:
    console = Console(width=200)
    with console.capture() as shown:
        console.print(tables(POINTS))
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in shown.get().splitlines() if "10,000" in line]
    assert [row[3:9] for row in rows] == [
        ["1", "1", "5,000", "10.0", "3.0", "1.00"],
        ["1", "2", "5,000", "5.0", "3.0", "2.00"],
        ["2", "2", "5,000", "2.5", "3.0", "4.00"],
    ]
    assert rows[1][9:] == ["500", "0.31", "-", "900"]
    assert as_record(POINTS)[0] == {
        **{"votes": 1_000, "items": 20, "features": 12, "processes": 1, "workers": 1},
        **{"ingest": 5_000.0, "refit": 1.0, "cpu": 3.0, "peak": 1_000 << 15, "live": 0.4, "reads": 900.0},
    }
    plot(POINTS, tmp_path / "costs.svg")
    assert "20 items, 2 workers of 2 processes" in (tmp_path / "costs.svg").read_text()


@pytest.mark.slow
def test_a_small_board_goes_all_the_way(tmp_path: Path) -> None:
    words = [
        "experiment",
        "scaling",
        "--n",
        "300",
        "--items",
        "3",
        "--features",
        "2",
        "--processes",
        "1",
        "--workers",
        "2",
    ]
    found = CliRunner().invoke(commands, [*words, "--json", "--plot", str(tmp_path / "costs.svg")])
    assert found.exit_code == 0, found.output
    (point,) = json.loads(found.stdout)
    assert point["ingest"] > 0
    assert point["refit"] > 0
    assert 0 < point["cpu"] < 100
    assert point["peak"] > 50 << 20
    assert point["live"] is None or 0 < point["live"] < 15
    assert point["reads"] > 0
    assert (tmp_path / "costs.svg").exists()
