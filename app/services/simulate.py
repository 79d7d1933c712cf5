"""Simulated voters: they vote on a board through the same service as everybody."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count
from threading import Event
from uuid import UUID, uuid5

import numpy as np

from app.db.unit_of_work import UnitOfWork
from app.domain.ballots import Ballot, ContextRef
from app.domain.boards import Board, BoardDraft, Unit
from app.domain.contexts import ContextDraft
from app.domain.features import Feature
from app.domain.items import ItemDraft
from app.services import boards, contexts, items, votes
from app.stats.simulate import Arena, Cyclic, Draws, Generator
from app.stats.types import Floats

UnitsOfWork = Callable[[], UnitOfWork]

FEATURES = (Feature("language", "categorical"), Feature("length", "numeric"), Feature("difficulty", "numeric"))
LANGUAGES = ("de", "en", "fr")
OUTCOMES = ("left", "right", "tie", "both_bad")
NAMESPACE = UUID("5a1d0f6e-6f0c-4c58-9d7e-3a0b5a7f2c11")
BLOCK = 500
"""Offers drawn at a time."""
BATCH = 500
"""Votes sent at a time where no rate is asked for."""


@dataclass(frozen=True, slots=True)
class Packet:
    """One offer: its context and the votes it brought, none, one or several."""

    context: ContextDraft
    ballots: tuple[Ballot, ...]


class Simulation:
    """Voters of one board; equal seeds cast equal votes, under equal ids.

    Parameters
    ----------
    board : where they vote; its unit decides how pairs are drawn.
    names : at least two items.
    seed : not negative.
    """

    def __init__(self, open_work: UnitsOfWork, board: Board, names: Sequence[str], *, seed: int) -> None:
        self._open_work = open_work
        self._board = board
        self._names = names
        self._seed = seed
        self._declared = {feature.name for feature in board.config.features}

    def run(self, *, most: int | None, rate: float | None, stop: Event) -> Iterator[Counter[str]]:
        """Vote until `most` votes are cast (None: without end) or `stop` is set; yield the fates of each batch.

        Parameters
        ----------
        rate : votes a second; None as fast as the service takes them.
        """
        left, packets = most, self.packets()
        while not stop.is_set() and (left is None or left > 0):
            size = BATCH if rate is None else 1
            batch = _take(packets, size if left is None else min(size, left))
            fates = self._send(batch)
            left = None if left is None else left - fates.total()
            yield fates
            if rate is not None:
                stop.wait(fates.total() / rate)

    def packets(self) -> Iterator[Packet]:
        """Offers without end."""
        generator = _generator(self._board.config.unit, len(self._names))
        for block in count():
            draws = generator.draw(BLOCK, seed=self._seed << 32 | block)
            yield from self._read(draws, f"{self._seed}-{block}")

    def _read(self, draws: Draws, label: str) -> Iterator[Packet]:
        starts = np.searchsorted(draws.votes.row, np.arange(len(draws.x) + 1))
        for row, x in enumerate(draws.x):
            name, features = f"sim-{label}-{row}", self._features(x)
            cast = tuple(self._ballot(draws, n, name, label) for n in range(starts[row], starts[row + 1]))
            yield Packet(ContextDraft(id=name, features=features, offered=True), cast)

    def _ballot(self, draws: Draws, number: int, context: str, label: str) -> Ballot:
        cast = draws.votes
        return Ballot(
            id=uuid5(NAMESPACE, f"{self._board.slug}/{label}/{number}"),
            context=ContextRef(id=context, features=self._features(draws.x[cast.row[number]])),
            left=self._names[cast.left[number]],
            right=self._names[cast.right[number]],
            outcome=OUTCOMES[cast.outcome[number]],
            voter=f"sim-{label}-v{cast.voter[number]}",
            propensity=float(cast.propensity[number]),
        )

    def _features(self, x: Floats) -> dict[str, object]:
        """What a board declares of language, length in words and difficulty from 0 to 10."""
        told: dict[str, object] = {
            "language": LANGUAGES[int(np.searchsorted([-0.4, 0.4], x[2]))],
            "length": round(120 * float(np.exp(0.6 * x[0]))),
            "difficulty": round(float(np.clip(5 + 2 * x[1], 0, 10)), 2),
        }
        return {name: value for name, value in told.items() if name in self._declared}

    def _send(self, packets: Sequence[Packet]) -> Counter[str]:
        if self._board.config.unit == "context":
            with self._open_work() as work:
                contexts.register(work, self._board, [packet.context for packet in packets])
        ballots = [ballot for packet in packets for ballot in packet.ballots]
        with self._open_work() as work:
            results = votes.record(work, self._board, ballots, now=datetime.now(UTC))
        return Counter(result.status for result in results)


def prepare(open_work: UnitsOfWork, draft: BoardDraft, drafts: dict[str, ItemDraft]) -> Board:
    """The board of this draft with these items, made unless it is there."""
    with open_work() as work:
        board = work.boards.find(draft.slug)
    if board is None:
        with open_work() as work:
            board = boards.create(work, draft)
    for name, item in drafts.items():
        with open_work() as work:
            items.put(work, board, name, item)
    return board


def active_items(open_work: UnitsOfWork, board: Board) -> list[str]:
    """The names of the items that may be drawn, sorted."""
    with open_work() as work:
        return [view.item.name for view in work.items.view(board.id) if view.active_from is not None]


def _generator(unit: Unit, n_items: int) -> Generator:
    return Arena(n_items, 3, world=3) if unit == "battle" else Cyclic(n_items, 3, world=3)


def _take(packets: Iterator[Packet], size: int) -> list[Packet]:
    """Offers with at least `size` votes in all."""
    taken: list[Packet] = []
    while sum(len(packet.ballots) for packet in taken) < size:
        taken.append(next(packets))
    return taken
