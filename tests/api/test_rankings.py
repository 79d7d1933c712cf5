"""Rankings end to end: votes in over HTTP, a refit, rankings out."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient
from sqlalchemy import Engine

from app.db.locks import Lock, lease
from app.services.live.run import Updater
from tests.api.conftest import BoardCaller, Caller, problem
from tests.faults.parts import await_truth
from tests.refitting import FEATURES, Bench, ballots

ITEMS = ("ada", "bell", "curie", "dirac")
ROW = {
    *("item", "rank", "rank_interval", "score", "standard_error", "interval"),
    *("probability_best", "votes", "effective_votes", "unsupported", "status"),
}


@pytest.fixture(scope="module")
def bench(database: Engine) -> Bench:
    return Bench(database)


def fill(board: BoardCaller, bench: Bench) -> BoardCaller:
    """Four items, whose order is that of their names."""
    board.batch(*ballots(ITEMS, 600, seed=1, contexts=300))
    bench.refit(board.slug)
    return board


@pytest.fixture(scope="module")
def ranked(client: TestClient, admin: dict[str, str], bench: Bench) -> BoardCaller:
    """A refitted board that no test changes."""
    call = Caller(client, admin)
    call("POST", "/v1/boards", {"slug": "ranked", "features": FEATURES, "segments": ["lang"]})
    board = BoardCaller(call, "ranked")
    for item in ITEMS:
        board("PUT", f"/items/{item}", {})
    return fill(board, bench)


@pytest.fixture
def voted(make_board: Callable[..., BoardCaller], bench: Bench) -> BoardCaller:
    """A refitted board of the test's own."""
    return fill(make_board(items=ITEMS, features=FEATURES, segments=["lang"]), bench)


def rankings(board: BoardCaller, query: str = "") -> dict[str, Any]:
    """GET the rankings."""
    answer = board("GET", f"/rankings?{query}")
    assert answer.status_code == 200, answer.text
    document: dict[str, Any] = answer.json()
    return document


def scores(document: dict[str, Any], field: str = "score") -> dict[str, Any]:
    """A field of each row by item."""
    return {row["item"]: row[field] for row in document["rankings"]}


@pytest.mark.parametrize("estimand", ["bt", "borda", "rc", "threshold", "robust"])
@pytest.mark.parametrize("pairs", ["auto", "all", "observed"])
def test_every_estimand_ranks_the_items_in_their_order(ranked: BoardCaller, estimand: str, pairs: str) -> None:
    document = rankings(ranked, f"estimand={estimand}&pairs={pairs}")
    # Against the worst rival, the best item, all others do alike.
    known = slice(0, 1) if estimand == "robust" else slice(None)
    assert [row["item"] for row in document["rankings"]][known] == list(ITEMS)[known]
    assert document["status"] == "ok"
    assert document["pairs"] == ("all" if pairs == "auto" else pairs)
    for row in document["rankings"]:
        assert row.keys() == ROW
        assert row["interval"][0] < row["score"] < row["interval"][1]
        assert row["rank_interval"][0] <= row["rank"] <= row["rank_interval"][1]
        assert row["standard_error"] > 0


def test_counts_say_what_is_behind_a_ranking(voted: BoardCaller) -> None:
    voted.batch(*ballots(ITEMS, 3, seed=9))
    document = rankings(voted)
    assert (document["votes"], document["rows"], document["votes_pending"]) == (600, 600, 3)
    assert document["rows_used"] == 600
    assert document["contexts"] == len({v["context"]["id"] for v in ballots(ITEMS, 600, seed=1, contexts=300)})
    assert document["propensity"] == "logged"
    assert document["rule"] == {"left": [1, 0], "right": [0, 1], "tie": [0.5, 0.5], "both_bad": [0.5, 0.5]}
    assert sum(row["votes"] for row in document["rankings"]) == 1200


def test_an_answer_as_of_the_refit_says_how_many_votes_it_lacks(voted: BoardCaller, bench: Bench) -> None:
    voted.batch(*ballots(ITEMS, 3, seed=9))
    with bench.work() as work:
        board = work.boards.find(voted.slug)
    assert board is not None
    Updater(bench.work, partial(lease, bench.engine, Lock.LIVE)).serve(board.id)

    def pending(query: str) -> tuple[bool, int]:
        document = rankings(voted, query)
        return document["live"]["included"], document["votes_pending"]

    assert pending("") == (True, 0)
    for query in ("estimator=classical", "from=2020-01-01T00:00:00Z"):
        assert pending(query) == (False, 3)
    assert voted("PATCH", "", {"cluster": "voter"}).status_code == 200
    assert pending("") == (False, 3)


