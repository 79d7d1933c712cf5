"""`orthorank import` and `export` as processes: exit statuses, what is printed, and death in the middle."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
import pytest

from app.cli import main
from tests.cli.running import bare_environment

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
SIDES = ("--map", "left=a", "--map", "right=b", "--map", "outcome=w")
CROWD = (
    *("--map", "context=prompt_id", "--map", "left=model_left", "--map", "right=model_right"),
    *("--map", "outcome=winner", "--map", "feature.type=prompt_type", "--outcomes", "ternary"),
)
COUNTS = (
    *("--map", "left=model_a", "--map", "right=model_b", "--map", "count.left=n_win_a", "--map", "count.right=n_win_b"),
    *("--map", "count.tie=n_tie", "--map", "count.both_bad=n_both_bad"),
)


@pytest.fixture(scope="module")
def url(make_migrated_database: Callable[[], str]) -> str:
    return make_migrated_database()


class Done(NamedTuple):
    """How a command ended, and what it wrote."""

    returncode: int
    stdout: str
    stderr: str


Run = Callable[..., Done]
Imported = Callable[..., dict[str, Any]]


@pytest.fixture
def run(url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run the command line in this process, which starts at once."""
    monkeypatch.setenv("ORTHORANK_DATABASE_URL", url)
    monkeypatch.setenv("COLUMNS", "200")

    def run(*words: str) -> Done:
        monkeypatch.setattr(sys, "argv", ["orthorank", *words])
        with pytest.raises(SystemExit) as end:
            main()
        assert end.value.code is None or isinstance(end.value.code, int)
        return Done(end.value.code or 0, *capsys.readouterr())

    return run


@pytest.fixture
def imported(run: Run) -> Imported:
    """The summary of an import that must go well."""

    def imported(*words: str) -> dict[str, Any]:
        done = run("import", *words, "--json")
        assert done.returncode == 0, done.stderr
        summary: dict[str, Any] = json.loads(done.stdout)
        return summary

    return imported


def stored(url: str, board: str) -> int:
    query = "SELECT count(*) FROM votes JOIN boards ON boards.id = board_id WHERE slug = %s"
    with psycopg.connect(url) as connection:
        return connection.execute(query, [board]).fetchall()[0][0]


@pytest.fixture
def data() -> Path:
    """The folder of real votes, which is not part of the project."""
    if not DATA.is_dir():
        pytest.skip(f"real data are not here: {DATA}")
    return DATA


def test_a_clean_file_is_told_in_one_line(run: Run, tmp_path: Path) -> None:
    (tmp_path / "v.csv").write_text("a,b,w\nm1,m2,tie\nm2,m1,model_a\n")
    done = run("import", str(tmp_path / "v.csv"), "--board", "clean", *SIDES)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("clean (new): 2 created, 0 duplicate, 0 rejected in ")


def test_rejected_lines_are_shown_counted_and_written(run: Run, tmp_path: Path) -> None:
    (tmp_path / "v.csv").write_text("a,b,w\nm1,m2,tie\n" + "m1,m2,[bad]\n" * 25)
    rejects = tmp_path / "rejects.tsv"
    words = ("import", str(tmp_path / "v.csv"), "--board", "rejecting", *SIDES)
    done = run(*words, "--rejects", str(rejects))
    assert done.returncode == 1
    assert done.stdout.startswith("rejecting (new): 1 created, 0 duplicate, 25 rejected")
    shown = done.stderr.splitlines()
    assert shown[0].startswith("line 3: outcome: unknown '[bad]'; accepted: left, model_a")
    assert (len(shown), shown[-1]) == (21, "… and 5 more rejected lines")
    written = [line.split("\t") for line in rejects.read_text().splitlines()]
    assert [int(line) for line, _, _ in written] == list(range(3, 28))
    assert json.loads(run(*words, "--json").stdout)["rejected"] == 25


def test_elements_of_an_array_are_told_apart(run: Run, tmp_path: Path) -> None:
    rows = [{"a": "m1", "b": "m2", "w": outcome} for outcome in ("tie", "bad", "bad")]
    (tmp_path / "v.json").write_text(json.dumps(rows))
    rejects = tmp_path / "rejects.tsv"
    done = run("import", str(tmp_path / "v.json"), "--board", "array", *SIDES, "--rejects", str(rejects))
    first, second = done.stderr.splitlines()
    assert first.startswith("line 1, element 2: outcome: unknown 'bad'")
    assert second.startswith("line 1, element 3: outcome: unknown 'bad'")
    assert [line.split(" outcome")[0] for line in rejects.read_text().splitlines()] == [
        "1\t1\telement 2:",
        "1\t1\telement 3:",
    ]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--map", "left=a", "--map", "right=b", "--map", "outcome=x"), "no column 'x'; the file has a, b, w"),
        (("--map", "left"), "expected NAME=VALUE"),
        (("--map", "side=a"), "the fields are id, context"),
        (("--format", "elo"), "'elo' is not one of"),
        ((*SIDES, "--feature-kind", "x=colour"), "the kinds are categorical"),
        ((*SIDES, "--set", "folds=1"), "folds"),
        ((*SIDES, "--set", 'outcomes=["a"]'), "outcomes"),
    ],
)
def test_what_cannot_be_read_as_asked_is_a_usage_error(
    run: Run, tmp_path: Path, words: tuple[str, ...], told: str
) -> None:
    (tmp_path / "v.csv").write_text("a,b,w\nm1,m2,tie\n")
    done = run("import", str(tmp_path / "v.csv"), "--board", "unused", *words)
    assert done.returncode == 2
    assert told in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr
    assert run("export", "--board", "unused").returncode == 1


