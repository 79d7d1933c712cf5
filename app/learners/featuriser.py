"""From feature documents to covariates: one column per level, number or component, NaN where a feature is missing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Protocol

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer

from app.learners.archive import pack, unpack
from app.stats.errors import InvalidInput
from app.stats.types import Floats

Documents = Sequence[Mapping[str, Any]]

KIND = "featuriser"
MOST_LEVELS = 200
"""Levels of a categorical feature with a column of their own; the rarest ones share none."""
AT_ONCE = 20_000
"""Documents held as objects at a time."""
TEXT_DIMENSIONS, MOST_TERMS = 16, 20_000
SEED = 20260121


class Declared(Protocol):
    """A feature as a board declares it."""

    @property
    def name(self) -> str: ...

    @property
    def kind(self) -> str: ...

    @property
    def dimensions(self) -> int | None: ...


class Encoder(Protocol):
    """The columns of one feature."""

    def encode(self, values: Sequence[Any]) -> Floats:
        """(u, columns) of the values, None where a value is missing."""

    def state(self) -> tuple[dict[str, Any], dict[str, Floats]]:
        """What the encoder is made of: plain values and arrays."""


@dataclass(frozen=True, slots=True)
class Levels:
    """One column per level; an unknown level has none."""

    levels: tuple[str, ...]

    @classmethod
    def fit(cls, known: Sequence[str]) -> Levels:
        """The levels that occur, sorted; the most frequent where there are too many."""
        names, counts = np.unique(np.array(known, dtype=object), return_counts=True)
        order = np.lexsort((np.arange(names.size), -counts))[:MOST_LEVELS]
        return cls(tuple(sorted(str(name) for name in names[order])))

    def encode(self, values: Sequence[Any]) -> Floats:
        place = {level: column for column, level in enumerate(self.levels)}
        encoded = np.zeros((len(values), len(self.levels)))
        for row, value in enumerate(values):
            if value is None:
                encoded[row] = np.nan
            elif value in place:
                encoded[row, place[value]] = 1.0
        return encoded

    def state(self) -> tuple[dict[str, Any], dict[str, Floats]]:
        return {"levels": list(self.levels)}, {}


@dataclass(frozen=True, slots=True)
class Numbers:
    """Numbers or vectors of them, each column standardised.

    Parameters
    ----------
    mean, scale : (columns,).
    """

    mean: Floats
    scale: Floats

    @classmethod
    def fit(cls, known: Floats) -> Numbers:
        """Mean and standard deviation of the values (m, columns) that are there."""
        if not len(known):
            return cls(np.zeros(known.shape[1]), np.ones(known.shape[1]))
        spread = known.std(axis=0)
        return cls(known.mean(axis=0), np.where(spread > 0, spread, 1.0))

    def encode(self, values: Sequence[Any]) -> Floats:
        missing = [np.nan] * self.mean.size
        encoded: Floats = (
            _matrix([missing if v is None else v for v in values], self.mean.size) - self.mean
        ) / self.scale
        return encoded

    def state(self) -> tuple[dict[str, Any], dict[str, Floats]]:
        return {}, {"mean": self.mean, "scale": self.scale}


@dataclass(frozen=True, slots=True)
class Texts:
    """TF-IDF weights of words, projected on the main directions of the texts seen.

    Parameters
    ----------
    terms : the words that count.
    idf : (terms,) their weights.
    components : (columns, terms).
    scale : one number, so that covariates are of order one.
    """

    terms: tuple[str, ...]
    idf: Floats
    components: Floats
    scale: Floats
    _vectoriser: TfidfVectorizer | None = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        vectoriser = None
        if self.terms:
            vectoriser = TfidfVectorizer(vocabulary=list(self.terms), sublinear_tf=True)
            vectoriser.idf_ = self.idf
        object.__setattr__(self, "_vectoriser", vectoriser)

    @classmethod
    def fit(cls, known: Sequence[str], dimensions: int) -> Texts:
        """Terms and directions; none where no text has a word."""
        vectoriser = TfidfVectorizer(max_features=MOST_TERMS, sublinear_tf=True)
        try:
            weights = vectoriser.fit_transform(known)
        except ValueError:
            return cls((), np.zeros(0), np.zeros((0, 0)), np.ones(1))
        terms = tuple(str(term) for term in vectoriser.get_feature_names_out())
        components = _directions(weights, min(dimensions, len(terms), len(known)))
        spread = float((weights @ components.T).std())
        return cls(terms, np.asarray(vectoriser.idf_), components, np.array([spread or 1.0]))

    def encode(self, values: Sequence[Any]) -> Floats:
        encoded = np.full((len(values), len(self.components)), np.nan)
        known = [row for row, value in enumerate(values) if value is not None]
        if known and self._vectoriser is not None:
            weights = self._vectoriser.transform([values[row] for row in known])
            encoded[known] = (weights @ self.components.T) / self.scale
        return encoded

    def state(self) -> tuple[dict[str, Any], dict[str, Floats]]:
        arrays = {"idf": self.idf, "components": self.components, "scale": self.scale}
        return {"terms": list(self.terms)}, arrays


@dataclass(frozen=True, slots=True)
class Featuriser:
    """Encoders of a board's features, in the order declared.

    Parameters
    ----------
    encoders : (name, kind, encoder) of each.
    """

    encoders: tuple[tuple[str, str, Encoder], ...]

    @classmethod
    def fit(cls, features: Sequence[Declared], documents: Documents) -> Featuriser:
        """Learn levels, scales and terms from distinct documents in canonical order."""
        values: list[list[Any]] = [[] for _ in features]
        for run in _runs(documents):
            for each, own in zip(features, values, strict=True):
                own.append(_read(each, run))
        fitted = (_fit(each, own) for each, own in zip(features, values, strict=True))
        return cls(tuple((each.name, each.kind, encoder) for each, encoder in zip(features, fitted, strict=True)))

    def transform(self, documents: Documents) -> Floats:
        """(u, d) covariates."""
        return np.concatenate([self._encoded([]), *map(self._encoded, _runs(documents))])

    def _encoded(self, known: Documents) -> Floats:
        parts = [encoder.encode([each.get(name) for each in known]) for name, _, encoder in self.encoders]
        return np.concatenate([np.zeros((len(known), 0)), *parts], axis=1)

    def to_bytes(self) -> bytes:
        """The featuriser as bytes, without pickle."""
        header: dict[str, Any] = {"kind": KIND, "features": []}
        arrays: dict[str, Floats] = {}
        for number, (name, kind, encoder) in enumerate(self.encoders):
            values, columns = encoder.state()
            header["features"].append({"name": name, "kind": kind, "values": values})
            arrays |= {f"{number}.{column}": array for column, array in columns.items()}
        return pack(header, arrays)

    @classmethod
    def from_bytes(cls, body: bytes) -> Featuriser:
        """What `to_bytes` wrote; it transforms the same to the bit."""
        header, arrays = unpack(body)
        encoders = []
        for number, feature in enumerate(header["features"]):
            own = {n.partition(".")[2]: a for n, a in arrays.items() if n.partition(".")[0] == str(number)}
            encoders.append((feature["name"], feature["kind"], _restored(feature["kind"], feature["values"], own)))
        return cls(tuple(encoders))


def _runs(documents: Documents) -> Iterator[Documents]:
    """As many documents at a time as may be held as objects."""
    return (list(documents[start : start + AT_ONCE]) for start in range(0, len(documents), AT_ONCE))


def _read(feature: Declared, documents: Documents) -> Any:
    """The values that are there: a list of strings, or the rows of a matrix."""
    known = [value for value in (document.get(feature.name) for document in documents) if value is not None]
    return _strings(known) if feature.kind in ("categorical", "text") else _matrix(known, feature.dimensions or 1)


def _fit(feature: Declared, known: Sequence[Any]) -> Encoder:
    match feature.kind:
        case "categorical":
            return Levels.fit(list(chain(*known)))
        case "text":
            return Texts.fit(list(chain(*known)), feature.dimensions or TEXT_DIMENSIONS)
        case _:
            return Numbers.fit(np.concatenate([np.zeros((0, feature.dimensions or 1)), *known]))


def _restored(kind: str, values: Mapping[str, Any], arrays: Mapping[str, Floats]) -> Encoder:
    match kind:
        case "categorical":
            return Levels(tuple(values["levels"]))
        case "text":
            return Texts(tuple(values["terms"]), arrays["idf"], arrays["components"], arrays["scale"])
        case _:
            return Numbers(arrays["mean"], arrays["scale"])


def _strings(known: list[Any]) -> list[str]:
    if not all(isinstance(value, str) for value in known):
        raise InvalidInput("a categorical or text feature holds something else than strings")
    return known


def _directions(weights: csr_matrix, columns: int) -> Floats:
    """(columns, terms) main directions of the weights (texts, terms)."""
    if columns == weights.shape[1]:
        return np.eye(columns)
    with np.errstate(invalid="ignore"):  # equal texts have no variance that a direction could explain
        directions: Floats = TruncatedSVD(columns, random_state=SEED).fit(weights).components_
    return directions


def _matrix(values: Sequence[Any], width: int) -> Floats:
    try:
        return np.array(values, dtype=np.float64).reshape(len(values), width)
    except (TypeError, ValueError):
        pass
    try:
        return np.array([np.atleast_1d(value) for value in values], dtype=np.float64).reshape(len(values), width)
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"a numeric or vector feature holds something else than {width} numbers") from error