def test_a_board_without_a_snapshot_is_pending(make_board: Callable[..., BoardCaller]) -> None:
    board = make_board(items=ITEMS)
    board.batch(*ballots(ITEMS, 2, seed=1))
    document = rankings(board)
    assert document["status"] == "pending"
    assert document["rankings"] == []
    assert document["snapshot"] is None
    assert document["votes_pending"] == 2
    assert board("GET", "/pairs").json()["pairs"] == []


def test_segments_rank_their_own_rows(ranked: BoardCaller) -> None:
    german, english = rankings(ranked, "segment=lang:de"), rankings(ranked, "segment=lang:en")
    assert german["rows"] + english["rows"] == 600
    assert german["votes"] + english["votes"] == 600
    assert scores(german) != scores(english)
    problem(ranked("GET", "/rankings?segment=lang:fr"), 404, "unknown-segment")
    problem(ranked("GET", "/rankings?segment=planet:mars"), 404, "unknown-segment")


@pytest.mark.parametrize("path", ["/rankings", "/rankings/history", "/top", "/equilibrium"])
def test_segments_are_unknown_by_name_at_once_and_by_level_once_a_refit_has_read_votes(
    make_board: Callable[..., BoardCaller], bench: Bench, path: str
) -> None:
    board = make_board(items=ITEMS, features=FEATURES, segments=["lang"])
    never = ("planet:mars", "size:1", "lang", "lang:", "")
    for segment in never:
        problem(board("GET", f"{path}?segment={segment}"), 404, "unknown-segment")
    assert board("GET", f"{path}?segment=lang:fr").json().get("status", "pending") == "pending"
    board.batch(*ballots(ITEMS, 10, seed=1, contexts=10))
    bench.refit(board.slug)
    for segment in (*never, "lang:fr"):
        problem(board("GET", f"{path}?segment={segment}"), 404, "unknown-segment")


def test_a_level_with_few_votes_says_so(make_board: Callable[..., BoardCaller], bench: Bench) -> None:
    board = make_board(items=ITEMS, features=FEATURES, segments=["lang"])
    rare = [
        v | {"context": {"id": f"r{n}", "features": {"lang": "fr"}}} for n, v in enumerate(ballots(ITEMS, 5, seed=3))
    ]
    board.batch(*ballots(ITEMS, 100, seed=1, contexts=50), *rare)
    bench.refit(board.slug)
    document = rankings(board, "segment=lang:fr")
    assert document["status"] == "few_votes"
    assert set(scores(document).values()) == {None}


def test_intervals_widen_from_marginal_to_bonferroni(ranked: BoardCaller) -> None:
    widths = []
    for kind in ("marginal", "simultaneous", "sidak", "bonferroni"):
        row = rankings(ranked, f"interval={kind}")["rankings"][0]
        widths.append(row["interval"][1] - row["interval"][0])
    assert widths == sorted(widths)
    assert widths[0] < widths[1]
    wide = rankings(ranked, "interval=marginal&level=0.99")["rankings"][0]
    assert wide["interval"][1] - wide["interval"][0] > widths[0]


def test_elo_is_a_change_of_scale(ranked: BoardCaller) -> None:
    natural, elo = rankings(ranked), rankings(ranked, "scale=elo")
    slope = 400 / math.log(10)
    for item, score in scores(natural).items():
        assert scores(elo)[item] == pytest.approx(1000 + slope * score)
        assert scores(elo, "standard_error")[item] == pytest.approx(slope * scores(natural, "standard_error")[item])


def test_an_anchor_measures_from_an_item(ranked: BoardCaller) -> None:
    plain, anchored = rankings(ranked), rankings(ranked, "anchor=bell")
    for item, score in scores(plain).items():
        assert scores(anchored)[item] == pytest.approx(score - scores(plain)["bell"])
    bell = next(row for row in anchored["rankings"] if row["item"] == "bell")
    assert (bell["score"], bell["standard_error"], bell["interval"]) == (0, 0, [0, 0])
    assert scores(anchored, "rank_interval") == scores(plain, "rank_interval")
    problem(ranked("GET", "/rankings?anchor=nobody"), 422, "bad-anchor")


