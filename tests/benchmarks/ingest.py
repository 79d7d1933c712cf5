"""How fast votes get in, beside what PostgreSQL itself takes: `python -m tests.benchmarks.ingest [--seconds 8]`.

It starts PostgreSQL with fsync, Valkey and one API process of their own. The ceilings are pgbench's INSERTs of one row
by 64 clients and of 1,000 rows by 4, prepared statements, into a table with the columns and indexes of the votes; the
votes have all fields, known contexts and ids of their own, and come over as many connections. Ceiling and service take
turns. The bars: 0.6 of the single rows a second, 0.4 of the thousands.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import psutil
import psycopg
from rich.console import Console
from rich.table import Table

from app.db.migrations import upgrade
from app.embedded.postgres import PostgresServer
from app.embedded.programs import postgres_programs
from app.embedded.sharing import in_use
from app.embedded.state import open_state
from app.embedded.valkey import ValkeyServer
from tests.benchmarks.acquire import Client, await_port, free_port
from tests.benchmarks.load import Plan

LEAST = {"single": 0.6, "batch": 0.4}
ITEMS, CONTEXTS, ROWS = 20, 2_000, 1_000
CLIENTS = {"single": 64, "batch": 4}
BIN = Path(sys.executable).parent
COLUMNS = (
    "board_id, client_id, digest, context_id, left_id, right_id, outcome, "
    "voter, voter_type, propensity, kind, created_at"
)
ROW = (
    "(1, gen_random_uuid(), '\\x000102030405060708090a0b0c0d0e0f', 1 + floor(random() * 2000), "
    "1 + floor(random() * 19), 20, 1, gen_random_uuid()::text, 'human', 0.0026, 'pair', now())"
)


class Bench(NamedTuple):
    """The servers, each with the process that its others come from."""

    postgres: PostgresServer
    api: subprocess.Popen[bytes]
    port: int
    key: str

    def spent(self) -> dict[str, float]:
        """Processor seconds of the API and of PostgreSQL so far."""
        return {"api": _seconds(self.api.pid), "postgres": _seconds(self.postgres.pid or 0)}


class Run(NamedTuple):
    """Rows a second, milliseconds to an answer, processor microseconds a row; and what answers said."""

    rate: float
    p50: float = 0.0
    p99: float = 0.0
    cpu: dict[str, float] | None = None


def main() -> None:
    """Measure and print; exit status 1 where a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=8, help="of each run")
    parser.add_argument("--rounds", type=int, default=3, help="turns of ceiling and service")
    parser.add_argument("--only", choices=["single", "batch"], help="one of the two")
    parser.add_argument("--new-contexts", action="store_true", help="each vote brings a context of its own")
    asked = parser.parse_args()
    kinds = [asked.only] if asked.only else ["single", "batch"]
    with TemporaryDirectory() as folder, service(Path(folder)) as bench:
        prepare(bench)
        ratios = [measured(bench, kind, asked) for kind in kinds]
    sys.exit(any(ratio < LEAST[kind] for kind, ratio in zip(kinds, ratios, strict=True)))


@contextmanager
def service(folder: Path) -> Iterator[Bench]:
    """PostgreSQL as `orthorank up` starts it, Valkey, one API process, an admin key."""
    folder.chmod(0o755)
    state = open_state(folder / "data")
    postgres, valkey, port = PostgresServer(state), ValkeyServer(state), free_port()
    with in_use(postgres) as database, in_use(valkey) as redis:
        upgrade(database)
        urls = {"ORTHORANK_DATABASE_URL": database, "ORTHORANK_REDIS_URL": redis}
        environment = {**os.environ, **urls, "ORTHORANK_RATE_LIMIT": "100000000"}
        command = [BIN / "orthorank", "key", "create", "--scope", "admin"]
        made = subprocess.run(command, env=environment, capture_output=True, check=True)
        with (folder / "api.log").open("wb") as log:
            api = subprocess.Popen([BIN / "orthorank", "api", "--port", str(port)], env=environment, stderr=log)
        try:
            await_port(port)
            yield Bench(postgres, api, port, made.stdout.decode().strip())
        finally:
            api.terminate()
            api.wait()


