"""Read everything a refit needs in one consistent view of the database."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from app.db.gather import ContextRow, GatherRepository, RankingRow
from app.db.marks import Marks
from app.db.packed import Columns
from app.domain.boards import Board, BoardConfig
from app.domain.outcomes import rule
from app.services.refit.documents import Documents
from app.services.refit.inputs import (
    OPEN,
    ContextTable,
    DrawTable,
    Inputs,
    Judges,
    OfferTable,
    RankingTable,
    Roster,
    VoteTable,
)
from app.services.refit.judges import Judgements, judges_of, margins
from app.services.refit.menus import with_pairs
from app.stats.feedback.partitions import OUTSIDE
from app.stats.types import Floats, Ints, Rule


def gather(repository: GatherRepository, board: Board, marks: Marks) -> Inputs:
    """The board's votes up to the marks, and the contexts, offers, items and rules they rest on."""
    roster = roster_of(repository, board.id)
    excluded = repository.excluded(board.id, marks.votes, rules=marks.rules, as_of=marks.moment)
    votes, reasons = vote_table(repository.votes(board.id, marks.votes), excluded, roster)
    rankings = ranking_table(repository.rankings(board.id, marks.votes), excluded, roster)
    offers = offer_table(repository.offers(board.id, marks.offers))
    draws = draw_table(repository.draws(board.id, marks.offers), roster) if offers.drawn.any() else None
    ranked = votes.context[:0] if rankings is None else rankings.context
    referenced = np.unique(np.concatenate([votes.context, offers.context, ranked]))
    rows = repository.contexts(board.id, referenced, offered=marks.moment if board.config.unit == "context" else None)
    contexts, judges = _judged(repository, board, context_table(rows, board.config), roster=roster, until=marks.moment)
    return with_pairs(Inputs(votes, reasons, contexts, offers, roster, judges, draws, rankings), board.config)


def roster_of(repository: GatherRepository, board_id: int) -> Roster:
    """Every item that was ever on the board."""
    items = repository.items(board_id)
    spans = repository.spans(board_id)
    position = {item.id: at for at, item in enumerate(items)}
    return Roster(
        ids=_ints(item.id for item in items),
        names=tuple(item.name for item in items),
        active=np.array([item.active for item in items], dtype=np.bool_),
        span_item=_ints(position[item] for item, _, _ in spans),
        span_from=_ints(begin for _, begin, _ in spans),
        span_to=_ints(OPEN if end is None else end for _, _, end in spans),
        label_cost=np.array([item.label_cost for item in items], dtype=np.float64),
        cost=np.array([item.cost for item in items], dtype=np.float64),
    )


def vote_table(
    columns: Mapping[str, NDArray[Any]], excluded: Mapping[int, str], roster: Roster
) -> tuple[VoteTable, tuple[str, ...]]:
    """Votes on pairs as they are stored, with the reasons for excluding some of them, or of others, by number."""
    reason, reasons = _reasons(columns["ids"], excluded)
    sides = {side: roster.positions(columns[side]) for side in ("left", "right")}
    return VoteTable(**{**columns, **sides}, reason=reason), reasons


def ranking_table(rows: Iterable[RankingRow], excluded: Mapping[int, str], roster: Roster) -> RankingTable | None:
    """Votes on menus as they are stored; None where there are none."""
    columns = list(zip(*rows, strict=True))
    if not columns:
        return None
    ids, context, offer, voter = (np.array(column, dtype=np.int64) for column in columns[:4])
    return RankingTable(
        ids=ids,
        context=context,
        offer=offer,
        tiers=_tiers(columns[6], roster),
        voter=voter,
        propensity=np.array(columns[4], dtype=np.float64),
        created=np.array(columns[5], dtype=np.int64),
        reason=_reasons(ids, excluded)[0],
    )


def _tiers(ballots: Sequence[str], roster: Roster) -> NDArray[np.int16]:
    """(m, K) of the items by their places in the roster; unlisted ones of a menu are below the listed."""
    tiers = np.full((len(ballots), len(roster.names)), OUTSIDE, dtype=np.int16)
    place = {number: at for at, number in enumerate(roster.ids.tolist())}
    for row, ballot in zip(tiers, map(orjson.loads, ballots), strict=True):
        row[[place[number] for number in ballot["menu"]]] = len(ballot["tiers"])
        for number, tier in enumerate(ballot["tiers"]):
            row[[place[item] for item in tier]] = number
    return tiers


