"""How long one context waits for its pairs, beside a route that does nothing.

`python -m tests.benchmarks.acquire [--items 20] [--calls 400]` starts everything it needs on ports of its own. The bar
at 20 items: a median of at most five times the bare route's. Beside it stands a route that stores one row durably,
which any answer that promises to be recorded has to wait for. `--policy` measures the propensities of 10,000 contexts
instead, their sensitivities given: at most 1 second of the processor at 20 items, 10 seconds at 100.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import psutil
from fastapi import FastAPI
from psycopg import AsyncConnection
from pydantic import BaseModel
from rich.console import Console
from rich.table import Table

from app.stats.acquisition import Mode, Policy, Rules
from app.stats.types import Floats

MOST_RATIO = 5.0
CHUNK = 1_000
"""Contexts of one request."""
DATABASE = "BENCHMARK_DATABASE"
MODES: tuple[Mode, ...] = ("bernoulli", "single", "one")
FIGURES = ("p50", "p99", "cpu")
MOST_SECONDS = {20: 1.0, 100: 10.0}
CONTEXTS, CALIBRATED = 10_000, {20: 2_000, 100: 400}
VOTES = 4_000
COVARIATES, WARM = 6, 20
BIN = Path(sys.executable).parent

bare = FastAPI()


class Question(BaseModel):
    """The body of a request, read like that of the service."""

    contexts: list[dict[str, Any]]


@bare.post("/acquire")
def nothing(question: Question) -> dict[str, Any]:
    """An answer of the same shape without any work."""
    pair = {"id": "0" * 36, "left": "item 00", "right": "item 01", "propensity": 0.01, "expires_at": "2026-11-30"}
    return {"policy": {"id": "0" * 36}, "assignments": [{"context": question.contexts[0]["id"], **pair}]}


@bare.post("/insert")
async def store(question: Question) -> dict[str, Any]:
    """The same answer, once a row is durable; one connection that stays open."""
    if not hasattr(bare.state, "connection"):
        bare.state.connection = await AsyncConnection.connect(os.environ[DATABASE], autocommit=True)
        await bare.state.connection.execute("CREATE TABLE IF NOT EXISTS stored (id bigserial PRIMARY KEY, body text)")
    await bare.state.connection.execute("INSERT INTO stored (body) VALUES (%s)", [question.contexts[0]["id"]])
    return nothing(question)


class Server(NamedTuple):
    """Where a server listens, and the process that all of its others come from."""

    pid: int
    port: int
    key: str = ""
    database: str = ""

    def spent(self) -> float:
        """Processor seconds of all its processes so far."""
        first = psutil.Process(self.pid)
        return sum(sum(each.cpu_times()[:2]) for each in [first, *first.children(recursive=True)])


class Client:
    """One connection that stays open."""

    def __init__(self, port: int, key: str = "") -> None:
        self._connection = HTTPConnection("127.0.0.1", port)
        self._headers = {"Content-Type": "application/json", "Authorization": f"Bearer {key}"}

    def __call__(self, method: str, path: str, body: object = None) -> Any:
        self._connection.request(method, path, json.dumps(body), self._headers)
        answer = self._connection.getresponse()
        content = answer.read()
        if answer.status >= 400:
            raise SystemExit(f"{method} {path}: {answer.status} {content.decode()}")
        return json.loads(content)


def main() -> None:
    """Measure and print; exit status 1 where the bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, action="append", help="items of the board [20, 100]")
    parser.add_argument("--calls", type=int, default=400, help="calls of each route")
    parser.add_argument("--policy", action="store_true", help="propensities alone")
    asked = parser.parse_args()
    if asked.policy:
        sys.exit(not policies(asked.items or (20, 100)))
    with TemporaryDirectory() as folder, service(Path(folder)) as reached, bare_server(reached.database) as plain:
        rows = [measure(items, asked.calls, reached, plain) for items in asked.items or (20, 100)]
    show(rows)
    sys.exit(any(row["items"] == 20 and row["p50"] > MOST_RATIO * row["bare p50"] for row in rows))


