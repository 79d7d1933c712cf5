"""Synthetic boards whose truth is known: the exact mu at any x, the exact policy, seeded draws.

Cyclic   contexts on which several pairs are labelled, each by its own coin (DMLRank, Section 7.1): nonlinear
         utilities, cyclic pair terms, a position effect, ties, propensities that depend on the context.
Arena    battles: one ordered pair an offer, four outcomes, voters of unequal activity with tastes of their own.
Scored   votes on a complete table of scores, such as a benchmark's: the truth is that of the table.

Three of them have names of their own: `PAPER`, `VOTERS` and `ARENA`.
"""

from app.stats.simulate.arena import Arena, Shown
from app.stats.simulate.cyclic import Cyclic
from app.stats.simulate.generator import Draws, Generator
from app.stats.simulate.preferences import Strength
from app.stats.simulate.scored import Scored
from app.stats.simulate.truth import sobol_covariates, truth

PAPER = Cyclic()
"""Sized as the paper's synthetic data: 5 items, 5 covariates, win, loss, tie; with cycles, pairs chosen by context."""

VOTERS = Arena(n_items=5, n_voters=100, strength=Strength(cycle=0.5))
"""Heterogeneous voters and cycles: 100 voters, tastes of .7 log-odds, a few of them cast most votes."""

ARENA = Arena(taste=0.0)
"""As arenas collect votes: one ordered pair an offer, 20 items, four outcomes, nobody votes often."""

__all__ = [
    "ARENA",
    "PAPER",
    "VOTERS",
    "Arena",
    "Cyclic",
    "Draws",
    "Generator",
    "Scored",
    "Shown",
    "Strength",
    "sobol_covariates",
    "truth",
]
