"""Judgements in the rows that a step touches: by the judges that the refit heard, whose margins its models expect.

A row that the refit had keeps what it was refitted with. A newer one has what had been judged of its context by the
mark that it is read at, so that it changes as more is judged; judgements themselves never change.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import numpy as np

from app.db.packed import Columns
from app.db.unit_of_work import UnitOfWork
from app.domain.boards import Board
from app.services.refit.frozen import FrozenBoard
from app.services.refit.gathering import judgements_of
from app.services.refit.inputs import Inputs
from app.services.refit.judges import heard_by
from app.stats.types import Floats, Ints

SINCE = datetime(2000, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Judged:
    """What was judged of some contexts.

    Parameters
    ----------
    frozen : what the refit left.
    basis : when it read.
    refitted : contexts whose rows it had.
    hashes : of the judges' names.
    columns, chances : judgements as they are stored, and (g, C) their chances.
    """

    frozen: FrozenBoard
    basis: datetime
    refitted: Ints
    hashes: Ints
    columns: Columns
    chances: Floats

    @classmethod
    def read(
        cls, work: UnitOfWork, board: Board, frozen: FrozenBoard, contexts: Ints, *, basis: datetime, refitted: Ints
    ) -> Judged:
        """Of these contexts, all that is stored by now."""
        outcomes = [category.name for category in board.config.categories]
        stored = work.gather.judgements_of_contexts(board.id, contexts, outcomes, judges=frozen.judges)
        return cls(frozen, basis, refitted, work.live.judge_hashes(frozen.judges), *stored)

    def at(self, inputs: Inputs, moment: datetime) -> Inputs:
        """The inputs with what had been judged by a moment."""
        if not self.frozen.judges:
            return inputs
        known = np.isin(self.columns["context"], self.refitted)
        there = self.columns["created"] <= np.where(known, _microseconds(self.basis), _microseconds(moment))
        stored = {name: values[there] for name, values in self.columns.items()}, self.chances[there]
        roster, rule, contexts = inputs.roster, self.frozen.rule, inputs.contexts
        judged = judgements_of(stored, contexts, rule, roster=roster, hashes=self.hashes)
        n_items = len(self.frozen.items)
        contexts, judges = heard_by(judged, len(self.frozen.judges), contexts, n_items=n_items)
        return replace(inputs, contexts=contexts, judges=judges)


def _microseconds(moment: datetime) -> int:
    """Since 2000, as times are read."""
    return (moment - SINCE) // timedelta(microseconds=1)
