"""Boards: stored form, patches, outcomes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.boards import DRAFT, BoardConfig, config_of, from_document, merge, to_document
from app.domain.errors import DomainError, Invalid
from app.domain.outcomes import PRESETS, Category, rule
from app.domain.parsing import BadFields, parse

WEIGHTS = {
    "binary": ([1, 0], [0, 1]),
    "ternary": ([1, 0, 0.5], [0, 1, 0.5]),
    "arena": ([1, 0, 0.5, 0.5], [0, 1, 0.5, 0.5]),
    "quaternary": ([1, 0, 0.5, 0.5], [0, 1, 0.5, 0.5]),
    "quinary": ([1, 0, 0.5, 0.5, 0.5], [0, 1, 0.5, 0.5, 0.5]),
}


@pytest.mark.parametrize("preset", sorted(PRESETS))
def test_presets_have_their_weights(preset: str) -> None:
    config = BoardConfig(outcomes=preset)  # type: ignore[arg-type]
    weights = rule(config.categories)
    np.testing.assert_array_equal(weights.first, WEIGHTS[preset][0])
    np.testing.assert_array_equal(weights.second, WEIGHTS[preset][1])


def test_names_of_outcomes_are_those_of_the_contract() -> None:
    assert [category.name for category in PRESETS["arena"]] == ["left", "right", "tie", "both_bad"]
    assert [category.name for category in PRESETS["quinary"]] == ["left", "right", "both_good", "both_bad", "tie"]


def test_the_stored_form_spells_outcomes_out() -> None:
    document = to_document(BoardConfig(outcomes="binary"))
    assert document["preset"] == "binary"
    assert document["outcomes"] == [
        {"name": "left", "first": 1.0, "second": 0.0},
        {"name": "right", "first": 0.0, "second": 1.0},
    ]


categories = st.lists(
    st.builds(Category, st.sampled_from("abcdef"), st.sampled_from([0.0, 0.5, 1.0]), st.sampled_from([0.0, 0.5, 1.0])),
    min_size=2,
    max_size=5,
    unique_by=lambda category: category.name,
)


@given(outcomes=st.sampled_from(sorted(PRESETS)) | categories.map(tuple), folds=st.integers(2, 50), fixed=st.booleans())
def test_the_stored_form_reads_back(outcomes: Any, folds: int, fixed: bool) -> None:
    made = {"outcomes": outcomes, "folds": folds, "population": "fixed" if fixed else "prompts"}
    spelled = PRESETS.get(outcomes, outcomes) if isinstance(outcomes, str) else outcomes
    ranks = any(each.first > each.second for each in spelled) and any(each.second > each.first for each in spelled)
    if ranks:
        config = BoardConfig(**made)
        assert from_document(to_document(config)) == config
    else:
        with pytest.raises(Invalid, match="above the other"):
            BoardConfig(**made)


def test_a_draft_is_a_configuration_and_its_names() -> None:
    draft = parse(DRAFT, {"slug": "s", "unit": "context"})
    assert config_of(draft) == BoardConfig(unit="context")


documents = st.dictionaries(
    st.sampled_from("abc"),
    st.recursive(
        st.none() | st.integers() | st.lists(st.integers(), max_size=2),
        lambda inner: st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
        max_leaves=6,
    ),
    max_size=3,
)


@given(document=documents, patch=documents)
def test_a_merge_is_that_of_the_standard(document: dict[str, Any], patch: dict[str, Any]) -> None:
    assert merge(document, patch) == _slow_merge(document, patch)


def _slow_merge(target: Any, patch: Any) -> Any:
    """The pseudo-code of RFC 7396, section 2, line by line."""
    if not isinstance(patch, Mapping):
        return patch
    result = dict(target) if isinstance(target, Mapping) else {}
    for name in patch:
        if patch[name] is None:
            if name in result:
                del result[name]
        else:
            result[name] = _slow_merge(result.get(name), patch[name])
    return result


def test_a_merge_leaves_the_document_alone() -> None:
    document = {"a": {"b": 1}}
    merge(document, {"a": {"b": 2}, "c": 3})
    assert document == {"a": {"b": 1}}


def test_a_refusal_tells_of_the_branch_that_was_meant() -> None:
    with pytest.raises(BadFields) as refusal:
        parse(DRAFT, {"slug": "s", "estimands": ["bt", {"name": "x", "kind": "rc", "damping": 2}]})
    assert [field.path for field in refusal.value.fields] == ["estimands.1.damping"]


def test_a_refusal_moves_under_another_path() -> None:
    error: DomainError = Invalid("code", "detail", path="b.c", expected=1, got=2).under("a")
    assert (error.path, error.expected, error.got, error.code) == ("a.b.c", 1, 2, "code")
    assert Invalid("code", "detail").under("a").path == "a"