def test_plug_in_scores_have_no_interval(ranked: BoardCaller) -> None:
    plugin, debiased = rankings(ranked, "estimator=plugin"), rankings(ranked)
    assert plugin["note"]
    for row in plugin["rankings"]:
        assert [row[name] for name in ("standard_error", "interval", "rank_interval", "probability_best")] == [None] * 4
        assert row["rank"] is not None
    gaps = [abs(scores(plugin)[item] - scores(debiased)[item]) for item in ITEMS]
    assert max(gaps) > 0.01


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("estimand=elo2", "bad-estimand"),
        ("estimator=bayesian", "bad-estimator"),
        ("estimator=classical&estimand=rc", "bad-estimator"),
        ("interval=bootstrap", "bad-interval"),
        ("level=1", "bad-level"),
        ("level=nan", "bad-level"),
        ("scale=elo&estimand=borda", "bad-scale"),
        ("pairs=some", "bad-pairs"),
        ("from=2026-01-02T00:00:00Z&to=2026-01-01T00:00:00Z", "bad-from"),
    ],
)
def test_what_has_no_answer_is_refused(ranked: BoardCaller, query: str, code: str) -> None:
    found = problem(ranked("GET", f"/rankings?{query}"), 422, code)
    assert found["path"]


def test_a_misspelt_parameter_is_refused(ranked: BoardCaller) -> None:
    assert ranked("GET", "/rankings?estimandd=bt").status_code == 422


def test_a_named_variant_is_served(make_board: Callable[..., BoardCaller], bench: Bench) -> None:
    variants = ["bt", {"name": "pagerank", "kind": "rc", "damping": 0.15}, {"name": "strict", "kind": "threshold"}]
    board = make_board(items=ITEMS, estimands=variants)
    board.batch(*ballots(ITEMS, 200, seed=2))
    bench.refit(board.slug)
    damped, plain = rankings(board, "estimand=pagerank"), rankings(board, "estimand=rc")
    assert max(scores(damped).values()) < max(scores(plain).values())
    assert scores(rankings(board, "estimand=strict")) == scores(rankings(board, "estimand=threshold"))


def test_tags_answer_304_until_something_changes(voted: BoardCaller) -> None:
    first = voted("GET", "/rankings")
    tag = first.headers["etag"]
    assert not tag.startswith("W/")
    assert "no-cache" in first.headers["cache-control"]
    again = voted("GET", "/rankings", headers={"If-None-Match": f'"other", {tag}'})
    assert (again.status_code, again.content) == (304, b"")
    assert voted("GET", "/rankings?level=0.9", headers={"If-None-Match": tag}).status_code == 200
    voted.batch(*ballots(ITEMS, 1, seed=4))
    # New votes are told from a thread of its own.
    await_truth(lambda: voted("GET", "/rankings", headers={"If-None-Match": tag}).status_code == 200, seconds=5)
    assert voted("GET", "/rankings").headers["etag"] != tag


def test_tags_change_with_the_board(voted: BoardCaller) -> None:
    paths = ("/rankings", "/comparisons", "/top", "/pairs", "/diagnostics")
    before = {path: voted("GET", path) for path in paths}
    assert (
        voted("PATCH", "", {"estimands": ["bt", {"name": "pagerank", "kind": "rc", "damping": 0.1}]}).status_code == 200
    )
    for path in paths:
        after = voted("GET", path, headers={"If-None-Match": before[path].headers["etag"]})
        assert after.status_code == 200, path
    assert voted("GET", "/rankings").json()["spec"] == voted("GET", "/diagnostics").json()["spec"]


def test_public_boards_need_no_key(make_board: Callable[..., BoardCaller], nobody: Caller, bench: Bench) -> None:
    public, private = make_board(public=True), make_board()
    bench.refit(public.slug)
    answer = nobody("GET", f"{public.path}/rankings")
    assert answer.status_code == 200
    assert answer.headers["cache-control"].startswith("public")
    assert nobody("GET", f"{private.path}/rankings").status_code == 401
    assert nobody("GET", f"{private.path}/pairs").status_code == 401


