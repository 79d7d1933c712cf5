"""The page of diagnostics: sections of a few facts and plain tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from app.web import words
from app.web.axis import number, share
from app.web.leaderboard import moment_words
from app.web.reader import Answer

SHOWN = 20
"""Rows of a long table; the rest is in the JSON."""
OF_ITEMS = {"item", "left", "right", "first", "second", "leader", "components", "cycles"}
"""Fields of findings that name items."""


@dataclass(frozen=True, slots=True)
class Table:
    """Cells as text, the first column naming the row; `more` says how many rows are left out."""

    caption: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    more: int


@dataclass(frozen=True, slots=True)
class Section:
    """One question with its answer."""

    code: str
    title: str
    status: str
    meaning: str
    facts: tuple[tuple[str, str], ...]
    tables: tuple[Table, ...]


@dataclass(frozen=True, slots=True)
class DiagnosticsView:
    """Everything that the template reads."""

    heading: str
    query: str
    json_url: str
    snapshot: str
    notice: words.Notice | None
    computed_at: str
    computed_words: str
    sections: tuple[Section, ...]


def diagnostics_view(ranking: Answer, answer: Answer, *, title: str) -> DiagnosticsView:
    """Shape the answers of `GET …/rankings` (for titles) and `GET …/diagnostics`."""
    titles = {row["item"]: row.get("title") or row["item"] for row in (*ranking["rankings"], *ranking["retired"])}
    shapes = {
        "balance": _balance,
        "support": _support,
        "overlap": _overlap,
        "learner": _learner,
        "position": _position,
        "intransitivity": _intransitivity,
        "sensitivity": _sensitivity,
        "outcomes": _outcomes,
        "voters": _voters,
        "drift": _drift,
    }
    found = {code: _titled(answer[code], titles) for code in shapes if answer[code]}
    sections = [_section(code, each, *shapes[code](each)) for code, each in found.items()]
    return DiagnosticsView(
        heading=title,
        query="",
        json_url=f"/v1/boards/{answer['board']}/diagnostics",
        snapshot=str(answer["snapshot"] or ""),
        notice=words.BOARD_STATUS.get(answer["status"]),
        computed_at=str(answer["computed_at"] or ""),
        computed_words=moment_words(answer["computed_at"]),
        sections=tuple(sections),
    )


def _titled(found: Any, titles: Mapping[str, str], field: str = "") -> Any:
    """What was found, with items by their titles."""
    if isinstance(found, Mapping):
        return {name: _titled(each, titles, name) for name, each in found.items()}
    if isinstance(found, list):
        return [_titled(each, titles, field) for each in found]
    return titles.get(found, found) if field in OF_ITEMS else found


Facts = list[tuple[str, str]]
Shaped = tuple[Facts, list[Table]]


def _section(code: str, found: Answer, facts: Facts, tables: list[Table]) -> Section:
    title, meaning = words.DIAGNOSTICS[code]
    status = words.named(words.DIAGNOSTIC_STATUS, found["status"])
    return Section(code, title, status, meaning, tuple(facts), tuple(each for each in tables if each.rows))


def _table(caption: str, head: Sequence[str], rows: Iterator[Sequence[str]], *, most: int = SHOWN) -> Table:
    every = [tuple(row) for row in rows]
    return Table(caption, tuple(head), tuple(every[:most]), max(len(every) - most, 0))


def _balance(found: Answer) -> Shaped:
    facts = [("Largest |z|", number(found["largest_z"], 2)), ("Alarm above", number(found["threshold"], 2))]
    rows = ((_pair(row["left"], row["right"]), number(row["z"], 2)) for row in found["listed"])
    return facts, [_table("Most conspicuous pairs", ("Left, right", "z"), rows, most=10)]


def _support(found: Answer) -> Shaped:
    facts = [
        ("Pairs with votes", f"{found['supported']:,} of {found['pairs']:,}"),
        ("In both orders", f"{found['both_orders']:,}"),
        ("Groups of linked items", f"{len(found['components']):,}"),
    ]
    groups = found["components"] if len(found["components"]) > 1 else []
    rows = ((f"{at}", ", ".join(group)) for at, group in enumerate(groups, 1))
    return facts, [_table("Groups", ("Group", "Items"), rows)]


def _overlap(found: Answer) -> Shaped:
    floor = found["at_floor"]
    facts = [] if floor is None else [("Weight at the floor of propensities", share(floor["weight"]))]
    head = ("Votes", "Effective", "Smallest propensity", "Largest weight")
    items = ((row["item"], *_weights(row)) for row in found["items"])
    pairs = ((_pair(row["first"], row["second"]), *_weights(row)) for row in found["pairs"])
    heavy = (
        (_pair(row["left"], row["right"]), number(row["weight"], 1), share(row["share"])) for row in found["heaviest"]
    )
    return facts, [
        _table("Items", ("Item", *head), items),
        _table("Pairs worth fewest votes", ("Pair", *head), pairs, most=10),
        _table("Heaviest votes", ("Left, right", "Weight", "Share of all"), heavy),
    ]


def _learner(found: Answer) -> Shaped:
    facts = [
        ("Model", found["name"]),
        ("Log loss", number(found["log_loss"], 4)),
        ("Of overall shares", number(found["base_log_loss"], 4)),
        ("Of classical Bradley–Terry", number(found["classical_log_loss"], 4)),
        ("Gain over classical", _measure(found["gain_over_classical"], 4)),
    ]
    return facts, [
        _table(
            f"Calibration of “{words.spoken(each['outcome'])}” (error {number(each['expected_error'], 3)}, "
            f"p {number(each['p_value'], 3)})",
            ("Predicted", "Observed", "±SE", "Votes"),
            (
                (
                    number(row["predicted"], 3),
                    number(row["observed"], 3),
                    number(row["standard_error"], 3),
                    f"{row['votes']:,.0f}",
                )
                for row in each["bins"]
            ),
        )
        for each in found["calibration"]
    ]


def _position(found: Answer) -> Shaped:
    return [
        ("Advantage of being shown first", _measure(found["advantage"], 3)),
        ("Decisive votes for the left", _measure(found["left_share"], 3)),
    ], []


def _intransitivity(found: Answer) -> Shaped:
    test = found["test"]
    facts = [
        ("Cyclic triples", f"{found['cyclic']:,} of {found['seen']:,}"),
        ("Beyond noise", f"{found['certain']:,}"),
        ("p of scores alone", "–" if test is None else number(test["p_value"], 4)),
        ("Skew, log-odds", "–" if test is None else number(test["skew"], 3)),
    ]
    rows = ((" › ".join((*cycle, cycle[0])),) for cycle in found["cycles"])
    return facts, [_table("Strongest circles", ("Who beats whom",), rows)]


def _sensitivity(found: Answer) -> Shaped:
    head = ("Rule", "Leader", "Kendall’s τ", "Largest change of rank", "Item")
    return [], [
        _table(
            words.estimand(each["estimand"])[0],
            head,
            (
                (
                    words.spoken(row["rule"]),
                    row["leader"] or "–",
                    number(row["kendall"], 3),
                    _rank(row),
                    row["item"] or "–",
                )
                for row in each["rules"]
            ),
        )
        for each in found["estimands"]
    ]


def _outcomes(found: Answer) -> Shaped:
    names = found["outcomes"]
    facts = [(words.spoken(name), share((found["rates"] or {}).get(name))) for name in names]
    rows = ((row["item"], *(share((row["rates"] or {}).get(name)) for name in names)) for row in found["items"])
    return facts, [_table("Items", ("Item", *map(words.spoken, names)), rows)]


def _voters(found: Answer) -> Shaped:
    facts = [("Voters judged", f"{found['judged']:,}"), ("Stand out", f"{found['flagged']:,}")]
    rows = (
        (
            row["voter"] or "–",
            f"{row['votes']:,}",
            number(row["agreement"], 2),
            number(row["side"], 2),
            number(row["p_value"], 4),
            "yes" if row["flagged"] else "no",
        )
        for row in found["listed"]
    )
    return facts, [_table("Voters", ("Voter", "Votes", "Agreement", "Lean to the left", "p", "Stands out"), rows)]


def _drift(found: Answer) -> Shaped:
    facts = [("Later half since", moment_words(found["since"])), ("Items that drift", f"{found['drifting']:,}")]
    rows = (
        (row["item"], number(row["change"], 3), number(row["standard_error"], 3), number(row["p_value"], 3))
        for row in sorted(found["items"], key=lambda row: 1.0 if row["p_value"] is None else row["p_value"])
    )
    return facts, [_table("Items", ("Item", "Change of share", "±SE", "p"), rows)]


def _weights(row: Answer) -> tuple[str, ...]:
    propensity = row["smallest_propensity"]
    smallest = "–" if propensity is None else f"{propensity:.3g}"
    return f"{row['votes']:,}", number(row["effective_votes"], 0), smallest, number(row["largest_weight"], 1)


def _measure(found: Answer | None, digits: int) -> str:
    if found is None:
        return "–"
    low, high = found["interval"]
    return f"{number(found['value'], digits)} ({number(low, digits)} to {number(high, digits)})"


def _rank(row: Answer) -> str:
    return "–" if row["largest_change"] is None else number(row["largest_change"], 0)


def _pair(first: str | None, second: str | None) -> str:
    return "all pairs" if first is None else f"{first}, {second or 'rare pairs'}"
