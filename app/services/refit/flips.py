"""How few votes decide who leads a board, by each of its scores."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from app.domain.boards import BoardConfig
from app.services.refit.frame import Frame
from app.services.refit.scoring import DEBIASED, estimands_of
from app.services.refit.tables import Table
from app.stats.debias.flips import votes_to_flip
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
    # A board without items has tables too, and no graph.
    support = support_of(whole) if whole.n_items else None
    for table in tables:
        default = not table.segment and table.estimator == DEBIASED and table.pairs == table.auto
        if not default or table.estimand not in estimands:
            continue
        if support is None:
            yield table.estimand, None
            continue
        mode = next(each for each in MODES if each == table.pairs)
        target = Target(estimands[table.estimand], support.graph(mode))
        # A row that stays without its votes is no vote.
        by_row = not frame.lasting.any()
        found = votes_to_flip(whole, mu, target, table.value, by_row=by_row) if table.value.size > 1 else None
        names = [frame.items[at] for at in table.ranked.tolist()]
        yield (
            table.estimand,
            None
            if found is None
            else {
                "pairs": mode,
                "votes": found.votes,
                "share": found.votes / len(whole.votes),
                "leader": names[found.leader],
                "challenger": names[found.challenger],
            },
        )
