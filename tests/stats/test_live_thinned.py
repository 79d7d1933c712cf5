"""Live rows beside a refit that drew rows to average over: intervals cover, and are no wider than they need be."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

from app.stats.debias import Clustering, Target, one_step
from app.stats.debias import thinning as thinning_module
from app.stats.debias.live import LiveSums, live_sums
from app.stats.debias.segments import segment
from app.stats.debias.stretching import Centre, Stretched
from app.stats.debias.thinning import Thinning
from app.stats.gars import Graph, estimand
from app.stats.types import Bools, Estimate, Floats, Sample, Votes
from tests.stats.debias_samples import TERNARY, Case
from tests.stats.test_thinning import Paired

REFITTED, NEW, DRAWN, CONTEXTS, BOARDS = 300, 120, 100, 1000, 300
TARGETS = {name: Target(estimand(name), Graph.complete(3)) for name in ("borda", "bt", "rc")}
UNIT = Clustering(unit="context")


@pytest.fixture(autouse=True)
def _low_threshold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thinning_module, "LEAST_ROWS", DRAWN)
    monkeypatch.setattr(thinning_module, "PAIRS", 0)


@dataclass(frozen=True)
class World:
    """Contexts (1, u, 3, 3, C) with their truth, and models that are somewhat too flat."""

    truth: Floats

    @classmethod
    def of(cls, rng: np.random.Generator) -> World:
        return cls(rng.dirichlet(np.full(3, 0.4), size=(1, CONTEXTS, 3, 3)) * 0.9 + 0.1 / 3)

    @property
    def models(self) -> Floats:
        return 0.8 * self.truth + 0.2 / 3

    def scores(self, name: str) -> Floats:
        target = TARGETS[name]
        return target.estimand.value(TERNARY.scores(self.truth[0]), target.graph).mean(axis=0)

    def draw(self, rng: np.random.Generator) -> Sample:
        """Rows with a vote each, of which every second one gets another after the refit."""
        size = REFITTED + NEW
        row = np.concatenate([np.arange(size), np.arange(0, REFITTED, 2)])
        pattern, pairs = rng.integers(0, CONTEXTS, size), np.argwhere(~np.eye(3, dtype=bool))
        left, right = pairs[rng.integers(0, len(pairs), row.size)].T
        chances = np.cumsum(self.truth[0, pattern[row], left, right], axis=1)
        outcome = (rng.random((row.size, 1)) > chances).sum(axis=1).clip(0, 2)
        votes = Votes(row, left, right, outcome, np.ones(row.size), row, np.full(row.size, 1 / len(pairs)))
        return Sample(3, TERNARY, votes, np.arange(size), np.zeros(size, dtype=np.int64), pattern)


def part(sample: Sample, rows: Bools, votes: int) -> Sample:
    """Some rows with the first votes, which share their rows."""
    kept = sample.votes.take(np.arange(votes))
    share = 1.0 / np.bincount(kept.row, minlength=sample.n_rows)[kept.row]
    kept = replace(kept, weight=share)
    return segment(replace(sample, votes=kept), rows, propensity=kept.propensity)


@dataclass(frozen=True)
class Live:
    """A refit with what came after it."""

    refitted: dict[str, Estimate]
    sums: dict[str, LiveSums]

    def estimate(self, name: str) -> Estimate:
        return self.sums[name].estimate(self.refitted[name])


def live(sample: Sample, case: Case, new: Bools, *, all_drawn: bool = False) -> Live:
    """All of a board, some of the new rows (new,) drawn; or every row of the refit taken for one that it drew."""
    every, votes = np.arange(sample.n_rows), len(sample.votes)
    first, late = part(sample, every < REFITTED, votes - REFITTED // 2), every[:REFITTED:2]
    found = one_step(first, Paired(case), TARGETS, clustering=UNIT)
    assert {each.rows_used for each in found.values()} == {DRAWN}
    centres = {key: Centre(each.plug_in, each.correction) for key, each in found.items()}
    thinning = Thinning.of(first)
    assert thinning is not None
    drawn = np.concatenate([thinning.drawn | all_drawn, new])
    times = np.where(drawn, REFITTED / DRAWN, 0.0)
    touched = np.isin(every, late)
    before, now = touched, touched | (every >= REFITTED)
    old, came = (
        live_sums(part(sample, rows, size), case.mu, TARGETS, thinned=Stretched(times[rows], centres, Paired(case)))
        for rows, size in ((before, votes - REFITTED // 2), (now, votes))
    )
    refitted = {key: replace(each.estimate, n_rows=REFITTED) for key, each in found.items()}
    return Live(refitted, {key: each - old[key] for key, each in came.items()})


@pytest.mark.slow
def test_intervals_of_thinned_live_boards_cover_and_are_as_wide_as_scores_scatter() -> None:
    """Unless late votes on any row are taken for votes on rows drawn."""
    rng = np.random.default_rng(11)
    world = World.of(rng)
    found: dict[str, list[Estimate]] = {name: [] for name in (*TARGETS, "rc, all drawn")}
    for _ in range(BOARDS):
        sample = world.draw(rng)
        case = Case(sample, world.models)
        new = rng.random(NEW) < DRAWN / REFITTED
        boards = live(sample, case, new)
        for name in TARGETS:
            found[name].append(boards.estimate(name))
        found["rc, all drawn"].append(live(sample, case, new, all_drawn=True).estimate("rc"))
    for name, each in found.items():
        value, error = np.array([one.value for one in each]), np.array([one.standard_error for one in each])
        width = np.sqrt((error**2).mean(axis=0)) / value.std(axis=0)
        covered = (np.abs(value - world.scores(name.partition(",")[0])) < 1.96 * error).mean(axis=0)
        # Over 300 boards the relative error of a spread is 4%, that of a coverage of .95 is .013.
        if name in TARGETS:
            np.testing.assert_allclose(width, 1.0, atol=0.12, err_msg=name)
            assert (covered >= 0.91).all(), name
        else:
            assert (width < 0.75).all()
            assert (covered < 0.85).all()