@contextmanager
def service(folder: Path) -> Iterator[Server]:
    """`orthorank up` on a free port, with an admin key."""
    # As root the servers run as an account of their own, which has to get in.
    folder.chmod(0o755)
    port, data = free_port(), ["--data", str(folder / "data")]
    up = subprocess.Popen([BIN / "orthorank", "up", *data, "--port", str(port)], stdout=subprocess.DEVNULL)
    try:
        await_port(port)
        made = subprocess.run(
            [BIN / "orthorank", "key", "create", "--scope", "admin", *data], capture_output=True, check=True
        )
        told = subprocess.run([BIN / "orthorank", "env", *data], capture_output=True, check=True, text=True).stdout
        url = next(line.partition("=")[2].strip("'\"") for line in told.splitlines() if "DATABASE_URL=" in line)
        yield Server(up.pid, port, made.stdout.decode().strip(), url)
    finally:
        up.terminate()
        up.wait()


@contextmanager
def bare_server(database: str) -> Iterator[Server]:
    """The bare routes in a server of their own."""
    port = free_port()
    arguments = [sys.executable, "-m", "uvicorn", "tests.benchmarks.acquire:bare", "--port", str(port)]
    server = subprocess.Popen([*arguments, "--log-level", "warning"], env={**os.environ, DATABASE: database})
    try:
        await_port(port)
        yield Server(server.pid, port)
    finally:
        server.terminate()
        server.wait()


def measure(items: int, calls: int, reached: Server, bare_reached: Server) -> dict[str, Any]:
    """Latencies of both routes in turn, and what all processes of each spend on a call; in milliseconds."""
    call, plain = Client(reached.port, reached.key), Client(bare_reached.port)
    learn(call, items)
    asked = list(questions(calls + WARM, items))
    servers = {"": reached, "bare ": bare_reached}
    before = {who: server.spent() for who, server in servers.items()}
    service_route, bare_route = (call, f"/v1/boards/b{items}/acquire"), (plain, "/acquire")
    found = quantiles({"": service_route, "bare ": bare_route}, asked)
    spent = {f"{who}cpu": 1e3 / len(asked) * (server.spent() - before[who]) for who, server in servers.items()}
    durable = quantiles({"durable ": (plain, "/insert"), "bare beside durable ": bare_route}, asked)
    return {"items": items, **found, **spent, **durable}


def quantiles(routes: dict[str, tuple[Client, str]], asked: Sequence[object]) -> dict[str, float]:
    """p50 and p99 of each route, called in turn."""
    times: dict[str, list[float]] = {who: [] for who in routes}
    for body in asked:
        for who, (client, path) in routes.items():
            times[who].append(timed(client, path, body))
    levels = {"p50": 0.5, "p99": 0.99}
    return {
        f"{who}{name}": float(np.quantile(spent[WARM:], level))
        for who, spent in times.items()
        for name, level in levels.items()
    }


def questions(size: int, seed: int) -> Iterator[dict[str, Any]]:
    """Requests for one context each."""
    rng = np.random.default_rng(seed)
    for number in range(size):
        features = dict(zip(names(), rng.normal(size=COVARIATES).tolist(), strict=True))
        yield {"contexts": [{"id": f"{number}", "features": features}]}


