"""Ids of imported votes."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import NAMESPACE_URL, UUID, uuid5

from hypothesis import given
from hypothesis import strategies as st

from app.formats.identities import Identities
from app.formats.rows import VoteRow

ROW = VoteRow("a", "b", "tie", features={"x": 1.0, "y": "z"}, created_at=datetime(2026, 1, 1, tzinfo=UTC))


def ids(board: str, *rows: VoteRow) -> list[UUID]:
    identities = Identities(board)
    return [vote for row in rows for vote in identities.of(row)]


def test_a_uuid_is_kept_and_another_id_is_hashed() -> None:
    own = "6f1c1f2e-0000-4000-8000-00000000000a"
    board = uuid5(NAMESPACE_URL, "orthorank:b")
    assert ids("b", ROW._replace(id=own), ROW._replace(id="q1")) == [UUID(own), uuid5(board, "id:q1")]


def test_ids_are_those_of_the_board() -> None:
    assert ids("b", ROW) == ids("b", ROW)
    assert ids("b", ROW) != ids("c", ROW)
    assert ids("b", ROW._replace(id="q1")) != ids("c", ROW._replace(id="q1"))


def test_the_order_of_features_says_nothing() -> None:
    assert ids("b", ROW._replace(features={"y": "z", "x": 1.0})) == ids("b", ROW)


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 4)), max_size=12))
def test_counted_rows_have_the_ids_of_their_copies(counted: list[tuple[str, int]]) -> None:
    rows = [ROW._replace(left=left, times=times) for left, times in counted]
    copies = [row._replace(times=1) for row in rows for _ in range(row.times)]
    found = ids("b", *rows)
    assert found == ids("b", *copies)
    assert len(set(found)) == len(found)


def test_a_counted_row_with_an_id_has_an_id_for_each_vote() -> None:
    found = ids("b", ROW._replace(id="q1", times=3))
    assert len(set(found)) == 3
    assert found[:1] == ids("b", ROW._replace(id="q1"))


def test_every_field_of_a_vote_is_part_of_its_content() -> None:
    changed = (
        "c",
        "d",
        "left",
        "ctx",
        {"x": 2.0},
        "offer",
        "voter",
        "llm",
        0.5,
        datetime(2026, 1, 2, tzinfo=UTC),
        "bot",
    )
    rows = [ROW._replace(**{name: value}) for name, value in zip(VoteRow._fields, changed, strict=False)]
    assert len({next(Identities("b").of(row)) for row in [ROW, *rows]}) == len(rows) + 1
