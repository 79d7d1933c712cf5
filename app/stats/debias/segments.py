"""A sample's rows of one segment."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from app.stats.types import Bools, Floats, Sample


def segment(sample: Sample, rows: Bools, *, propensity: Floats) -> Sample:
    """The sample of some rows and the votes on them.

    Parameters
    ----------
    sample : the whole board.
    rows : (n,) the segment's rows.
    propensity : (m,) of every vote of the board, as used within the segment (its own eligibility shares).
    """
    number = np.cumsum(rows) - 1
    kept = rows[sample.votes.row]
    votes = replace(sample.votes, propensity=propensity).take(kept)
    return replace(
        sample,
        votes=replace(votes, row=number[votes.row]),
        context=sample.context[rows],
        fold=sample.fold[rows],
        pattern=sample.pattern[rows],
    )
