"""Rankings over time."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import Engine

from app.services.rankings.history import thinned
from tests.api.conftest import BoardCaller, problem
from tests.refitting import FEATURES, Bench, ballots

ITEMS = ("ada", "bell", "curie")


@pytest.fixture(scope="module")
def bench(database: Engine) -> Bench:
    return Bench(database)


@pytest.fixture
def board(make_board: Callable[..., BoardCaller]) -> BoardCaller:
    return make_board(items=ITEMS, features=FEATURES, segments=["lang"])


def grow(board: BoardCaller, bench: Bench, *sizes: int) -> list[dict[str, Any]]:
    """Add so many votes and refit, time and again; the rankings after each."""
    found = []
    for number, size in enumerate(sizes):
        board.batch(*ballots(ITEMS, size, seed=20 + number, contexts=10_000))
        snapshot = bench.refit(board.slug)
        with bench.work() as work:
            found.append(
                {"snapshot": str(snapshot.id), "scores": work.snapshots.scores(snapshot.id, "bt", "debiased", "")}
            )
    return found


def history(board: BoardCaller, query: str = "") -> dict[str, Any]:
    answer = board("GET", f"/rankings/history?{query}")
    assert answer.status_code == 200, answer.text
    document: dict[str, Any] = answer.json()
    return document


def test_the_history_holds_what_every_snapshot_said(board: BoardCaller, bench: Bench) -> None:
    """Also of snapshots whose models are gone."""
    known = grow(board, bench, 150, 100, 100, 50)
    document = history(board)
    assert [point["snapshot"] for point in document["points"]] == [each["snapshot"] for each in known]
    assert [point["rows"] for point in document["points"]] == [150, 250, 350, 400]
    assert document["snapshots"] == 4
    rows = {row["item"]: row for row in document["items"]}
    for at, each in enumerate(known):
        score = each["scores"][0]
        assert [rows[item]["score"][at] for item in score.items] == score.value
    newest = board("GET", "/rankings").json()["rankings"]
    assert [row["item"] for row in document["items"]] == [row["item"] for row in newest]
    for row in newest:
        for name in ("score", "standard_error", "interval", "rank"):
            assert rows[row["item"]][name][-1] == row[name]
        assert rows[row["item"]]["steps_beyond_noise"] == [None, False, False, False]
        assert rows[row["item"]]["changed_beyond_noise"] is False


def test_a_board_that_turns_is_seen_to_change(board: BoardCaller, bench: Bench) -> None:
    grow(board, bench, 300)
    board.batch(*ballots(ITEMS[::-1], 900, seed=31, contexts=10_000))
    bench.refit(board.slug)
    changed = {row["item"]: row["changed_beyond_noise"] for row in history(board)["items"]}
    assert changed["ada"]
    assert changed["curie"]
    assert not changed["bell"]


def test_items_that_come_make_scores_incomparable(board: BoardCaller, bench: Bench) -> None:
    grow(board, bench, 150)
    board("PUT", "/items/dirac")
    board.batch(*ballots((*ITEMS, "dirac"), 200, seed=32))
    bench.refit(board.slug)
    rows = {row["item"]: row for row in history(board)["items"]}
    assert rows["dirac"]["score"][0] is None
    assert rows["dirac"]["rank"][1] is not None
    assert all(row["changed_beyond_noise"] is None for row in rows.values())


def test_windows_segments_and_points(board: BoardCaller, bench: Bench) -> None:
    grow(board, bench, 150, 100, 100)
    times = [point["computed_at"] for point in history(board)["points"]]
    assert len(history(board, "points=2")["points"]) == 2
    later = history(board, f"from={times[1].replace('+', '%2B')}")
    assert [point["computed_at"] for point in later["points"]] == times[1:]
    assert later["snapshots"] == 2
    german = history(board, "segment=lang:de&estimand=borda")
    assert german["segment"] == "lang:de"
    assert german["points"][-1]["rows"] < 350
    problem(board("GET", "/rankings/history?points=1"), 422, "bad-points")
    problem(board("GET", "/rankings/history?estimand=elo"), 422, "bad-estimand")
    problem(board("GET", "/rankings/history?segment=lang:fr"), 404, "unknown-segment")


def test_a_board_without_snapshots_has_no_history(board: BoardCaller) -> None:
    assert history(board)["points"] == history(board)["items"] == []


def test_points_are_spread_over_the_time_not_over_the_snapshots() -> None:
    start = datetime(2026, 1, 1, tzinfo=UTC)
    hours = [*(0.01 * number for number in range(500)), *range(10, 101, 10)]
    moments = [(uuid4(), start + timedelta(hours=hour)) for hour in hours]
    kept = thinned(moments, 11)
    when = {snapshot: hour for (snapshot, _), hour in zip(moments, hours, strict=True)}
    assert [when[snapshot] for snapshot in kept] == [0, *range(10, 101, 10)]
    assert thinned(moments[:3], 5) == [snapshot for snapshot, _ in moments[:3]]


def exclude(board: BoardCaller, voter: str) -> int:
    answer = board("POST", "/exclusions", {"reason": "bot", "voter": voter})
    assert answer.status_code == 201
    number: int = answer.json()["id"]
    return number


def test_other_votes_excluded_in_the_same_number_are_no_shared_rows(board: BoardCaller, bench: Bench) -> None:
    """Half of the rows differ, so that scores move by more than models fitted anew would explain."""
    sent = ballots(ITEMS, 200, seed=41, contexts=10_000)
    board.batch(*(vote | {"voter": ("x", "y", "z")[min(n // 70, 2)]} for n, vote in enumerate(sent)))
    rule = exclude(board, "x")
    bench.refit(board.slug)
    assert board("DELETE", f"/exclusions/{rule}").status_code == 204
    exclude(board, "y")
    bench.refit(board.slug)
    document = history(board)
    assert [point["rows"] for point in document["points"]] == [130, 130]
    assert not any(row["changed_beyond_noise"] for row in document["items"])


def test_the_same_rules_leave_the_rows_of_before(board: BoardCaller, bench: Bench) -> None:
    """Of as many votes as were there before, a small turn is seen where the snapshots share noise."""
    board.batch(*(vote | {"voter": f"v{n % 5}"} for n, vote in enumerate(ballots(ITEMS, 400, seed=42))))
    exclude(board, "v1")
    bench.refit(board.slug)
    board.batch(*ballots(ITEMS[::-1], 60, seed=43))
    bench.refit(board.slug)
    assert any(row["changed_beyond_noise"] for row in history(board)["items"])