def test_a_missing_file_and_a_damaged_one(run: Run, url: str, tmp_path: Path) -> None:
    assert run("import", str(tmp_path / "none"), "--board", "x", *SIDES).returncode == 2
    whole = gzip.compress(b"a,b,w\n" + b"m1,m2,tie\n" * 50, compresslevel=0)
    (tmp_path / "v.csv.gz").write_bytes(whole[:300])
    done = run("import", str(tmp_path / "v.csv.gz"), "--board", "damaged", *SIDES)
    assert done.returncode == 1
    assert "the file is damaged, what came before is imported: the gzip data stop" in done.stdout
    assert 20 < stored(url, "damaged") < 30


def test_an_export_reads_back(imported: Imported, run: Run, tmp_path: Path) -> None:
    (tmp_path / "v.csv").write_text("a,b,w,l\nm1,m2,tie,en\nm2,m1,model_a,de\n")
    imported(str(tmp_path / "v.csv"), "--board", "source", *SIDES, "--map", "feature.l=l", "--map", "context=l")
    assert run("export", "--board", "source", "--format", "parquet", "--output", str(tmp_path / "o")).returncode == 0
    assert imported(str(tmp_path / "o"), "--board", "copy", "--format", "orthorank")["created"] == 2
    source, copy = (run("export", "--board", board).stdout for board in ("source", "copy"))
    assert copy == source != ""
    assert [path.name for path in tmp_path.iterdir() if "partial" in path.name] == []


def test_a_killed_import_is_completed_by_the_same_command(imported: Imported, url: str, tmp_path: Path) -> None:
    (tmp_path / "v.csv").write_text("a,b,w,n\nm1,m2,tie,40000\nm2,m1,left,40000\n")
    words = ("import", str(tmp_path / "v.csv"), "--board", "killed", *SIDES, "--map", "count=n", "--json")
    environment = {**bare_environment(), "ORTHORANK_DATABASE_URL": url}
    command = [sys.executable, "-m", "app.cli", *words]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE)
    deadline = time.monotonic() + 120
    while not stored(url, "killed") and time.monotonic() < deadline:
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    before = stored(url, "killed")
    assert 0 < before < 80_000
    summary = imported(*words[1:-1])
    assert summary["created"] == 80_000 - before
    assert summary["duplicate"] == before
    assert stored(url, "killed") == 80_000


def test_crowd_votes_and_judgements_import_whole(imported: Imported, data: Path) -> None:
    words = (str(data / "llmfao_votes.csv.gz"), "--board", "llmfao", *CROWD)
    votes = imported(*words, "--map", "voter=worker_id", "--where", "source=crowd")
    assert (votes["created"], votes["rejected"], votes["filtered"]) == (8_931, 0, 4_278)
    judges = ("--as", "judgements", "--map", "judge=source", "--where", "source=gpt4", "--where", "source=gpt3")
    judgements = imported(*words, *judges)
    assert (judgements["judgements"]["created"], judgements["rejected"]) == (4_278, 0)


def test_mtbench_imports_whole(imported: Imported, data: Path) -> None:
    summary = imported(str(data / "mtbench_votes.csv.gz"), "--board", "mtbench", "--format", "mtbench")
    assert (summary["votes"]["created"], summary["judgements"]["created"], summary["rejected"]) == (3_355, 2_400, 0)


def test_counts_of_a_real_arena_are_what_the_file_says(
    imported: Imported, url: str, data: Path, tmp_path: Path
) -> None:
    with gzip.open(data / "arena_pair_counts_20240814.csv.gz", "rt") as file:
        lines = file.readlines()[:60]
    (tmp_path / "v.csv").write_text("".join(lines))
    summary = imported(str(tmp_path / "v.csv"), "--board", "arena", *COUNTS)
    assert summary["created"] == stored(url, "arena") == sum(sum(map(int, line.split(",")[2:])) for line in lines[1:])
