"""A vote that waits for its commit, and what can become of it."""

from __future__ import annotations

from asyncio import AbstractEventLoop
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol
from uuid import uuid4

from app.db.votes import VoteView
from app.domain.ballots import Ballot
from app.domain.boards import Board
from app.domain.errors import DomainError


class Stored(NamedTuple):
    """A committed vote of a board, and whether this request brought it."""

    board: Board
    vote: VoteView
    new: bool


class Failed(NamedTuple):
    """The service itself went wrong over this vote."""

    error: Exception


Fate = Stored | DomainError | Failed


class Answer(Protocol):
    """Is told a vote's fate, once, on its loop: a future, or what writes the answer at once."""

    def get_loop(self) -> AbstractEventLoop:
        """The loop on which it is told."""
        ...

    def done(self) -> bool:
        """Whether it was told, or wants to hear nothing any more."""
        ...

    def set_result(self, fate: Fate, /) -> None:
        """Tell it."""
        ...


@dataclass(slots=True, eq=False)
class Cast:
    """A vote as a request brought it.

    Parameters
    ----------
    slug : of the board.
    authorization : the header, if there was one.
    address : where the request came from, counted where nobody says who asks.
    ballot : with an id, or why it could not be read, which is told to those who may vote.
    named_here : whether the id was given here, so that nobody can have sent it before.
    size : bytes of the request.
    answer : of the request, on `loop`.
    counted : whether the rate limit has seen the request.
    refused : what the rate limit said against it, which holds for every try.
    abandoned : whether nobody waits any more.
    """

    slug: str
    authorization: str | None
    address: str
    ballot: Ballot | DomainError
    named_here: bool
    size: int
    loop: AbstractEventLoop
    answer: Answer
    counted: bool = False
    refused: DomainError | None = None
    abandoned: bool = False


def named(ballot: Ballot | DomainError) -> tuple[Ballot | DomainError, bool]:
    """The ballot with an id, and whether it was given here.

    It has one before the first try to store it: after a lost connection the next try finds what the first one stored.
    """
    if isinstance(ballot, DomainError) or ballot.id is not None:
        return ballot, False
    return replace(ballot, id=uuid4()), True
