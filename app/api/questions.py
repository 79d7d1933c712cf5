"""What rankings, comparisons and first places share: the question, and the head of the answer."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

import orjson
from fastapi import Request, Response
from pydantic import BaseModel, ConfigDict, Field

from app.api.conditional import conditional, tag_of
from app.api.deps import Ports
from app.db.snapshots import Head
from app.domain.boards import Board
from app.domain.fields import Moment
from app.services.rankings.query import ESTIMATORS, INTERVALS, PAIRS, RankingQuery
from app.services.refit.snapshot import METHOD

NOT_MODIFIED: dict[int | str, dict[str, Any]] = {304: {"description": "the answer of this ETag still holds"}}
SEGMENT = (
    "`name:level`, or `name:level,name:level`; 404 where the board does not rank by the feature or, once there is a "
    "snapshot, no vote has the level"
)


class Question(BaseModel):
    """Which scores."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    estimand: Annotated[str, Field(description="built-in or named by the board")] = "bt"
    estimator: Annotated[str, Field(description=", ".join(ESTIMATORS))] = "debiased"
    pairs: Annotated[str, Field(description=", ".join(PAIRS))] = "auto"
    segment: Annotated[str | None, Field(description=SEGMENT)] = None
    interval: Annotated[str, Field(description=", ".join(INTERVALS))] = "simultaneous"
    level: Annotated[float, Field(description="between 0 and 1")] = 0.95
    since: Annotated[Moment | None, Field(alias="from", description="rows offered from then on")] = None
    until: Annotated[Moment | None, Field(alias="to", description="rows offered before then")] = None

    def query(self) -> RankingQuery:
        """As the service reads it."""
        known = RankingQuery.__dataclass_fields__
        return RankingQuery(**{name: getattr(self, name) for name in type(self).model_fields if name in known})


class Live(BaseModel):
    """Votes since the snapshot. `included` says whether the scores hold them, `reasons` what waits for the next refit.

    `clusters` is `exact` where every row is a cluster of its own; where it is `refitted`, errors take rows of the
    refit by cluster and each live row alone.
    """

    included: bool
    version: int
    votes: int
    rows: int
    clusters: str
    reasons: list[str]


class Asked(BaseModel):
    """The question, as it was understood."""

    board: str
    estimand: str
    estimator: str
    pairs: str
    segment: str | None
    interval: str
    level: float
    since: Annotated[datetime | None, Field(alias="from")]
    until: Annotated[datetime | None, Field(alias="to")]


class Answered(Asked):
    """The question and what is behind the answer. `rule` credits each outcome to the left and to the right item.

    `rows_used` of the `rows` were drawn to average mu of all pairs over, the same ones every time; on most boards it is
    all of them.
    """

    rule: dict[str, tuple[float, float]]
    status: str
    snapshot: UUID | None
    spec: str
    computed_at: datetime | None
    votes_through: datetime | None
    votes: int
    votes_pending: int
    votes_excluded: dict[str, int]
    rows: int
    rows_used: int
    contexts: int
    propensity: str | None
    live: Live | None
    note: str | None


def answer(
    request: Request,
    board: Board,
    ports: Ports,
    head: Head,
    *,
    key: Hashable,
    make: Callable[[], dict[str, Any]],
) -> Response:
    """The document of a snapshot, made once, with the number of votes that wait; 304 where the reader has it.

    Parameters
    ----------
    head : of the board.
    key : tells questions apart.
    make : the document, without that number.
    """

    def body() -> bytes:
        return orjson.dumps(make())

    def rendered() -> bytes:
        if head.snapshot_id is None:
            return body()
        return ports.rendered.get((board.id, board.updated_at, head.snapshot_id, head.version, key), body)

    # A board may change before its next snapshot does: its outcomes, its estimands, its title.
    tag = tag_of(METHOD, board.id, board.updated_at, head, key)
    return conditional(request, board, tag, lambda: _with_pending(rendered(), head))


def _with_pending(body: bytes, head: Head) -> bytes:
    """The one number that changes between snapshots, put in front of those that do not."""
    # Quotes within texts are escaped: these bytes are the field and nothing else.
    pending = head.waiting(live=b'"included":true' in body)
    return b'{"votes_pending":%d,' % pending + body[1:]
