"""Written files hold what was given, whatever is in it."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.formats.cells import moment, number, prose, vector
from app.formats.writers import CONTAINERS, Column, Container, write
from tests.formats.reading import records_of

COLUMNS = [Column("t", "text"), Column("n", "number"), Column("v", "numbers"), Column("m", "moment")]
TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1)
NUMBERS = st.floats(-1e30, 1e30)
ROWS = st.tuples(
    TEXT,
    st.none() | NUMBERS,
    st.none() | st.lists(NUMBERS, min_size=1, max_size=3),
    st.none() | st.datetimes(datetime(1971, 1, 1), datetime(2199, 1, 1)).map(lambda at: at.replace(tzinfo=UTC)),
)


@pytest.mark.parametrize("container", CONTAINERS)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(blocks=st.lists(st.lists(ROWS, min_size=1, max_size=3), min_size=1, max_size=3))
def test_what_is_written_reads_as_it_was(
    tmp_path: Path, container: Container, blocks: list[list[tuple[object, ...]]]
) -> None:
    path = tmp_path / f"a.{container}"
    path.write_bytes(b"".join(write(container, COLUMNS, blocks)))
    read = []
    for _, record in records_of(path, ("t", "n", "v", "m")):
        assert isinstance(record, dict)
        values = (prose(record["t"], "t"), number(record["n"], "n"), vector(record["v"], "v"), moment(record["m"], "m"))
        read.append(values)
    assert read == [row for rows in blocks for row in rows]


@pytest.mark.parametrize("container", ["csv", "parquet"])
def test_without_rows_the_columns_are_there(tmp_path: Path, container: Container) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"".join(write(container, COLUMNS, [])))
    assert records_of(path) == []


def test_json_lines_say_every_field() -> None:
    (line,) = write("jsonl", COLUMNS, [[("x", None, None, None)]])
    assert orjson.loads(line) == {"t": "x", "n": None, "v": None, "m": None}
