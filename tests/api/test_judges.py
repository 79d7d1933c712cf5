"""Judgements as features: posted over HTTP, used by the next refit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from sqlalchemy import Engine

from app.db import packed
from app.db.models.snapshots import Snapshot
from app.services.rankings.opened import open_snapshot
from app.stats.diagnostics import log_losses
from tests.api.conftest import BoardCaller
from tests.api.test_influence import agree, export
from tests.refitting import FEATURES, Bench, features_of

ITEMS = ("ada", "bell", "curie", "dirac")
CONTEXTS = 100
Make = Callable[..., BoardCaller]
Lines = list[dict[str, Any]]
MIRRORED = {"left": "right", "right": "left"}


@pytest.fixture(scope="module")
def bench(database: Engine) -> Bench:
    return Bench(database)


def world(*, seed: int = 1, votes: int = 300) -> tuple[Any, Lines]:
    """How good each item is at each prompt, which no feature says; and votes by it."""
    rng = np.random.default_rng(seed)
    strength = rng.normal(size=(CONTEXTS, len(ITEMS))) * 1.5
    sent = []
    for _ in range(votes):
        prompt, (left, right) = int(rng.integers(CONTEXTS)), rng.choice(len(ITEMS), size=2, replace=False)
        wins = rng.random() < chance(strength[prompt], left, right)
        pair = {"left": ITEMS[left], "right": ITEMS[right], "propensity": 1 / 12}
        sent.append({"context": f"p{prompt}", **pair, "outcome": "left" if wins else "right"})
    return strength, [vote | {"created_at": "2026-01-01T00:00:00Z"} for vote in sent]


def chance(strength: Any, left: int, right: int) -> float:
    return float(1 / (1 + np.exp(strength[right] - strength[left])))


def verdicts(strength: Any, *, judge: str = "good", prompts: Sequence[int] = range(CONTEXTS)) -> Lines:
    """What a judge who knows the prompts says of every pair, the earlier item on the left."""
    pairs = [(left, right) for left in range(len(ITEMS)) for right in range(left + 1, len(ITEMS))]
    return [
        judgement(prompt, ITEMS[left], ITEMS[right], judge=judge, left=chance(strength[prompt], left, right))
        for prompt in prompts
        for left, right in pairs
    ]


def judgement(prompt: int, first: str, second: str, *, judge: str, left: float) -> dict[str, Any]:
    chances = {"left": left, "right": 1 - left}
    return {"judge": judge, "context": f"p{prompt}", "left": first, "right": second, "probabilities": chances}


def turned(said: dict[str, Any]) -> dict[str, Any]:
    """The same said of the other order."""
    chances = {MIRRORED.get(name, name): share for name, share in said["probabilities"].items()}
    return said | {"left": said["right"], "right": said["left"], "probabilities": chances}


def verdict(said: dict[str, Any], outcome: str) -> dict[str, Any]:
    return said | {"probabilities": {outcome: 1}}


@pytest.fixture
def voted(make_board: Make) -> Callable[..., BoardCaller]:
    """Make a board with all prompts and these votes."""

    def make(sent: Lines, **fields: Any) -> BoardCaller:
        board = make_board(items=ITEMS, outcomes="ternary", **fields)
        declared = [feature["name"] for feature in fields.get("features", [])]
        described = [{name: features_of(n)[name] for name in declared} for n in range(CONTEXTS)]
        contexts = {f"p{n}": {"id": f"p{n}", "features": each} for n, each in enumerate(described)}
        assert board("POST", "/contexts", {"contexts": list(contexts.values())}).status_code == 201
        fates = board.batch(*(vote | {"context": contexts[vote["context"]]} for vote in sent))
        assert {fate["status"] for fate in fates} == {"created"}
        return board

    return make


def judge(board: BoardCaller, said: Lines) -> None:
    answer = board("POST", "/judgements", {"judgements": said})
    assert (answer.status_code, answer.json()) == (201, {"created": len(said), "known": 0})


def refit(bench: Bench, board: BoardCaller, said: Sequence[dict[str, Any]] = ()) -> Snapshot:
    """A snapshot of the board with these judgements more."""
    if said:
        judge(board, list(said))
    return bench.refit(board.slug)


def loss(snapshot: Snapshot) -> float:
    found: float = snapshot.summary["learner"]["log_loss"]
    return found


@pytest.mark.parametrize("fields", [{}, {"features": FEATURES}])
def test_a_judge_who_knows_the_prompts_sharpens_the_model(
    voted: Callable[..., BoardCaller], bench: Bench, fields: dict[str, Any]
) -> None:
    strength, sent = world()
    board = voted(sent, **fields)
    before = refit(bench, board)
    after = refit(bench, board, verdicts(strength))
    assert (before.summary["judges"], before.summary["judges_left_out"]) == ([], [])
    seen = len({vote["context"] for vote in sent})
    assert after.summary["judges"] == [{"name": "good", "judgements": 6 * seen, "contexts": seen}]
    shown = board("GET", "/diagnostics").json()
    assert (shown["judges"], shown["judges_left_out"]) == (after.summary["judges"], [])
    assert shown["propensity_model"] is None
    assert loss(after) < loss(before) - 0.1
    assert after.summary["votes"] == before.summary["votes"]


def test_new_judgements_lead_to_a_new_snapshot_and_nothing_else_does(
    voted: Callable[..., BoardCaller], bench: Bench
) -> None:
    strength, sent = world()
    board = voted(sent)
    first = refit(bench, board, verdicts(strength, prompts=range(50)))
    assert refit(bench, board).id == first.id
    second = refit(bench, board, verdicts(strength, prompts=range(50, 100)))
    assert second.id != first.id
    assert loss(second) < loss(first)


def test_a_board_that_no_judgement_bears_on_keeps_its_numbers(voted: Callable[..., BoardCaller], bench: Bench) -> None:
    strength, sent = world()
    sent = [vote for vote in sent if "dirac" not in vote.values()]
    board = voted(sent, features=FEATURES, segments=["lang"])
    assert board("PUT", "/items/dirac", {"active": False}).status_code == 200
    before = refit(bench, board)
    board("POST", "/contexts", {"contexts": [{"id": "pool", "features": features_of(1)}]})
    known = verdicts(strength, prompts=[2])
    retired = [said for said in verdicts(strength, judge="late") if said["right"] == "dirac"]
    after = refit(bench, board, [*retired, *(said | {"context": "pool"} for said in known)])
    assert (after.id != before.id, after.digest) == (True, before.digest)
    nothing = {"judgements": 0, "contexts": 0}
    assert after.summary["judges_left_out"] == [{"name": name, **nothing} for name in ("good", "late")]
    heard = refit(bench, board, verdicts(strength))
    seen = len({vote["context"] for vote in sent})
    assert heard.summary["judges"] == [{"name": "good", "judgements": 3 * seen, "contexts": seen}]
    assert heard.digest != before.digest


def test_numbers_do_not_depend_on_the_order_of_posting_or_on_the_side(
    voted: Callable[..., BoardCaller], bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Four judges, three of whom are silent on some prompts, and one of whom sees both orders; read in two ways."""
    strength, sent = world()
    said = verdicts(strength) + verdicts(-strength, judge="bad", prompts=range(0, CONTEXTS, 2))
    said += verdicts(0 * strength, judge="idle", prompts=range(30))
    both = verdicts(strength + 0.5, judge="slow", prompts=range(20, 60))
    said += [*both, *map(turned, both)]
    rng, digests = np.random.default_rng(3), set()
    for mirror, rows in ((False, 50_000), (True, 7)):
        monkeypatch.setattr(packed, "ROWS_AT_ONCE", rows)
        board = voted(sent, features=FEATURES)
        order = rng.permutation(len(said))
        for part in np.array_split(order, 3):
            judge(board, [turned(said[at]) if mirror else said[at] for at in part])
        digests.add(refit(bench, board).digest)
    assert len(digests) == 1


