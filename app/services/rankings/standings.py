"""A ranking as it was stored or computed for one window, in one form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from app.db.models.snapshots import Score
from app.services.refit.scoring import OBSERVED_ONLY
from app.services.refit.snapshot import standing_rows
from app.services.refit.tables import Table
from app.stats.types import Estimate, Floats


@dataclass(frozen=True)
class Standings:
    """Scores of the ranked items and what is said of all.

    Parameters
    ----------
    pairs : the mode behind it.
    status : of the ranking.
    items : (d,) names of the ranked.
    value : (d,) scores.
    covariance : (d, d), None where there is no valid interval.
    n_rows, contexts : behind the scores.
    rows_used : rows that mu of all pairs was averaged over.
    standing : a row of `item`, `votes`, `effective_votes`, `unsupported`, `status` for each active item.
    retired : last `score` and `standard_error` of items that can no longer be drawn.
    """

    pairs: str
    status: str
    items: tuple[str, ...]
    value: Floats
    covariance: Floats | None
    n_rows: int
    rows_used: int
    contexts: int
    standing: Sequence[Mapping[str, Any]]
    retired: Mapping[str, Mapping[str, Any]]

    @property
    def estimate(self) -> Estimate:
        """The scores, with a covariance of zeros where there is none."""
        size = len(self.items)
        covariance = np.zeros((size, size)) if self.covariance is None else self.covariance
        return Estimate(self.value, covariance, self.n_rows)

    @property
    def votes(self) -> int:
        """Votes between active items: each is counted at both of them."""
        return sum(int(row["votes"]) for row in self.standing) // 2


def without_scores(standings: Standings, status: str, *, keep_counts: bool) -> Standings:
    """The same items with no score at all; without their counts too where these are of something else."""
    unknown = {} if keep_counts else {"votes": 0, "effective_votes": None, "unsupported": None}
    return Standings(
        pairs=standings.pairs,
        status=status,
        items=(),
        value=np.zeros(0),
        covariance=None,
        n_rows=standings.n_rows if keep_counts else 0,
        rows_used=standings.rows_used if keep_counts else 0,
        contexts=standings.contexts if keep_counts else 0,
        standing=[{**row, **unknown, "status": status} for row in standings.standing],
        retired={},
    )


def of_scores(scores: Sequence[Score], pairs: str) -> Standings | None:
    """The stored ranking in a mode; where both modes agree, one is stored. None where nothing is."""
    if not scores:
        return None
    wanted = scores[0].details["auto"] if pairs == "auto" else pairs
    score = next((each for each in scores if each.pairs == wanted), scores[0])
    size = len(score.items)
    covariance = np.frombuffer(score.covariance).reshape(size, size) if score.covariance or not size else None
    return Standings(
        pairs=wanted if score.estimator not in OBSERVED_ONLY else score.pairs,
        status=score.status,
        items=tuple(score.items),
        value=np.array(score.value, dtype=np.float64),
        covariance=covariance,
        n_rows=score.n_rows,
        rows_used=score.details.get("rows_used", score.n_rows),
        contexts=score.details["contexts"],
        standing=score.details["standing"],
        retired=score.details["retired"],
    )


def of_table(tables: Sequence[Table], pairs: str, names: Sequence[str]) -> Standings:
    """A ranking computed just now, in a mode."""
    wanted = tables[0].auto if pairs == "auto" else pairs
    table = next((each for each in tables if each.pairs == wanted), tables[0])
    return Standings(
        pairs=wanted if table.estimator not in OBSERVED_ONLY else table.pairs,
        status=table.status,
        items=tuple(names[at] for at in table.ranked.tolist()),
        value=table.value,
        covariance=table.covariance,
        n_rows=table.n_rows,
        rows_used=table.rows_used,
        contexts=table.contexts,
        standing=standing_rows(table, names),
        retired={},
    )
