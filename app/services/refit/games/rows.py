"""What votes on pairs say of payoffs beyond the fold models, row by row."""

from __future__ import annotations

import numpy as np

from app.services.refit.games.contest import Contest
from app.stats.debias.one_step import CrossFit, checked_layout
from app.stats.debias.segments import segment
from app.stats.feedback import Corrections
from app.stats.types import Floats, Sample

SEED = 20260124


def drawn(sample: Sample, most: int) -> Sample:
    """At most so many rows of a sample, seeded, with the propensities of all."""
    if sample.n_rows <= most:
        return sample
    chosen = np.zeros(sample.n_rows, dtype=np.bool_)
    chosen[np.random.default_rng(SEED).permutation(sample.n_rows)[:most]] = True
    return segment(sample, chosen, propensity=sample.votes.propensity)


def corrections_of(sample: Sample, mu: CrossFit, contest: Contest) -> Corrections:
    """Payoffs of the rows by the models of their folds, and the votes' corrections.

    A pair's payoff is a mean over the orders it is shown in, so a vote counts by its order's weight.

    Parameters
    ----------
    sample : rows and votes.
    mu : the fold models.
    contest : who plays.
    """
    start, lead = _models(sample, mu, contest)
    votes = sample.votes
    number = contest.numbers(sample.n_items)[votes.left, votes.right]
    playing = np.flatnonzero(number >= 0)
    votes, number, lead = votes.take(playing), number[playing], lead[playing]
    own = votes.left < votes.right
    order = np.where(own, contest.ahead[number], 1.0 - contest.ahead[number])
    weight = order * votes.weight / votes.propensity
    excess = np.where(own, weight, -weight) * (contest.favour[votes.outcome] - lead)
    found = np.zeros(start.shape), np.zeros(start.shape)
    np.add.at(found[0], (votes.row, number), weight)
    np.add.at(found[1], (votes.row, number), excess)
    return Corrections(start, np.broadcast_to(1.0, start.shape), *found)


def _models(sample: Sample, mu: CrossFit, contest: Contest) -> tuple[Floats, Floats]:
    """(n, P) payoffs of the rows, and (m,) leads of the votes' ordered pairs, asked for as rankings ask."""
    layout, votes = checked_layout(sample), sample.votes
    start, lead = np.empty((sample.n_rows, contest.ahead.size)), np.empty(len(votes))
    for block in layout.blocks():
        cells = block.cells
        leads = contest.leads(mu(int(layout.fold[cells.start]), layout.pattern[cells]))
        start[block.rows] = contest.payoffs(leads)[layout.row_cell[block.rows] - cells.start]
        at = layout.cell[layout.request[block.votes]] - cells.start
        lead[block.votes] = leads[at, votes.left[block.votes], votes.right[block.votes]]
    return start, lead
