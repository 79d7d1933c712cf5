"""Array literals, read back by PostgreSQL."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from uuid import UUID

from hypothesis import HealthCheck, example, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from sqlalchemy import text
from sqlalchemy.orm import Session

from app.db.arrays import hashes, moments, plain, texts, uuids

SAFE = st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"]))
ONCE = hypothesis_settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def read(session: Session, literal: str, kind: str) -> Any:
    return session.execute(text(f"SELECT CAST(:literal AS {kind}[])"), {"literal": literal}).scalar_one()


@ONCE
@given(values=st.lists(st.none() | SAFE))
@example(values=["", "NULL", "null", '"', "\\", "{a,b}", " a ", ",", "\n", None])
def test_texts(session: Session, values: list[str | None]) -> None:
    assert read(session, texts(values), "text") == values


@ONCE
@given(values=st.lists(st.none() | st.integers(-(2**63), 2**63 - 1)))
def test_integers(session: Session, values: list[int | None]) -> None:
    assert read(session, plain(values), "bigint") == values


@ONCE
@given(values=st.lists(st.none() | st.floats(allow_nan=False, allow_infinity=False, allow_subnormal=False)))
def test_floats_to_the_last_bit(session: Session, values: list[float | None]) -> None:
    assert read(session, plain(values), "float8") == values


def test_truths(session: Session) -> None:
    assert read(session, plain([True, None, False]), "boolean") == [True, None, False]


@ONCE
@given(values=st.lists(st.none() | st.uuids()))
def test_uuids(session: Session, values: list[UUID | None]) -> None:
    assert read(session, uuids(values), "uuid") == values


@ONCE
@given(values=st.lists(st.binary()))
def test_bytes(session: Session, values: list[bytes]) -> None:
    assert read(session, hashes(values), "bytea") == values


@ONCE
@given(
    values=st.lists(
        st.datetimes(
            datetime(1970, 1, 2),
            datetime(2199, 1, 1),
            timezones=st.just(UTC) | st.just(timezone(timedelta(hours=-9.5))),
        )
    )
)
def test_moments(session: Session, values: list[datetime]) -> None:
    assert read(session, moments(values), "timestamptz") == values
