"""Containers: every way to write the same records is read as the same records, with their lines."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from app.formats.plan import Request
from app.formats.registry import MAPPED
from app.formats.rows import BadRow, BrokenFile, Place, UnusableFile
from app.formats.sources.documents import array
from app.formats.sources.opened import Opened
from tests.formats.reading import contents_of, records_of

Write = Callable[[str, str | bytes], Path]
RECORDS = [{"left": "a", "right": "b", "note": "x"}, {"left": "c", "right": "d", "note": 'say "hi",\nthen\\ go [{}]'}]


def as_csv(records: list[dict[str, str]], *, end: str = "\r\n") -> bytes:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(records[0]), lineterminator=end)
    writer.writeheader()
    writer.writerows(records)
    return text.getvalue().encode()


def as_parquet(records: list[dict[str, str]]) -> bytes:
    buffer = io.BytesIO()
    parquet.write_table(pa.Table.from_pylist(records), buffer)
    return buffer.getvalue()


CONTAINERS: dict[str, Callable[[list[dict[str, str]]], bytes]] = {
    "votes.csv": as_csv,
    "unix.csv": lambda records: as_csv(records, end="\n"),
    "marked.csv": lambda records: b"\xef\xbb\xbf" + as_csv(records),
    "votes.jsonl": lambda records: b"\n".join(json.dumps(each).encode() for each in records),
    "marked.jsonl": lambda records: b"\xef\xbb\xbf" + b"\r\n".join(json.dumps(each).encode() for each in records),
    "array.json": lambda records: json.dumps(records).encode(),
    "pretty.json": lambda records: json.dumps(records, indent=2).encode(),
    "votes.parquet": as_parquet,
}


@pytest.mark.parametrize("name", CONTAINERS)
@pytest.mark.parametrize("compress", [False, True], ids=["plain", "gzip"])
def test_every_container_holds_the_same_records(write: Write, name: str, compress: bool) -> None:
    content = CONTAINERS[name](RECORDS)
    path = write(name + ".gz" * compress, gzip.compress(content) if compress else content)
    wanted = ("left", "right", "note")
    with_columns = records_of(path, wanted)
    assert [each.record for each in with_columns] == RECORDS


def test_lines_are_those_where_rows_start(write: Write) -> None:
    table = write("a.csv", 'left,right\n"a\nb",c\n\nd,e\nf\ng,h\n')
    assert [each.place.line for each in records_of(table)] == [2, 5, 6, 7]
    document = write("a.json", '[\n{"left": 1},\n\n{"left":\n2}, {"left": 3}\n]')
    assert [each.place.line for each in records_of(document)] == [2, 4, 5]


def test_bad_rows_of_a_table_stop_nothing(write: Write) -> None:
    path = write("a.csv", b'left,right\na,b\na\na,b,c\n"a"x,b\n\xff,b\nc,d\n')
    read = records_of(path)
    assert [each.place.line for each in read if isinstance(each.record, BadRow)] == [3, 4, 5, 6]
    assert [each.record for each in read if isinstance(each.record, dict)] == [
        {"left": "a", "right": "b"},
        {"left": "c", "right": "d"},
    ]
    reasons = [str(each.record) for each in read if isinstance(each.record, BadRow)]
    assert reasons[:2] == ["expected 2 columns, got 1", "expected 2 columns, got 3"]
    assert reasons[3] == "the row is not UTF-8 text"


def test_a_quote_that_never_closes_is_one_bad_row(write: Write) -> None:
    read = records_of(write("a.csv", 'left,right\na,b\n"c,d\n'))
    assert [(each.place.line, isinstance(each.record, BadRow)) for each in read] == [(2, False), (3, True)]


def test_bad_elements_of_an_array_stop_nothing(write: Write) -> None:
    read = records_of(write("a.json", '[{"left": 1}, 7, {"left" 2}, {"left": NaN},\n [1], {"left": 3}]'))
    assert [each.record for each in read if isinstance(each.record, dict)] == [{"left": 1}, {"left": None}, {"left": 3}]
    assert [each.place for each in read if isinstance(each.record, BadRow)] == [Place(1, 2), Place(1, 3), Place(2, 5)]


def test_bad_lines_of_json_stop_nothing(write: Write) -> None:
    read = records_of(write("a.jsonl", '{"left": 1}\n{"left":\n\n[2]\n{"left": 3}\n'))
    assert [each.place.line for each in read if isinstance(each.record, BadRow)] == [2, 4]
    assert [each.place.line for each in read if isinstance(each.record, dict)] == [1, 5]


@pytest.mark.parametrize("name", ["votes.csv", "votes.jsonl", "array.json"])
def test_truncated_gzip_gives_what_came_before(write: Write, name: str) -> None:
    records = [{"left": f"item {n}", "right": f"rival {n * 7919 % 1000}", "outcome": "tie"} for n in range(5_000)]
    whole = gzip.compress(CONTAINERS[name](records))
    path = write(name + ".gz", whole[: len(whole) // 2])
    request = Request(MAPPED, {"left": "left", "right": "right", "outcome": "outcome"})
    contents = contents_of(path, request)
    assert contents.broken is not None
    assert "gzip" in contents.broken
    assert 1_000 < len(contents.rows) < 4_000
    assert [row.left for _, row in contents.rows] == [f"item {n}" for n in range(len(contents.rows))]


def test_gzip_broken_among_the_first_rows_still_gives_them(write: Write) -> None:
    whole = gzip.compress(b"left,right,outcome\n" + b"a,b,tie\n" * 100, compresslevel=0)
    path = write("a.csv.gz", whole[:200])
    contents = contents_of(path, Request(MAPPED, {"left": "left", "right": "right", "outcome": "outcome"}))
    assert contents.broken is not None
    assert 10 < len(contents.rows) < 100


@pytest.mark.parametrize("ending", ["", "]}", "] trailing"])
def test_an_array_that_does_not_end_is_said(write: Write, ending: str) -> None:
    path = write("a.json", '[{"left": 1}, {"left": 2}' + ending)
    with pytest.raises(BrokenFile, match="end of the JSON array"):
        records_of(path)


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.csv", b"", "empty"),
        ("a.csv", b"left,right,left\n", "twice"),
        ("a.csv", b"\xff\xfe,b\n", "UTF-8"),
        ("a.parquet", b"PAR1 no more", "not a Parquet file"),
        ("a.csv.gz", b"\x1f\x8b\x08", "gzip"),
    ],
)
def test_unusable_files_are_refused(write: Write, name: str, content: bytes, words: str) -> None:
    with pytest.raises(UnusableFile, match=words):
        records_of(write(name, content))


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnusableFile, match="No such file"):
        records_of(tmp_path / "none.csv")


def test_tabs_separate_where_the_name_says_so(write: Write) -> None:
    assert [each.record for each in records_of(write("a.tsv", "left\tright\na,1\tb\n"))] == [
        {"left": "a,1", "right": "b"}
    ]


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    records=st.lists(st.dictionaries(st.text(), VALUES), max_size=6),
    indent=st.none() | st.just(1),
    cut=st.integers(1, 9),
)
def test_any_array_is_split_wherever_its_blocks_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, records: list[dict[str, object]], indent: int | None, cut: int
) -> None:
    path = tmp_path / "a.json"
    path.write_text(json.dumps(records, indent=indent, ensure_ascii=False).encode("utf-8", "replace").decode())
    content = path.read_bytes()
    blocks = [content[start : start + cut] for start in range(0, len(content), cut)]
    file = Opened(path)
    monkeypatch.setattr(file, "chunks", lambda: iter(blocks))
    assert [each.record for each in array(file)] == json.loads(content)
    file.close()
