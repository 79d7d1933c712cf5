"""Feature documents that are read as they are asked for."""

from __future__ import annotations

from app.domain.features import Feature
from app.learners import Featuriser
from app.services.refit.documents import Documents

TEXTS = ['{"a": 1.0}', '{"a": 2.0, "b": "x"}', "{}"]


def test_they_are_a_sequence_of_the_objects() -> None:
    documents = Documents(TEXTS)
    assert list(documents) == [{"a": 1.0}, {"a": 2.0, "b": "x"}, {}]
    assert (len(documents), documents[1]["b"], list(documents[1:])) == (3, "x", [{"a": 2.0, "b": "x"}, {}])
    features = [Feature("a", "numeric"), Feature("b", "categorical")]
    known, read = Featuriser.fit(features, list(documents)), Featuriser.fit(features, documents)
    assert known.to_bytes() == read.to_bytes()
    assert known.transform(list(documents)).tobytes() == read.transform(documents).tobytes()
