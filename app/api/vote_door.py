"""The way in of single votes, past the framework: they come by the thousand, and it would cost more than the database.

What is refused is refused in the same order and the same words as by any other route.
"""

from __future__ import annotations

from asyncio import Future, get_running_loop
from datetime import UTC, datetime
from typing import Any

import orjson
from starlette.responses import Response

from app.api import problems
from app.api.door import Call, Door
from app.api.patience import Patience
from app.api.routing import read_json
from app.db.votes import VoteView
from app.domain.ballots import BALLOT, Ballot
from app.domain.boards import Board
from app.domain.errors import DomainError
from app.domain.parsing import BadFields, FieldError, parse
from app.services.ballot_box.box import BallotBox, away
from app.services.ballot_box.casts import Answer, Cast, Failed, Fate, Stored, named

NO_BODY = BadFields([FieldError("missing-field", "", "Field required", None)])
AFTER = "/votes"
"""What the path of the votes of a board ends with."""


class VoteDoor(Door):
    """Answers `POST /v1/boards/{board}/votes`.

    Parameters
    ----------
    box : has the votes committed.
    patience : seconds that a vote waits for its commit.
    """

    def __init__(self, box: BallotBox, *, patience: float) -> None:
        super().__init__(AFTER)
        self._box = box
        self._patience = Patience(patience, away)

    async def respond(self, call: Call) -> Response:
        """The answer to the vote in the body, once it is committed or refused."""
        answer: Future[Fate] = get_running_loop().create_future()
        try:
            cast = self.begin(call, answer)
        except DomainError as error:
            return answer_to(error)
        try:
            return answer_to(await answer)
        finally:
            cast.abandoned = True

    def begin(self, call: Call, answer: Answer) -> Cast:
        """Have the vote in the body stored; `answer` is told what became of it.

        Raises
        ------
        DomainError : a body that is not JSON, or too many votes that wait.
        """
        document = read_json(call.body) if call.is_json else call.body or None
        ballot, named_here = named(_ballot(document))
        sender, size = (call.authorization, call.address), len(call.body)
        cast = Cast(call.slug, *sender, ballot, named_here, size, answer.get_loop(), answer)
        self._box.put(cast)
        self._patience.watch(answer)
        return cast


class VoteResponse(Response):
    """A vote as it is stored; the framework would take longer over the two headers than to write the body."""

    def __init__(self, board: Board, vote: VoteView, status: int) -> None:
        self.status_code = status
        self.background = None
        self.body = orjson.dumps(document_of(board, vote), option=orjson.OPT_UTC_Z)
        self.raw_headers = [(b"content-length", b"%d" % len(self.body)), (b"content-type", b"application/json")]


def answer_to(fate: Fate) -> Response:
    """The response to a vote of which this became."""
    match fate:
        case Stored(board, vote, new):
            return VoteResponse(board, vote, 201 if new else 200)
        case Failed():
            return problems.failure()
        case _:
            return problems.answer(fate)


def document_of(board: Board, vote: VoteView) -> dict[str, Any]:
    """A vote as its sender sees it."""
    return {
        "id": vote.client_id,
        "context": None if vote.context is None else {"id": vote.context},
        "offer": vote.offer,
        "left": vote.left,
        "right": vote.right,
        "outcome": None if vote.outcome is None else board.config.categories[vote.outcome].name,
        "kind": "pair" if vote.ranking is None else vote.ranking.kind,
        "menu": None if vote.ranking is None else vote.ranking.menu,
        "ranking": None if vote.ranking is None else vote.ranking.tiers,
        "voter": vote.voter,
        "voter_type": vote.voter_type,
        "propensity": vote.propensity,
        "created_at": _written(vote.created_at),
        "received_at": _written(vote.received_at),
    }


def _written(moment: datetime) -> datetime:
    return moment if moment.tzinfo is UTC else moment.astimezone(UTC)


def _ballot(document: Any) -> Ballot | DomainError:
    if document is None:
        return NO_BODY
    try:
        return parse(BALLOT, document)
    except DomainError as error:
        return error
