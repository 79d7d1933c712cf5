"""Outcome probabilities kept during a refit, which asks for the same ones for rankings, pairs and more."""

from __future__ import annotations

from app.stats.debias.paired import PairedCrossFit
from app.stats.types import Floats, Ints

ROOM = 512 << 20
"""Bytes kept; what comes later is computed each time."""


class Remembered:
    """Fold models that answer the same question once, as far as there is room.

    Parameters
    ----------
    mu : the models.
    room : bytes.
    """

    def __init__(self, mu: PairedCrossFit, *, room: int = ROOM) -> None:
        self._mu = mu
        self._room = room
        self._known: dict[tuple[int, bytes], Floats] = {}

    def __call__(self, fold: int, patterns: Ints, /) -> Floats:
        """(u, K, K, C), not to be written to; see `CrossFit`."""
        key = fold, patterns.tobytes()
        found = self._known.get(key)
        if found is None:
            found = self._mu(fold, patterns)
            found.flags.writeable = False
            if found.nbytes <= self._room:
                self._room -= found.nbytes
                self._known[key] = found
        return found

    def at(self, fold: int, patterns: Ints, left: Ints, right: Ints) -> Floats:
        """(m, C), computed each time; see `PairedCrossFit`."""
        return self._mu.at(fold, patterns, left, right)
