"""The fast path of a group of votes: what they rest on is remembered, and checked by the round trip that stores them.

What is not as usual goes the long way, by `GroupWriter`, which also fills the memory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime

from sqlalchemy.exc import DBAPIError

from app.cache.tally import Tally
from app.db.ballots import Footing, Groups
from app.db.items import ItemRef
from app.db.unit_of_work import UnitOfWork
from app.domain.ballots import Ballot
from app.domain.boards import Board
from app.domain.errors import DomainError
from app.domain.keys import Caller
from app.domain.votes import Row
from app.services import access, votes
from app.services.ballot_box.casts import Cast, Fate, Stored

REMEMBERED = 1_000
"""Boards, and keys, kept in memory; beyond them it begins anew."""
NAMES = 10_000
"""Names of items that are kept of a board, and read at a time."""


@dataclass(slots=True)
class _Known:
    """A board as it was, and the items behind names that votes used."""

    board: Board
    items: dict[str, ItemRef] = field(default_factory=dict)


@dataclass(slots=True)
class _Group:
    """The votes of one board, and the keys that they came with."""

    known: _Known
    casts: list[Cast] = field(default_factory=list)
    ballots: list[Ballot] = field(default_factory=list)
    keys: set[int] = field(default_factory=set)

    def rows(self) -> list[Row] | None:
        """The votes as they are stored; None where one is refused or names an item that is not known."""
        return votes.plain_rows(self.known.board, self.ballots, self.known.items)

    def footing(self) -> Footing:
        """What they were prepared by."""
        items = self.known.items
        names = {name for ballot in self.ballots for name in (ballot.left, ballot.right) if name is not None}
        return Footing(self.known.board, self.keys, {name: items[name].id for name in names})


class FastPath:
    """Remembers boards, items and keys; stores votes that need nothing else.

    It keeps its connection: to take one for a group, and to give it back, would take longer than to call the database.

    Parameters
    ----------
    open_work : opens a unit of work.
    tally : counts the requests.
    """

    def __init__(self, open_work: Callable[[], UnitOfWork], tally: Tally) -> None:
        self._open_work = open_work
        self._tally = tally
        self._kept = ExitStack()
        self._work: UnitOfWork | None = None
        self._boards: dict[str, _Known] = {}
        self._callers: dict[str | None, Caller] = {}

    def board(self, slug: str) -> Board | None:
        """The board of this slug as it was."""
        known = self._boards.get(slug)
        return None if known is None else known.board

    def learn(
        self, work: UnitOfWork, boards: Mapping[str, Board], callers: Mapping[str | None, Caller | DomainError | None]
    ) -> None:
        """Remember what was looked up, and the items of boards that are new here: their next votes need no more."""
        if len(self._boards) > REMEMBERED:
            self._boards.clear()
        if len(self._callers) > REMEMBERED:
            self._callers.clear()
        new = {slug: board for slug, board in boards.items() if self.board(slug) != board}
        named = work.items.names([board.id for board in new.values()], most=NAMES) if new else {}
        self._boards |= {slug: _Known(board, named.get(board.id, {})) for slug, board in new.items()}
        self._callers |= {header: caller for header, caller in callers.items() if isinstance(caller, Caller)}

    def learn_items(self, slug: str, rows: Iterable[Row]) -> None:
        """Remember the items behind the names in votes that were stored."""
        known = self._boards.get(slug)
        if known is None:
            return
        if len(known.items) > NAMES:
            known.items.clear()
        for row in rows:
            ballot = row.ballot
            if ballot.left is not None and ballot.right is not None:
                known.items[ballot.left] = ItemRef(row.left_id, row.left)
                known.items[ballot.right] = ItemRef(row.right_id, row.right)

    def close(self) -> None:
        """Give the connection back."""
        self._work = None
        self._kept.close()

    def store(self, casts: Sequence[Cast]) -> dict[Cast, Fate]:
        """Store the votes of boards on which all are as usual, and commit; all other votes have to go the long way.

        Requests that were counted here are not counted again.
        """
        prepared = [(group, rows) for group in self._groups(casts) if (rows := group.rows()) is not None]
        if not prepared or not self._counted([cast for group, _ in prepared for cast in group.casts]):
            return {}
        now = datetime.now(UTC)
        received = self._stored([(group.footing(), rows) for group, rows in prepared], now)
        if received is None:
            return {}
        return {
            cast: Stored(group.known.board, votes.view_of(row, now=now, received_at=received), True)
            for group, rows in prepared
            for cast, row in zip(group.casts, rows, strict=True)
        }

    def _stored(self, groups: Groups, now: datetime) -> datetime | None:
        """When they were received; None where one of them could not be stored, and so none was."""
        work = self._work or self._opened()
        try:
            received = work.ballots.store(groups, now=now)
        except BaseException as error:
            # What the server refuses leaves the connection as it was, with what is prepared on it.
            if not isinstance(error, DBAPIError) or error.connection_invalidated:
                self.close()
            raise
        if received is not None:
            for footing, _ in groups:
                work.announce_votes(footing.board.id)
            work.committed()
        return received

    def _opened(self) -> UnitOfWork:
        try:
            work = self._kept.enter_context(self._open_work())
            work.commit_each()
        except BaseException:
            self.close()
            raise
        self._work = work
        return work

    def _groups(self, casts: Sequence[Cast]) -> list[_Group]:
        """The votes of each board on which all are plain, in the order of the boards' numbers."""
        groups: dict[str, _Group] = {}
        opened: dict[tuple[str, str | None], _Group] = {}
        apart: set[str] = set()
        for cast in casts:
            sender = cast.slug, cast.authorization
            group = opened.get(sender) or self._open(sender, opened, groups)
            if group is None or not votes.is_plain(cast.ballot, group.known.board):
                apart.add(cast.slug)
                continue
            group.casts.append(cast)
            group.ballots.append(cast.ballot)
        plain = [group for slug, group in groups.items() if slug not in apart]
        return sorted(plain, key=lambda group: group.known.board.id)

    def _open(
        self,
        sender: tuple[str, str | None],
        opened: dict[tuple[str, str | None], _Group],
        groups: dict[str, _Group],
    ) -> _Group | None:
        """The votes of a board as it is remembered; None where whoever sends this header may not vote on it."""
        slug, header = sender
        known, caller = self._boards.get(slug), self._callers.get(header)
        if known is None or caller is None:
            return None
        try:
            access.opened(known.board, slug, caller, "votes")
        except DomainError:
            return None
        group = opened[sender] = groups.setdefault(slug, _Group(known))
        group.keys.add(caller.key_id)
        return group

    def _counted(self, casts: Sequence[Cast]) -> bool:
        new = [cast for cast in casts if not cast.counted]
        names = Counter(access.counted_as(self._callers[cast.authorization], cast.address) for cast in new)
        if any(cast.refused for cast in casts) or not self._tally.take_all(names):
            return False
        for cast in new:
            cast.counted = True
        return True
