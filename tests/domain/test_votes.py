"""What becomes of votes, against a voter at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from app.domain.ballots import Ballot, ContextRef, digest
from app.domain.votes import Head, Result, Row, Slot, outcome_of, settle_ids, settle_limit, settle_slots

IDS = [UUID(int=number) for number in range(4)]
FRESH = [UUID(int=100 + number) for number in range(50)]

sent = st.tuples(
    st.sampled_from([*IDS, None]),  # id
    st.sampled_from([b"one", b"two"]),  # content
    st.sampled_from([None, "v", "w"]),  # voter
    st.sampled_from([None, 1, 2]),  # context
)


def row_of(number: int, key: UUID | None, content: bytes, voter: str | None, context: int | None) -> Row:
    row = Row(Ballot(id=key, voter=voter), 0, None)
    row.client_id, row.digest, row.context_id = key or FRESH[number], content, context
    row.left_id, row.right_id = 1, 2
    return row


def settle(rows: Sequence[Row], stored: dict[UUID, bytes], heads: dict[Slot, Head], revotes: bool) -> list[Result]:
    for row in settle_slots(settle_ids(rows, stored), heads, revotes=revotes):
        row.result = Result("created", row.client_id)
    return [outcome_of(row) for row in rows]


def slow(
    rows: Sequence[Row], stored: dict[UUID, bytes], heads: dict[Slot, Head], revotes: bool
) -> list[tuple[str, str | None]]:
    """One vote after the other. An id that a batch repeats shares the fate of its first row."""
    by_id: dict[UUID, tuple[bytes, tuple[str, str | None]]] = {
        key: (content, ("duplicate", None)) for key, content in stored.items()
    }
    taken = set(heads)
    fates: list[tuple[str, str | None]] = []
    for row in rows:
        key, fate = row.ballot.id, ("created", None)
        known = by_id.get(key) if key is not None else None
        if known is not None and known[0] != row.digest:
            fate = ("rejected", "vote-id-taken")
        elif known is not None:
            fate = known[1] if known[1][0] == "rejected" else ("duplicate", None)
        elif row.slot is not None and row.slot in taken and not revotes:
            fate = ("rejected", "second-vote")
        if known is None and key is not None:
            by_id[key] = (row.digest, fate)
        if fate[0] == "created" and row.slot is not None:
            taken.add(row.slot)
        fates.append(fate)
    return fates


@given(
    votes=st.lists(sent, max_size=12),
    stored=st.dictionaries(st.sampled_from(IDS), st.sampled_from([b"one", b"two"]), max_size=2),
    known=st.sets(st.tuples(st.sampled_from([1, 2]), st.just(1), st.just(2), st.sampled_from(["v", "w"])), max_size=2),
    revotes=st.booleans(),
)
def test_a_batch_is_settled_as_one_vote_after_the_other(
    votes: list[Any], stored: dict[UUID, bytes], known: set[Slot], revotes: bool
) -> None:
    heads = {slot: Head(0, 7) for slot in known}
    rows = [row_of(number, *vote) for number, vote in enumerate(votes)]
    results = settle(rows, stored, heads, revotes)
    fates = [(result.status, result.error.code if result.error else None) for result in results]
    assert fates == slow(rows, stored, heads, revotes)


@given(votes=st.lists(sent, max_size=12), revision=st.integers(0, 3))
def test_revisions_count_up_and_name_what_they_supersede(votes: list[Any], revision: int) -> None:
    heads: dict[Slot, Head] = {(1, 1, 2, "v"): Head(revision, 7)}
    rows = [row_of(number, *vote) for number, vote in enumerate(votes)]
    settle(rows, {}, heads, revotes=True)
    for slot in {row.slot for row in rows if row.slot is not None}:
        created = [row for row in rows if row.slot == slot and row.result and row.result.status == "created"]
        first = revision + 1 if slot in heads else 0
        assert [row.revision for row in created] == list(range(first, first + len(created)))
        before = [7 if slot in heads else None, *[row.client_id for row in created]]
        assert [row.supersedes for row in created] == before[: len(created)]


@given(voters=st.lists(st.sampled_from(["v", "w", None]), max_size=10), limit=st.integers(1, 4), used=st.integers(0, 5))
def test_a_voter_never_passes_the_limit(voters: list[str | None], limit: int, used: int) -> None:
    rows = [row_of(number, None, b"", voter, None) for number, voter in enumerate(voters)]
    rest = settle_limit(rows, {"v": used}, limit, retry_after=9)
    for voter, before in (("v", used), ("w", 0)):
        assert sum(row.ballot.voter == voter for row in rest) == min(voters.count(voter), max(limit - before, 0))
    assert sum(row.ballot.voter is None for row in rest) == voters.count(None)
    assert [row for row in rows if row.result is None] == rest


def test_a_digest_tells_every_field_apart() -> None:
    base: dict[str, Any] = {
        "context": ContextRef(id="c"),
        "offer": "o",
        "outcome": "left",
        "voter": "v",
        "voter_type": "human",
        "propensity": 0.5,
    }
    others: list[dict[str, Any]] = [
        {"context": None},
        {"context": ContextRef(id="d")},
        {"offer": None},
        {"outcome": "tie"},
        {"voter": None},
        {"voter_type": "llm"},
        {"propensity": 0.25},
    ]
    ballots = [Ballot(**base), *[Ballot(**{**base, **other}) for other in others]]
    digests = [digest(ballot, ("a", "b"), None) for ballot in ballots]
    digests += [
        digest(ballots[0], ("b", "a"), None),
        digest(ballots[0], ("a", "b"), {}),
        digest(ballots[0], ("a", "b"), {"x": 1}),
    ]
    assert len(set(digests)) == len(digests)
    assert digest(Ballot(**base), ("a", "b"), None) == digests[0]
