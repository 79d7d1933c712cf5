"""Ballots: a vote as it is sent, and the rules of a board that it has to meet by itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Annotated, Any, Literal
from uuid import UUID

import orjson
from pydantic import ConfigDict, Field, TypeAdapter

from app.domain import menus
from app.domain.boards import BoardConfig
from app.domain.errors import DomainError, Invalid
from app.domain.features import FeatureReader
from app.domain.fields import Moment, Name, Propensity
from app.domain.menus import LARGEST, Ranking, verdicts_of

VoterType = Literal["human", "llm"]
Menu = Annotated[list[Name], Field(max_length=LARGEST)]
DIGEST_BYTES = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextRef:
    """The context of a vote; without `features` it is what it was, or has none."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    id: Name
    features: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ballot:
    """A vote as it is sent: on an ordered pair, `left` shown first, or on a `menu` of items, ranked best first.

    `propensity` is the chance of this ordered pair, or of this menu. Items of the menu that a ranking leaves out are
    below the listed ones; `kind` is `partial`, or `winner` where one item was picked.
    """

    __pydantic_config__ = ConfigDict(extra="forbid")

    id: UUID | None = None
    assignment: Name | None = None
    context: ContextRef | None = None
    offer: Name | None = None
    left: Name | None = None
    right: Name | None = None
    menu: Menu | None = None
    ranking: Annotated[list[Menu], Field(max_length=LARGEST)] | None = None
    kind: Name | None = None
    outcome: Name | None = None
    voter: Name | None = None
    voter_type: VoterType = "human"
    propensity: Propensity | None = None
    created_at: Moment | None = None


BALLOT: TypeAdapter[Ballot] = TypeAdapter(Ballot)


class BallotReader:
    """Checks ballots against a board's outcomes, features, unit and propensities."""

    def __init__(self, config: BoardConfig) -> None:
        self._outcomes = {category.name: index for index, category in enumerate(config.categories)}
        self._features = FeatureReader(config.features)
        self._ranks = verdicts_of(config.categories) is not None
        self._battle = config.unit == "battle"
        self._logged = config.propensity == "logged"

    def read(self, ballot: Ballot) -> tuple[int | None, Mapping[str, Any] | None]:
        """The outcome's number, None of a ranking; the context's canonical features, None where nothing was said."""
        number = self._read_pair(ballot) if ballot.menu is None and ballot.ranking is None else None
        if number is None:
            self._check_ranking(ballot)
        self._check_draw(ballot)
        return number, self._read_features(ballot.context)

    def _read_pair(self, ballot: Ballot) -> int:
        left, right, outcome = ballot.left, ballot.right, ballot.outcome
        if left is None or right is None or outcome is None:
            raise _incomplete(ballot)
        if left == right:
            raise Invalid("same-item", "both sides are one item", path="right", expected="another item", got=right)
        if ballot.kind is not None and ballot.kind != "pair":
            raise Invalid(
                "unknown-kind", "a vote with two sides is a pair", path="kind", expected="pair", got=ballot.kind
            )
        number = self._outcomes.get(outcome)
        if number is None:
            detail, known = f"the board has no outcome {outcome!r}", list(self._outcomes)
            raise Invalid("unknown-outcome", detail, path="outcome", expected=known, got=outcome)
        return number

    def _check_ranking(self, ballot: Ballot) -> None:
        for path in ("left", "right", "outcome"):
            got = getattr(ballot, path)
            if got is not None:
                raise Invalid("pair-and-menu", f"a vote on a menu has no {path}", path=path, got=got)
        menus.check(ballot.menu, ballot.ranking, ballot.kind)
        if not self._ranks:
            raise menus.not_one_sided()

    def _check_draw(self, ballot: Ballot) -> None:
        if ballot.propensity is None and self._logged:
            detail = "the board's propensities are logged, so each vote brings its own"
            raise Invalid("propensity-missing", detail, path="propensity", expected="a number in (0, 1]")
        if ballot.offer is not None and ballot.assignment is not None:
            raise contradicts("offer", ballot.offer)
        if ballot.offer is not None and (self._battle or ballot.context is None):
            detail = "only a context of a board with unit 'context' has several offers"
            raise Invalid("offer-without-context", detail, path="offer", got=ballot.offer)

    def _read_features(self, context: ContextRef | None) -> Mapping[str, Any] | None:
        if context is None or context.features is None:
            return None
        try:
            return self._features.read(context.features)
        except DomainError as error:
            raise error.under("context") from None


def digest(ballot: Ballot, about: tuple[str, str] | Ranking, features: Mapping[str, Any] | None) -> bytes:
    """A hash of all that a ballot says, the same for any spelling of the same content.

    Parameters
    ----------
    about : left and right, or the ranking, with the items' own names, whichever alias the ballot used.
    features : canonical.
    """
    said = about.content if isinstance(about, Ranking) else (*about, ballot.outcome)
    context, created = ballot.context, ballot.created_at
    content = (
        None if context is None else context.id,
        features,
        ballot.offer,
        *said,
        ballot.voter,
        ballot.voter_type,
        ballot.propensity,
        None if created is None else created.timestamp(),
    )
    return blake2b(orjson.dumps(content), digest_size=DIGEST_BYTES).digest()


def answering(ballot: Ballot, draw: Mapping[str, Any], annotator: str | None) -> Ballot:
    """The ballot with what its assignment says; refused where it says something else itself.

    Parameters
    ----------
    draw : `context`, `left`, `right` and `propensity` of the assignment.
    annotator : who it was handed to: the voter of a ballot that names none.
    """
    context = None if ballot.context is None else ballot.context.id
    for path in ("menu", "ranking"):
        if getattr(ballot, path) is not None:
            raise contradicts(path, getattr(ballot, path))
    sent = {"context": context, "left": ballot.left, "right": ballot.right, "propensity": ballot.propensity}
    for path, value in sent.items():
        if value is not None and value != draw[path]:
            raise contradicts(path, value, draw[path])
    return replace(
        ballot,
        context=ballot.context or ContextRef(id=draw["context"]),
        left=draw["left"],
        right=draw["right"],
        propensity=draw["propensity"],
        voter=ballot.voter or annotator,
    )


def contradicts(path: str, got: Any, expected: Any = None) -> DomainError:
    """An assignment settles what a vote is about."""
    detail = f"{path} is settled by the assignment"
    return Invalid("contradicts-assignment", detail, path=path, expected=expected, got=got)


def _incomplete(ballot: Ballot) -> DomainError:
    missing = next(name for name in ("left", "right", "outcome") if getattr(ballot, name) is None)
    return Invalid("missing", f"a vote needs {missing}", path=missing, expected="a name")
