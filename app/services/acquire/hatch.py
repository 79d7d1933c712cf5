"""Where annotation tools get their next pair: whoever was here a moment ago is remembered, and asked nothing again.

What is remembered is confirmed by the statement that records the draw. Where it does not hold any more, nothing is
recorded, and all is looked up anew; refusals are never made from memory.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from time import monotonic
from typing import NamedTuple

from sqlalchemy.exc import OperationalError

from app.cache.limits import RateLimiter
from app.db.offers import Footing
from app.db.unit_of_work import UnitOfWork
from app.domain.acquire import AcquireDraft
from app.domain.errors import DomainError, limited
from app.domain.keys import Caller
from app.services import access
from app.services.acquire.answer import Answer
from app.services.acquire.at_once import Moved, Visit, acquire_at_once
from app.services.acquire.run import acquire
from app.services.loaded.shelf import Shelf

OpenWork = Callable[[], UnitOfWork]

MOST = 1_000
"""Callers at boards that are remembered."""
LONGEST = 60.0
"""Seconds until a caller is looked up again, which also writes down that the key is in use."""


class Guest(NamedTuple):
    """Who asks for pairs of which board.

    Parameters
    ----------
    authorization : the header, if there was one.
    address : where the request came from, counted where nobody says who asks.
    """

    slug: str
    authorization: str | None
    address: str


@dataclass(frozen=True, slots=True)
class Works:
    """Opens transactions, and work whose statements are committed one by one."""

    in_full: OpenWork
    at_once: OpenWork


class Hatch:
    """Opens boards for the scope `acquire`, and hands pairs out for one context.

    Parameters
    ----------
    shelf : the policies in force.
    limiter : counts the requests.
    """

    def __init__(self, works: Works, shelf: Shelf, limiter: RateLimiter) -> None:
        self._works = works
        self._shelf = shelf
        self._limiter = limiter
        self._visits: dict[tuple[str, bytes], tuple[Visit, float]] = {}

    def remembered(self, guest: Guest) -> Visit | None:
        """What was looked up for the guest a moment ago."""
        if guest.authorization is None:
            return None
        visit, until = self._visits.get(_name(guest, guest.authorization), (None, 0.0))
        return visit if monotonic() <= until else None

    def serve(self, guest: Guest, draft: AcquireDraft, visit: Visit | None) -> Answer:
        """Draw for one context.

        Parameters
        ----------
        visit : what is remembered of the guest, whose request is counted then.
        """
        now = datetime.now(UTC)
        if visit is not None:
            try:
                return self._drawn(visit, draft, now)
            except (Moved, DomainError):
                pass
            except OperationalError as error:
                if not error.connection_invalidated:
                    raise
        fresh = self.admit(guest, counted=visit is not None)
        try:
            return self._drawn(fresh, draft, now)
        except Moved:
            return self._drawn_in_full(fresh, draft, now)

    def admit(self, guest: Guest, *, counted: bool = False) -> Visit:
        """Look the guest and the board up, in one step: this is what people wait for between two pairs.

        Parameters
        ----------
        counted : whether the rate limit has seen the request.
        """
        caller, board, standing = self._asked(guest)
        if not counted:
            self._count(caller, guest)
        board = access.opened(board, guest.slug, caller, "acquire")
        known = access.known(caller)
        visit = Visit(board, Footing.of(known.key_id, board.id, board.updated_at, standing))
        if len(self._visits) >= MOST:
            self._visits.clear()
        self._visits[_name(guest, guest.authorization or "")] = (visit, monotonic() + LONGEST)
        return visit

    def _count(self, caller: Caller | None, guest: Guest) -> None:
        wait = self._limiter.wait(access.counted_as(caller, guest.address))
        if wait:
            raise limited("rate-limit", "too many requests", retry_after=wait)

    def _asked(self, guest: Guest) -> access.Knocked:
        """Asks again where the connection was lost while nobody used it."""
        try:
            with self._works.at_once() as work:
                return access.knock(work, guest.slug, guest.authorization)
        except OperationalError as error:
            if not error.connection_invalidated:
                raise
            with self._works.at_once() as work:
                return access.knock(work, guest.slug, guest.authorization)

    def _drawn(self, visit: Visit, draft: AcquireDraft, now: datetime) -> Answer:
        with self._works.at_once() as work:
            answer = acquire_at_once(work, visit, draft, shelf=self._shelf, now=now)
        return answer or self._drawn_in_full(visit, draft, now)

    def _drawn_in_full(self, visit: Visit, draft: AcquireDraft, now: datetime) -> Answer:
        with self._works.in_full() as work:
            return acquire(work, visit.board, draft, shelf=self._shelf, key=None, now=now)


def _name(guest: Guest, authorization: str) -> tuple[str, bytes]:
    """Secrets are not held, only digests."""
    return guest.slug, sha256(authorization.encode()).digest()
