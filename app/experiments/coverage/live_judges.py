"""Judges on simulated boards whose contexts have no features: asked about any pairs, or about those that were shown."""

from __future__ import annotations

import numpy as np

from app.experiments.boards import Board
from app.stats.simulate import Generator
from app.stats.types import Bools, Covariates, Floats

NOISE = 0.5
"""Standard deviation in log-odds of the noise on each pair."""
HEARD, LATELY = 0.8, 0.4
"""Share of the contexts that a judge speaks of at the refit, and of those that came since."""
PAIRS = 0.7
"""Share of a context's pairs."""


def asked(generator: Generator, on: Board, seed: int) -> Covariates:
    """What two judges say who are silent on some contexts, on later ones more often, and on some pairs."""
    rng, n, size = np.random.default_rng([seed, 29]), len(on.x), generator.n_items
    share = np.where(np.arange(n) < n // 2, HEARD, LATELY)
    heard = (rng.random((n, 2)) < share[:, None])[:, None, None]
    pairs = np.triu(rng.random((2, n, size, size)) < PAIRS, 1).transpose(1, 2, 3, 0)
    return _said(generator, on, heard & (pairs | pairs.transpose(0, 2, 1, 3)), rng)


def asked_what_is_shown(generator: Generator, on: Board, seed: int) -> Covariates:
    """What they say where they are asked about the pairs that were drawn: a feature that hangs on the draw."""
    votes, size = on.sample.votes, generator.n_items
    shown = np.zeros((len(on.x), size, size, 2), dtype=np.bool_)
    shown[on.sample.pattern[votes.row], votes.left, votes.right] = True
    return _said(generator, on, shown | shown.transpose(0, 2, 1, 3), np.random.default_rng([seed, 29]))


def _said(generator: Generator, on: Board, heard: Bools, rng: np.random.Generator) -> Covariates:
    """True preferences with noise, without the features that these hang on."""
    chances = generator.probabilities(on.x.x)
    first = np.log(chances[..., 0]) - np.log(chances[..., 1])
    known = (first - first.transpose(0, 2, 1)) / 2.0
    noise = rng.normal(scale=NOISE, size=heard.shape)
    margins: Floats = known[..., None] + (noise - noise.transpose(0, 2, 1, 3)) / np.sqrt(2.0)
    return Covariates(np.zeros((len(on.x), 0)), np.where(heard, margins, np.nan))
