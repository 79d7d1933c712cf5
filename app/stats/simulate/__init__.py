"""Synthetic boards whose truth is known: the exact mu at any x, the exact policy, seeded draws.

Cyclic   contexts on which several pairs are labelled, each by its own coin (DMLRank, Section 7.1): nonlinear
         utilities, cyclic pair terms, a position effect, ties, propensities that depend on the context.
Arena    battles: one ordered pair an offer, four outcomes, voters of unequal activity with tastes of their own.
"""

from app.stats.simulate.arena import Arena
from app.stats.simulate.cyclic import Cyclic
from app.stats.simulate.generator import Draws, Generator
from app.stats.simulate.truth import sobol_covariates, truth

__all__ = ["Arena", "Cyclic", "Draws", "Generator", "sobol_covariates", "truth"]
