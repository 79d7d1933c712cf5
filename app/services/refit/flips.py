"""How few votes decide who leads a board, by each of its scores."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from app.domain.boards import BoardConfig
from app.services.refit.frame import Frame
from app.services.refit.scoring import DEBIASED, estimands_of
from app.services.refit.tables import Table
from app.stats.debias.flips import votes_to_flip
from app.stats.debias.influence import influence_of
from app.stats.debias.one_step import CrossFit, Target
from app.stats.debias.support import Pairs, support_of
from app.stats.types import Ints, Sample

ALWAYS = ("borda", "bt", "rc")
"""Estimands that are asked for on every board; a board's named variants come on top."""
MODES: tuple[Pairs, ...] = ("all", "observed")


def flips_of(
    frame: Frame, mu: CrossFit, config: BoardConfig, tables: Sequence[Table], *, whole: Sample
) -> dict[str, Any]:
    """By estimand: the fewest votes without which another item leads the board, None where no number of them does that.

    Parameters
    ----------
    frame, mu, config : of the board.
    tables : its rankings; those of all votes in their automatic mode of pairs are asked.
    whole : the sample of all rows.
    """
    return dict(_flips(frame, mu, config, tables, whole=whole))


def _flips(
    frame: Frame, mu: CrossFit, config: BoardConfig, tables: Sequence[Table], *, whole: Sample
) -> Iterator[tuple[str, dict[str, Any] | None]]:
    wanted = {*ALWAYS, *(each.name for each in config.named_estimands)}
    estimands = {each.name: each for each in estimands_of(config) if each.name in wanted}
    default = [each for each in tables if not each.segment and each.estimator == DEBIASED and each.pairs == each.auto]
    asked = {each.estimand: each for each in default if each.estimand in estimands}
    # A board without items has tables too, and no graph; a lone item leads whatever is dropped.
    targets = {
        name: Target(estimands[name], graph(next(mode for mode in MODES if mode == table.pairs)))
        for graph in ([support_of(whole).graph] if whole.n_items else [])
        for name, table in asked.items()
        if table.value.size > 1
    }
    influence = influence_of(whole, mu, targets)
    # A row that stays without its votes is no vote.
    by_row = not frame.lasting.any()
    of_row = _votes_of_row(frame)
    # Nor is a pair of a ranking that stays without it.
    known = influence if by_row or int(of_row.sum()) == len(whole.votes) else {}
    for name, table in asked.items():
        flip = partial(votes_to_flip, by_row=by_row, votes_of_row=of_row if by_row else None)
        found = flip(known[name], table.value) if name in known else None
        names = [frame.items[at] for at in table.ranked.tolist()]
        yield (
            name,
            None
            if found is None
            else {
                "pairs": table.pairs,
                "votes": found.votes,
                "share": found.votes / int(of_row.sum()),
                "rows_used": influence[name].rows_used,
                "leader": names[found.leader],
                "challenger": names[found.challenger],
            },
        )


def _votes_of_row(frame: Frame) -> Ints:
    """(n,) votes on each row; all pairs of a ranking are one."""
    first = np.unique(frame.vote_id, return_index=True)[1]
    count: Ints = np.bincount(frame.sample.votes.row[first], minlength=frame.sample.n_rows)
    return count
