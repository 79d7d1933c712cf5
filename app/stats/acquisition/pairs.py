"""Ordered pairs as a square of items, and as a row."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from app.stats.types import Floats, Ints


@lru_cache(maxsize=8)
def sides(size: int) -> tuple[Ints, Ints]:
    """First and second item of each ordered pair of `size` items, row by row."""
    first, second = np.nonzero(~np.eye(size, dtype=np.bool_))
    return first, second


@lru_cache(maxsize=8)
def _flat(size: int) -> Ints:
    first, second = sides(size)
    return first * size + second


def pair_row(square: Floats) -> Floats:
    """(..., K, K) without the diagonal: (..., K (K-1)), row by row."""
    size = square.shape[-1]
    row: Floats = square.reshape(*square.shape[:-2], size * size).take(_flat(size), axis=-1)
    return row


def pair_square(row: Floats) -> Floats:
    """(u, K (K-1)) as (u, K, K) with a diagonal of zeros."""
    size = round((1.0 + np.sqrt(1.0 + 4.0 * row.shape[-1])) / 2.0)
    square = np.zeros((len(row), size * size))
    square[:, _flat(size)] = row
    return square.reshape(len(row), size, size)
