"""Sums over the live rows of one segment, as bytes and back."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from app.services.refit import storage
from app.services.refit.frozen import FrozenSegment
from app.services.refit.tables import Counts
from app.stats.debias.live import LiveSums
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
    """

    scores: dict[Scored, LiveSums]
    counts: Counts
    contexts: int

    @classmethod
    def before(cls, frozen: FrozenSegment) -> SegmentSums:
        """No row yet; counts are those of the refitted votes and the live ones together."""
        ranked = int(frozen.every.ranked.size)
        return cls({key: LiveSums.none(ranked) for key in frozen.scores}, frozen.counts, 0)

    def __add__(self, other: SegmentSums) -> SegmentSums:
        scores = {key: each + other.scores[key] for key, each in self.scores.items()}
        return SegmentSums(scores, self.counts + other.counts, self.contexts + other.contexts)

    def __sub__(self, other: SegmentSums) -> SegmentSums:
        scores = {key: each - other.scores[key] for key, each in self.scores.items()}
        return SegmentSums(scores, self.counts - other.counts, self.contexts - other.contexts)

    @property
    def rows(self) -> int:
        """New rows, less those that went."""
        return next((each.psi.n for each in self.scores.values()), 0)

    def pack(self) -> bytes:
        """As bytes."""
        header = {"scores": list(self.scores), "rows": self.rows, "contexts": self.contexts}
        each = list(self.scores.values())
        upper = np.triu_indices(each[0].value.size if each else 0)
        arrays = {
            "total": np.array([one.psi.total for one in each]),
            "square": np.array([one.psi.square[upper] for one in each]),
            "value": np.array([one.value for one in each]),
            **{f"counts.{field.name}": getattr(self.counts, field.name) for field in fields(Counts)},
        }
        return storage.pack(header, arrays)

    @classmethod
    def unpack(cls, body: bytes) -> SegmentSums:
        """What was packed, to the bit."""
        header, arrays = storage.unpack(body)
        columns = zip(header["scores"], arrays["total"], arrays["square"], arrays["value"], strict=True)
        scores = {
            (estimand, pairs): LiveSums(Moments(header["rows"], total, _symmetric(square, total.size)), value)
            for (estimand, pairs), total, square, value in columns
        }
        return cls(
            scores,
            Counts(**{field.name: arrays[f"counts.{field.name}"] for field in fields(Counts)}),
            header["contexts"],
        )


def _symmetric(upper: Floats, size: int) -> Floats:
    whole = np.zeros((size, size))
    whole[np.triu_indices(size)] = upper
    return whole + np.triu(whole, 1).T
