"""Warm rankings beside a constant answer, and streams: `python -m tests.benchmarks.reads`.

One API process and one process of bare Starlette, both under uvicorn with the same settings, are asked in turn by
readers of a process of their own. The bars: rankings of 200 items at 0.7 times the rate of a constant of the same size;
304 at least as fast as 200; 500 open streams hear of every snapshot while reads go on.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple
from urllib.request import Request, urlopen
from uuid import uuid4

import numpy as np
import psutil
from rich.console import Console
from rich.table import Table
from starlette.applications import Starlette
from starlette.requests import Request as Asked
from starlette.responses import Response
from starlette.routing import Route

from app.cache.connection import open_redis
from app.cache.news import RedisNews
from app.db.engine import open_engine, open_sessions
from app.db.migrations import upgrade
from app.db.models.snapshots import Score, Snapshot
from app.db.unit_of_work import UnitOfWork
from app.domain.boards import BoardConfig
from app.embedded.postgres import PostgresServer
from app.embedded.sharing import in_use
from app.embedded.state import open_state
from app.embedded.valkey import ValkeyServer

ITEMS, STREAMS, SNAPSHOTS = 200, 500, 20
LEAST_RATIO, LEAST_UNCHANGED = 0.7, 1.0
PATH = "/v1/boards/b/rankings"
UVICORN = ("--no-access-log", "--log-level", "warning", "--timeout-graceful-shutdown", "1")


async def _constant(_: Asked) -> Response:
    return Response(b"x" * int(os.environ["SIZE"]), media_type="application/json")


bare = Starlette(routes=[Route(PATH, _constant)])


class Server(NamedTuple):
    """A process that listens."""

    port: int
    process: psutil.Process

    def spent(self) -> float:
        """Processor seconds so far."""
        return sum(self.process.cpu_times()[:2])


class Board(NamedTuple):
    """Makes snapshots of a board with 200 items, as a refit stores them."""

    open_work: partial[UnitOfWork]
    news: RedisNews
    board_id: int

    def refit(self) -> tuple[str, float]:
        """Store a snapshot and tell of it; its id and when it was told."""
        rng, id_ = np.random.default_rng(), uuid4()
        items = [f"organisation/model-{number:03}" for number in range(ITEMS)]
        counts = {"votes": 1000, "effective_votes": 900.5, "unsupported": 0.01, "status": "ok"}
        summary = {
            "votes": 100_000, "rows": 100_000, "contexts": 100_000, "votes_excluded": {}, "retired": [], "segments": [],
            "propensity": "logged", "votes_to_flip": {}, "balance": None, "items": items, "inputs": "",
        }  # fmt: skip
        snapshot = Snapshot(
            id=id_, board_id=self.board_id, watermark=0, spec="0" * 64, spec_document={}, digest="0" * 64, status="ok",
            summary=summary, seconds=1.0,
        )  # fmt: skip
        spread = rng.normal(size=(ITEMS, ITEMS)) / 200
        details = {
            "auto": "all",
            "contexts": 100_000,
            "retired": {},
            "standing": [{"item": i, **counts} for i in items],
        }
        score = Score(
            snapshot_id=id_, estimand="bt", estimator="debiased", pairs="all", segment="", status="ok", items=items,
            value=sorted(rng.normal(size=ITEMS).tolist()), covariance=(spread @ spread.T).tobytes(), details=details,
            n_rows=100_000,
        )  # fmt: skip
        with self.open_work() as work:
            work.snapshots.add(snapshot, [score], [])
            work.commit()
        told = time.time()
        self.news.publish(self.board_id, "refit", job=None, state="succeeded", snapshot=id_)
        return str(id_), told


def main() -> None:
    """Measure and print; exit status 1 where a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.0, help="of each measurement")
    parser.add_argument("--connections", type=int, default=32)
    asked = parser.parse_args()
    with TemporaryDirectory() as folder, everything(Path(folder)) as (variables, board):
        board.refit()
        with serving("app.main:create_app", "--factory", **variables) as api:
            head = fetched(api)
            plain = {"accept-encoding": "identity"}
            known = {**plain, "if-none-match": head["etag"]}
            with serving("tests.benchmarks.reads:bare", SIZE=head["content-length"]) as constant:
                load = {"path": PATH, "seconds": asked.seconds, "connections": asked.connections}
                measures = {
                    "constant": partial(measured, constant, {**load, "headers": plain}),
                    "rankings": partial(measured, api, {**load, "headers": plain}),
                    "rankings, gzip": partial(measured, api, {**load, "headers": {"accept-encoding": "gzip"}}),
                    "304": partial(measured, api, {**load, "headers": known}),
                }
                rounds = [{name: measure() for name, measure in measures.items()} for _ in range(asked.rounds)]
            kept = show(rounds)
            kept &= streamed(api, board, {**load, "headers": plain, "seconds": 0.5 * SNAPSHOTS + 2})
    sys.exit(not kept)


