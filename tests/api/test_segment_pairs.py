"""Pairs of levels over HTTP, in either order, with commas and colons in their names."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import Engine

from app.services.refit import segments
from tests.api.conftest import BoardCaller, Caller, problem
from tests.refitting import Bench, ballots

ITEMS = ("ada", "bell", "curie")
FEATURES = [{"name": name, "kind": "categorical"} for name in ("lang", "topic", "mood")]
TOPICS = ("code, tests", "maths: proofs")


@pytest.fixture(scope="module")
def bench(database: Engine) -> Bench:
    return Bench(database)


def features(number: int) -> dict[str, Any]:
    return {
        "lang": ("de", "en")[number % 2],
        "topic": TOPICS[number // 2 % 2],
        "mood": "odd" if number % 37 else "rare",
    }


def fill(call: Caller, bench: Bench, slug: str) -> BoardCaller:
    """600 votes in four pairs of levels, few of them in a rare mood."""
    call("POST", "/v1/boards", {"slug": slug, "features": FEATURES, "segments": ["topic", "lang", "mood"]})
    board = BoardCaller(call, slug)
    for item in ITEMS:
        board("PUT", f"/items/{item}", {})
    sent = ballots(ITEMS, 600, seed=1)
    for number, vote in enumerate(sent):
        vote["context"] = {"id": f"p{number}", "features": features(number)}
    board.batch(*sent)
    bench.refit(board.slug)
    return board


@pytest.fixture(scope="module")
def paired(client: TestClient, admin: dict[str, str], bench: Bench) -> BoardCaller:
    return fill(Caller(client, admin), bench, "paired")


def read(board: BoardCaller, path: str, segment: str) -> dict[str, Any]:
    mark = "&" if "?" in path else "?"
    answer = board("GET", f"{path}{mark}segment={quote(segment)}")
    assert answer.status_code == 200, answer.text
    document: dict[str, Any] = answer.json()
    return document


def test_pairs_are_ranked_in_either_order(paired: BoardCaller) -> None:
    pair = read(paired, "/rankings", "topic:code, tests,lang:de")
    assert pair == read(paired, "/rankings", "lang:de,topic:code, tests")
    assert pair["segment"] == "lang:de,topic:code, tests"
    assert pair["rows"] == pair["votes"] == 150
    assert all(row["rank"] for row in pair["rankings"])
    whole = read(paired, "/rankings", "lang:de")["rows"]
    assert whole == pair["rows"] + read(paired, "/rankings", "topic:maths: proofs,lang:de")["rows"]


def test_a_pair_is_the_window_of_its_rows(paired: BoardCaller) -> None:
    stored = read(paired, "/rankings", "lang:en,topic:maths: proofs")
    computed = read(paired, "/rankings?from=2000-01-01T00:00:00Z", "topic:maths: proofs,lang:en")
    assert computed["rankings"] == stored["rankings"]


@pytest.mark.parametrize("path", ["/comparisons", "/top?k=2"])
def test_pairs_are_compared(paired: BoardCaller, path: str) -> None:
    document = read(paired, path, "topic:code, tests,lang:en")
    assert document["rows"] == 150
    assert document["segment"] == "lang:en,topic:code, tests"


def test_influence_of_a_pair_reproduces_its_score(paired: BoardCaller) -> None:
    segment = quote("topic:code, tests,lang:de")
    answer = paired("GET", f"/votes/export?influence=bt&segment={segment}")
    lines = [json.loads(line) for line in answer.text.splitlines()]
    assert len(lines) == 150
    score = {row["item"]: row["score"] for row in read(paired, "/rankings", "topic:code, tests,lang:de")["rankings"]}
    for item in ITEMS:
        assert sum(line["psi"][item] for line in lines) / 150 == pytest.approx(score[item], abs=1e-9)


def test_a_pair_with_few_votes_says_so(paired: BoardCaller) -> None:
    document = read(paired, "/rankings", "mood:rare,lang:de")
    assert document["status"] == "few_votes"
    assert {row["score"] for row in document["rankings"]} == {None}
    assert read(paired, "/rankings", "mood:rare")["status"] == "few_votes"


@pytest.mark.parametrize("segment", ["lang:de,lang:en", "lang:de,topic:cooking", "lang:de,planet:mars", "lang:de,"])
def test_what_is_no_pair_of_two_segments_is_refused(paired: BoardCaller, segment: str) -> None:
    for path in ("/rankings", "/comparisons", "/top", "/votes/export?influence=bt"):
        mark = "&" if "?" in path else "?"
        problem(paired("GET", f"{path}{mark}segment={quote(segment)}"), 404, "unknown-segment")


def test_every_half_is_a_segment_of_the_board_as_it_is_now(
    client: TestClient, admin: dict[str, str], bench: Bench
) -> None:
    changed = fill(Caller(client, admin), bench, "changed")
    assert changed("PATCH", "", {"segments": ["topic"]}).status_code == 200
    for segment in ("topic:code, tests,lang:de", "lang:de,topic:code, tests", "lang:de"):
        for path in ("/rankings", "/comparisons", "/top", "/votes/export?influence=bt"):
            mark = "&" if "?" in path else "?"
            document = problem(changed("GET", f"{path}{mark}segment={quote(segment)}"), 404, "unknown-segment")
            assert all(each.startswith("topic:") for each in document["expected"])
    assert read(changed, "/rankings", "topic:code, tests")["status"] == "ok"


def test_segments_that_were_left_out_are_ranked_when_asked_for(
    client: TestClient,
    admin: dict[str, str],
    bench: Bench,
    paired: BoardCaller,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(segments, "MOST_SEGMENTS", 2)
    capped = fill(Caller(client, admin), bench, "capped")
    for segment in ("topic:code, tests,lang:de", "lang:en"):
        wanted = read(paired, "/rankings", segment)["rankings"]
        assert read(capped, "/rankings", segment)["rankings"] == wanted
    few = read(capped, "/rankings", "mood:rare,lang:de")
    assert (few["status"], {row["score"] for row in few["rankings"]}) == ("few_votes", {None})
