"""Sums over the live rows of one segment, as bytes and back."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields

import numpy as np

from app.services.refit import storage
from app.services.refit.frozen import FrozenSegment
from app.services.refit.tables import Counts
from app.stats.debias.live import Apart, Heard, LiveSums
from app.stats.debias.moments import Moments
from app.stats.debias.support import Pairs
from app.stats.types import Floats

Scored = tuple[str, Pairs]
"""Estimand and mode of pairs."""


@dataclass(frozen=True, slots=True)
class SegmentSums:
    """What came to a segment since the refit: new rows, and what changed in the refit's own.

    Parameters
    ----------
    scores : by estimand and mode.
    counts : of the votes.
    contexts : new ones.
    rows_used : new rows with values of their own.
    heard : of draws, None on boards without any.
    """

    scores: dict[Scored, LiveSums]
    counts: Counts
    contexts: int
    rows_used: int
    heard: Heard | None = None

    @classmethod
    def before(cls, frozen: FrozenSegment) -> SegmentSums:
        """No row yet; counts are those of the refitted votes and the live ones together."""
        ranked = int(frozen.every.ranked.size)
        scores = {key: LiveSums.none(ranked, frozen.apart.get(key)) for key in frozen.scores}
        return cls(scores, frozen.counts, 0, 0, Heard() if frozen.apart else None)

    def __add__(self, other: SegmentSums) -> SegmentSums:
        scores = {key: each + other.scores[key] for key, each in self.scores.items()}
        heard = None if self.heard is None or other.heard is None else self.heard + other.heard
        contexts, used = self.contexts + other.contexts, self.rows_used + other.rows_used
        return SegmentSums(scores, self.counts + other.counts, contexts, used, heard)

    def __sub__(self, other: SegmentSums) -> SegmentSums:
        scores = {key: each - other.scores[key] for key, each in self.scores.items()}
        heard = None if self.heard is None or other.heard is None else self.heard - other.heard
        contexts, used = self.contexts - other.contexts, self.rows_used - other.rows_used
        return SegmentSums(scores, self.counts - other.counts, contexts, used, heard)

    @property
    def rows(self) -> int:
        """New rows, less those that went."""
        return next((each.psi.n for each in self.scores.values()), 0)

    @property
    def moves(self) -> bool:
        """Whether scores are others with it."""
        return any(bool(each.psi.total.any()) for each in self.scores.values())

    @property
    def heard_rows(self) -> float:
        """New rows without those that are drawn and not heard."""
        return self.rows if self.heard is None else self.rows - max(self.heard.silent, 0.0)

    def pack(self) -> bytes:
        """As bytes."""
        header = {
            "scores": list(self.scores),
            "rows": self.rows,
            "contexts": self.contexts,
            "rows_used": self.rows_used,
        }
        each = list(self.scores.values())
        apart = [one.apart for one in each if one.apart is not None]
        arrays = {
            "total": np.array([one.psi.total for one in each]),
            "square": _upper(one.psi.square for one in each),
            "value": np.array([one.value for one in each]),
            **{f"counts.{field.name}": getattr(self.counts, field.name) for field in fields(Counts)},
        }
        if self.heard is not None:
            header |= {"heard": asdict(self.heard), "rows_apart": [one.value.n for one in apart]}
            arrays["apart.total"] = np.array([one.value.total for one in apart])
            arrays["apart.square"] = _upper(one.value.square for one in apart)
            arrays["apart.correction"] = _upper(one.correction for one in apart)
        return storage.pack(header, arrays)

    @classmethod
    def unpack(cls, body: bytes) -> SegmentSums:
        """What was packed, to the bit."""
        header, arrays = storage.unpack(body)
        rows = header.get("rows_apart", [None] * len(header["scores"]))
        scores = {}
        for at, ((estimand, pairs), apart) in enumerate(zip(header["scores"], rows, strict=True)):
            size = arrays["total"][at].size
            psi = Moments(header["rows"], arrays["total"][at], _symmetric(arrays["square"][at], size))
            parts = None
            if apart is not None:
                value, correction = (_symmetric(arrays[f"apart.{name}"][at], size) for name in ("square", "correction"))
                parts = Apart(Moments(apart, arrays["apart.total"][at], value), correction)
            scores[estimand, pairs] = LiveSums(psi, arrays["value"][at], parts)
        counts = Counts(**{field.name: arrays[f"counts.{field.name}"] for field in fields(Counts)})
        heard = Heard(**header["heard"]) if "heard" in header else None
        return cls(scores, counts, header["contexts"], header.get("rows_used", header["rows"]), heard)


def _upper(squares: Iterable[Floats]) -> Floats:
    """(s, d (d + 1) / 2) of symmetric matrices."""
    rows = [each[np.triu_indices(len(each))] for each in squares]
    return np.array(rows) if rows else np.zeros((0, 0))


def _symmetric(upper: Floats, size: int) -> Floats:
    whole = np.zeros((size, size))
    whole[np.triu_indices(size)] = upper
    return whole + np.triu(whole, 1).T
