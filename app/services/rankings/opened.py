"""Snapshots opened for questions beyond their tables: rows and fold models, the newest ones kept in memory."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from functools import cached_property
from threading import Lock
from uuid import UUID

from app.db.models.snapshots import Snapshot
from app.db.unit_of_work import UnitOfWork
from app.domain.boards import BoardConfig
from app.domain.errors import Invalid, Missing
from app.learners import load_model
from app.services.refit import storage
from app.services.refit.fitting import FoldModels
from app.services.refit.modelled import Contextual, contextual_model
from app.services.refit.scoring import Scorer, estimands_of
from app.services.refit.snapshot import MODEL, SAMPLE
from app.services.refit.storage import Stored
from app.stats.errors import InvalidInput
from app.stats.gars import Estimand

MOST_ROWS = 500_000
"""Rows of a board from which windows are not computed while somebody waits."""
KEPT = 4


@dataclass(frozen=True)
class Opened:
    """A snapshot's rows and models.

    Parameters
    ----------
    stored, models : as they were fitted.
    consistent : whether the propensities added up.
    """

    stored: Stored
    models: FoldModels
    consistent: bool

    @cached_property
    def contextual(self) -> Contextual:
        """The contextual model, fitted anew at most once."""
        known = self.stored.covariates
        return Contextual(known, lambda: contextual_model(self.stored.frame.view(), known))

    def scorer(self, *estimands: Estimand, estimator: str) -> Scorer:
        """Scores views of the snapshot, by one of the costlier estimators only where it is the one."""
        frame, mu = self.stored.frame, self.models.mu
        return Scorer(frame, mu, estimands, self.contextual, self.consistent, modelled=(estimator,))


class Opener:
    """Opens snapshots; a few of the last ones stay open, of boards small enough for that."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._kept: OrderedDict[UUID, Opened] = OrderedDict()

    def open(self, work: UnitOfWork, snapshot: Snapshot) -> Opened:
        """The snapshot's rows and models, while it is one of the newest of its board."""
        with self._lock:
            if snapshot.id in self._kept:
                self._kept.move_to_end(snapshot.id)
                return self._kept[snapshot.id]
        opened = open_snapshot(work, snapshot)
        if opened.stored.frame.sample.n_rows <= MOST_ROWS:
            with self._lock:
                self._kept[snapshot.id] = opened
                while len(self._kept) > KEPT:
                    self._kept.popitem(last=False)
        return opened


def open_snapshot(work: UnitOfWork, snapshot: Snapshot) -> Opened:
    """Read a snapshot's rows and models."""
    pieces = work.snapshots.artifacts(snapshot.id, SAMPLE)
    if not pieces:
        raise Missing("snapshot-closed", "the rows of this snapshot are no longer kept", got=str(snapshot.id))
    stored = storage.unpack_stored(storage.joined(pieces))
    models = tuple(load_model(body) for body in work.snapshots.artifacts(snapshot.id, MODEL))
    balance = snapshot.summary["balance"]
    return Opened(stored, FoldModels(models, stored.covariates), balance is None or balance["consistent"])


def check_size(snapshot: Snapshot) -> None:
    """Refuse a window on a board that is too large for it."""
    if snapshot.summary["rows"] > MOST_ROWS:
        detail = f"windows are computed on boards of at most {MOST_ROWS:,} rows"
        raise Invalid("window-too-large", detail, path="from", got=snapshot.summary["rows"])


def estimand_named(name: str, config: BoardConfig) -> Estimand:
    """The board's estimand of this name, which is one it serves; refused where it is not registered any more."""
    try:
        return next(each for each in estimands_of(config) if each.name == name)
    except InvalidInput as error:
        raise Invalid("estimand-not-registered", str(error), path="estimand", got=name) from error
