"""From a record to votes or judgements, by the plan of its file."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, get_args

from app.domain.ballots import VoterType
from app.domain.features import FeatureKind
from app.formats.cells import chance, choice, count, feature, flag, moment, names, share, shown, text, tiers, written
from app.formats.columns import Cell, optional
from app.formats.format import COUNT, FEATURE, PROBABILITY, SPELLINGS
from app.formats.plan import Plan
from app.formats.rows import BadRow, JudgementRow, Record, UnusableFile, VoteRow

Row = VoteRow | JudgementRow
Parser = Callable[[Any, str], Any]

NOT_ANONYMOUS = "not anonymous"
MARGIN = 1e-6


def _required(value: Any, field: str) -> str:
    parsed = text(value, field)
    if parsed is None:
        raise BadRow(f"{field} is empty")
    return parsed


PARSERS: dict[str, Parser] = {
    **dict.fromkeys(("left", "right"), _required),
    **dict.fromkeys(("id", "context", "offer", "voter", "excluded"), text),
    "voter_type": choice(*get_args(VoterType)),
    "propensity": chance,
    "created_at": moment,
    "count": count,
}
SIDES = ("left", "right")
REST = tuple(name for name in PARSERS if name not in SIDES)
RANKED: dict[str, Parser] = {"kind": text, "menu": names, "ranking": tiers}
"""Of rows whose menu is not empty, in place of the sides."""


class Reader:
    """Reads the records of one file for one board.

    Parameters
    ----------
    plan : the columns.
    outcomes : names of the board's outcomes.
    kinds : the board's features; those that it does not declare are left out.
    """

    def __init__(self, plan: Plan, *, outcomes: Sequence[str], kinds: Mapping[str, FeatureKind]) -> None:
        self._kind = plan.kind
        self._fields = [(name, plan.cells[name], PARSERS[name]) for name in PARSERS if name in plan.cells]
        self._ranked = [(name, plan.cells[name], RANKED[name]) for name in RANKED if name in plan.cells]
        self._cells = plan.cells
        self._features = [
            (name, plan.cells[FEATURE + name], kind) for name, kind in kinds.items() if FEATURE + name in plan.cells
        ]
        self._counts = _named(plan, COUNT, outcomes)
        self._probabilities = _named(plan, PROBABILITY, outcomes)
        self._spelt = _spellings(outcomes, {})
        self._judged = _spellings(outcomes, plan.request.format.judge_spellings)
        self._outcomes = outcomes
        self._conditions = _conditions(plan)
        votes_where = plan.request.format.votes_where
        self._is_vote = _condition(votes_where[0], {votes_where[1]}) if votes_where else None

    def takes(self, record: Record) -> bool:
        """Whether the record passes the conditions of the request."""
        return all(holds(record) for holds in self._conditions)

    def read(self, record: Record) -> list[Row]:
        """The votes (or judgements) that a record stands for: none where its count is 0.

        Raises
        ------
        BadRow
            which says what is wrong and what would have been accepted.
        """
        kind = self._kind or ("votes" if self._is_vote is None or self._is_vote(record) else "judgements")
        return self._votes(record) if kind == "votes" else [self._judgement(record)]

    def _votes(self, record: Record) -> list[Row]:
        ranked = {name: parse(read(record), name) for name, read, parse in self._ranked}
        sides = () if ranked.get("menu") else SIDES
        values = {name: parse(read(record), name) for name, read, parse in self._fields if name in (*REST, *sides)}
        if sides:
            self._check_sides(values)
        if self._features:
            values["features"] = self._feature_values(record)
        if "anonymous" in self._cells and flag(self._cells["anonymous"](record), "anonymous") is False:
            values["excluded"] = NOT_ANONYMOUS
        if "count" in values:
            values["times"] = values.pop("count")
        if self._counts and sides:
            return self._counted(record, values)
        if sides:
            row = VoteRow(outcome=self._outcome(record, self._spelt), **values)
        else:
            row = VoteRow(left=None, right=None, outcome=None, **values, **ranked)
        return [row] if row.times else []

    def _check_sides(self, values: Mapping[str, Any]) -> None:
        if any(side not in values for side in SIDES):
            raise BadRow("menu is empty")
        if values["left"] == values["right"]:
            raise BadRow(f"left and right are both {shown(values['left'])}")

    def _counted(self, record: Record, values: dict[str, Any]) -> list[Row]:
        """One row for each outcome that a column counts."""
        numbers = {outcome: count(read(record), COUNT + outcome) for outcome, read in self._counts.items()}
        return [VoteRow(**{**values, "outcome": outcome, "times": n}) for outcome, n in numbers.items() if n]

    def _judgement(self, record: Record) -> JudgementRow:
        cells = self._cells
        named = {name: _required(cells[name](record), name) for name in ("judge", "context", "left", "right")}
        if named["left"] == named["right"]:
            raise BadRow(f"left and right are both {shown(named['left'])}")
        return JudgementRow(**named, probabilities=self._chances(record), features=self._feature_values(record) or None)

    def _chances(self, record: Record) -> dict[str, float]:
        if not self._probabilities:
            verdict = self._outcome(record, self._judged)
            return {outcome: float(outcome == verdict) for outcome in self._outcomes}
        chances = {each: share(read(record), PROBABILITY + each) for each, read in self._probabilities.items()}
        total = sum(chances.values())
        if abs(total - 1) > MARGIN:
            raise BadRow(f"the probabilities add up to {total:g}, expected 1")
        return {outcome: chances.get(outcome, 0.0) for outcome in self._outcomes}

    def _outcome(self, record: Record, spelt: Mapping[str, str]) -> str:
        written = self._cells["outcome"](record)
        try:
            return spelt[written]
        except (KeyError, TypeError):
            accepted = ", ".join(spelt)
            raise BadRow(f"outcome: unknown {shown(written)}; accepted: {accepted}") from None

    def _feature_values(self, record: Record) -> dict[str, Any]:
        read = {name: feature(value(record), FEATURE + name, kind) for name, value, kind in self._features}
        return {name: value for name, value in read.items() if value is not None}


def _spellings(outcomes: Sequence[str], more: Mapping[str, str]) -> dict[str, str]:
    known = {spelling: name for spelling, name in {**SPELLINGS, **more}.items() if name in outcomes}
    return {**known, **{name: name for name in outcomes}}


def _named(plan: Plan, prefix: str, outcomes: Sequence[str]) -> dict[str, Cell]:
    """Outcome → cell of the fields with a prefix; the board must have each outcome."""
    named = {name.removeprefix(prefix): each for name, each in plan.cells.items() if name.startswith(prefix)}
    for outcome in named:
        if outcome not in outcomes:
            raise UnusableFile(f"{prefix}{outcome}: the board's outcomes are {', '.join(outcomes)}")
    return named


def _conditions(plan: Plan) -> list[Callable[[Record], bool]]:
    """One condition for each column: any of the values asked for."""
    values: dict[str, set[str]] = defaultdict(set)
    for column, value in plan.request.where:
        values[column].add(value)
    return [_condition(column, accepted) for column, accepted in values.items()]


def _condition(column: str, accepted: set[str]) -> Callable[[Record], bool]:
    read = optional((column,))
    return lambda record: written(read(record), column) in accepted