def test_a_verdict_that_changes_with_the_order_is_a_tie(voted: Callable[..., BoardCaller], bench: Bench) -> None:
    strength, sent = world()
    every = verdicts(strength)
    sure = [verdict(said, "left" if said["probabilities"]["left"] > 0.5 else "right") for said in every]
    doubtful = [at % 3 == 0 for at in range(len(sure))]
    ties = [verdict(said, "tie") if tied else said for said, tied in zip(sure, doubtful, strict=True)]
    again = [
        turned(said) | ({"probabilities": said["probabilities"]} if tied else {})
        for said, tied in zip(sure, doubtful, strict=True)
    ]
    tied, changed, plain = (refit(bench, voted(sent), said) for said in (ties, sure + again, sure))
    assert tied.digest == changed.digest
    assert tied.digest != plain.digest


def test_segments_windows_and_influence_see_the_judges(voted: Callable[..., BoardCaller], bench: Bench) -> None:
    strength, sent = world()
    board = voted(sent, features=FEATURES[:1], segments=["lang"])
    before = refit(bench, board)
    after = refit(bench, board, verdicts(strength, prompts=range(0, CONTEXTS, 3)))
    assert after.summary["segments"] == before.summary["segments"]
    for query in ("estimand=bt", "estimand=rc&segment=lang:de"):
        stored = board("GET", f"/rankings?{query}").json()["rankings"]
        window = board("GET", f"/rankings?{query}&from=2000-01-01T00:00:00Z").json()["rankings"]
        assert window == stored
    agree(board, export(board, "influence=bt"), "estimand=bt")


def test_an_opened_snapshot_predicts_what_the_refit_did(voted: Callable[..., BoardCaller], bench: Bench) -> None:
    strength, sent = world()
    said = verdicts(strength, prompts=range(40)) + verdicts(strength, judge="other", prompts=range(20, 90))
    snapshot = refit(bench, voted(sent, features=FEATURES), said)
    with bench.work() as work:
        opened = open_snapshot(work, snapshot)
    margins = opened.stored.covariates.margins
    assert margins is not None
    assert (margins.dtype, margins.shape[1:]) == (np.float32, (4, 4, 2))
    assert np.isnan(margins).any()
    assert np.array_equal(margins, -margins.transpose(0, 2, 1, 3), equal_nan=True)
    sample = opened.stored.frame.sample
    votes, row = sample.votes, sample.votes.row
    chances = np.zeros((len(votes), sample.rule.n_categories))
    for fold in range(len(opened.models.models)):
        own = votes.take(sample.fold[row] == fold)
        chances[sample.fold[row] == fold] = opened.models.at(fold, sample.pattern[own.row], own.left, own.right)
    assert float(log_losses(chances, votes).mean()) == loss(snapshot)
