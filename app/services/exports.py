"""Export a board's votes so that an import of them gives the same board."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC
from hashlib import blake2b
from typing import Any
from uuid import UUID

import numpy as np

from app.db.exports import ExportedVote, ExportRepository
from app.db.unit_of_work import UnitOfWork
from app.domain.boards import Board
from app.domain.features import FeatureKind
from app.domain.menus import Ranking
from app.formats.writers import Column, ColumnKind, Container, write
from app.services.refit import storage
from app.services.refit.snapshot import SAMPLE
from app.stats.types import Floats, Ints

EVER = 2**63 - 1
PSEUDONYM_BYTES = 16
KINDS: dict[FeatureKind, ColumnKind] = {
    "categorical": "text",
    "numeric": "number",
    "text": "text",
    "vector": "numbers",
}
BEFORE = [Column("id", "text"), Column("context", "text")]
AFTER = [
    *(Column(name, "text") for name in ("offer", "left", "right", "outcome", "voter", "voter_type")),
    Column("propensity", "number"),
    Column("propensity_used", "number"),
    Column("created_at", "moment"),
    Column("excluded", "text"),
    Column("kind", "text"),
    Column("menu", "names"),
    Column("ranking", "tiers"),
]


def export_votes(uow: UnitOfWork, board: Board, container: Container, *, raw_voters: bool = False) -> Iterator[bytes]:
    """All votes of a board, one a row, in the order in which they came in.

    `propensity` is the one that was sent; `propensity_used` the one that the newest snapshot divides by: after
    exclusions, eligibility and floors, and estimated where the board does so. `excluded` is why a vote does not count.
    A vote on a menu has `menu` and `ranking` in place of sides and outcome, and no one propensity that is used: its
    pairs have one each.

    Parameters
    ----------
    raw_voters : write voters as they were sent; else each is renamed, always to the same name on this board.
    """
    features = [Column(f"feature.{feature.name}", KINDS[feature.kind]) for feature in board.config.features]
    blocks = _Rows(uow, board, raw_voters=raw_voters).blocks()
    return write(container, [*BEFORE, *features, *AFTER], blocks)


class _Rows:
    """Turns stored votes into rows."""

    def __init__(self, uow: UnitOfWork, board: Board, *, raw_voters: bool) -> None:
        self._board = board
        self._exports = ExportRepository(uow.session)
        self._features = [feature.name for feature in board.config.features]
        texts = [feature.name for feature in board.config.features if feature.kind == "text"]
        self._text = texts[0] if len(texts) == 1 else None
        self._outcomes = [category.name for category in board.config.categories]
        self._voters = None if raw_voters else Pseudonyms(self._exports.salt(board.id))
        self._excluded = uow.gather.excluded(board.id, EVER)
        self._used = _used_propensities(uow, board)

    def blocks(self) -> Iterator[list[list[Any]]]:
        """Rows in the order of the columns."""
        for votes in self._exports.votes(self._board.id):
            used = self._used.of([vote.number for vote in votes])
            told = [None if vote.ranking else pi for vote, pi in zip(votes, used, strict=True)]
            yield [self._row(vote, pi) for vote, pi in zip(votes, told, strict=True)]

    def _row(self, vote: ExportedVote, used: float | None) -> list[Any]:
        voter = vote.voter if self._voters is None or vote.voter is None else self._voters[vote.voter]
        outcome = None if vote.outcome is None else self._outcomes[vote.outcome]
        return [
            str(vote.client_id),
            vote.context,
            *self._feature_values(vote),
            *(vote.offer, vote.left, vote.right, outcome, voter, vote.voter_type),
            *(vote.propensity, used, vote.created_at.astimezone(UTC), self._excluded.get(vote.number)),
            *_ranked(vote.ranking),
        ]

    def _feature_values(self, vote: ExportedVote) -> list[Any]:
        """The declared features; a context's own text stands in for the one text feature, as it does in a refit."""
        sent: Mapping[str, Any] = vote.features or {}
        return [sent.get(name, vote.text if name == self._text else None) for name in self._features]


def _ranked(ranking: Ranking | None) -> tuple[str, list[str] | None, list[list[str]] | None]:
    """Kind, menu and tiers."""
    if ranking is None:
        return "pair", None, None
    return ranking.kind, list(ranking.menu), [list(tier) for tier in ranking.tiers]


class Pseudonyms(dict[str, str]):
    """Names that say no more about voters than which votes are the same one's."""

    def __init__(self, salt: UUID) -> None:
        super().__init__()
        self._salt = salt.bytes

    def __missing__(self, voter: str) -> str:
        name = blake2b(voter.encode(), key=self._salt, digest_size=PSEUDONYM_BYTES).hexdigest()
        self[voter] = name
        return name


class _Used:
    """Propensities of the votes of a snapshot, by the votes' numbers."""

    def __init__(self, numbers: Ints, propensities: Floats) -> None:
        order = np.argsort(numbers)
        self._numbers, self._propensities = numbers[order], propensities[order]

    def of(self, numbers: list[int]) -> list[float | None]:
        """The propensity used for each vote, None where the snapshot does not count it."""
        if not self._numbers.size:
            return [None] * len(numbers)
        wanted = np.array(numbers)
        at = np.minimum(np.searchsorted(self._numbers, wanted), self._numbers.size - 1)
        found = (self._numbers[at] == wanted).tolist()
        return [pi if hit else None for pi, hit in zip(self._propensities[at].tolist(), found, strict=True)]


def _used_propensities(uow: UnitOfWork, board: Board) -> _Used:
    snapshot = uow.snapshots.newest(board.id)
    pieces = [] if snapshot is None else uow.snapshots.artifacts(snapshot.id, SAMPLE)
    if not pieces:
        return _Used(np.zeros(0, dtype=np.int64), np.zeros(0))
    frame = storage.unpack_stored(storage.joined(pieces)).frame
    return _Used(frame.vote_id, frame.view().votes.propensity)