def prepare(bench: Bench) -> None:
    """The board, its items and contexts, and the table of the ceiling."""
    call = Client(bench.port, bench.key)
    features = [{"name": "language", "kind": "categorical"}, {"name": "length", "kind": "numeric"}]
    call("POST", "/v1/boards", {"slug": "b", "features": features, "refit": {"votes": 1_000_000_000}})
    for number in range(ITEMS):
        call("PUT", f"/v1/boards/b/items/item-{number}", {})
    contexts = [{"id": f"p-{number}", "offered": True} for number in range(CONTEXTS)]
    call("POST", "/v1/boards/b/contexts", {"contexts": contexts})
    with psycopg.connect(bench.postgres.url, autocommit=True) as connection:
        connection.execute("CREATE TABLE ceiling (LIKE votes INCLUDING ALL)")


def measured(bench: Bench, kind: str, asked: argparse.Namespace) -> float:
    """Turns of both, printed; the ratio of their medians."""
    ceiling, served = [], []
    for turn in range(asked.rounds):
        ceiling.append(pgbench(bench, kind, asked.seconds))
        total = _total(kind, ceiling[-1].rate * asked.seconds)
        # Votes of their own, none a duplicate of another turn's.
        seed = 2 * turn + (kind == "batch")
        plan = Plan(bench.port, bench.key, total, CLIENTS[kind], seed=seed, new_contexts=asked.new_contexts)
        served.append(load(bench, kind, plan))
    ratio = median(run.rate for run in served) / median(run.rate for run in ceiling)
    show(kind, ceiling, served, ratio)
    return ratio


def _total(kind: str, rows: float) -> int:
    """Requests that take about as long as these rows took the ceiling."""
    return int(LEAST[kind] * rows) if kind == "single" else int(LEAST[kind] * rows / ROWS)


def pgbench(bench: Bench, kind: str, seconds: int) -> Run:
    """Rows a second that PostgreSQL takes without us."""
    rows = 1 if kind == "single" else ROWS
    script = f"INSERT INTO ceiling ({COLUMNS}) VALUES {', '.join([ROW] * rows)};\n"
    program = postgres_programs(bench.postgres.state).folder / "pgbench"
    words = [program, "-n", "-f", "/dev/stdin", "-M", "prepared", "-c", CLIENTS[kind], "-j", 2, "-T", seconds]
    before = bench.spent()
    words = [*map(str, words), bench.postgres.url]
    found = subprocess.run(words, input=script.encode(), capture_output=True, check=True).stdout.decode()
    rate = rows * float(next(line for line in found.splitlines() if line.startswith("tps")).split()[2])
    return Run(rate, cpu=_each(before, bench.spent(), rate * seconds))


def load(bench: Bench, kind: str, plan: Plan) -> Run:
    """Votes a second that the service takes."""
    size = 0 if kind == "single" else ROWS
    plan = replace(plan, size=size, items=ITEMS, contexts=CONTEXTS, path="/v1/boards/b/votes" + "/batch" * bool(size))
    before = bench.spent()
    words = [sys.executable, "-m", "tests.benchmarks.load", json.dumps(asdict(plan))]
    found: dict[str, Any] = json.loads(subprocess.run(words, capture_output=True, check=True).stdout)
    if set(found["statuses"]) - {"200", "201"}:
        raise SystemExit(f"{found['statuses']}: {found['last']}")
    votes = plan.total * max(1, size)
    cpu = {**_each(before, bench.spent(), votes), "load": found["cpu"] / votes * 1e6}
    return Run(votes / found["seconds"], found["p50"], found["p99"], cpu)


def _each(before: dict[str, float], after: dict[str, float], rows: float) -> dict[str, float]:
    return {name: (after[name] - before[name]) / rows * 1e6 for name in before}


def _seconds(pid: int) -> float:
    """Of a process, of its children that ended, and of those that run."""
    first, spent = psutil.Process(pid), 0.0
    for child in first.children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            spent += sum(child.cpu_times()[:2])
    return spent + sum(first.cpu_times()[:4])


def show(kind: str, ceiling: list[Run], served: list[Run], ratio: float) -> None:
    """All turns and the ratio of their medians."""
    table = Table(title=f"{kind}: {ratio:.2f} of pgbench (at least {LEAST[kind]})")
    headings = ("who", "rows/s", "p50 ms", "p99 ms", "API us/row", "PostgreSQL us/row", "load us/row")
    for heading in headings:
        table.add_column(heading, justify="right")
    for who, runs in (("pgbench", ceiling), ("service", served)):
        for run in runs:
            cpu = run.cpu or {}
            cells = [f"{cpu[name]:.0f}" if name in cpu else "" for name in ("api", "postgres", "load")]
            table.add_row(who, f"{run.rate:,.0f}", f"{run.p50:.1f}", f"{run.p99:.1f}", *cells)
    Console().print(table)


if __name__ == "__main__":
    main()
