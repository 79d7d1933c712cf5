"""Rows of a thinned sample one by one, as they change between two refits.

The n rows of a refit count as n, and those that came since beside them, in full: a refitted row stays stretched around
what the refit found, see `Thinning`. F hangs on what is frozen alone, and corrections of pairwise estimands are those
of all rows; of scores estimated from the M rows drawn, a late vote changes n/M times what these come to. Their mean
moves with late votes while rows stay stretched around where it was. That makes n² times their variance larger by
(n²/M - n) times the square of the move, which is a part in M of it for a move by one standard error.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from app.stats.debias.influence import InfluenceRows
from app.stats.types import Floats


@dataclass(frozen=True, slots=True)
class Centre:
    """What rows of a thinned sample are stretched around.

    Parameters
    ----------
    value, correction : (d,) means of F and of the corrections at the refit.
    """

    value: Floats
    correction: Floats

    def stretched(self, rows: Iterable[InfluenceRows], times: Floats, *, pairwise: bool) -> Iterator[InfluenceRows]:
        """Rows as the refit counts them; corrections of pairwise estimands stay as they are.

        Parameters
        ----------
        rows : on their own.
        times : (n,) n/M where the refit drew the row, 0 where it did not, 1 for rows that are new since.
        """
        for part in rows:
            factor = times[part.row, None]
            value, correction = self.value + factor * (part.value - self.value), part.correction
            if not pairwise:
                correction = self.correction + factor * (correction - self.correction)
            yield replace(part, value=value, correction=correction)
