"""The rows that a step touches."""

from __future__ import annotations

from dataclasses import dataclass

from app.services.refit.inputs import Inputs
from app.stats.types import Bools, Ints

JUDGEMENTS = "judgements"


@dataclass(frozen=True, slots=True)
class Touched:
    """The rows that new votes and offers touch.

    Parameters
    ----------
    before, now : inputs of these rows alone; `before` is None where all are new.
    refitted : contexts whose rows the refit had; none on battle boards.
    known : contexts that an earlier row is of.
    newcomers : (items,) of the roster, those that can be drawn and were unknown to the refit.
    seen, excluded : new votes read, and how many of them rules take out.
    last : number of the last vote that the refit had.
    settled : offers among the refit's rows.
    waits : names of what only the next refit can take in: the first draws of a board, see `DRAWS`; judgements of rows
        that the refit had, and of judges that it did not hear.
    """

    before: Inputs | None
    now: Inputs
    refitted: Ints
    known: Ints
    newcomers: Bools
    seen: int
    excluded: int
    last: int
    settled: Ints
    waits: tuple[str, ...] = ()