@contextmanager
def everything(folder: Path) -> Iterator[tuple[dict[str, str], Board]]:
    """PostgreSQL and Valkey of our own, and a public board without votes."""
    folder.chmod(0o755)
    state = open_state(folder / "state")
    with in_use(PostgresServer(state)) as database, in_use(ValkeyServer(state)) as redis:
        upgrade(database)
        engine = open_engine(database)
        open_work = partial(UnitOfWork, open_sessions(engine))
        with open_work() as work:
            made = work.boards.add("b", "Board", True, BoardConfig())
            assert made is not None
            work.commit()
        limit = {"ORTHORANK_RATE_LIMIT": "100000000"}
        variables = {"ORTHORANK_DATABASE_URL": database, "ORTHORANK_REDIS_URL": redis, **limit}
        yield {**variables, "ORTHORANK_LOG_LEVEL": "warning"}, Board(open_work, RedisNews(open_redis(redis)), made.id)
        engine.dispose()


@contextmanager
def serving(application: str, *options: str, **variables: str) -> Iterator[Server]:
    """One process of uvicorn on a free port."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "uvicorn", application, *options, *UVICORN, "--port", str(port)]
    with subprocess.Popen(command, env={**os.environ, **variables}) as process:
        while True:
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                break
            except OSError:
                time.sleep(0.1)
        yield Server(port, psutil.Process(process.pid))
        process.terminate()


def fetched(server: Server) -> Mapping[str, str]:
    """The headers of the rankings, uncompressed, once they are kept."""
    time.sleep(5)  # past the first look at the board
    for _ in range(3):
        with urlopen(Request(f"http://127.0.0.1:{server.port}{PATH}")) as answer:
            headers: Mapping[str, str] = {name.lower(): value for name, value in answer.headers.items()}
    return headers


def measured(server: Server, plan: Mapping[str, Any]) -> dict[str, Any]:
    """What the readers say, with the server's processor microseconds per answer."""
    before = server.spent()
    found = run({"port": server.port, **plan})
    rate, cost = found["answers"] / plan["seconds"], 1e6 * (server.spent() - before) / found["answers"]
    return {**found, "rate": rate, "cpu": cost}


def run(plan: Mapping[str, Any]) -> dict[str, Any]:
    """Run readers."""
    command = [sys.executable, "-m", "tests.benchmarks.readers", json.dumps(plan)]
    found: dict[str, Any] = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    return found


def show(rounds: list[dict[str, dict[str, Any]]]) -> bool:
    """Print medians over the rounds; whether the bars are kept."""
    table = Table(title=f"Rankings of {ITEMS} items, medians of {len(rounds)} rounds")
    for heading in ("", "bytes", "answers/s", "× constant", "p50 ms", "p99 ms", "server CPU µs"):
        table.add_column(heading, justify="right" if heading else "left")
    ratios = {}
    for name in rounds[0]:
        middle = {field: median(each[name][field] for each in rounds) for field in ("rate", "p50", "p99", "cpu")}
        ratios[name] = median(each[name]["rate"] / each["constant"]["rate"] for each in rounds)
        quantiles = [f"{middle[each]:.1f}" for each in ("p50", "p99")]
        size = f"{rounds[0][name]['size']:,}"
        table.add_row(name, size, f"{middle['rate']:,.0f}", f"{ratios[name]:.2f}", *quantiles, f"{middle['cpu']:.0f}")
    Console().print(table)
    unchanged = median(each["304"]["rate"] / each["rankings"]["rate"] for each in rounds)
    print(f"rankings {ratios['rankings']:.2f} × constant (bar {LEAST_RATIO}); 304 {unchanged:.2f} × rankings (bar 1)")
    return ratios["rankings"] >= LEAST_RATIO and unchanged >= LEAST_UNCHANGED


def streamed(api: Server, board: Board, load: Mapping[str, Any]) -> bool:
    """Open streams, make snapshots while others read, and print how long the news took; whether all heard of all."""
    before = api.process.memory_info().rss
    plan = {"port": api.port, "path": "/v1/boards/b/stream", "streams": STREAMS}
    command = [sys.executable, "-m", "tests.benchmarks.readers"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with (
        subprocess.Popen([*command, json.dumps(plan)], **pipes) as listeners,  # type: ignore[call-overload]
        subprocess.Popen([*command, json.dumps({"port": api.port, **load})], stdout=subprocess.PIPE) as readers,
    ):
        assert listeners.stdout.readline() == b"open\n"
        opened = api.process.memory_info().rss
        told = {}
        for _ in range(SNAPSHOTS):
            time.sleep(0.5)
            snapshot, at = board.refit()
            told[snapshot] = at
        time.sleep(2)
        arrivals = json.loads(listeners.communicate()[0])
        read = json.loads(readers.communicate()[0])
    delays = [1e3 * (at - told[snapshot]) for snapshot in told for at in arrivals.get(snapshot, [])]
    p50, p99 = np.quantile(delays, [0.5, 0.99])
    print(
        f"{STREAMS} streams, {SNAPSHOTS} snapshots: {len(delays):,} of {STREAMS * SNAPSHOTS:,} events heard, ", end=""
    )
    print(f"after {p50:.0f} ms (p50), {p99:.0f} ms (p99), {max(delays):.0f} ms (longest)")
    rates = f"{read['answers'] / load['seconds']:,.0f} answers/s, p99 {read['p99']:.0f} ms"
    print(f"reads meanwhile: {rates}; streams take {(opened - before) / STREAMS / 1024:.0f} kB each, ", end="")
    print(f"the process {api.process.memory_info().rss / 2**20:.0f} MB")
    return len(delays) == STREAMS * SNAPSHOTS and read["statuses"] == [200]


if __name__ == "__main__":
    main()
