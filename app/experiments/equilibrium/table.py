"""Exploitability and winners by every method, on pairs, rankings and winners of one, three and five voters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from app.experiments.acquisition.figures import Collected, Figures
from app.experiments.curves import Outcome, Runs, Spot, Verdict
from app.experiments.equilibrium.cells import EXPLOITABILITY, F1, FEEDBACK, Cell, voters
from app.experiments.equilibrium.methods import BRADLEY_TERRY, DEBIASED, GLOBAL, PLUG_IN, POLICY
from app.stats.feedback import mean_payoffs
from app.stats.inference import bands
from app.stats.simulate.electorate import Electorate
from app.stats.types import Floats

VOTERS = (1, 3, 5)
CYCLIC = (3, 5)
MEAN, MEAN_PLUG_IN = "mean payoffs, debiased", "mean payoffs, plug-in"
ERROR, COVERED = "error", "covered"
MOST_F1_LOSS = 0.03
COVERAGE = 0.88, 0.99
LEAST_WORLDS = 5
"""Worlds, of nine boards each, from which on coverage is judged."""


@dataclass(frozen=True)
class Table:
    """All feedback of all electorates.

    Parameters
    ----------
    learner : name of the outcome learner.
    n : contexts with votes.
    """

    learner: str
    n: int
    reference: str = PLUG_IN

    @property
    def title(self) -> str:
        return f"Contextual equilibria, {self.n:,} contexts with votes, {self.learner}; (ratios to {self.reference})"

    def replicate(self, seed: int) -> Figures:
        """All boards of one world."""
        found: dict[Spot, dict[str, float]] = {}
        for feedback in FEEDBACK:
            for count in VOTERS:
                cell = Cell(Electorate(count, feedback, seed), self.learner, seed, self.n)
                lotteries = cell.fits.lotteries(cell.x)
                figures = {name: cell.judged(each) for name, each in lotteries.items()}
                for name, each in (figures | _means(cell)).items():
                    found[Spot(feedback, name, voters(count))] = each
        return found

    def verdicts(self, found: Collected) -> Iterator[Verdict]:
        """The bars; with one voter a Bradley-Terry model is right, so there are none."""
        orders = [feedback for feedback in FEEDBACK if feedback != "winners"]
        for rival in BRADLEY_TERRY:
            yield from (_at_most(found, [cell], (DEBIASED, rival), 0.75) for cell in _cells(orders))
            yield _at_most(found, _cells(["winners"]), (DEBIASED, rival), 0.95)
        yield _at_most(found, _cells(FEEDBACK), (DEBIASED, PLUG_IN), 1.0)
        yield from (_at_most(found, [cell], (DEBIASED, PLUG_IN), 1.05) for cell in _cells(FEEDBACK))
        yield from (_at_most(found, [cell], (POLICY, DEBIASED), 1.1) for cell in _cells(FEEDBACK))
        yield _at_most(found, _cells(FEEDBACK), (POLICY, DEBIASED), 1.05)
        yield from (_keeps_winners(found, cell) for cell in _cells(FEEDBACK))
        yield _at_most(found, _cells(FEEDBACK), (DEBIASED, GLOBAL), 0.75)
        yield from _means_hold(found)


def _means(cell: Cell) -> dict[str, dict[str, float]]:
    """Errors of mean payoffs against the exact mean over the contexts' distribution, and whether all intervals hold."""
    electorate, nuisances = cell.electorate, cell.fits.nuisances
    many = electorate.covariates(np.random.default_rng([cell.seed, 3]).random((20_000, electorate.n_covariates)))
    truth = electorate.menus.values(electorate.payoffs(many)).mean(axis=0)
    plug_in = mean_payoffs(nuisances.corrections.start, nuisances.sample.context).value
    debiased = cell.fits.mean_payoffs()
    band = bands(debiased)
    held = bool(((band.lower <= truth) & (truth <= band.upper)).all())
    return {
        MEAN: {ERROR: _rmse(debiased.value - truth), COVERED: float(held)},
        MEAN_PLUG_IN: {ERROR: _rmse(plug_in - truth)},
    }


def _means_hold(found: Collected) -> Iterator[Verdict]:
    """Errors below the plug-in's, and where worlds suffice coverage, over all boards."""
    boards = [(feedback, voters(count)) for feedback in FEEDBACK for count in VOTERS]

    def values(name: str, quantity: str) -> Floats:
        return np.concatenate([found.values(Spot(kind, name, level), quantity) for kind, level in boards])

    own, other = (float(np.sqrt((values(name, ERROR) ** 2).mean())) for name in (MEAN, MEAN_PLUG_IN))
    yield Verdict(f"error of {MEAN} below that of {MEAN_PLUG_IN}", f"{own:.4f}, {other:.4f}", own < other)
    if found.size >= LEAST_WORLDS:
        covered = values(MEAN, COVERED)
        words = f"{MEAN}: simultaneous intervals hold on {COVERAGE[0]:.0%} to {COVERAGE[1]:.0%} of boards"
        yield Verdict(words, f"{covered.mean():.3f} of {covered.size}", COVERAGE[0] <= covered.mean() <= COVERAGE[1])


def _rmse(values: Floats) -> float:
    return float(np.sqrt((values**2).mean()))


def _cells(feedback: Sequence[str]) -> list[tuple[str, str]]:
    return [(each, voters(count)) for each in feedback for count in CYCLIC]


def _at_most(found: Collected, cells: Sequence[tuple[str, str]], methods: tuple[str, str], limit: float) -> Verdict:
    """Whether a method's exploitability, averaged over the cells, is at most so many times another's."""
    own, other = (
        np.mean([found.values(Spot(kind, method, level), EXPLOITABILITY) for kind, level in cells], axis=0)
        for method in methods
    )
    spots = [Spot("", method, "") for method in methods]
    runs = Runs([{spots[0]: Outcome(mine), spots[1]: Outcome(theirs)} for mine, theirs in zip(own, other, strict=True)])
    where = f"{cells[0][1]}, {cells[0][0]}" if len(cells) == 1 else f"{len(cells)} cells"
    words = f"{where}: {methods[0]} ≤ {limit:g} × {methods[1]}"
    return runs.compare(words, spots[0], spots[1], lambda ratio, _: ratio <= limit)


def _keeps_winners(found: Collected, cell: tuple[str, str]) -> Verdict:
    kind, level = cell
    own, other = (float(found.values(Spot(kind, method, level), F1).mean()) for method in (POLICY, DEBIASED))
    claim = f"{level}, {kind}: F1 of {POLICY} at most {MOST_F1_LOSS} below {DEBIASED}"
    return Verdict(claim, f"{own:.3f}, {other:.3f}", own >= other - MOST_F1_LOSS)