def _reasons(ids: Ints, excluded: Mapping[int, str]) -> tuple[Ints, tuple[str, ...]]:
    """Of votes by their sorted numbers, the index among the reasons for excluding any vote, -1 where one counts."""
    reasons = tuple(sorted(set(excluded.values())))
    index = {reason: at for at, reason in enumerate(reasons)}
    numbers = _ints(excluded)
    here = np.isin(numbers, ids)
    found = np.full(ids.size, -1, dtype=np.int64)
    found[np.searchsorted(ids, numbers[here])] = _ints(index[each] for each in excluded.values())[here]
    return found, reasons


def offer_table(columns: Mapping[str, NDArray[Any]]) -> OfferTable:
    """Named offers and draws as they are stored."""
    return OfferTable(**{**columns, "drawn": columns["drawn"] > 0})


def draw_table(columns: Mapping[str, NDArray[Any]], roster: Roster) -> DrawTable:
    """Assignments as they are stored."""
    sides = {side: roster.positions(columns[side]) for side in ("left", "right")}
    return DrawTable(**{**columns, **sides})


def context_table(rows: Iterable[ContextRow], config: BoardConfig) -> ContextTable:
    """The contexts; where one text feature is declared and not sent, the context's own text stands in."""
    texts = [feature.name for feature in config.features if feature.kind == "text"]
    fallback = texts[0] if len(texts) == 1 else None
    documents: dict[str, int] = {"{}": 0}
    columns = [array("q", [0]) for _ in range(4)]
    for row in rows:
        document = documents.setdefault(_document(row, config, fallback), len(documents))
        for column, number in zip(columns, (row.id, row.key, row.created, document), strict=True):
            column.append(number)
    ids, key, created, pattern = (np.frombuffer(column, dtype=np.int64) for column in columns)
    spelled = sorted(documents)
    rank = np.empty(len(spelled), dtype=np.int64)
    rank[[documents[document] for document in spelled]] = np.arange(len(spelled))
    return ContextTable(ids, key, created, rank[pattern], Documents(spelled))


def _judged(
    repository: GatherRepository, board: Board, contexts: ContextTable, *, roster: Roster, until: datetime
) -> tuple[ContextTable, Judges | None]:
    """The contexts with their judgements by a time, where the board has any."""
    names = repository.judges(board.id, until=until)
    if not names:
        return contexts, None
    outcomes = [category.name for category in board.config.categories]
    stored = repository.judgements(board.id, outcomes, until=until)
    judged = judgements_of(stored, contexts, rule(board.config.categories), roster=roster, hashes=_ints(names))
    return judges_of(judged, tuple(names.values()), contexts, n_items=int(roster.active.sum()))


def judgements_of(
    stored: tuple[Columns, Floats], contexts: ContextTable, credits: Rule, *, roster: Roster, hashes: Ints
) -> Judgements:
    """Stored judgements of these contexts between active items; `hashes` are of the judges' names, in their order."""
    columns, chances = stored
    left, right = roster.positions(columns["left"]), roster.positions(columns["right"])
    counts = np.isin(columns["context"], contexts.ids) & roster.active[left] & roster.active[right]
    order, among = np.argsort(hashes), np.cumsum(roster.active) - 1
    return Judgements(
        context=np.searchsorted(contexts.ids, columns["context"]),
        judge=order[np.searchsorted(hashes, columns["judge"], sorter=order)],
        left=among[left],
        right=among[right],
        margin=margins(chances, credits),
    ).take(counts)


def _document(row: ContextRow, config: BoardConfig, fallback: str | None) -> str:
    if not config.features:
        return "{}"
    if fallback is None or row.text is None:
        return row.features
    return orjson.dumps({fallback: row.text, **orjson.loads(row.features)}, option=orjson.OPT_SORT_KEYS).decode()


def _ints(values: Iterable[int]) -> Ints:
    return np.fromiter(values, dtype=np.int64)
