"""Who wins where: a snapshot's router with the models that it reads contexts by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import numpy as np

from app.services.loaded.models import Models
from app.services.refit.games.router import Amortised, Router
from app.stats.types import Floats


@dataclass(frozen=True)
class Routes:
    """A snapshot's payoffs and lotteries at any context.

    Parameters
    ----------
    snapshot_id : of the snapshot.
    router : what was fitted.
    models : that it reads contexts by.
    """

    snapshot_id: UUID
    router: Router
    models: Models

    def payoffs(self, features: Sequence[Mapping[str, Any]]) -> Floats:
        """(u, k, k) payoffs between the players in contexts with these features; judges are silent."""
        router, contest = self.router, self.router.contest
        if router.menus is not None:
            x = self.models.x(features)
            return router.payoffs(x, router.menus.payoffs(self.models.covariates(x, contest.size)))
        found = np.empty((len(features), contest.size, contest.size))
        for part in self.models.portions(len(features)):
            x = self.models.x(features[part])
            leads = self.models.averaged(contest.leads(self.models.predicted(x)))
            found[part] = router.payoffs(x, contest.payoffs(leads))
        return found

    def lotteries(self, amortised: Amortised, features: Sequence[Mapping[str, Any]]) -> Floats:
        """(u, k) of the router's policy in contexts with these features."""
        return amortised.policy.lotteries(self.models.x(features))
