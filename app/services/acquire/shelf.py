"""The policies in force, each loaded once a snapshot and process, away from the requests that they answer."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from threading import Lock
from typing import Any
from uuid import UUID

import numpy as np

from app.db.unit_of_work import UnitOfWork
from app.domain.outcomes import rule
from app.learners import Featuriser, load_model
from app.services.rankings.opened import estimand_named
from app.services.refit import storage
from app.services.refit.policy import Plan, unpack_plan
from app.services.refit.snapshot import FEATURISER, MODEL, POLICY
from app.stats.acquisition import Beliefs
from app.stats.gars import Estimand, Graph
from app.stats.types import Covariates, Floats, OutcomeModel, Rule

KEPT_BYTES = 512 << 20
"""Artifacts of so many bytes stay loaded; of the boards used last."""

CELLS = 1_000_000
"""Contexts × models × K² that are looked at in one go.

What a request holds in memory is a few times this, whatever it asks for.
"""

logger = logging.getLogger(__name__)
OpenWork = Callable[[], UnitOfWork]


@dataclass(frozen=True)
class Advisor:
    """A snapshot's policy with the models that it reads contexts by.

    Parameters
    ----------
    snapshot_id : of the snapshot.
    plan : the policy.
    estimand, rule : what it makes certain.
    graph : all pairs of its items.
    featuriser : None on boards without features.
    models : of the folds.
    size : bytes of the artifacts.
    """

    snapshot_id: UUID
    plan: Plan
    estimand: Estimand
    rule: Rule
    graph: Graph
    featuriser: Featuriser | None
    models: Sequence[OutcomeModel]
    size: int

    def sensitivities(self, features: Sequence[Mapping[str, Any]]) -> Floats:
        """(u, K, K) of contexts with these features, averaged over the fold models; judges are silent."""
        known, size = self._covariates(features), self.graph.n_items
        found = np.empty((len(known), size, size))
        step = max(1, CELLS // (len(self.models) * size**2))
        for start in range(0, len(known), step):
            part = known.take(np.arange(start, min(start + step, len(known))))
            # All fold models as one: numpy's price of a call is paid once.
            mu = np.concatenate([model.probabilities(part) for model in self.models])
            each = Beliefs.of([mu], self.rule).sensitivities(self.estimand, self.graph, self.plan.weight)
            found[start : start + step] = each.reshape(len(self.models), -1, size, size).mean(axis=0)
        return found

    def _covariates(self, features: Sequence[Mapping[str, Any]]) -> Covariates:
        x = np.zeros((len(features), 0)) if self.featuriser is None else self.featuriser.transform(features)
        if not self.plan.judges:
            return Covariates(x)
        size = len(self.plan.items)
        return Covariates(x, np.full((len(features), size, size, self.plan.judges), np.nan))


class Shelf:
    """Advisors by board. While a newer snapshot's one is loaded, the older answers; the very first is waited for.

    Parameters
    ----------
    open_work : opens a transaction of the loader's own.
    """

    def __init__(self, open_work: OpenWork) -> None:
        self._open_work = open_work
        self._lock = Lock()
        self._ready: OrderedDict[int, Advisor | None] = OrderedDict()
        self._newest: dict[int, UUID] = {}
        self._loading: dict[int, Future[None]] = {}
        self._loader = ThreadPoolExecutor(1, thread_name_prefix="policies")

    def warm(self) -> None:
        """Start to load the policies of all boards."""
        self._loader.submit(self._load_all)

    def close(self) -> None:
        """Stop loading."""
        self._loader.shutdown(wait=True, cancel_futures=True)

    def advisor(self, board_id: int, snapshot_id: UUID | None) -> Advisor | None:
        """The board's policy by its newest snapshot, or by the one before while that is loaded.

        Parameters
        ----------
        snapshot_id : the newest snapshot; None before the first.

        Returns
        -------
        None where there is nothing yet that a policy could be made of.
        """
        if snapshot_id is None:
            return None
        with self._lock:
            known = board_id in self._ready
            waits = None if self._newest.get(board_id) == snapshot_id else self._request(board_id, snapshot_id)
            if known:
                self._ready.move_to_end(board_id)
                return self._ready[board_id]
            waits = waits or self._loading.get(board_id)
        if waits is not None:
            waits.result()
        with self._lock:
            return self._ready.get(board_id)

    def _request(self, board_id: int, snapshot_id: UUID) -> Future[None]:
        self._newest[board_id] = snapshot_id
        future = self._loader.submit(self._load, board_id, snapshot_id)
        self._loading[board_id] = future
        return future

    def _load_all(self) -> None:
        with self._open_work() as work:
            boards = [(board.id, work.snapshots.head(board.id).snapshot_id) for board in work.boards.list()]
        for board_id, snapshot_id in boards:
            if snapshot_id is not None:
                with self._lock:
                    if board_id in self._newest:
                        continue
                    self._newest[board_id] = snapshot_id
                self._load(board_id, snapshot_id)

    def _load(self, board_id: int, snapshot_id: UUID) -> None:
        try:
            with self._open_work() as work:
                advisor = load_advisor(work, board_id, snapshot_id)
        except Exception:
            logger.exception("the policy of snapshot %s could not be loaded", snapshot_id)
            with self._lock:
                self._newest.pop(board_id, None)
            return
        with self._lock:
            if self._newest.get(board_id) == snapshot_id:
                self._ready[board_id] = advisor
                self._ready.move_to_end(board_id)
                self._loading.pop(board_id, None)
                self._drop_oldest()

    def _drop_oldest(self) -> None:
        while len(self._ready) > 1 and sum(each.size for each in self._ready.values() if each) > KEPT_BYTES:
            board_id, _ = self._ready.popitem(last=False)
            self._newest.pop(board_id, None)


def load_advisor(work: UnitOfWork, board_id: int, snapshot_id: UUID) -> Advisor | None:
    """The policy of a snapshot; None where it has none."""
    pieces = {kind: work.snapshots.artifacts(snapshot_id, kind) for kind in (POLICY, FEATURISER, MODEL)}
    board = work.boards.get(board_id)
    if not pieces[POLICY] or board is None:
        return None
    plan = unpack_plan(storage.joined(pieces[POLICY]))
    featuriser = storage.joined(pieces[FEATURISER])
    return Advisor(
        snapshot_id,
        plan,
        estimand_named(plan.asked.estimand, board.config),
        rule(board.config.categories),
        Graph.complete(len(plan.items)),
        Featuriser.from_bytes(featuriser) if featuriser else None,
        [load_model(body) for body in pieces[MODEL]],
        sum(len(piece) for kind in pieces.values() for piece in kind),
    )