def learn(call: Client, items: int) -> None:
    """A board with votes and a policy."""
    features = [{"name": name, "kind": "numeric"} for name in names()]
    call("POST", "/v1/boards", {"slug": f"b{items}", "open_items": True, "features": features})
    rng = np.random.default_rng(items)
    strength, slopes = rng.normal(0, 0.5, items), rng.normal(0, 0.5, (items, COVARIATES))
    votes = []
    for number in range(VOTES):
        x, (left, right) = rng.normal(size=COVARIATES), rng.choice(items, 2, replace=False)
        edge = strength[left] - strength[right] + (slopes[left] - slopes[right]) @ x
        context = {"id": f"v{number}", "features": dict(zip(names(), x.tolist(), strict=True))}
        outcome = "left" if rng.random() < 1 / (1 + np.exp(-edge)) else "right"
        pair = {"left": f"item {left:02}", "right": f"item {right:02}", "propensity": 1 / items / (items - 1)}
        votes.append({"context": context, "outcome": outcome, **pair})
    call("POST", f"/v1/boards/b{items}/votes/batch", {"votes": votes})
    job = call("POST", f"/v1/boards/b{items}/refit")
    while call("GET", f"/v1/jobs/{job['id']}")["state"] not in ("succeeded", "failed"):
        time.sleep(0.5)
    while call("GET", f"/v1/boards/b{items}/policy")["objective"] == "uniform":
        time.sleep(0.1)


def policies(sizes: Sequence[int]) -> bool:
    """Print what the propensities of 10,000 contexts cost in each mode; whether all keep to the bars."""
    table, kept = Table(title=f"Propensities of {CONTEXTS:,} contexts, processor seconds"), True
    for heading in ("items", "mode", "equal costs", "other costs"):
        table.add_column(heading, justify="right")
    for items in sizes:
        for mode in MODES:
            spent = [allocated(items, mode, equal=equal) for equal in (True, False)]
            kept &= max(spent) <= MOST_SECONDS.get(items, np.inf)
            table.add_row(str(items), mode, *(f"{seconds:.2f}" for seconds in spent))
    Console().print(table)
    return kept


def allocated(items: int, mode: Mode, *, equal: bool) -> float:
    """Processor seconds of a policy in force for contexts whose sensitivities are known."""
    rng = np.random.default_rng(items)
    pairs = items * (items - 1)
    cost = np.ones(pairs) if equal else rng.uniform(0.5, 2.0, pairs)
    rules = Rules(mode, float(cost.mean()))

    def sensitivities(contexts: int) -> Floats:
        return np.exp(rng.normal(0.0, 1.0, (contexts, pairs)))

    policy = Policy.calibrated(sensitivities(CALIBRATED.get(items, 400)), cost, rules, exponent=0.8)
    spent = 0.0
    for _ in range(CONTEXTS // CHUNK):
        found = sensitivities(CHUNK)
        began = time.process_time()
        policy.propensities(found)
        spent += time.process_time() - began
    return spent


def names() -> list[str]:
    return [f"x{number}" for number in range(COVARIATES)]


def timed(call: Client, path: str, body: object) -> float:
    """Milliseconds of one call."""
    began = time.perf_counter()
    call("POST", path, body)
    return 1e3 * (time.perf_counter() - began)


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def await_port(port: int) -> None:
    for _ in range(1200):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise SystemExit(f"nothing listens on port {port}")


def show(rows: list[dict[str, Any]]) -> None:
    table = Table(title="One context, one connection; milliseconds and ratio to the bare route")
    for heading in ("items", *(name for figure in FIGURES for name in (figure, "bare", "ratio"))):
        table.add_column(heading, justify="right")
    for row in rows:
        pairs = [(row[figure], row[f"bare {figure}"]) for figure in FIGURES]
        table.add_row(str(row["items"]), *(cell for mine, bare in pairs for cell in written(mine, bare)))
        pairs = [(row[f"durable {figure}"], row[f"bare beside durable {figure}"]) for figure in FIGURES[:2]]
        table.add_row("one row", *(cell for mine, bare in pairs for cell in written(mine, bare)))
    Console().print(table)


def written(mine: float, bare: float) -> tuple[str, str, str]:
    return f"{mine:.2f}", f"{bare:.2f}", f"{mine / bare:.1f}"


if __name__ == "__main__":
    main()
