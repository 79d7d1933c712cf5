"""What a refit that draws rows to average over leaves to votes that come late: which ones, and what they average to.

The draw goes by the rows' places among all, which a row alone does not tell; so the contexts drawn are written down.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.services.refit.tables import Table
from app.stats.debias.folds import Hashes
from app.stats.debias.stretching import Centre
from app.stats.debias.support import Pairs
from app.stats.debias.thinning import Thinning
from app.stats.types import Bools, Floats, Ints

Scored = tuple[str, Pairs]


@dataclass(frozen=True, slots=True)
class Thinned:
    """The draw behind a segment's scores.

    Parameters
    ----------
    contexts : sorted database ids of the contexts drawn; rows without one have their votes for good.
    times : n/M.
    centres : by score.
    """

    contexts: Ints
    times: float
    centres: Mapping[Scored, Centre]

    def times_of(self, context_id: Ints, refitted: Bools, content: Hashes) -> Floats:
        """(n,) see `Centre.stretched`, of rows of these contexts; hashes of content draw those new since."""
        known = np.searchsorted(self.contexts, context_id, "right") > np.searchsorted(self.contexts, context_id)
        drawn = np.where(refitted, known, content < np.uint64(2.0**64 / self.times))
        return np.where(drawn, self.times, 0.0)


def pack_thinned(
    thinning: Thinning, context_id: Ints, scores: Sequence[tuple[Table, Floats]]
) -> dict[str, NDArray[Any]]:
    """Arrays that `unpack_thinned` reads.

    Parameters
    ----------
    thinning : of the segment's rows.
    context_id : (n,) theirs.
    scores : debiased tables, each with its plug-in scores.
    """
    drawn = context_id[thinning.drawn]
    return {
        "thinned.contexts": np.sort(drawn[drawn > 0]),
        "thinned.times": np.array([thinning.drawn.size / thinning.rows_used]),
        "thinned.value": np.array([plug_in for _, plug_in in scores]),
        "thinned.correction": np.array([table.value - plug_in for table, plug_in in scores]),
    }


def unpack_thinned(arrays: Mapping[str, NDArray[Any]], scores: Sequence[Scored]) -> Thinned | None:
    """The draw behind these scores; None where all rows are."""
    if "thinned.times" not in arrays:
        return None
    centres = map(Centre, arrays["thinned.value"], arrays["thinned.correction"])
    return Thinned(
        arrays["thinned.contexts"], float(arrays["thinned.times"][0]), dict(zip(scores, centres, strict=True))
    )
