"""What answers for contexts, each loaded once a snapshot and process, away from the requests that it answers."""

from __future__ import annotations

import logging
import pickle
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from threading import Lock
from time import monotonic
from typing import NamedTuple
from uuid import UUID

from app.db.unit_of_work import UnitOfWork
from app.domain.boards import BoardConfig
from app.domain.outcomes import rule
from app.learners import Featuriser, load_model, stacked
from app.services.loaded.advisor import Advisor
from app.services.loaded.models import Models
from app.services.loaded.routes import Routes
from app.services.rankings.opened import estimand_named
from app.services.refit import storage
from app.services.refit.games.router import unpack_router
from app.services.refit.policy import Plan, unpack_plan
from app.services.refit.snapshot import FEATURISER, MODEL, POLICY, ROUTER

KEPT_BYTES = 512 << 20
"""Models of so many bytes stay loaded; of the boards used last."""
REST = 30.0
"""Seconds between two tries to load what cannot be loaded."""

UNPACKED = 4
"""What trees in memory are larger than compressed, about."""

logger = logging.getLogger(__name__)
OpenWork = Callable[[], UnitOfWork]
Load = Callable[[UnitOfWork, int, UUID | None], tuple[UUID | None, "Shelved"]]


class Shelved(NamedTuple):
    """What a snapshot answers for contexts by.

    Parameters
    ----------
    advisor : which pair next; None where the snapshot has no policy.
    routes : who wins where; None where nothing can be played.
    size : bytes in memory, about.
    """

    advisor: Advisor | None = None
    routes: Routes | None = None
    size: int = 0


NOTHING = Shelved()


def load_newest(work: UnitOfWork, board_id: int, known: UUID | None) -> tuple[UUID | None, Shelved]:
    """The newest snapshot and what it answers by; nothing where the snapshot is `known`.

    All is read from one state of the database: a snapshot's artifacts go when two newer ones have come.
    """
    work.gather.freeze()
    snapshot_id = work.assignments.standing(board_id).snapshot_id
    if snapshot_id is None or snapshot_id == known:
        return snapshot_id, NOTHING
    shelved = load_shelved(work, board_id, snapshot_id)
    # The first answer of a model costs more than the others, and tells whether it can answer.
    if shelved.advisor is not None:
        shelved.advisor.sensitivities([{}])
    if shelved.routes is not None:
        shelved.routes.payoffs([{}])
    return snapshot_id, shelved


def load_shelved(work: UnitOfWork, board_id: int, snapshot_id: UUID) -> Shelved:
    """What a snapshot answers by."""
    kinds = (POLICY, FEATURISER, MODEL, ROUTER)
    pieces = {kind: work.snapshots.artifacts(snapshot_id, kind) for kind in kinds}
    board = work.boards.get(board_id)
    if board is None or not (pieces[POLICY] or pieces[ROUTER]):
        return NOTHING
    plan = unpack_plan(storage.joined(pieces[POLICY])) if pieces[POLICY] else None
    router = unpack_router(storage.joined(pieces[ROUTER])) if pieces[ROUTER] else None
    n_items, judges = (len(plan.items), plan.judges) if plan else (router.n_items, router.judges) if router else (0, 0)
    models = _models(pieces, n_items, judges)
    advisor = None if plan is None else _advisor(snapshot_id, plan, models, board.config)
    routes = None if router is None else Routes(snapshot_id, router, models)
    # Artifacts are compressed; what they become is as large as it would be written plainly.
    plain = pickle.dumps((plan and dict(plan.modes), models), protocol=pickle.HIGHEST_PROTOCOL)
    return Shelved(advisor, routes, len(plain) + UNPACKED * sum(map(len, pieces[ROUTER])))


def _models(pieces: Mapping[str, Sequence[bytes]], n_items: int, judges: int) -> Models:
    featuriser = storage.joined(pieces[FEATURISER])
    models = [load_model(body) for body in pieces[MODEL]]
    loaded = Featuriser.from_bytes(featuriser) if featuriser else None
    return Models(loaded, models, stacked(models) if models else None, n_items, judges)


def _advisor(snapshot_id: UUID, plan: Plan, models: Models, config: BoardConfig) -> Advisor:
    return Advisor(snapshot_id, plan, estimand_named(plan.asked.estimand, config), rule(config.categories), models)


@dataclass(slots=True)
class _Place:
    """What is known of a board.

    Parameters
    ----------
    loaded : whether `shelved` says anything.
    shelved : what answers.
    snapshots : the one that was loaded, and the one that asked for a load last.
    loading : the load under way.
    rest_until : no load is tried before, on the clock of `time.monotonic`.
    """

    loaded: bool = False
    shelved: Shelved = NOTHING
    snapshots: tuple[UUID | None, UUID | None] = (None, None)
    loading: Future[None] | None = None
    rest_until: float = 0.0


class Shelf:
    """What answers, by board. Only the first advisor is waited for: while a newer one is loaded, the older answers.

    What cannot be loaded leaves the older one answering; pairs are drawn alike where there is none.

    Parameters
    ----------
    open_work : opens a transaction of the loader's own, on a connection that no request can hold.
    load : reads what a board's newest snapshot answers by, as `load_newest` does.
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
        """Start to load what answers on all boards."""
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
        return None if snapshot_id is None else self._at(board_id, snapshot_id).advisor

    def routes(self, board_id: int, snapshot_id: UUID | None) -> Routes | None:
        """Who wins where by the newest snapshot, which is waited for; None where nothing can be played.

        Where the newest cannot be loaded, the one before answers.
        """
        if snapshot_id is None:
            return None
        for _ in range(2):
            self._at(board_id, snapshot_id)
            loading = self._loading(board_id)
            if loading is None:
                break
            loading.result()
        # Looked at last: what was loading before may be through by now.
        return self._at(board_id, snapshot_id).routes

    def _at(self, board_id: int, snapshot_id: UUID) -> Shelved:
        with self._lock:
            place = self._places.setdefault(board_id, _Place())
            self._places.move_to_end(board_id)
            if snapshot_id not in place.snapshots and place.loading is None and monotonic() >= place.rest_until:
                place.snapshots = (place.snapshots[0], snapshot_id)
                place.loading = self._loader.submit(self._load, board_id, place)
            if place.loaded:
                return place.shelved
            loading = place.loading
        if loading is not None:
            loading.result()
        return place.shelved

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
                loaded, shelved = self._read(work, board_id, place.snapshots[0])
        except Exception:
            logger.exception("the models of board %s could not be loaded", board_id)
            with self._lock:
                place.snapshots, place.loading = (place.snapshots[0], None), None
                place.rest_until = monotonic() + self._rest
            return
        with self._lock:
            if loaded != place.snapshots[0]:
                place.shelved = shelved
            place.loaded, place.snapshots, place.loading = True, (loaded, place.snapshots[1]), None
            self._drop_oldest()

    def _full(self) -> bool:
        with self._lock:
            return self._size() >= self._kept_bytes

    def _size(self) -> int:
        return sum(place.shelved.size for place in self._places.values())

    def _drop_oldest(self) -> None:
        while len(self._places) > 1 and self._size() > self._kept_bytes:
            self._places.popitem(last=False)
