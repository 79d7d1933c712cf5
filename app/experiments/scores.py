"""A table of scores: what each item earned on each question, from a file."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from app.formats.rows import UnusableFile
from app.formats.sources.source import opened
from app.stats.types import Bools, Floats, Ints

SCORE, QUESTION, TASK, SPLIT = "score:", "query_id", "task", "split"
MODEL, OUTPUT_PRICE = "model", "output_price"
Row = dict[str, str]


@dataclass(frozen=True)
class ScoreTable:
    """Complete scores.

    Parameters
    ----------
    items : names of the K items.
    scores : (Q, K) in [0, 1].
    task : (Q,) labels 0 .. T-1.
    features : (Q, d) covariates of the questions; d is 0 where no file gives them.
    test : (Q,) questions whose column `split` says test; none where there is no such column.
    """

    items: tuple[str, ...]
    scores: Floats
    task: Ints
    features: Floats
    test: Bools


def read_scores(path: Path, features: Path | None = None) -> ScoreTable:
    """Read a CSV file with columns query_id, task and `score:NAME`, and one with query_id and numeric columns.

    Raises
    ------
    UnusableFile
        Where a column is missing or holds something else than numbers.
    """
    rows = _rows(path, (QUESTION, TASK))
    names = [name for name in rows[0] if name.startswith(SCORE)]
    if len(names) < 2:
        raise UnusableFile(f"{path}: fewer than two columns {SCORE}NAME")
    _, task = np.unique([row[TASK] for row in rows], return_inverse=True)
    covariates = np.zeros((len(rows), 0)) if features is None else _features(features, rows)
    test = np.array([row.get(SPLIT) == "test" for row in rows])
    items = tuple(name.removeprefix(SCORE) for name in names)
    return ScoreTable(items, _numbers(path, rows, names), task.astype(np.int64), covariates, test)


def read_prices(path: Path, items: tuple[str, ...]) -> Floats:
    """(K,) column `output_price` of a CSV file with a row for each `model`, as shares of the highest.

    Raises
    ------
    UnusableFile
        Where a column or an item is missing, or a price is no number above 0.
    """
    rows = {row[MODEL]: row for row in _rows(path, (MODEL, OUTPUT_PRICE))}
    missing = [item for item in items if item not in rows]
    if missing:
        raise UnusableFile(f"{path}: no price of {missing[0]!r}")
    prices = _numbers(path, [rows[item] for item in items], [OUTPUT_PRICE])[:, 0]
    if not (np.isfinite(prices) & (prices > 0)).all():
        raise UnusableFile(f"{path}: a price is not above 0")
    shares: Floats = prices / prices.max()
    return shares


def _features(path: Path, questions: list[Row]) -> Floats:
    """(Q, d) in the order of the questions."""
    rows = {row[QUESTION]: row for row in _rows(path, (QUESTION,))}
    missing = [row[QUESTION] for row in questions if row[QUESTION] not in rows]
    if missing:
        raise UnusableFile(f"{path}: no features of question {missing[0]!r} and {len(missing) - 1} others")
    wanted = [rows[row[QUESTION]] for row in questions]
    return _numbers(path, wanted, [name for name in wanted[0] if name != QUESTION])


def _rows(path: Path, needed: tuple[str, ...]) -> list[Row]:
    with opened(path) as file:
        text = b"".join(file.lines()).decode()
    rows = list(csv.DictReader(io.StringIO(text)))
    missing = [name for name in needed if not rows or name not in rows[0]]
    if missing:
        raise UnusableFile(f"{path}: no column {missing[0]!r}")
    return rows


def _numbers(path: Path, rows: list[Row], names: list[str]) -> Floats:
    try:
        return np.array([[float(row[name]) for name in names] for row in rows])
    except ValueError as error:
        raise UnusableFile(f"{path}: {error}") from None
