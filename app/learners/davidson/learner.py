"""The contextual Davidson model, fitted in stages."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from app.learners.constant import ConstantRates, or_constant
from app.learners.davidson.boosting import LevelObjective, UtilityObjective
from app.learners.davidson.categories import Categories
from app.learners.davidson.cells import Appearances, Cells, collapse, dealt, held_out
from app.learners.davidson.levels import Ballot, LevelLikelihood, LinearLevels
from app.learners.davidson.model import DavidsonModel
from app.learners.davidson.pairs import fit_pairs
from app.learners.davidson.preference import Preference
from app.learners.davidson.utilities import LinearUtilities, UtilityLikelihood
from app.learners.trees import Forest, Ground, Nursery, Objective, Shape
from app.stats.ridge import fit_ridge
from app.stats.scaling import Scaling
from app.stats.types import Floats, OutcomeModel, Training

_PARTS, _ENOUGH = 5, 20_000.0
"""Inner folds that the judges' share is chosen by, and the weight of votes held out from which fewer will do."""
_SHARES = (0.0, 0.5, 1.0)


@dataclass(frozen=True, slots=True)
class DavidsonLearner:
    """Fits utilities, pair effects and category levels by stages; what the votes do not tell is shrunk to the prior.

    Parameters
    ----------
    trees : how the boosted residuals grow.
    """

    trees: Shape = field(default_factory=Shape)

    def fit(self, training: Training, *, seed: int) -> DavidsonModel | ConstantRates:
        """Fit all stages; the constant rates where that fails.

        Parameters
        ----------
        training : the votes of the other folds; a fifth of their groups says when trees stop.
        seed : of the held-out draw.
        """
        return or_constant(lambda: _Stages(training, self.trees, seed).model(), training, name="davidson")

    def begin(self, training: Training, *, seed: int) -> DavidsonModel | ConstantRates:
        """All stages but the last, which take half of the time: levels are 0."""
        return or_constant(lambda: _Stages(training, self.trees, seed).begun(), training, name="davidson")

    def finish(self, training: Training, begun: OutcomeModel, *, seed: int) -> OutcomeModel:
        """The last stage, given the others of the same votes: together they are `fit`."""
        if not isinstance(begun, DavidsonModel):
            return begun
        return or_constant(lambda: _Stages(training, self.trees, seed).finished(begun), training, name="davidson")


