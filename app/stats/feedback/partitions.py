"""What a vote on a menu says: an ordered partition of its items (NashEval, Appendix F.1)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from app.stats.errors import InvalidInput
from app.stats.types import Floats, Ints

OUTSIDE = -1
"""The tier of an item that is not on the menu."""
Tiers = NDArray[np.int16]


def partial(menu: Sequence[int], ranking: Sequence[Sequence[int]], n_items: int) -> Tiers:
    """Tiers (K,) of a ranking, 0 the best; items of the menu that it leaves out share the last one.

    Pairs, full and partial rankings, the best r, ties (one tier), and both bad (a tier of all, or no ranking at all)
    are of this kind.

    Parameters
    ----------
    menu : two or more items, 0 .. K-1.
    ranking : tiers of items, best first.
    n_items : K.

    Raises
    ------
    InvalidInput : a menu of fewer than two items or with one twice; an empty tier, an item twice or outside the menu.
    """
    tiers = _menu(menu, n_items)
    for place, tier in enumerate(ranking):
        if not tier:
            raise InvalidInput(f"tier {place} of a ranking is empty")
        for item in tier:
            if item not in menu:
                raise InvalidInput(f"item {item} of a ranking is not on its menu")
            if tiers[item] != len(menu):
                raise InvalidInput(f"item {item} is ranked twice")
            tiers[item] = place
    return tiers


def winner(menu: Sequence[int], item: int, n_items: int) -> Tiers:
    """Tiers (K,) of a choice of one item; between two losers there is no verdict."""
    return partial(menu, [[item]], n_items)


def _menu(menu: Sequence[int], n_items: int) -> Tiers:
    if len(menu) < 2 or len(set(menu)) < len(menu):
        raise InvalidInput("a menu has two or more items, each once")
    if min(menu) < 0 or max(menu) >= n_items:
        raise InvalidInput(f"a menu of items outside 0 .. {n_items - 1}")
    tiers = np.full(n_items, OUTSIDE, dtype=np.int16)
    # All are unlisted, below whatever is listed, until the ranking says otherwise.
    tiers[list(menu)] = len(menu)
    return tiers


def verdicts(tiers: Tiers, first: Ints, second: Ints) -> Floats:
    """Z of pairs of items on one menu: 1 where the first is in the better tier, -1 in the worse, 0 in the same.

    Parameters
    ----------
    tiers : (m, K), or (K,) of one vote.
    first, second : (t,) items.

    Returns
    -------
    (m, t) of every vote at every pair; pairs that are not both on the vote's menu carry no meaning.
    """
    said: Floats = np.sign(tiers[..., second] - tiers[..., first]).astype(np.float64)
    return said
