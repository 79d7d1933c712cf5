"""Formats: which column becomes which field, and what is refused rather than guessed."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_args

import pytest

from app.formats.format import SPELLINGS
from app.formats.plan import Request
from app.formats.registry import ARENA, ARENA_140K, FORMATS, MAPPED, MTBENCH, FormatName
from app.formats.rows import JudgementRow, UnusableFile, VoteRow
from tests.formats.reading import contents_of

Write = Callable[[str, str | bytes], Path]
SIDES = {"left": "a", "right": "b", "outcome": "w"}


def lines(*documents: dict[str, Any]) -> str:
    return "\n".join(json.dumps(document) for document in documents)


def test_every_format_is_named_once() -> None:
    assert set(FORMATS) == set(get_args(FormatName))
    assert all(name == each.name for name, each in FORMATS.items())


def test_arena_battles(write: Write) -> None:
    battle = {"question_id": "q1", "model_a": "m1", "model_b": "m2", "judge": "arena_user_7", "turn": 1, "anony": True}
    battle |= {"language": "English", "tstamp": 1700000000.5, "conversation_a": [{"role": "user", "content": "hi"}]}
    winners = ["model_a", "model_b", "tie", "tie (bothbad)"]
    battles = [battle | {"question_id": f"q{n}", "winner": winner} for n, winner in enumerate(winners)]
    contents = contents_of(
        write("a.json", json.dumps([*battles, battle | {"winner": "tie", "anony": False}])), Request(ARENA)
    )
    assert contents.problems == []
    rows = [row for _, row in contents.rows]
    assert [row.outcome for row in rows if isinstance(row, VoteRow)] == ["left", "right", "tie", "both_bad", "tie"]
    assert [row.excluded for row in rows if isinstance(row, VoteRow)] == [None] * 4 + ["not anonymous"]
    assert rows[0] == VoteRow(
        left="m1",
        right="m2",
        outcome="left",
        context="q0",
        features={"language": "English", "turn": 1.0},
        voter="arena_user_7",
        created_at=datetime.fromtimestamp(1700000000.5, UTC),
        id="q0",
    )


def test_arena_battles_in_simple_mode(write: Write) -> None:
    contents = contents_of(write("a.csv", "model_a,model_b,winner\nm1,m2,tie\n"), Request(ARENA))
    assert [row for _, row in contents.rows] == [VoteRow("m1", "m2", "tie")]


def test_arena_140k(write: Write) -> None:
    tags = {
        "math_v0.1": {"math": True},
        "if_v0.1": {"if": False, "score": 2},
        "creative_writing_v0.1": {"creative_writing": False, "score": "no"},
        "criteria_v0.1": {"complexity": True},
    }
    battle = {
        "id": "6f1c1f2e-0000-4000-8000-00000000000a",
        "model_a": "m1",
        "model_b": "m2",
        "winner": "both_bad",
        "evaluation_session_id": "s1",
        "language": "pl",
        "is_code": False,
        "timestamp": "2025-04-01T10:00:00",
        "conv_metadata": {"sum_user_tokens": {"turn_1": 10, "turn_2": 5}, "turns": 2},
        "category_tag": tags,
    }
    contents = contents_of(write("a.jsonl", lines(battle)), Request(ARENA_140K))
    ((_, row),) = contents.rows
    assert isinstance(row, VoteRow)
    assert (row.id, row.voter, row.outcome) == (battle["id"], "s1", "both_bad")
    assert row.created_at == datetime(2025, 4, 1, 10, tzinfo=UTC)
    assert row.features == {
        "language": "pl",
        "is_code": "false",
        "turns": 2.0,
        "user_tokens": 15.0,
        "creative_writing": "false",
        "instruction_following": "false",
        "math": "true",
        "complexity": "true",
    }


def test_mtbench_tells_votes_from_judgements(write: Write) -> None:
    head = "source,question_id,category,turn,model_a,model_b,winner,judge_id,judge_type\n"
    human = "human,81,writing,1,m1,m2,model_b,2,author\n"
    judge = "gpt4_pair,81,writing,1,m1,m2,{},65,gpt4_pair\n"
    text = (
        head
        + human
        + judge.format("model_a")
        + judge.format("tie_inconsistent")
        + human.replace("model_b", "tie_inconsistent")
    )
    contents = contents_of(write("a.csv", text), Request(MTBENCH))
    features = {"category": "writing"}
    assert [row for _, row in contents.rows] == [
        VoteRow("m1", "m2", "right", context="81/1", features=features, voter="2"),
        JudgementRow("gpt4_pair", "81/1", "m1", "m2", {"left": 1.0, "right": 0.0, "tie": 0.0}, features),
        JudgementRow("gpt4_pair", "81/1", "m1", "m2", {"left": 0.0, "right": 0.0, "tie": 1.0}, features),
    ]
    ((line, reason),) = contents.problems
    assert line == 5
    assert "tie_inconsistent" in reason


@pytest.mark.parametrize("spelling", sorted(SPELLINGS))
def test_known_spellings(write: Write, spelling: str) -> None:
    contents = contents_of(write("a.csv", f"a,b,w\nm1,m2,{spelling}\n"), Request(MAPPED, SIDES))
    assert [row.outcome for _, row in contents.rows if isinstance(row, VoteRow)] == [SPELLINGS[spelling]]


@pytest.mark.parametrize("spelling", ["", "both", "Left", "model_c", "TIE", "tie_inconsistent", "0", " tie"])
def test_unknown_outcomes_are_refused_with_the_accepted_ones(write: Write, spelling: str) -> None:
    contents = contents_of(write("a.csv", f"a,b,w\nm1,m2,{spelling}\nm1,m2,tie\n"), Request(MAPPED, SIDES))
    ((line, reason),) = contents.problems
    assert line == 2
    assert reason.startswith(f"outcome: unknown {spelling!r}; accepted: left, ")
    assert "tie (bothbad)" in reason
    assert len(contents.rows) == 1


def test_an_outcome_that_the_board_lacks_is_refused(write: Write) -> None:
    path = write("a.csv", "a,b,w\nm1,m2,tie (bothbad)\nm1,m2,draw\nm1,m2,better\n")
    contents = contents_of(path, Request(MAPPED, SIDES), outcomes=["better", "tie"])
    assert [line for line, _ in contents.problems] == [2]
    assert [row.outcome for _, row in contents.rows if isinstance(row, VoteRow)] == ["tie", "better"]


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("propensity", "0", "propensity: expected a number from"),
        ("propensity", "1.5", "propensity: expected a number from"),
        ("propensity", "nan", "propensity: expected a number, got 'nan'"),
        ("created_at", "yesterday", "created_at: expected unix seconds"),
        ("created_at", "1700000000000", "created_at: expected unix seconds"),
        ("created_at", "1969-12-31", "time between 1970 and 2200"),
        ("count", "-1", "count: expected a whole number"),
        ("count", "1.5", "count: expected a whole number"),
        ("count", "99999999999", "count: expected a whole number"),
        ("voter", "x" * 201, "voter: expected at most 200"),
        ("voter_type", "robot", "voter_type: unknown 'robot'; accepted: human, llm"),
        ("anonymous", "maybe", "anonymous: expected true or false"),
        ("left", "", "left is empty"),
        ("left", "m2", "left and right are both 'm2'"),
    ],
)
def test_bad_cells_are_told_by_field(write: Write, field: str, value: str, words: str) -> None:
    cells = {"left": "m1", "right": "m2", "outcome": "tie", field: value}
    text = f"{','.join(cells)}\n{','.join(cells.values())}\n"
    contents = contents_of(write("a.csv", text), Request(MAPPED, {name: name for name in cells}))
    assert contents.rows == []
    ((line, reason),) = contents.problems
    assert line == 2
    assert words in reason


def test_joined_nested_and_slashed_columns(write: Write) -> None:
    record = {"a": "m1", "b": "m2", "w": "tie", "q": 7, "meta": {"turn": 2, "v0.1": {"x": "y"}}, "c/d": "z"}
    fields = SIDES | {"context": "q/meta.turn", "voter": "c/d", "feature.x": "meta.v0.1.x"}
    ((_, row),) = contents_of(write("a.jsonl", lines(record)), Request(MAPPED, fields)).rows
    assert isinstance(row, VoteRow)
    assert (row.context, row.voter, row.features) == ("7/2", "z", {"x": "y"})


def test_counts_in_one_column_and_in_one_for_each_outcome(write: Write) -> None:
    long = write("long.csv", "a,b,w,n\nm1,m2,model_a,3\nm1,m2,tie,0\nm1,m2,tie,2\n")
    wide = write("wide.csv", "a,b,n_a,n_b,n_t\nm1,m2,3,0,2\n")
    sides = {"left": "a", "right": "b"}
    expected = [VoteRow("m1", "m2", "left", times=3), VoteRow("m1", "m2", "tie", times=2)]
    assert [row for _, row in contents_of(long, Request(MAPPED, SIDES | {"count": "n"})).rows] == expected
    counts = {"count.left": "n_a", "count.right": "n_b", "count.tie": "n_t"}
    assert [row for _, row in contents_of(wide, Request(MAPPED, sides | counts)).rows] == expected
    with pytest.raises(UnusableFile, match=r"count\.draw: the board's outcomes are left"):
        contents_of(wide, Request(MAPPED, sides | {"count.draw": "n_t"}))


def test_judgements_with_chances(write: Write) -> None:
    fields = {"left": "a", "right": "b", "judge": "j", "context": "c", "probability.left": "p", "probability.tie": "q"}
    path = write("a.csv", "a,b,j,c,p,q\nm1,m2,g,c1,.75,.25\nm1,m2,g,c1,.75,.75\nm1,m2,g,c1,1.5,-.5\nm1,m2,,c1,1,0\n")
    contents = contents_of(path, Request(MAPPED, fields, kind="judgements"))
    ((_, row),) = contents.rows
    assert isinstance(row, JudgementRow)
    assert row.probabilities == {"left": 0.75, "right": 0.0, "tie": 0.25, "both_bad": 0.0}
    assert [line for line, _ in contents.problems] == [3, 4, 5]


def test_conditions(write: Write) -> None:
    path = write("a.csv", "a,b,w,s,t\nm1,m2,tie,x,1\nm1,m2,tie,y,1\nm1,m2,tie,z,1\nm1,m2,tie,x,2\nm1,m2,bad,z,1\n")
    contents = contents_of(path, Request(MAPPED, SIDES, where=[("s", "x"), ("s", "y"), ("t", "1")]))
    assert [line for line, _ in contents.rows] == [2, 3]
    assert contents.problems == []


def test_kinds_of_features_are_told_from_the_first_rows(write: Write) -> None:
    fields = SIDES | {"feature.n": "n", "feature.c": "c", "feature.e": "e"}
    contents = contents_of(write("a.csv", "a,b,w,n,c,e\nm1,m2,tie,1,1,\nm1,m2,tie,,x,\n"), Request(MAPPED, fields))
    assert {feature.name: feature.kind for feature in contents.features} == {
        "n": "numeric",
        "c": "categorical",
        "e": "categorical",
    }
    assert [row.features for _, row in contents.rows] == [{"n": 1.0, "c": "1"}, {"c": "x"}]


def test_kinds_of_features_may_be_said(write: Write) -> None:
    record = {"a": "m1", "b": "m2", "w": "tie", "n": 1, "v": [1, 2.5], "t": "long text\nof two lines"}
    fields = SIDES | {"feature.n": "n", "feature.v": "v", "feature.t": "t"}
    path = write("a.jsonl", lines(record))
    contents = contents_of(
        path, Request(MAPPED, fields, feature_kinds={"n": "categorical", "v": "vector", "t": "text"})
    )
    ((_, row),) = contents.rows
    assert row.features == {"n": "1", "v": [1.0, 2.5], "t": record["t"]}
    assert [(feature.name, feature.dimensions) for feature in contents.features] == [("n", None), ("t", None), ("v", 2)]


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        (Request(MAPPED, SIDES | {"voter": "who"}), "no column 'who'; the file has a, b, w"),
        (Request(MAPPED, SIDES | {"context": "a/who"}), "no column 'who'"),
        (Request(MAPPED, SIDES, where=[("who", "x")]), "no column 'who'"),
        (Request(MAPPED, {"left": "a"}), "no column is mapped to right, outcome"),
        (Request(MAPPED, SIDES, kind="judgements"), "no column is mapped to judge, context"),
        (Request(MAPPED, SIDES, feature_kinds={"x": "text"}), "a kind is given for x"),
        (Request(ARENA), "no column 'model_a'"),
    ],
)
@pytest.mark.parametrize("content", ["a,b,w\nm1,m2,tie\n", "a,b,w\n", '{"a": "m1", "b": "m2", "w": "tie"}'])
def test_a_file_without_a_column_is_refused_whole(write: Write, request_: Request, words: str, content: str) -> None:
    with pytest.raises(UnusableFile, match=words):
        contents_of(write("a", content), request_)


def test_a_record_without_a_column_is_one_bad_row(write: Write) -> None:
    good = {"a": "m1", "b": "m2", "w": "tie", "c": "x"}
    contents = contents_of(
        write("a.jsonl", lines(good, {"a": "m1", "b": "m2", "w": "tie"}, good)),
        Request(MAPPED, SIDES | {"context": "c"}),
    )
    assert contents.problems == [(2, "no column 'c'")]
    assert [line for line, _ in contents.rows] == [1, 3]


def test_gaps_in_json_numbers_are_missing(write: Write) -> None:
    fields = SIDES | {"feature.n": "n", "voter": "v"}
    text = '{"a": "m1", "b": "m2", "w": "tie", "n": NaN, "v": null}\n{"a": "m1", "b": "m2", "w": "tie", "n": 2, "v": 3}'
    contents = contents_of(write("a.jsonl", text), Request(MAPPED, fields))
    assert [(row.features, row.voter) for _, row in contents.rows if isinstance(row, VoteRow)] == [
        ({}, None),
        ({"n": 2.0}, "3"),
    ]
