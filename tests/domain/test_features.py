"""Features: one canonical form for equal contexts."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.errors import Invalid
from app.domain.features import Feature, FeatureReader, storable

DECLARED = (
    Feature("lang", "categorical"),
    Feature("size", "numeric"),
    Feature("prompt", "text"),
    Feature("place", "vector", 2),
)
READER = FeatureReader(DECLARED)
numbers = st.integers(-(10**9), 10**9) | st.floats(-1e30, 1e30)
good = st.fixed_dictionaries(
    {},
    optional={
        "lang": st.none() | st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"]), max_size=9),
        "size": st.none() | numbers,
        "place": st.none() | st.lists(numbers, min_size=2, max_size=2),
    },
)


@given(sent=good, order=st.randoms())
def test_reading_is_idempotent_and_does_not_mind_order(sent: dict[str, Any], order: Any) -> None:
    document = READER.read(sent)
    names = list(sent)
    order.shuffle(names)
    assert READER.read({name: sent[name] for name in names}) == document
    assert READER.read(document) == document
    assert list(document) == sorted(name for name, value in sent.items() if value is not None)


def test_numbers_are_floats_and_zero_has_no_sign() -> None:
    assert repr(READER.read({"size": -0.0})) == "{'size': 0.0}"
    assert repr(READER.read({"size": 3})) == "{'size': 3.0}"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("size", float("nan")),
        ("size", float("inf")),
        ("size", 10**400),
        ("size", True),
        ("size", "1"),
        ("size", [1]),
        ("lang", 1),
        ("lang", "x" * 501),
        ("lang", "a\x00b"),
        ("lang", "\ud800"),
        ("prompt", "x" * 200_001),
        ("place", [1]),
        ("place", [1, float("nan")]),
        ("place", {"0": 1, "1": 2}),
        ("colour", "red"),
    ],
)
def test_what_is_no_feature_is_refused_by_name(name: str, value: Any) -> None:
    with pytest.raises(Invalid) as refusal:
        READER.read({name: value})
    assert refusal.value.path == f"features.{name}"


@given(st.text())
def test_storable_is_what_utf8_without_nul_can_say(value: str) -> None:
    try:
        encoded = value.encode()
    except UnicodeEncodeError:
        assert not storable(value)
    else:
        assert storable(value) == (b"\x00" not in encoded)
