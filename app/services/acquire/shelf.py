"""The policies in force, each loaded once a snapshot and process, away from the requests that they answer."""

from __future__ import annotations

import logging
import pickle
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from threading import Lock
from time import monotonic
from typing import Any
from uuid import UUID

import numpy as np

from app.db.unit_of_work import UnitOfWork
from app.domain.outcomes import rule
from app.learners import Featuriser, Stack, load_model, stacked
from app.services.rankings.opened import estimand_named
from app.services.refit import storage
from app.services.refit.games.router import Amortised, Router, unpack_router
from app.services.refit.policy import Plan, unpack_plan
from app.services.refit.snapshot import FEATURISER, MODEL, POLICY, ROUTER
from app.stats.acquisition import Beliefs
from app.stats.gars import Estimand, Graph
from app.stats.types import Covariates, Floats, OutcomeModel, Rule

KEPT_BYTES = 512 << 20
"""Policies of so many bytes stay loaded; of the boards used last."""
REST = 30.0
"""Seconds between two tries to load what cannot be loaded."""

CELLS = 1_000_000
"""Contexts × models × K² that are looked at in one go.

What a request holds in memory is a few times this, whatever it asks for.
"""
UNPACKED = 4
"""What trees in memory are larger than compressed, about."""
FEW = 16
"""Contexts up to which the fold models are asked as one; where there are more, what they hold in the cache counts."""

