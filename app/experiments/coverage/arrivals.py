"""An item that enters in the middle of a board's life."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from app.experiments.boards import Board, board
from app.experiments.coverage.bars import COVERS, COVERS_ALONE, ERRS, FAILS, Bar
from app.experiments.coverage.case import ESTIMANDS, Reading, Results, Truths, read, truths_of
from app.stats.debias import Clustering, Exposure, eligibility_share, used_propensities
from app.stats.gars import Graph
from app.stats.gars.against import Against
from app.stats.simulate import Arena, Shown
from app.stats.types import Floats, Sample

UNIT = Clustering(unit="battle")
SHARES = Against(0)
ITEMS = 5
FIVE = Arena(ITEMS, taste=0.0)


@dataclass(frozen=True)
class LateJoiner:
    """Of five items the last enters once half of the offers are made; every offer draws among those that are there.

    Chances are logged for the items that were there. The scores are those over all five. With the share counted twice
    corrections of the newcomer's pairs are twice too large, and so is their noise.
    """

    learner: str
    generator: Arena = FIVE
    n: int = 5000
    setting: str = "late-joiner"
    name: str = "enters at half"

    @property
    def rules(self) -> Mapping[str, Bar]:
        return {
            "eligible share": COVERS,
            "share counted twice": ERRS,
            "no share": FAILS,
            "against the former scores": FAILS,
        }

    @property
    def estimands(self) -> Sequence[str]:
        return [each.name for each in ESTIMANDS]

    def truths(self) -> Truths:
        before = Graph(np.pad((1.0 - np.eye(ITEMS - 1)) / 2, (0, 1)), np.arange(ITEMS) < ITEMS - 1)
        former = truths_of(self.generator, before)
        return {
            **truths_of(self.generator),
            **{f"former {name}": _but(true, ITEMS - 1) for name, true in former.items()},
        }

    def replicate(self, truths: Truths, seed: int) -> Results:
        drawn, exposure = arrival(self.generator, self.n, seed=seed)
        share = eligibility_share(exposure)
        former = {name: truths[f"former {name}"] for name in self.estimands}
        read_as = (share, truths), (share**2, truths), (np.ones_like(share), truths), (share, former)
        readings = {
            rule: Reading(_divided_by(drawn, factor), UNIT, true)
            for rule, (factor, true) in zip(self.rules, read_as, strict=True)
        }
        return read(drawn, readings, probabilities=self.generator.probabilities, learner=self.learner)


@dataclass(frozen=True)
class Rivals:
    """The shares of the first item against those that were there from the beginning: the entry moves none of them."""

    learner: str
    generator: Arena = FIVE
    n: int = 5000
    setting: str = "late-joiner"
    name: str = "rivals' shares"

    @property
    def rules(self) -> Mapping[str, Bar]:
        return {"after the entry": COVERS, "before the entry": COVERS_ALONE}

    @property
    def estimands(self) -> Sequence[str]:
        return [SHARES.name]

    def truths(self) -> Truths:
        return {SHARES.name: _but(truths_of(self.generator, estimands=[SHARES])[SHARES.name], 0, ITEMS - 1)}

    def replicate(self, truths: Truths, seed: int) -> Results:
        drawn, exposure = arrival(self.generator, self.n, seed=seed)
        after = _divided_by(drawn, eligibility_share(exposure))
        readings = {
            rule: Reading(sample, UNIT, truths)
            for rule, sample in zip(self.rules, (after, drawn.up_to(entry(self.n)).sample), strict=True)
        }
        return read(
            drawn, readings, probabilities=self.generator.probabilities, learner=self.learner, estimands=[SHARES]
        )


def entry(n_rows: int) -> int:
    """The row from which on the newcomer takes part."""
    return n_rows // 2


def arrival(generator: Arena, n_rows: int, *, seed: int) -> tuple[Board, Exposure]:
    """A board on which the last item enters late, and who was there when."""
    active = np.ones((2, generator.n_items), dtype=np.bool_)
    active[0, -1] = False
    allowed = active[:, :, None] & active[:, None, :] & ~np.eye(generator.n_items, dtype=np.bool_)
    period = (np.arange(n_rows) >= entry(n_rows)).astype(np.int64)
    draws = generator.draw_among(Shown(allowed, period), seed=seed)
    return board(generator, draws, seed=seed, clustering=UNIT), Exposure.of_rows(period, active)


def _divided_by(drawn: Board, share: Floats) -> Sample:
    votes = drawn.sample.votes
    return drawn.with_propensities(used_propensities(votes.propensity, share, left=votes.left, right=votes.right))


def _but(true: Floats, *items: int) -> Floats:
    """The scores, those of some items left out of the comparison."""
    kept = true.copy()
    kept[list(items)] = np.nan
    return kept


def late_joiner(learner: str) -> Iterator[LateJoiner | Rivals]:
    """The scores with the newcomer, and the pairs without it."""
    yield LateJoiner(learner)
    yield Rivals(learner)
