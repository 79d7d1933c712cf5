"""Which pair next: a snapshot's policy with the models that it reads contexts by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import numpy as np

from app.services.loaded.models import Models
from app.services.refit.policy import Plan
from app.stats.acquisition import Beliefs
from app.stats.gars import Estimand, Graph
from app.stats.types import Floats, Rule


@dataclass(frozen=True)
class Advisor:
    """A snapshot's labelling policy.

    Parameters
    ----------
    snapshot_id : of the snapshot.
    plan : the policy.
    estimand, rule : what it makes certain.
    models : that it reads contexts by.
    """

    snapshot_id: UUID
    plan: Plan
    estimand: Estimand
    rule: Rule
    models: Models

    def sensitivities(self, features: Sequence[Mapping[str, Any]]) -> Floats:
        """(u, K, K) of contexts with these features, averaged over the fold models; judges are silent."""
        size, graph = self.models.n_items, Graph.complete(self.models.n_items)
        found = np.empty((len(features), size, size))
        for part in self.models.portions(len(features)):
            mu = self.models.predicted(self.models.x(features[part]))
            each = Beliefs.of([mu], self.rule).sensitivities(self.estimand, graph, self.plan.weight)
            found[part] = self.models.averaged(each)
        return found