logger = logging.getLogger(__name__)
OpenWork = Callable[[], UnitOfWork]
Load = Callable[[UnitOfWork, int, UUID | None], tuple[UUID | None, "Advisor | None"]]


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
    stack : the same as one, where they are alike.
    size : bytes in memory, about.
    router : who wins where; None where nothing can be played.
    """

    snapshot_id: UUID
    plan: Plan
    estimand: Estimand
    rule: Rule
    graph: Graph
    featuriser: Featuriser | None
    models: Sequence[OutcomeModel]
    stack: Stack | None
    size: int
    router: Router | None = None

    def sensitivities(self, features: Sequence[Mapping[str, Any]]) -> Floats:
        """(u, K, K) of contexts with these features, averaged over the fold models; judges are silent."""
        size = self.graph.n_items
        found = np.empty((len(features), size, size))
        for part in self._portions(len(features)):
            # All fold models as one: numpy's price of a call is paid once.
            mu = self._predicted(self._covariates(self._x(features[part])))
            each = Beliefs.of([mu], self.rule).sensitivities(self.estimand, self.graph, self.plan.weight)
            found[part] = self._averaged(each)
        return found

    def payoffs(self, router: Router, features: Sequence[Mapping[str, Any]]) -> Floats:
        """(u, k, k) payoffs between the router's players in contexts with these features; judges are silent."""
        found = np.empty((len(features), router.contest.size, router.contest.size))
        for part in self._portions(len(features)):
            x = self._x(features[part])
            leads = self._averaged(router.contest.leads(self._predicted(self._covariates(x))))
            found[part] = router.payoffs(x, router.contest.payoffs(leads))
        return found

    def lotteries(self, amortised: Amortised, features: Sequence[Mapping[str, Any]]) -> Floats:
        """(u, k) of the router's policy in contexts with these features."""
        return amortised.policy.lotteries(self._x(features))

    def _portions(self, contexts: int) -> Iterator[slice]:
        step = max(1, CELLS // (len(self.models) * self.graph.n_items**2))
        return (slice(start, start + step) for start in range(0, contexts, step))

    def _averaged(self, each: Floats) -> Floats:
        """(u, K, K) means over the fold models of values (models u, K, K)."""
        size = self.graph.n_items
        mean: Floats = each.reshape(len(self.models), -1, size, size).mean(axis=0)
        return mean

    def _predicted(self, part: Covariates) -> Floats:
        """(models u, K, K, C)."""
        if self.stack is not None and len(part) <= FEW:
            return self.stack.probabilities(part)
        return np.concatenate([model.probabilities(part) for model in self.models])

    def _x(self, features: Sequence[Mapping[str, Any]]) -> Floats:
        return np.zeros((len(features), 0)) if self.featuriser is None else self.featuriser.transform(features)

    def _covariates(self, x: Floats) -> Covariates:
        if not self.plan.judges:
            return Covariates(x)
        size = len(self.plan.items)
        return Covariates(x, np.full((len(x), size, size, self.plan.judges), np.nan))


def load_newest(work: UnitOfWork, board_id: int, known: UUID | None) -> tuple[UUID | None, Advisor | None]:
    """The newest snapshot and its policy; no policy where the snapshot is `known`, or has none.

    All is read from one state of the database: a snapshot's artifacts go when two newer ones have come.
    """
    work.gather.freeze()
    snapshot_id = work.assignments.standing(board_id).snapshot_id
    if snapshot_id is None or snapshot_id == known:
        return snapshot_id, None
    advisor = load_advisor(work, board_id, snapshot_id)
    if advisor is not None:
        # The first answer of a model costs more than the others, and tells whether it can answer.
        advisor.sensitivities([{}])
    return snapshot_id, advisor


def load_advisor(work: UnitOfWork, board_id: int, snapshot_id: UUID) -> Advisor | None:
    """The policy of a snapshot; None where it has none."""
    pieces = {kind: work.snapshots.artifacts(snapshot_id, kind) for kind in (POLICY, FEATURISER, MODEL, ROUTER)}
    board = work.boards.get(board_id)
    if not pieces[POLICY] or board is None:
        return None
    plan = unpack_plan(storage.joined(pieces[POLICY]))
    featuriser = storage.joined(pieces[FEATURISER])
    loaded = Featuriser.from_bytes(featuriser) if featuriser else None
    models = [load_model(body) for body in pieces[MODEL]]
    router = storage.joined(pieces[ROUTER])
    return Advisor(
        snapshot_id,
        plan,
        estimand_named(plan.asked.estimand, board.config),
        rule(board.config.categories),
        Graph.complete(len(plan.items)),
        loaded,
        models,
        stack := stacked(models),
        # Artifacts are compressed; what they become is as large as it would be written plainly.
        len(pickle.dumps((dict(plan.modes), loaded, models, stack), protocol=pickle.HIGHEST_PROTOCOL))
        + UNPACKED * len(router),
        unpack_router(router) if router else None,
    )


@dataclass(slots=True)
class _Place:
    """What is known of a board.

    Parameters
    ----------
    loaded : whether `advisor` says anything.
    advisor : None where the snapshot has no policy.
    snapshots : the one that was loaded, and the one that asked for a load last.
    loading : the load under way.
    rest_until : no load is tried before, on the clock of `time.monotonic`.
    """

    loaded: bool = False
    advisor: Advisor | None = None
    snapshots: tuple[UUID | None, UUID | None] = (None, None)
    loading: Future[None] | None = None
    rest_until: float = 0.0


class Shelf:
    """Advisors by board. While a newer snapshot's one is loaded, the older answers; the very first is waited for.

    Where a policy cannot be loaded, the older one goes on answering, and pairs are drawn alike where there is none.

    Parameters
    ----------
    open_work : opens a transaction of the loader's own, on a connection that no request can hold.
    load : reads a board's newest policy, as `load_newest` does.
    kept_bytes : see `KEPT_BYTES`.
    rest : seconds until a load that failed is tried again.
    """

    def __init__(
        self, open_work: OpenWork, *, load: Load = load_newest, kept_bytes: int = KEPT_BYTES, rest: float = REST
    ) -> None:
        self._open_work, self._read, self._kept_bytes, self._rest = open_work, load, kept_bytes, rest
        self._lock = Lock()
        self._places: OrderedDict[int, _Place] = OrderedDict()
        self._loader = ThreadPoolExecutor(1, thread_name_prefix="policy-loader")
        # Boards are warmed one by one, so that a request waits for one load at most before its own.
        self._warmer = ThreadPoolExecutor(1, thread_name_prefix="policy-warmer")
        self._closed = False

    def warm(self) -> None:
        """Start to load the policies of all boards."""
        self._warmer.submit(self._warm_all)

    def close(self) -> None:
        """Stop loading; what is under way is waited for."""
        self._closed = True
        self._loader.shutdown(wait=True, cancel_futures=True)
        self._warmer.shutdown(wait=True, cancel_futures=True)

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
            place = self._places.setdefault(board_id, _Place())
            self._places.move_to_end(board_id)
            if snapshot_id not in place.snapshots and place.loading is None and monotonic() >= place.rest_until:
                place.snapshots = (place.snapshots[0], snapshot_id)
                place.loading = self._loader.submit(self._load, board_id, place)
            if place.loaded:
                return place.advisor
            loading = place.loading
        if loading is not None:
            loading.result()
        return place.advisor

    def newest(self, board_id: int, snapshot_id: UUID | None) -> Advisor | None:
        """The same, but a load under way is waited for: for answers that say which snapshot they are of."""
        for _ in range(2):
            advisor, loading = self.advisor(board_id, snapshot_id), self._loading(board_id)
            if loading is None:
                return advisor
            loading.result()
        return self.advisor(board_id, snapshot_id)

    def _loading(self, board_id: int) -> Future[None] | None:
        with self._lock:
            place = self._places.get(board_id)
            return None if place is None else place.loading

    def _warm_all(self) -> None:
        with self._open_work() as work:
            newest = {board.id: work.assignments.standing(board.id).snapshot_id for board in work.boards.list()}
        for board_id, snapshot_id in newest.items():
            if not self._closed and not self._full():
                self.advisor(board_id, snapshot_id)

    def _load(self, board_id: int, place: _Place) -> None:
        try:
            with self._open_work() as work:
                loaded, advisor = self._read(work, board_id, place.snapshots[0])
        except Exception:
            logger.exception("the policy of board %s could not be loaded", board_id)
            with self._lock:
                place.snapshots, place.loading = (place.snapshots[0], None), None
                place.rest_until = monotonic() + self._rest
            return
        with self._lock:
            if loaded != place.snapshots[0]:
                place.advisor = advisor
            place.loaded, place.snapshots, place.loading = True, (loaded, place.snapshots[1]), None
            self._drop_oldest()

    def _full(self) -> bool:
        with self._lock:
            return self._size() >= self._kept_bytes

    def _size(self) -> int:
        return sum(place.advisor.size for place in self._places.values() if place.advisor)

    def _drop_oldest(self) -> None:
        while len(self._places) > 1 and self._size() > self._kept_bytes:
            self._places.popitem(last=False)