def test_a_window_over_everything_is_the_stored_ranking(ranked: BoardCaller) -> None:
    stored, windowed = rankings(ranked), rankings(ranked, "from=2000-01-01T00:00:00Z")
    assert scores(windowed) == scores(stored)
    assert scores(windowed, "standard_error") == scores(stored, "standard_error")
    nothing = rankings(ranked, "to=2000-01-01T00:00:00Z")
    assert nothing["status"] == "few_votes"
    assert set(scores(nothing).values()) == {None}


def test_a_window_takes_the_rows_offered_within_it(make_board: Callable[..., BoardCaller], bench: Bench) -> None:
    board = make_board(items=ITEMS)
    sent = ballots(ITEMS, 300, seed=5)
    for day, vote in enumerate(sent):
        vote["created_at"] = f"2026-0{1 + day // 100}-01T00:00:00Z"
    board.batch(*sent)
    bench.refit(board.slug)
    document = rankings(board, "from=2026-02-01T00:00:00Z&to=2026-03-01T00:00:00Z")
    assert (document["rows"], document["votes"]) == (100, 100)
    assert rankings(board, "from=2026-02-01T00:00:00Z&estimator=classical")["votes"] == 200


def test_pairs_give_shares_where_there_are_votes(make_board: Callable[..., BoardCaller], bench: Bench) -> None:
    board = make_board(items=ITEMS)
    sent = [v for v in ballots(ITEMS, 500, seed=6) if {v["left"], v["right"]} != {"ada", "dirac"}]
    board.batch(*sent)
    bench.refit(board.slug)
    found = {(p["first"], p["second"]): p for p in board("GET", "/pairs").json()["pairs"]}
    assert len(found) == 6
    unseen = found["ada", "dirac"]
    assert (unseen["score"], unseen["standard_error"], unseen["interval"], unseen["votes"]) == (None, None, None, 0)
    seen = found["ada", "bell"]
    assert seen["interval"][0] < seen["score"] < seen["interval"][1]
    assert seen["score"] > 0.5
    left = [v for v in sent if (v["left"], v["right"], v["outcome"]) == ("ada", "bell", "left")]
    assert seen["counts"]["first_left"]["left"] == len(left)
    assert sum(p["votes"] for p in found.values()) == len(sent)


def test_borda_is_the_mean_of_the_pairs(ranked: BoardCaller) -> None:
    share = np.full((4, 4), np.nan)
    for pair in ranked("GET", "/pairs").json()["pairs"]:
        j, k = ITEMS.index(pair["first"]), ITEMS.index(pair["second"])
        share[j, k], share[k, j] = pair["score"], 1 - pair["score"]
    borda = scores(rankings(ranked, "estimand=borda"))
    assert np.nanmean(share, axis=1) == pytest.approx([borda[item] for item in ITEMS])


def test_retired_items_keep_their_last_score(voted: BoardCaller, bench: Bench) -> None:
    before = scores(rankings(voted))
    voted("PUT", "/items/bell", {"active": False})
    bench.refit(voted.slug)
    document = rankings(voted)
    assert "bell" not in scores(document)
    bell = document["retired"][0]
    assert bell.keys() == ROW
    assert (bell["item"], bell["rank"], bell["status"]) == ("bell", None, "retired")
    assert bell["score"] == pytest.approx(before["bell"])
    voted.batch(*ballots(("ada", "curie"), 2, seed=8))
    bench.refit(voted.slug)
    assert rankings(voted)["retired"][0]["score"] == pytest.approx(before["bell"])


def test_excluded_votes_are_counted_by_reason(voted: BoardCaller, bench: Bench) -> None:
    for vote in voted.votes()[:3]:
        voted("POST", "/exclusions", {"vote": vote["id"], "reason": "bot"})
    bench.refit(voted.slug)
    document = rankings(voted)
    assert document["votes_excluded"] == {"bot": 3}
    assert (document["votes"], document["rows"]) == (597, 597)


@pytest.mark.parametrize("moment", ["0", "1700000000", "2026-11-30", "yesterday"])
def test_a_window_is_told_by_times_with_their_zone(ranked: BoardCaller, moment: str) -> None:
    told = problem(ranked("GET", f"/rankings?from={moment}"), 422, "bad-field")
    assert told["path"] == "from"
