"""How few votes decide who leads a board, by each of its scores."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from app.domain.boards import BoardConfig
from app.services.refit.frame import Frame
from app.services.refit.scoring import DEBIASED, estimands_of
from app.services.refit.tables import Table
from app.stats.debias.flips import votes_to_flip
from app.stats.debias.influence import influence_of
from app.stats.debias.one_step import CrossFit, Target
from app.stats.debias.support import Pairs, support_of
from app.stats.types import Sample

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
    for name, table in asked.items():
        found = votes_to_flip(influence[name], table.value, by_row=by_row) if name in influence else None
        names = [frame.items[at] for at in table.ranked.tolist()]
        yield (
            name,
            None
            if found is None
            else {
                "pairs": table.pairs,
                "votes": found.votes,
                "share": found.votes / len(whole.votes),
                "rows_used": influence[name].rows_used,
                "leader": names[found.leader],
                "challenger": names[found.challenger],
            },
        )