class _Stages:
    """One fit: what its stages share."""

    def __init__(self, training: Training, trees: Shape, seed: int) -> None:
        cells = collapse(training, held_out(training.group, seed=seed))
        self.training = training
        self.x = training.x.x
        self.n_items = training.n_items
        self.cells = replace(cells, margins=np.nan_to_num(cells.margins))
        self.trees = trees
        self.seed = seed
        self.categories = Categories.of(training.rule)
        self.scaling = Scaling.of(self.x[np.unique(cells.pattern)])
        self.design = self.scaling.design(self.x)

    @cached_property
    def ground(self) -> Ground:
        return Ground(self.x)

    def model(self) -> DavidsonModel:
        """All stages."""
        return self.finished(self.begun())

    def begun(self) -> DavidsonModel:
        """Stages (a) to (c)."""
        graded = self.cells.take(self.categories.graded[self.cells.outcome])
        appearances = Appearances.of(graded, n_items=self.n_items)
        preference = Preference.of(self.categories, graded.outcome)
        likelihood = UtilityLikelihood.of(self.design, graded, appearances, preference=preference)
        judges = self.judges(likelihood)
        utilities, trees, difference = self.utilities(likelihood.given(judges), graded)
        utilities = replace(utilities, judges=judges)
        at = preference.derivatives(difference, utilities.levels, graded.weight)
        pairs = fit_pairs(self.design, graded, slope=at.slope, curve=at.curve, n_items=self.n_items)
        free = self.categories.free.size
        nothing = LinearLevels(np.zeros((free, self.design.shape[1])), np.zeros((free, self.n_items)))
        return DavidsonModel(self.scaling, self.categories, utilities, trees, pairs, nothing, Forest([""] * free))

    def finished(self, begun: DavidsonModel) -> DavidsonModel:
        """Stage (d)."""
        linear, trees = self.levels(begun)
        return replace(begun, levels=linear, level_trees=trees)

    def judges(self, likelihood: UtilityLikelihood) -> Floats:
        """(q,) β: the slopes of stage (a), less what the later stages make of the same votes.

        Beside lines alone, a judge is also credited with what trees and pair effects would explain, and brings its
        noise with it. So its slopes are multiplied by the share of them that predicts votes held out best, over as many
        of five inner folds as hold votes enough.
        """
        if not likelihood.margins.shape[1]:
            return np.zeros(0)
        slopes = linear_of(likelihood).judges
        losses, heard = np.zeros(len(_SHARES)), 0.0
        part = dealt(self.training.group, _PARTS, seed=self.seed)
        for fold in range(_PARTS):
            cells = collapse(self.training, part == fold).take(self.categories.graded[self.cells.outcome])
            kept = replace(likelihood, weight=cells.kept)
            own = linear_of(kept).judges
            losses += [self.held_loss(kept.given(share * own), cells) for share in _SHARES]
            heard += cells.held.sum()
            if heard >= _ENOUGH:
                break
        return slopes * lowest(losses)

    def held_loss(self, kept: UtilityLikelihood, graded: Cells) -> float:
        """The held-out votes' loss after lines and pair effects."""
        linear = linear_of(kept)
        difference = kept.differences(linear)
        at = kept.preference.derivatives(difference, linear.levels, kept.weight)
        pairs = fit_pairs(self.design, graded, slope=at.slope, curve=at.curve, n_items=self.n_items)
        difference = difference + pairs.at(self.design[graded.pattern], graded.left, graded.right)
        return kept.preference.derivatives(difference, linear.levels, graded.held).value

    def utilities(self, likelihood: UtilityLikelihood, graded: Cells) -> tuple[LinearUtilities, Forest, Floats]:
        """Stages (a) and (b), and D of each graded cell."""

        def objective(weight: Floats) -> tuple[LinearUtilities, UtilityObjective]:
            likely = replace(likelihood, weight=weight)
            linear = linear_of(likely)
            difference = likely.differences(linear)
            return linear, UtilityObjective(
                likely.preference, likely.appearances, graded, difference, linear.levels, weight
            )

        linear, whole = objective(graded.weight)
        if not self.growable(graded):
            return linear, Forest([""] * self.n_items), whole.difference
        rows = np.split(likelihood.appearances.pattern, likelihood.appearances.bounds[1:-1])
        forest, scores = self.grow(Nursery(self.ground, rows), objective(graded.kept)[1], whole)
        return linear, forest, whole.difference + likelihood.appearances.difference(scores)

    def levels(self, begun: DavidsonModel) -> tuple[LinearLevels, Forest]:
        """Levels given the difference of utilities."""
        ballot = Ballot(self.categories, self.cells, self.difference(begun))
        likelihood = LevelLikelihood(self.design, ballot, self.n_items, self.cells.weight)
        patterns, place = np.unique(self.cells.pattern, return_inverse=True)

        def objective(weight: Floats) -> tuple[LinearLevels, LevelObjective]:
            likely = replace(likelihood, weight=weight)
            linear = likely.unpack(fit_ridge(likely, likely.start(), likely.families()).w)
            return linear, LevelObjective(ballot, likely.levels(linear), place, patterns.size, weight)

        free = self.categories.free.size
        if not free:
            return begun.levels, begun.level_trees
        linear, whole = objective(self.cells.weight)
        if not self.growable(self.cells):
            return linear, Forest([""] * free)
        nursery = Nursery(self.ground, [patterns] * free)
        forest, _ = self.grow(nursery, objective(self.cells.kept)[1], whole)
        return linear, forest

    def growable(self, cells: Cells) -> bool:
        """Whether trees have something to split on and votes to be stopped by."""
        return bool(np.isfinite(self.scaling.scale).any() and cells.held.sum() > 0 and cells.kept.sum() > 0)

    def grow(self, nursery: Nursery, kept: Objective, whole: Objective) -> tuple[Forest, Floats]:
        """As many rounds on all votes as helped the held-out ones."""
        rounds = nursery.best_rounds(kept, self.trees, seed=self.seed)
        return nursery.grow(whole, replace(self.trees, rounds=rounds), seed=self.seed)

    def difference(self, begun: DavidsonModel) -> Floats:
        """(m,) D of every cell."""
        utilities, trees = begun.utilities, begun.utility_trees
        everyone = Appearances.of(self.cells, n_items=self.n_items)
        rows = np.split(everyone.pattern, everyone.bounds[1:-1])
        utility = np.concatenate(
            [
                self.design[row] @ theta + trees.scores(item, self.x[row])
                for item, (row, theta) in enumerate(zip(rows, utilities.theta, strict=True))
            ]
        )
        fixed = utilities.position + self.cells.margins @ utilities.judges
        effects = begun.pairs.at(self.design[self.cells.pattern], self.cells.left, self.cells.right)
        return everyone.difference(utility) + fixed + effects


def linear_of(likelihood: UtilityLikelihood) -> LinearUtilities:
    """Stage (a)."""
    return likelihood.unpack(fit_ridge(likelihood, likelihood.start(), likelihood.families()).w)


def lowest(losses: Floats) -> float:
    """The place in [0, 1] where the parabola through losses (3,) at 0, ½ and 1 is lowest."""
    first, middle, last = losses
    bend = first - 2 * middle + last
    if bend <= 0:
        return float(last < first)
    return float(np.clip(0.5 + (first - last) / (4 * bend), 0.0, 1.0))
