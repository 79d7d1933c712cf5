"""From feature documents to covariates."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.domain.features import Feature
from app.learners import Featuriser
from app.learners import featuriser as featuriser_module
from app.stats.errors import InvalidInput

LANGUAGE, LENGTH = Feature("language", "categorical"), Feature("length", "numeric")
PROMPT, EMBEDDING = Feature("prompt", "text", 2), Feature("embedding", "vector", 3)
WORDS = st.text("abc ", max_size=12)


def test_levels_are_sorted_unknown_ones_are_zero_and_missing_ones_missing() -> None:
    featuriser = Featuriser.fit([LANGUAGE], [{"language": "en"}, {"language": "de"}, {}])
    encoded = featuriser.transform([{"language": "de"}, {"language": "en"}, {"language": "fr"}, {}])
    np.testing.assert_array_equal(encoded, [[1, 0], [0, 1], [0, 0], [np.nan, np.nan]])


def test_only_the_most_frequent_levels_have_a_column() -> None:
    documents = [{"language": f"rare {number}"} for number in range(250)] + [{"language": "zulu"}] * 2
    encoded = Featuriser.fit([LANGUAGE], documents).transform([{"language": "zulu"}])
    assert encoded.shape == (1, 200)
    assert encoded.sum() == 1


def test_numbers_are_standardised_and_missing_ones_stay_missing() -> None:
    documents: list[dict[str, Any]] = [{"length": 1.0}, {"length": 3.0}, {}, {"length": 5.0}]
    encoded = Featuriser.fit([LENGTH], documents).transform([*documents, {"length": 7.0}])[:, 0]
    np.testing.assert_allclose(encoded, np.array([-1, 0, np.nan, 1, 2]) * np.sqrt(1.5))


def test_vectors_are_standardised_column_by_column() -> None:
    documents = [{"embedding": [0.0, 5.0, 1.0]}, {"embedding": [2.0, 5.0, -1.0]}, {}]
    encoded = Featuriser.fit([EMBEDDING], documents).transform(documents)
    np.testing.assert_allclose(encoded, [[-1, 0, 1], [1, 0, -1], [np.nan] * 3])


def test_texts_of_two_topics_lie_apart() -> None:
    sport = [f"the team won match {number} and the cup" for number in range(15)]
    code = [f"fix bug {number} in python function" for number in range(15)]
    featuriser = Featuriser.fit([PROMPT], [{"prompt": text} for text in sport + code])
    encoded = featuriser.transform(
        [{"prompt": "who won the cup"}, {"prompt": "python bug"}, {"prompt": "team match"}, {}]
    )
    assert encoded.shape == (4, 2)
    assert np.linalg.norm(encoded[0] - encoded[2]) < 0.5 * np.linalg.norm(encoded[0] - encoded[1])
    assert np.isnan(encoded[3]).all()


def test_without_features_there_are_no_covariates() -> None:
    assert Featuriser.fit([], [{}, {}]).transform([{}, {}, {}]).shape == (3, 0)


@pytest.mark.parametrize(
    ("feature", "value"),
    [(LENGTH, "long"), (EMBEDDING, [1.0, 2.0]), (EMBEDDING, "x"), (LANGUAGE, 3), (PROMPT, ["a", "list"])],
)
def test_values_of_another_type_are_refused(feature: Feature, value: object) -> None:
    with pytest.raises(InvalidInput, match="something else"):
        Featuriser.fit([feature], [{feature.name: value}])


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.fixed_dictionaries(
            {},
            optional={
                "language": WORDS,
                "length": st.floats(-1e6, 1e6),
                "prompt": WORDS,
                "embedding": st.lists(st.floats(-9, 9), min_size=3, max_size=3),
            },
        ),
        min_size=1,
        max_size=6,
    )
)
def test_any_corpus_however_small_survives_the_round_trip(documents: list[dict[str, Any]]) -> None:
    featuriser = Featuriser.fit([LANGUAGE, LENGTH, PROMPT, EMBEDDING], documents)
    encoded = featuriser.transform(documents)
    again = Featuriser.from_bytes(featuriser.to_bytes())
    np.testing.assert_array_equal(again.transform(documents), encoded)
    assert again.to_bytes() == featuriser.to_bytes()
    np.testing.assert_array_equal(np.isnan(encoded[:, -1]), ["embedding" not in document for document in documents])
    assert not np.isinf(encoded).any()


def test_documents_read_a_few_at_a_time_have_the_same_covariates(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(5)
    documents = [
        {
            "kind": "abc"[number % 3],
            "size": float(rng.normal()),
            "place": rng.normal(size=2).tolist(),
            "text": f"w{number % 4}",
        }
        for number in range(30)
    ]
    for number in (3, 11):
        del documents[number]["size"], documents[number]["kind"], documents[number]["place"]
    kinds = (("kind", "categorical", None), ("size", "numeric", None), ("place", "vector", 2), ("text", "text", 2))
    features = [Feature(name, kind, dimensions) for name, kind, dimensions in kinds]
    whole = Featuriser.fit(features, documents)
    monkeypatch.setattr(featuriser_module, "AT_ONCE", 7)
    parts = Featuriser.fit(features, documents)
    assert parts.to_bytes() == whole.to_bytes()
    assert np.isnan(whole.transform(documents)[3, :6]).all()
    np.testing.assert_array_equal(parts.transform(documents), whole.transform(documents))
