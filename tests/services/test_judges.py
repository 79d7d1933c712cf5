"""Margins of judgements, and the patterns that contexts have with them, against a slow twin."""

from __future__ import annotations

from collections import defaultdict
from math import log
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.domain.outcomes import PRESETS, Category, rule
from app.services.refit import judges
from app.services.refit.inputs import ContextTable, Judges
from app.services.refit.judges import Judgements, judges_of, margins
from app.stats.types import Ints, Rule

NAMES = ("ann", "bob", "cid")
ITEMS, CONTEXTS = 4, 6
SURE = log(0.98) - log(0.02)
GRADED = rule(
    [Category("far", 4.0, 0.0), Category("near", 3.0, 1.0), Category("no", 0.0, 0.0), Category("worse", 0.0, 2.0)]
)
Judgement = tuple[int, int, int, int, float]


@pytest.mark.parametrize(
    ("outcomes", "chances", "margin"),
    [
        (rule(PRESETS["ternary"]), (0.6, 0.3, 0.1), log(2.0)),
        (rule(PRESETS["ternary"]), (1.0, 0.0, 0.0), SURE),
        (rule(PRESETS["ternary"]), (0.0, 1.0, 0.0), -SURE),
        (rule(PRESETS["ternary"]), (0.0, 0.0, 1.0), 0.0),
        (rule(PRESETS["arena"]), (0.1, 0.2, 0.3, 0.4), -log(2.0)),
        (rule(PRESETS["arena"]), (0.01, 0.0, 0.0, 0.99), 0.0),
        (rule(PRESETS["binary"]), (0.25, 0.75), -log(3.0)),
        (GRADED, (1.0, 0.0, 0.0, 0.0), SURE),
        (GRADED, (0.0, 1.0, 0.0, 0.0), log(0.5) - log(0.02)),
        (GRADED, (0.2, 0.2, 0.3, 0.3), 0.0),
        (GRADED, (0.0, 0.0, 1.0, 0.0), 0.0),
        (GRADED, (0.0, 0.0, 0.0, 1.0), -SURE),
    ],
)
def test_margins(outcomes: Rule, chances: tuple[float, ...], margin: float) -> None:
    assert margins(np.array([chances]), outcomes) == pytest.approx([margin], abs=1e-12)


def table() -> ContextTable:
    """Six contexts with two feature documents among them, after the one that stands for none."""
    ids = np.array([0, 3, 5, 8, 9, 11, 20])
    return ContextTable(ids, -ids, 0 * ids, np.array([0, 1, 0, 1, 0, 1, 0]), [{}, {"lang": "de"}])


def judged(rows: list[Judgement]) -> Judgements:
    columns = np.array(rows, dtype=np.float64).reshape(-1, 5).T
    return Judgements(*(column.astype(np.int64) for column in columns[:4]), margin=columns[4])


@st.composite
def judgements(draw: st.DrawFn) -> list[Judgement]:
    """Judgements with few distinct margins, each (context, judge, ordered pair) once."""
    pairs = st.tuples(st.integers(0, ITEMS - 1), st.integers(0, ITEMS - 1)).filter(lambda pair: pair[0] != pair[1])
    places = st.tuples(st.integers(1, CONTEXTS), st.integers(0, len(NAMES) - 1), pairs)
    found = draw(st.dictionaries(places, st.sampled_from([-1.5, -0.5, 0.0, 0.5, 1.5]), max_size=40))
    return [(context, judge, *pair, margin) for (context, judge, pair), margin in found.items()]


def slowly(rows: list[Judgement]) -> Any:
    """(contexts, K, K, judges) margins, one judgement at a time."""
    heard = defaultdict(list)
    for context, judge, left, right, margin in rows:
        heard[context, left, right, judge].append(margin)
        heard[context, right, left, judge].append(-margin)
    margins = np.full((CONTEXTS + 1, ITEMS, ITEMS, len(NAMES)), np.nan)
    for place, each in heard.items():
        margins[place] = sum(each) / len(each)
    return margins[..., sorted({judge for _, judge, *_ in rows})]


@settings(deadline=None, max_examples=60)
@given(judgements())
def test_patterns_are_the_distinct_features_and_judgements(rows: list[Judgement]) -> None:
    contexts, found = judges_of(judged(rows), NAMES, table(), n_items=ITEMS)
    expected = slowly(rows)
    assert (found.margins is None) == (not rows)
    if found.margins is not None:
        assert np.array_equal(found.margins.of(contexts.pattern), expected, equal_nan=True)
    assert found.document[contexts.pattern].tolist() == table().pattern.tolist()
    content = {
        (int(doc), np.nan_to_num(m, nan=9.0).tobytes()) for doc, m in zip(table().pattern, expected, strict=True)
    }
    assert sorted(set(contexts.pattern.tolist())) == list(range(len(content))) == list(range(len(found.document)))
    counts = [(each.name, each.judgements, each.contexts) for each in found.judges]
    mine = [[row for row in rows if row[1] == judge] for judge in range(len(NAMES))]
    assert counts == [(name, len(m), len({row[0] for row in m})) for name, m in zip(NAMES, mine, strict=True)]


def spread(found: Judges, pattern: Ints) -> bytes | None:
    return None if found.margins is None else found.margins.of(pattern).tobytes()


@settings(deadline=None, max_examples=60)
@given(judgements(), st.integers(0, 99))
def test_the_order_of_judgements_is_of_no_account(rows: list[Judgement], seed: int) -> None:
    contexts, found = judges_of(judged(rows), NAMES, table(), n_items=ITEMS)
    order = np.random.default_rng(seed).permutation(len(rows))
    again, shuffled = judges_of(judged([rows[at] for at in order]), NAMES, table(), n_items=ITEMS)
    assert contexts.pattern.tobytes() == again.pattern.tobytes()
    assert found.document.tobytes() == shuffled.document.tobytes()
    assert spread(found, contexts.pattern) == spread(shuffled, contexts.pattern)


def test_the_least_busy_judges_are_left_out_where_memory_is_short(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [(1, 0, 0, 1, 1.0), (2, 2, 0, 1, 1.0), (3, 2, 0, 1, 1.0), (1, 1, 0, 1, 1.0), (1, 1, 2, 1, 1.0)]
    monkeypatch.setattr(judges, "MOST_MARGINS", 2 * (2 + 3) * ITEMS**2)
    contexts, found = judges_of(judged(rows), NAMES, table(), n_items=ITEMS)
    assert [each.used for each in found.judges] == [False, True, True]
    assert found.margins is not None
    assert np.array_equal(found.margins.of(contexts.pattern), slowly(rows)[..., 1:], equal_nan=True)
    monkeypatch.setattr(judges, "MOST_MARGINS", 0)
    contexts, found = judges_of(judged(rows), NAMES, table(), n_items=ITEMS)
    assert found.margins is None
    assert contexts.pattern.tolist() == table().pattern.tolist()
