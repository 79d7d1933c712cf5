"""Rows of the estimator from what was read of them, as a refit would make them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from app.services.live.drawn import Drawn
from app.services.live.touched import Touched
from app.services.refit.frame import among_active, row_voters
from app.services.refit.frozen import FrozenBoard
from app.services.refit.inputs import Inputs
from app.services.refit.population import Population, populate
from app.stats.debias.folds import Hashes, mix
from app.stats.debias.segments import segment
from app.stats.types import Bools, Floats, Ints, Sample, Votes


@dataclass(frozen=True, slots=True)
class LiveRows:
    """Rows at one mark.

    Parameters
    ----------
    sample : with propensities as they were logged, of draws times the chance of an answer.
    context_id : (n,) database id of each row's context, 0 where there is none.
    content : (n,) hashes of what the rows are of.
    refitted : (n,) rows that the refit had.
    fresh : (n,) rows that are the first of their context.
    drawn : (n, 4) what became of their draws, see `Drawn.counts`.
    counted : votes on them, those on items unknown to the refit included.
    newcomers : votes of items that the refit did not know.
    """

    sample: Sample
    context_id: Ints
    content: Hashes
    refitted: Bools
    fresh: Bools
    drawn: Floats
    counted: int
    newcomers: dict[str, int]

    def take(self, rows: Bools) -> LiveRows:
        """The rows of a mask (n,), with the counts of all."""
        votes = self.sample.votes
        part = segment(self.sample, rows, propensity=votes.propensity)
        columns = ("context_id", "content", "refitted", "fresh", "drawn")
        return replace(self, sample=part, **{name: getattr(self, name)[rows] for name in columns})


def live_rows(inputs: Inputs, touched: Touched, frozen: FrozenBoard) -> LiveRows:
    """The rows of some inputs.

    A row offered before every item could be drawn has its place in the next refit, unless the last one had it.
    """
    population = populate(inputs, frozen.unit)
    rows, active = population.rows, inputs.roster.active
    drawn = None if frozen.answers is None else Drawn(inputs, population, frozen.answers, touched)
    refitted = np.isin(rows.context_id, touched.refitted) & (rows.context_id > 0)
    votes, _ = among_active(_votes(population, frozen, drawn), active)
    content = _units(population, frozen)
    sample = Sample(
        n_items=len(frozen.items),
        rule=frozen.rule,
        votes=votes,
        context=rows.context,
        fold=frozen.spread.fold(content),
        pattern=rows.pattern,
    )
    kept = refitted | (rows.time >= frozen.since)
    shown = kept[population.row]
    new = _newcomers(population, touched, inputs.roster.names, shown=shown)
    fresh = _first(rows.context) & ~np.isin(rows.context_id, touched.known[touched.known > 0])
    counts = np.zeros((len(rows), 4)) if drawn is None else drawn.counts()
    return LiveRows(sample, rows.context_id, content, refitted, fresh, counts, int(shown.sum()), new).take(kept)


def _units(population: Population, frozen: FrozenBoard) -> Hashes:
    """What the fold of each row hangs on: as in a refit where rows share it.

    A row of one vote alone goes by that vote's number. A refit tells equal votes apart by counting them; of a few new
    ones all would go to one fold, which one with their outcome, and corrections would come from other models than F.
    """
    rows, alone = population.rows, population.rows.offer_hash.copy()
    alone[population.row] = mix(population.votes.ids)
    match frozen.fold_rule:
        case "context":
            return np.where(rows.context_id > 0, rows.context_hash, alone)
        case "offer":
            shared = (rows.context_id > 0) & (frozen.unit == "context")
            return np.where(shared, rows.offer_hash, alone)
        case "voter":
            named = population.votes.voter != 0
            alone[population.row[named]] = row_voters(population)[population.row[named]]
            return alone


def _votes(population: Population, frozen: FrozenBoard, drawn: Drawn | None) -> Votes:
    votes = population.votes
    pi = votes.propensity if frozen.kind == "logged" else np.ones(len(votes))
    if drawn is not None:
        pi = pi * drawn.rates()
    return Votes(population.row, votes.left, votes.right, votes.outcome, population.weight, population.voter, pi)


def _newcomers(population: Population, touched: Touched, names: tuple[str, ...], *, shown: Bools) -> dict[str, int]:
    sides = np.concatenate([population.votes.left[shown], population.votes.right[shown]])
    count = np.bincount(sides, minlength=len(names))
    return {names[at]: int(count[at]) for at in np.flatnonzero(touched.newcomers).tolist() if count[at]}


def _first(label: Ints) -> Bools:
    first = np.zeros(label.size, dtype=np.bool_)
    first[np.unique(label, return_index=True)[1]] = True
    return first
