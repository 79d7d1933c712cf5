"""Is one item better than another: all pairs of a board at once."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal, cast, get_args
from uuid import UUID

from app.db.unit_of_work import UnitOfWork
from app.domain.boards import Board, BoardConfig
from app.services.rankings.found import find
from app.services.rankings.heading import about, heading, nothing
from app.services.rankings.opened import Opener
from app.services.rankings.query import RankingQuery, check, one_of, refusal
from app.services.rankings.standings import Standings
from app.services.refit.snapshot import spec_hash
from app.stats.inference import Differences, IntervalKind, differences, equality_test

JointInterval = Literal["simultaneous", "anytime"]
JOINT_INTERVALS = get_args(JointInterval)
"""Intervals that hold for all differences together: a verdict must not depend on which pair is asked for."""
NO_INTERVAL = "no_interval"
"""Status of a difference of scores that have no covariance."""
UNKNOWN: dict[str, Any] = dict.fromkeys(("difference", "standard_error", "interval", "verdict"))


@dataclass(frozen=True, slots=True)
class Pick:
    """One pair, or all where neither item is named."""

    first: str | None = None
    second: str | None = None

    @property
    def pair(self) -> tuple[str, str] | None:
        return None if self.first is None or self.second is None else (self.first, self.second)


def check_comparisons(query: RankingQuery, pick: Pick, config: BoardConfig) -> None:
    """Refuse what has no answer, naming the parameter."""
    check(query, config)
    one_of("interval", query.interval, JOINT_INTERVALS)
    if (pick.first is None) != (pick.second is None):
        missing = "first" if pick.first is None else "second"
        raise refusal(missing, "a pair has two items", "first and second, or neither", None)
    if pick.first is not None and pick.first == pick.second:
        raise refusal("second", "an item is not compared with itself", "another item", pick.second)


def comparisons(
    work: UnitOfWork, board: Board, query: RankingQuery, opener: Opener, *, pick: Pick, snapshot_id: UUID | None
) -> dict[str, Any]:
    """The document of the comparisons, without the number of votes that wait.

    Parameters
    ----------
    query, pick : checked with `check_comparisons`.
    opener : keeps snapshots open between windows.
    snapshot_id : the snapshot to read; None where the board has none yet.
    """
    if snapshot_id is None:
        return {**heading(board, query), **nothing(spec_hash(board.config)), "equality": None, "comparisons": []}
    found = find(work, board, query, opener, snapshot_id=snapshot_id)
    return {
        **heading(board, found.query),
        **about(found.query, found.snapshot, found.standings, found.live),
        "equality": _equality(found.standings),
        "comparisons": _rows(found.query, found.standings, pick),
    }


def known_item(path: str, item: str, standings: Standings) -> str:
    """The item, refused where the snapshot has none of that name."""
    names = [row["item"] for row in standings.standing]
    if item not in names:
        raise refusal(path, f"the ranking has no item {item!r}", names[:50], item)
    return item


def _equality(standings: Standings) -> dict[str, Any] | None:
    """The test that all ranked items have one score; None where there is nothing to test by."""
    if standings.covariance is None or len(standings.items) < 2:
        return None
    test = equality_test(standings.estimate)
    if test.statistic == float("inf"):
        # A difference seems to be known without error: there are as few clusters as items, and nothing to judge it by.
        return {"statistic": None, "degrees": test.degrees, "p_value": None}
    return {"statistic": test.statistic, "degrees": test.degrees, "p_value": test.p_value}


def _rows(query: RankingQuery, standings: Standings, pick: Pick) -> list[dict[str, Any]]:
    answers = _Answers(standings, differences(standings.estimate, kind=_kind(query, standings), level=query.level))
    if pick.pair is not None:
        first, second = known_item("first", pick.pair[0], standings), known_item("second", pick.pair[1], standings)
        return [answers.row(first, second)]
    return [answers.row(*pair) for pair in combinations(sorted(answers.status), 2)]


def _kind(query: RankingQuery, standings: Standings) -> IntervalKind:
    """Without a covariance, or a score, no interval is said, and none is worked out."""
    known = standings.covariance is not None and standings.items
    return cast(JointInterval, query.interval) if known else "marginal"


class _Answers:
    """Says what is known of each pair."""

    def __init__(self, standings: Standings, found: Differences) -> None:
        self.status = {row["item"]: row["status"] for row in standings.standing}
        self._place = {item: at for at, item in enumerate(standings.items)}
        self._found = found
        self._certain = standings.covariance is not None

    def row(self, first: str, second: str) -> dict[str, Any]:
        """One comparison; its status says why something is null."""
        unranked = [self.status[item] for item in (first, second) if item not in self._place]
        if unranked:
            return {"first": first, "second": second, **UNKNOWN, "status": unranked[0]}
        at = (self._place[first], self._place[second])
        known = {"difference": float(self._found.value[at])} | (self._errors(at) if self._certain else {})
        return {"first": first, "second": second, **UNKNOWN, **known, "status": "ok" if self._certain else NO_INTERVAL}

    def _errors(self, at: tuple[int, int]) -> dict[str, Any]:
        value, reach = float(self._found.value[at]), float(self._found.reach[at])
        better, worse = self._found.better[at], self._found.better[at[::-1]]
        return {
            "standard_error": float(self._found.error[at]),
            "interval": [value - reach, value + reach],
            "verdict": "better" if better else "worse" if worse else "unresolved",
        }
