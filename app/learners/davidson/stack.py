"""Several fitted models as one: what they say of a few contexts, at the price of one of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from app.learners.davidson.model import LARGEST_LOGIT, DavidsonModel, largest_logit
from app.learners.davidson.pairs import places
from app.learners.walks import Walks
from app.stats.scaling import Scaling
from app.stats.types import Covariates, Floats


@dataclass(frozen=True, slots=True)
class Stack:
    """V models of the same items, categories and covariates, judges silent.

    Parameters
    ----------
    models : the models.
    scaling : mean and scale (V, 1, d) each.
    utilities : (V, 1 + d, K).
    levels : (V, 1 + d, F).
    pairs : (V, 1 + d, pairs), 0 where a model's effects are not linear in x.
    position : (V, 1, 1, 1).
    alike : (F, V, 1, K, K) what an ordered pair adds to the levels.
    raised : e to that power.
    trees : of all models: the utilities' first, then the levels'.
    """

    models: Sequence[DavidsonModel]
    scaling: Scaling
    utilities: Floats
    levels: Floats
    pairs: Floats
    position: Floats
    alike: Floats
    raised: Floats
    trees: Walks

    @classmethod
    def of(cls, models: Sequence[DavidsonModel]) -> Stack:
        """Lay the models' numbers side by side."""
        width = models[0].utilities.theta.shape[1]
        gammas = [each.pairs.gamma.T for each in models]
        items = np.stack([each.levels.items for each in models], axis=1)[:, :, None]
        alike = items[..., :, None] + items[..., None, :]
        utility_trees = [text for each in models for text in each.utility_trees.texts]
        level_trees = [text for each in models for text in each.level_trees.texts]
        return cls(
            models,
            Scaling(
                np.stack([each.scaling.mean for each in models])[:, None],
                np.stack([each.scaling.scale for each in models])[:, None],
            ),
            np.stack([each.utilities.theta.T for each in models]),
            np.stack([each.levels.tau.T for each in models]),
            np.stack([np.pad(gamma, ((0, width - len(gamma)), (0, 0))) for gamma in gammas]),
            np.array([each.utilities.position for each in models])[:, None, None, None],
            alike,
            np.exp(np.minimum(alike, LARGEST_LOGIT)),
            Walks.of([*utility_trees, *level_trees]),
        )

    def probabilities(self, x: Covariates) -> Floats:
        """(V u, K, K, C) what `probabilities` of each model says in turn."""
        design = self.scaling.design(x.x)
        utility, level = design @ self.utilities, design @ self.levels
        self._add_trees(x.x, utility, level)
        own = design @ self.pairs
        signed = np.concatenate([own, -own, np.zeros((*own.shape[:2], 1))], axis=-1)
        size = utility.shape[-1]
        difference = signed.take(places(size), axis=-1)
        difference += utility[..., :, None] + self.position
        difference -= utility[..., None, :]
        if not largest_logit(difference, level, self.alike) <= LARGEST_LOGIT:
            return np.concatenate([model.probabilities(Covariates(x.x)) for model in self.models])
        categories = self.models[0].categories
        found = np.empty((categories.n_categories, *difference.shape))
        categories.raised(difference, np.exp(level), self.raised, out=found)
        return np.moveaxis(found.reshape(categories.n_categories, -1, size, size), 0, -1)

    def _add_trees(self, x: Floats, utility: Floats, level: Floats) -> None:
        scores, both = self.trees.scores(x), (utility, level)
        parts = np.split(scores, [len(utility) * utility.shape[-1]], axis=1)
        for linear, scored in zip(both, parts, strict=True):
            linear += scored.reshape(len(x), *linear.shape[::2]).swapaxes(0, 1)


def stacked(models: Sequence[object]) -> Stack | None:
    """The models as one; None where they are not alike enough."""
    known = [each for each in models if isinstance(each, DavidsonModel)]
    kinds = {
        (each.utilities.theta.shape, each.levels.tau.shape, tuple(each.categories.slope), tuple(each.categories.free))
        for each in known
    }
    return Stack.of(known) if len(known) == len(models) and len(kinds) == 1 else None
