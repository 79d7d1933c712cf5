"""Real votes from a file, as a sample whose propensities are estimated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from app.domain.outcomes import PRESETS, rule
from app.experiments.boards import FOLDS, Board
from app.formats import plan
from app.formats.reader import Reader
from app.formats.rows import BadRow, VoteRow
from app.formats.sources.source import FIRST, opened, peek, source_of
from app.learners import Featuriser
from app.stats.debias import (
    Clustering,
    Exposure,
    Labels,
    RowContent,
    assign_folds,
    canonical_order,
    content_hash,
    estimated_propensities,
    mix,
)
from app.stats.types import Covariates, Ints, Sample, Votes

PRESET = "ternary"
UNIT = Clustering(unit="battle")


@dataclass(frozen=True)
class Read:
    """Votes of a file.

    Parameters
    ----------
    items : their names, sorted.
    board : the votes, one a row, in an order of content; variance by context.
    """

    items: tuple[str, ...]
    board: Board


def read_votes(path: Path, request: plan.Request) -> Read:
    """Read the ternary votes of a file; judgements and rows that are no vote are left out.

    Raises
    ------
    UnusableFile
        Where a column is missing.
    """
    with opened(path) as file:
        source = source_of(file)
        first, located = peek(source.records(plan.wanted(request, source.columns)), FIRST)
        made = plan.make(request, source.columns, [each.record for each in first if isinstance(each.record, dict)])
        outcomes = [category.name for category in PRESETS[PRESET]]
        reader = Reader(made, outcomes=outcomes, kinds={feature.name: feature.kind for feature in made.features})
        records = (each.record for each in located if not isinstance(each.record, BadRow))
        rows = [row for record in records if reader.takes(record) for row in reader.read(record)]
    votes = [row for row in rows if isinstance(row, VoteRow)]
    return _sampled(votes, outcomes, made)


def _sampled(rows: Sequence[VoteRow], outcomes: list[str], made: plan.Plan) -> Read:
    items, pair = np.unique([name for row in rows for name in (row.left, row.right)], return_inverse=True)
    left, right = pair.reshape(-1, 2).T.astype(np.int64)
    outcome = np.array([outcomes.index(str(row.outcome)) for row in rows], dtype=np.int64)
    names, context = np.unique([row.context or "" for row in rows], return_inverse=True)
    voters, voter = np.unique([row.voter or "" for row in rows], return_inverse=True)
    columns = names[context], items[left], items[right], voters[voter], outcome
    order, occurrence = canonical_order(*columns)
    hashes = [content_hash(column[order].tolist()) for column in columns[:4]]
    content = mix(*hashes, outcome[order], occurrence)
    labelled = np.ones(len(rows), dtype=np.bool_)
    folds = assign_folds(RowContent(hashes[0], content, labelled, hashes[3]), FOLDS, by=UNIT.by)
    place = np.arange(len(rows))
    drawn = Votes(
        place, left[order], right[order], outcome[order], np.ones(len(rows)), voter[order], np.ones(len(rows))
    )
    votes = _with_frequencies(drawn, folds.fold, len(items))
    features = dict(zip(context.tolist(), (row.features or {} for row in rows), strict=True))
    documents = [features[number] for number in range(len(names))]
    x = Featuriser.fit(made.features, documents).transform(documents)
    sample = Sample(len(items), rule(PRESETS[PRESET]), votes, context[order], folds.fold, context[order])
    return Read(tuple(items.tolist()), Board(sample, Covariates(x), UNIT))


def _with_frequencies(votes: Votes, fold: Ints, n_items: int) -> Votes:
    table = estimated_propensities(
        Labels(votes.row, votes.left, votes.right),
        Exposure.always(fold.size, n_items),
        fold=fold,
        n_folds=FOLDS,
        unit=UNIT.unit,
    )
    return replace(votes, propensity=table[fold, votes.left, votes.right])
