"""One group of votes: who sends them, whether they may, and one transaction for all of their boards."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial

from app.cache.limits import Quota, RateLimiter
from app.cache.tally import Tally
from app.db.boards import Version
from app.db.unit_of_work import UnitOfWork
from app.domain.boards import Board
from app.domain.errors import DomainError, limited
from app.domain.keys import Caller
from app.domain.votes import Result, Row, outcome_of
from app.services import access, votes
from app.services.ballot_box.casts import Cast, Fate, Stored
from app.services.ballot_box.fast_path import FastPath


class GroupWriter:
    """Writes groups of votes, one at a time.

    Keys, boards, items and everything else are looked up in the transaction that stores the votes: what another request
    has committed holds for every group that begins after it.

    Parameters
    ----------
    open_work : opens a unit of work.
    limiter : counts the requests.
    tally : counts those of the fast path.
    """

    def __init__(self, open_work: Callable[[], UnitOfWork], limiter: RateLimiter, tally: Tally) -> None:
        self._open_work = open_work
        self._limiter = limiter
        self._fast = FastPath(open_work, tally)

    def __call__(self, casts: Sequence[Cast]) -> list[Fate | None]:
        """Store the votes that may be stored, commit, and say what became of each, in order.

        None of those that the next call is for: where boards went the fast way, none of them waits for the others.
        """
        fates = self._fast.store(casts)
        if not fates:
            with self._open_work() as work:
                fates = self._store(work, casts)
        return [fates.get(cast) for cast in casts]

    def close(self) -> None:
        """Give the connection of the fast path back; nothing may be written any more."""
        self._fast.close()

    def _store(self, work: UnitOfWork, casts: Sequence[Cast]) -> dict[Cast, Fate]:
        """The long way: everything is looked up."""
        fates: dict[Cast, Fate] = {}
        groups: defaultdict[str, list[Cast]] = defaultdict(list)
        headers = {cast.authorization for cast in casts}
        versions, told = access.knock_all(work, {cast.slug for cast in casts}, headers)
        boards = self._boards_of(work, versions)
        self._fast.learn(work, boards, told)
        for cast, caller in self._counted(casts, _callers(casts, told, fates), fates):
            try:
                access.opened(boards.get(cast.slug), cast.slug, caller, "votes")
            except DomainError as error:
                fates[cast] = error
            else:
                groups[cast.slug].append(cast)
        # In the order of their numbers, so that two processes never wait for each other.
        together = [(boards[slug], group) for slug, group in groups.items()]
        return fates | self._stored(work, sorted(together, key=lambda each: each[0].id))

    def _boards_of(self, work: UnitOfWork, versions: Mapping[str, Version]) -> dict[str, Board]:
        """The boards as they are now, read where they are not in memory as they are."""
        found = {}
        for slug, version in versions.items():
            board = self._fast.board(slug)
            if board is None or (board.id, board.updated_at) != version:
                board = work.boards.find(slug)
            if board is not None:
                found[slug] = board
        return found

    def _counted(
        self, casts: Sequence[Cast], callers: Mapping[Cast, Caller | None], fates: dict[Cast, Fate]
    ) -> list[tuple[Cast, Caller | None]]:
        """Those whose callers have not sent too much; a group that is tried again counts once."""
        names = {cast: access.counted_as(caller, cast.address) for cast, caller in callers.items()}
        quotas = self._limiter.quotas(Counter(name for cast, name in names.items() if not cast.counted))
        passed = Counter({name: quota.passed for name, quota in quotas.items()})
        going = []
        for cast in (cast for cast in casts if cast in callers):
            name = names[cast]
            if not cast.counted:
                cast.counted = True
                passed[name] -= 1
                if passed[name] < 0:
                    cast.refused = _refused(quotas[name])
            if cast.refused is None:
                going.append((cast, callers[cast]))
            else:
                fates[cast] = cast.refused
        return going

    def _stored(self, work: UnitOfWork, groups: Sequence[tuple[Board, Sequence[Cast]]]) -> dict[Cast, Fate]:
        """Store the votes of all boards and commit."""
        now = datetime.now(UTC)
        fates, settled = work.boldly(partial(_settled, work, groups, now), undone=votes.Undone)
        unread: defaultdict[int, list[tuple[Board, Cast, Result]]] = defaultdict(list)
        work.commit()
        for board, cast, row, received_at in settled:
            result = outcome_of(row)
            if result.error is not None:
                fates[cast] = result.error
                continue
            self._fast.learn_items(board.slug, [row])
            if result.status == "created" and row.assignment_id is None:
                fates[cast] = Stored(board, votes.view_of(row, now=now, received_at=received_at), True)
            else:
                unread[board.id].append((board, cast, result))
        return fates | _read_back(work, unread)


def _refused(quota: Quota) -> DomainError:
    return limited("rate-limit", "too many requests", retry_after=quota.wait)


def _callers(
    casts: Iterable[Cast], told: Mapping[str | None, Caller | DomainError | None], fates: dict[Cast, Fate]
) -> dict[Cast, Caller | None]:
    """Who sends each vote: None where no key was sent; a key that is not known is the vote's fate."""
    callers: dict[Cast, Caller | None] = {}
    for cast in casts:
        caller = told[cast.authorization]
        if isinstance(caller, DomainError):
            fates[cast] = caller
        else:
            callers[cast] = caller
    return callers


def _settled(
    work: UnitOfWork, groups: Sequence[tuple[Board, Sequence[Cast]]], now: datetime, careful: bool
) -> tuple[dict[Cast, Fate], list[tuple[Board, Cast, Row, datetime]]]:
    fates: dict[Cast, Fate] = {}
    settled = []
    for board, group in groups:
        try:
            rows, received_at = votes.settle(work, board, [cast.ballot for cast in group], now, careful)
        except DomainError as error:
            fates.update(dict.fromkeys(group, error))
        else:
            settled += [(board, cast, row, received_at) for cast, row in zip(group, rows, strict=True)]
    return fates, settled


def _read_back(work: UnitOfWork, unread: Mapping[int, Sequence[tuple[Board, Cast, Result]]]) -> dict[Cast, Fate]:
    """What was stored before, by somebody else or by a try whose commit was not heard of."""
    fates: dict[Cast, Fate] = {}
    for board_id, group in unread.items():
        views = work.votes.views(board_id, {result.vote for _, _, result in group if result.vote is not None})
        for board, cast, result in group:
            if result.vote is not None:
                fates[cast] = Stored(board, views[result.vote], result.status == "created" or cast.named_here)
    return fates
