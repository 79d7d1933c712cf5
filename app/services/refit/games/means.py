"""Debiased mean payoffs of a board and of its segments: the games that their equilibria are of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from app.services.refit import storage
from app.services.refit.frame import Frame
from app.services.refit.games.contest import decided, linked
from app.services.refit.population import distinct
from app.services.refit.tables import FEW_CONTEXTS, FEW_VOTES
from app.stats.debias.one_step import CrossFit
from app.stats.debias.pair_shares import pair_shares
from app.stats.debias.support import MOST_UNSUPPORTED
from app.stats.feedback import skew
from app.stats.types import Bools, Floats, Ints

ARRAYS = ("players", "value", "error", "votes")


class Behind(NamedTuple):
    """What mean payoffs rest on; `rows_used` is how many rows mu of all pairs was averaged over."""

    votes: int
    rows: int
    rows_used: int
    contexts: int


@dataclass(frozen=True, slots=True)
class Means:
    """Mean payoffs of a segment; P pairs of its k players.

    Parameters
    ----------
    segment : '' is the whole board.
    status : of a board, see `BOARD_STATUSES`.
    behind : what they rest on.
    players : (k,) positions among the board's items; fewer than two where there is no game.
    value : (P,) debiased mean payoff of the first item of each pair against the second, in [-1, 1] but for noise.
    error : (P,) standard errors; NaN where all rows are of one cluster.
    votes : (P,) votes on each pair.
    """

    segment: str
    status: str
    behind: Behind
    players: Ints
    value: Floats
    error: Floats
    votes: Ints


def mean_payoffs(frame: Frame, mu: CrossFit, segment: str, rows: Bools | None, *, consistent: bool) -> Means:
    """Mean payoffs of some rows (n,), or of all.

    Parameters
    ----------
    consistent : whether the propensities add up.
    """
    sample = frame.view(rows)
    behind = Behind(len(sample.votes), sample.n_rows, sample.n_rows, distinct(sample.context))
    if not len(sample.votes):
        return nothing(segment, behind)
    support, contest = linked(sample)
    if contest.size < 2:
        return nothing(segment, behind)
    found = pair_shares(replace(sample, rule=decided(sample.rule)), mu, support.every, clustering=frame.clustering)
    error = 2.0 * found.error[contest.pairs]
    if frame.clustering.least(sample) < 2:
        error = np.full(error.shape, np.nan)
    votes = (support.votes + support.votes.T)[contest.pairs]
    value = 2.0 * found.share[contest.pairs] - 1.0
    behind = behind._replace(rows_used=found.rows_used)
    made = Means(segment, "ok", behind, contest.players, value, error, votes)
    return with_status(made, frame, consistent=consistent)


def nothing(segment: str, behind: Behind) -> Means:
    """Of a segment in which no vote links two items."""
    none = np.zeros(0, dtype=np.int64)
    return Means(segment, "few_votes", behind, none, np.zeros(0), np.zeros(0), none)


def with_status(made: Means, frame: Frame, *, consistent: bool) -> Means:
    """The same with the first status that applies.

    Votes of a single cluster are too few for errors, however many they are.
    """
    players = made.players.size
    of_item = np.abs(skew(made.votes[None].astype(np.float64), players)[0]).sum(axis=1)
    applies = {
        "propensities_inconsistent": not consistent,
        "disconnected": players < len(frame.items),
        "extrapolated": bool((made.votes == 0).mean() > MOST_UNSUPPORTED),
        "few_contexts": not frame.clustering.fixed and made.behind.contexts < FEW_CONTEXTS,
        "few_votes": bool((of_item < FEW_VOTES).any() or np.isnan(made.error).any()),
    }
    return replace(made, status=next((status for status, applied in applies.items() if applied), "ok"))


def pack_means(means: Sequence[Means]) -> bytes:
    """Mean payoffs as an artifact."""
    header = [(each.segment, each.status, each.behind) for each in means]
    arrays = {f"{at}.{name}": getattr(each, name) for at, each in enumerate(means) for name in ARRAYS}
    return storage.pack({"means": header}, arrays)


def unpack_means(body: bytes) -> dict[str, Means]:
    """What `pack_means` was given, by segment."""
    header, arrays = storage.unpack(body)
    return {
        segment: Means(segment, status, Behind(*behind), **{name: arrays[f"{at}.{name}"] for name in ARRAYS})
        for at, (segment, status, behind) in enumerate(header["means"])
    }
