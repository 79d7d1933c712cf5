"""Did items get better or worse while votes came in?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from app.stats.debias.clusters import Clustering
from app.stats.debias.weights import sums_by
from app.stats.diagnostics.pairwise import labels_of_votes
from app.stats.types import Bools, Floats, Ints, Sample


@dataclass(frozen=True, slots=True)
class Drift:
    """Share won in the later votes less that in the earlier ones, beyond what the model expects (arrays of length K).

    Parameters
    ----------
    change, standard_error : of each item; 0 and infinite without votes on either side.
    p_value : two-sided, times the number of items that can be compared, at most 1.
    """

    change: Floats
    standard_error: Floats
    p_value: Floats


def drift_of_items(sample: Sample, expected: Floats, later: Bools, *, clustering: Clustering) -> Drift:
    """Compare residuals of both parts of the votes: opponents and contexts are the model's business.

    Parameters
    ----------
    sample : rows and votes.
    expected : (m,) score of the left item by models fitted without the vote.
    later : (m,) votes of the later part.
    clustering : of the variance; where two ways are asked for, by voter.
    """
    rule, votes = sample.rule, sample.votes
    both = (rule.first + rule.second)[votes.outcome]
    counted = np.flatnonzero(both > 0)
    residual = (rule.first[votes.outcome] - expected * both)[counted]
    label = np.tile(labels_of_votes(clustering, sample)[counted], 2)
    item = np.concatenate([votes.left[counted], votes.right[counted]])
    part = np.tile(later[counted], 2)
    return _compared((item, label, part), np.concatenate([residual, -residual]), sample.n_items)


def _compared(of_side: tuple[Ints, Ints, Bools], residual: Floats, size: int) -> Drift:
    item, label, part = of_side
    place = 2 * item + part
    count = sums_by(place, np.ones(place.size), 2 * size)
    mean = sums_by(place, residual, 2 * size) / np.maximum(count, 1.0)
    change = mean[1::2] - mean[::2]
    centred = (residual - mean[place]) / np.maximum(count, 1.0)[place] * np.where(part, 1.0, -1.0)
    # A vote that is a cluster of its own needs no sum: that saves sorting the millions of them.
    shared = np.bincount(label)[label] > 2
    key, at = np.unique(label[shared] * size + item[shared], return_inverse=True)
    sums = sums_by(at, centred[shared], key.size)
    variance = sums_by(item[~shared], centred[~shared] ** 2, size) + sums_by(key % size, sums**2, size)
    error = np.sqrt(variance)
    known = (count[1::2] > 0) & (count[::2] > 0) & (error > 0)
    error = np.where(known, error, np.inf)
    p_value = np.minimum(2.0 * ndtr(-np.abs(change) / error) * max(int(known.sum()), 1), 1.0)
    return Drift(np.where(known, change, 0.0), error, p_value)
