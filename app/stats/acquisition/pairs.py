"""Ordered pairs as a square of items, and as a row."""

from __future__ import annotations

import numpy as np

from app.stats.types import Floats


def pair_row(square: Floats) -> Floats:
    """(..., K, K) without the diagonal: (..., K (K-1)), row by row."""
    size = square.shape[-1]
    row: Floats = square[..., ~np.eye(size, dtype=np.bool_)]
    return row


def pair_square(row: Floats) -> Floats:
    """(u, K (K-1)) as (u, K, K) with a diagonal of zeros."""
    size = round((1.0 + np.sqrt(1.0 + 4.0 * row.shape[-1])) / 2.0)
    square = np.zeros((len(row), size, size))
    square[:, ~np.eye(size, dtype=np.bool_)] = row
    return square
