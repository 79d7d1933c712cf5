"""Every estimand under every rule of outcomes, through HTTP, against a plain computation of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy.special import expit
from sqlalchemy import Engine

from app.services.rankings.opened import Opened, open_snapshot
from app.stats.types import Bools, Floats
from tests.api.conftest import BoardCaller
from tests.refitting import Bench

ITEMS = ("ada", "bell", "curie", "dirac")
UNSEEN = {"ada", "bell"}
SIZE = len(ITEMS)
RULES: dict[str, Any] = {
    "binary": ["left", "right"],
    "ternary": ["left", "right", "tie"],
    "arena": ["left", "right", "tie", "both_bad"],
    "quaternary": ["left", "right", "both_good", "both_bad"],
    "quinary": ["left", "right", "both_good", "both_bad", "tie"],
    "graded": [
        {"name": "left", "first": 1.0, "second": 0.0},
        {"name": "rather_left", "first": 0.7, "second": 0.3},
        {"name": "right", "first": 0.0, "second": 1.0},
        {"name": "both", "first": 1.0, "second": 1.0},
        {"name": "skipped", "first": 0.0, "second": 0.0},
    ],
}
CREDIT = {"left": (1.0, 0.0), "right": (0.0, 1.0), "tie": (0.5, 0.5), "both_bad": (0.5, 0.5), "both_good": (0.5, 0.5)}
VARIANT = {"name": "pagerank", "kind": "rc", "damping": 0.2}
NAMES = ("borda", "bt", "rc", "threshold", "robust", "pagerank")


def borda(s: Floats, edges: Bools) -> Floats:
    return np.array([np.mean([s[j, k] for k in range(SIZE) if edges[j, k]]) for j in range(SIZE)])


def threshold(s: Floats, edges: Bools) -> Floats:
    return borda(expit((s - 0.5) / 0.05), edges)


def robust(s: Floats, edges: Bools) -> Floats:
    weight = np.where(edges, np.exp(-s / 0.02), 0.0)
    return np.array([(weight[j] @ s[j]) / weight[j].sum() for j in range(SIZE)])


def walk(s: Floats, edges: Bools, damping: float = 0.0) -> Floats:
    """Where a walk that moves from i to j by s_ji is after very many steps."""
    step = np.where(edges, s.T, 0.0)
    step = (1.0 - damping) * step / step.sum(axis=1, keepdims=True) + damping / SIZE
    return np.linalg.matrix_power((np.eye(SIZE) + step) / 2.0, 1024)[0]


@dataclass(frozen=True)
class Plain:
    """The one-step estimate of one score, a row and a vote at a time."""

    opened: Opened
    credit: Sequence[tuple[float, float]]
    name: str
    observed: bool

    def psi(self) -> Floats:
        """(n, K)."""
        sample, steps = self.opened.stored.frame.view(), dict[tuple[int, ...], Floats]()
        values = {fold: self._score(self._mu(fold)) for fold in range(5)}
        psi = np.array([values[fold] for fold in sample.fold.tolist()])
        for at in range(len(sample.votes)):
            one = sample.votes
            key = (int(sample.fold[one.row[at]]), int(one.left[at]), int(one.right[at]), int(one.outcome[at]))
            if key not in steps:
                steps[key] = self._step(*key)
            psi[one.row[at]] += one.weight[at] / one.propensity[at] * steps[key]
        return psi

    def _mu(self, fold: int) -> Floats:
        return self.opened.models.mu(fold, np.array([0]))[0]

    def _step(self, fold: int, left: int, right: int, outcome: int) -> Floats:
        """J (Y - mu) by central differences."""
        mu, size = self._mu(fold), 1e-6
        towards = np.eye(len(self.credit))[outcome] - mu[left, right]
        ends = []
        for sign in (1.0, -1.0):
            moved = mu.copy()
            moved[left, right] += sign * size * towards
            ends.append(self._score(moved))
        return (ends[0] - ends[1]) / (2.0 * size)

    def _score(self, mu: Floats) -> Floats:
        """F(mu)."""
        first, second = np.array(self.credit).T
        p = (mu @ first) / (mu @ (first + second))
        s = (p + 1.0 - p.T) / 2.0
        edges = ~np.eye(SIZE, dtype=np.bool_)
        if self.observed:
            edges[0, 1] = edges[1, 0] = False
        return self._of(p, s, edges)

    def _of(self, p: Floats, s: Floats, edges: Bools) -> Floats:
        match self.name:
            case "borda":
                return borda(s, edges)
            case "threshold":
                return threshold(s, edges)
            case "robust":
                return robust(s, edges)
            case "rc":
                return walk(s, edges)
            case "pagerank":
                return walk(s, edges, 0.2)
        logs = np.log(p / (1.0 - p))
        pairs = [(j, k) for j, k in product(range(SIZE), repeat=2) if j < k and edges[j, k]]
        design = np.array([np.eye(SIZE)[j] - np.eye(SIZE)[k] for j, k in pairs] + [np.ones(SIZE)])
        return np.linalg.lstsq(design, np.array([(logs[j, k] - logs[k, j]) / 2.0 for j, k in pairs] + [0.0]))[0]


def votes_for(names: Sequence[str], size: int) -> Iterator[Mapping[str, Any]]:
    """Votes on every ordered pair but those of ada and bell, the later item the better one."""
    rng = np.random.default_rng(7)
    pairs = [(j, k) for j in ITEMS for k in ITEMS if j != k and {j, k} != UNSEEN]
    for number in range(size):
        left, right = pairs[number % len(pairs)]
        ahead = "left" if ITEMS.index(left) > ITEMS.index(right) else "right"
        outcome = ahead if rng.random() < 0.4 else names[rng.integers(len(names))]
        yield {"left": left, "right": right, "outcome": outcome}


@pytest.mark.parametrize("rule", RULES)
def test_scores_and_errors_agree_with_a_plain_computation(
    make_board: Callable[..., BoardCaller], database: Engine, rule: str
) -> None:
    graded = rule == "graded"
    categories = RULES[rule]
    names = [each["name"] for each in categories] if graded else categories
    credit = [(each["first"], each["second"]) for each in categories] if graded else [CREDIT[name] for name in names]
    board = make_board(items=ITEMS, outcomes=categories if graded else rule, estimands=["bt", VARIANT])
    board.batch(*votes_for(names, 200))
    bench = Bench(database)
    snapshot = bench.refit(board.slug)
    with bench.work() as work:
        opened = open_snapshot(work, snapshot)
    for name, pairs in product(NAMES, ("all", "observed")):
        psi = Plain(opened, credit, name, pairs == "observed").psi()
        query = f"/rankings?estimand={name}&pairs={pairs}"
        answer = board("GET", query).json()
        assert list(answer["rule"].items()) == [(each, list(own)) for each, own in zip(names, credit, strict=True)]
        assert answer["pairs"] == pairs
        agree(answer, psi)
        if name != "robust":  # the worst rival is another than the one never met
            assert answer["status"] == ("extrapolated" if pairs == "all" else "ok")
        if name in ("bt", "robust"):
            agree(board("GET", query + "&anchor=curie").json(), psi - psi[:, 2:3])
        if name == "bt":
            elo = psi * 400.0 / np.log(10.0)
            agree(board("GET", query + "&scale=elo").json(), elo + 1000.0)
            agree(board("GET", query + "&scale=elo&anchor=ada").json(), elo - elo[:, :1], shift=None)


def agree(answer: dict[str, Any], psi: Floats, shift: float | None = 0.0) -> None:
    """Mean and standard error of psi, item by item; without a shift, up to one number for all."""
    rows = {row["item"]: row for row in answer["rankings"]}
    score = psi.mean(axis=0)
    error = np.sqrt(((psi - score) ** 2).sum(axis=0)) / len(psi)
    shown = np.array([rows[item]["score"] for item in ITEMS])
    if shift is None:
        score = score + (shown[0] - score[0])
    scale = 1.0 + np.abs(score).max()
    np.testing.assert_allclose(shown / scale, score / scale, atol=1e-7)
    np.testing.assert_allclose([rows[item]["standard_error"] for item in ITEMS], error, rtol=1e-6, atol=1e-9 * scale)
