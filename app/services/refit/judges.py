"""From stored judgements to judges' margins: one more part of what distinguishes the contexts of a board."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b

import numpy as np

from app.services.refit.inputs import ContextTable, Judge, Judges, Margins
from app.services.refit.population import distinct
from app.stats.types import Bools, Floats, Ints, Rule

LEAST, MOST = 0.02, 0.98
"""Chances are clipped to these: nobody is surer."""
MOST_MARGINS = 1 << 26
"""Patterns × K² × judges of the largest array of margins, 256 MB in single precision."""


@dataclass(frozen=True, slots=True)
class Judgements:
    """Judgements of contexts that count, of pairs of items that can be drawn (arrays of length g).

    Parameters
    ----------
    context : position among the contexts.
    judge : index among the judges by name.
    left, right : the ordered pair among the active items.
    margin : log p_left - log p_right.
    """

    context: Ints
    judge: Ints
    left: Ints
    right: Ints
    margin: Floats

    def take(self, index: Ints | Bools) -> Judgements:
        """The judgements named by `index` (positions or a mask)."""
        return Judgements(*(getattr(self, name)[index] for name in self.__slots__))


def margins(chances: Floats, rule: Rule) -> Floats:
    """log p_left - log p_right, both clipped to [.02, .98] (DMLRank, arXiv 2601.21816, judges as features).

    A category counts for the item that it credits more, by its share of the largest such difference in weights: under
    (1, 0), (0, 1) and ties p_left and p_right are the chances of left and right themselves. So a certain win is a
    probability of one, and a certain tie, for which both are 0, the margin 0. In the outcome model's family,
    P(c) ∝ exp((w1_c - w2_c) D/2 + ...), this log ratio is D however likely a tie is.

    Parameters
    ----------
    chances : (g, C) of each category.
    rule : the outcome weights.

    Returns
    -------
    (g,) within ± log 49.
    """
    edge = rule.first - rule.second
    first, second = np.maximum(edge, 0.0), np.maximum(-edge, 0.0)
    left, right = (np.clip(chances @ (side / side.max()), LEAST, MOST) for side in (first, second))
    found: Floats = np.log(left) - np.log(right)
    return found


def judges_of(
    judged: Judgements, names: Sequence[str], contexts: ContextTable, *, n_items: int
) -> tuple[ContextTable, Judges]:
    """The judges, and the contexts with the distinct (features, judgements) as their patterns.

    A judge who saw a pair in both orders has the mean of the two margins, one with its sign turned: a change of mind
    with the order is a tie. Where the margins of all judges would not fit into memory, those with the fewest
    judgements are left out, and said to be.

    Parameters
    ----------
    judged : in any order.
    names : of the judges, sorted.
    contexts : whose patterns are their features alone.
    n_items : K.
    """
    heard = np.bincount(judged.judge, minlength=len(names))
    kept = _affordable(heard, judged, contexts, n_items=n_items)
    number = np.cumsum(kept) - 1
    inside = judged.take(kept[judged.judge])
    inside = replace(inside, judge=number[inside.judge])
    columns, found = heard_by(inside, int(kept.sum()), contexts, n_items=n_items)
    shown = tuple(_described(judged, names, of, used=bool(kept[of])) for of in range(len(names)))
    return columns, replace(found, judges=shown)


def heard_by(judged: Judgements, n_judges: int, contexts: ContextTable, *, n_items: int) -> tuple[ContextTable, Judges]:
    """The contexts with the distinct (features, judgements) as their patterns, and what so many judges say of these.

    Parameters
    ----------
    judged, contexts, n_items : see `judges_of`; all judges are used.
    n_judges : q.
    """
    cells = _cells(Judgements(judged.context, judged.judge, *_pair(judged)), n_items)
    pattern, document = _patterns(cells, contexts, n_items)
    columns = ContextTable(contexts.ids, contexts.key, contexts.created, pattern, contexts.features)
    return columns, Judges((), document, _margins(cells, pattern, (n_items, n_judges)) if n_judges else None)


def _margins(cells: Judgements, pattern: Ints, shape: tuple[int, int]) -> Margins:
    """Of each pattern, what is said of the first context that has it."""
    first = np.zeros(pattern.size, dtype=np.bool_)
    first[np.unique(pattern, return_index=True)[1]] = True
    cells = cells.take(first[cells.context])
    cells = cells.take(np.argsort(pattern[cells.context], kind="stable"))
    return Margins(pattern[cells.context], cells.judge, cells.left, cells.right, cells.margin, *shape)


def _pair(judged: Judgements) -> tuple[Ints, Ints, Floats]:
    """The pair in the items' order, and the margin of this order."""
    turned = judged.left > judged.right
    low, high = np.minimum(judged.left, judged.right), np.maximum(judged.left, judged.right)
    return low, high, np.where(turned, -judged.margin, judged.margin)


def _cells(judged: Judgements, n_items: int) -> Judgements:
    """One mean margin of each context, judge and pair, sorted by them."""
    judges = int(judged.judge.max(initial=0)) + 1
    key = ((judged.context * judges + judged.judge) * n_items + judged.left) * n_items + judged.right
    cell, place, votes = np.unique(key, return_inverse=True, return_counts=True)
    rest, right = np.divmod(cell, n_items)
    rest, left = np.divmod(rest, n_items)
    context, judge = np.divmod(rest, judges)
    return Judgements(context, judge, left, right, np.bincount(place, judged.margin, cell.size) / votes)


def _patterns(cells: Judgements, contexts: ContextTable, n_items: int) -> tuple[Ints, Ints]:
    """Of each context its (features, judgements), and of each of these its features; in an order of content alone."""
    content = [(document, b"") for document in contexts.pattern.tolist()]
    for context, digest in _digests(cells, n_items):
        content[context] = (content[context][0], digest)
    place = {each: number for number, each in enumerate(sorted(set(content)))}
    pattern = np.array([place[each] for each in content], dtype=np.int64)
    return pattern, np.array([document for document, _ in place], dtype=np.int64)


def _digests(cells: Judgements, n_items: int) -> Iterator[tuple[int, bytes]]:
    """Each judged context with a hash of its judgements."""
    where = (cells.judge * n_items + cells.left) * n_items + cells.right
    body = np.stack([where, cells.margin.view(np.int64)], axis=1)
    starts = np.flatnonzero(np.diff(cells.context, prepend=-1))
    for start, part in zip(starts, np.split(body, starts[1:]), strict=False):
        yield int(cells.context[start]), blake2b(part.tobytes(), digest_size=16).digest()


def _affordable(heard: Ints, judged: Judgements, contexts: ContextTable, *, n_items: int) -> Bools:
    """Which judges (q,) have judgements and are among the busiest for whom there is room."""
    patterns = len(contexts.features) + distinct(judged.context)
    room = MOST_MARGINS // (patterns * max(n_items, 1) ** 2)
    busiest = np.argsort(-heard, kind="stable")[:room]
    kept = np.zeros(heard.size, dtype=np.bool_)
    kept[busiest] = heard[busiest] > 0
    return kept


def _described(judged: Judgements, names: Sequence[str], of: int, *, used: bool) -> Judge:
    mine = judged.context[judged.judge == of]
    return Judge(names[of], int(mine.size), distinct(mine), used)
