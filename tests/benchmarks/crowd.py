"""What a large board costs among a thousand others: `python -m tests.benchmarks.crowd [--votes N] [--boards 1000]`.

It starts `orthorank up`, measures what users do on a board of 4,000 votes, then fills the database: one board with ten
votes on each of its contexts, and many small ones. The same is measured again on the small board and on the large one.
The bar: nothing takes more than twice as long as before, besides the large board's refit. The filling writes rows
as the service does, but straight into the tables, with as many connections as there are processors.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import psutil
import psycopg
from rich.console import Console
from rich.table import Table

from tests.benchmarks.acquire import Client, Server, service
from tests.benchmarks.live import ITEMS

MOST_RATIO = 2.0
SMALL, PER_CONTEXT, PORTION = 4_000, 10, 50_000
LANGUAGES, VOTERS = 8, 50_000
CALLS, BATCHES = 200, 5
POLL, PATIENCE, PAUSE = 0.02, 60.0, 0.5
SETTLED, IDLE = 20.0, 10.0
WRITERS = 2

CONTEXTS = """
INSERT INTO contexts (board_id, external_id, features, offered)
SELECT %(board)s, 'c' || n, jsonb_build_object('lang', 'l' || n %% %(languages)s, 'turns', n / 8 %% 5), true
FROM generate_series(%(first)s::bigint, %(last)s) AS n
RETURNING id
"""
COPIES = """
WITH copies AS (
    INSERT INTO boards (slug, title, public, config)
    SELECT 'board-' || n, 'board ' || n, public, config FROM boards, generate_series(1, %(copies)s::bigint) AS n
    WHERE slug = %(slug)s
    RETURNING id
), made AS (
    INSERT INTO items (board_id, name, title, cost, label_cost)
    SELECT copies.id, name, items.title, cost, label_cost
    FROM copies, items JOIN boards ON boards.id = board_id WHERE slug = %(slug)s
    RETURNING id, board_id, name
), named AS (
    INSERT INTO item_names (board_id, name, item_id) SELECT board_id, name, id FROM made
)
INSERT INTO item_spans (item_id, active_from) SELECT id, now() FROM made
"""
VOTES = """
INSERT INTO votes (board_id, client_id, digest, context_id, left_id, right_id, outcome, voter, voter_type, propensity,
                   kind, created_at)
SELECT %(board)s, gen_random_uuid(), sha256(int8send(context) || int8send(n)), context, %(items)s[1 + l],
       %(items)s[1 + (l + r) %% %(size)s], CASE WHEN random() < .5 + .02 * ((l + r) %% %(size)s - l) THEN 0 ELSE 1 END,
       'v' || (context * %(each)s + n) %% %(voters)s, 'human', 1. / (%(size)s * (%(size)s - 1)), 'pair', now()
FROM unnest(%(contexts)s::bigint[]) AS context, generate_series(1, %(each)s::bigint) AS n,
     LATERAL (SELECT (random() * 1e9)::int %% %(size)s + 0 * (context + n)::int %% 1 AS l,
                     1 + (random() * 1e9)::int %% (%(size)s - 1) AS r WHERE context + n > 0) AS sides
"""


def main() -> None:
    """Measure and print; exit status 1 where the bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--votes", type=int, default=10_000_000, help="of the large board")
    parser.add_argument("--boards", type=int, default=1_000, help="beside it")
    parser.add_argument("--boards-votes", type=int, default=1_000, help="of each of them")
    asked = parser.parse_args()
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder, service(Path(folder)) as reached:
        call = Client(reached.port, reached.key)
        make(call, "small")
        fill(reached, "small", SMALL)
        refit(call, "small")
        measured = {"small": measure("small", reached)}
        began = time.monotonic()
        call = Client(reached.port, reached.key)
        with psycopg.connect(reached.database) as connection:
            connection.execute(COPIES, {"copies": asked.boards, "slug": "small"})
        for number in range(asked.boards):
            fill(reached, f"board-{number + 1}", asked.boards_votes)
        make(call, "large", after=asked.votes + 1)
        fill(reached, "large", asked.votes)
        with psycopg.connect(reached.database, autocommit=True) as connection:
            connection.execute("VACUUM ANALYZE")
            size = connection.execute("SELECT pg_size_pretty(pg_database_size(current_database()))").fetchone()
        print(f"filled in {time.monotonic() - began:.0f} s: {size[0] if size else '?'}", flush=True)
        call = Client(reached.port, reached.key)
        seconds, most = refit(call, "large", reached)
        print(f"refit of the large board: {seconds:.0f} s, at most {most:.1f} GB besides PostgreSQL's", flush=True)
        call = Client(reached.port, reached.key)
        call("POST", "/v1/boards/small/votes", vote(random.Random(), "small"))
        print(f"refit of the small board: {refit(call, 'small')[0]:.1f} s", flush=True)
        measured["small, crowded"] = measure("small", reached)
        measured["large"] = measure("large", reached)
    show(measured)
    first, *others = measured.values()
    sys.exit(any(each[name] > MOST_RATIO * first[name] for each in others for name in first))


def make(call: Client, slug: str, *, after: int = 100_000) -> None:
    """A board that is refitted when somebody asks, or after so many votes."""
    features = [{"name": "lang", "kind": "categorical"}, {"name": "turns", "kind": "numeric"}]
    seldom = {"votes": after, "seconds": 31_536_000}
    call("POST", "/v1/boards", {"slug": slug, "unit": "context", "features": features, "refit": seldom})
    for number in range(ITEMS):
        call("PUT", f"/v1/boards/{slug}/items/item-{number}", {})


def fill(reached: Server, slug: str, votes: int) -> None:
    """Votes straight into the tables."""
    with psycopg.connect(reached.database) as connection:
        found = connection.execute("SELECT id FROM boards WHERE slug = %s", [slug]).fetchone()
        assert found is not None
        board = found[0]
        rows = connection.execute("SELECT id FROM items WHERE board_id = %s ORDER BY id", [board]).fetchall()
    items, contexts = [row[0] for row in rows], votes // PER_CONTEXT

    def write(first: int) -> None:
        given = {"board": board, "languages": LANGUAGES, "first": first, "last": min(first + PORTION, contexts) - 1}
        with psycopg.connect(reached.database) as connection:
            made = [row[0] for row in connection.execute(CONTEXTS, given)]
            told = {"board": board, "items": items, "size": ITEMS, "voters": VOTERS, "each": PER_CONTEXT}
            connection.execute(VOTES, {**told, "contexts": made})

    with ThreadPoolExecutor(WRITERS) as writers:
        list(writers.map(write, range(0, contexts, PORTION)))


def vote(rng: random.Random, slug: str, context: str | None = None) -> dict[str, Any]:
    """A vote on a context of its own, or on one that is there."""
    left, right = rng.sample(range(ITEMS), 2)
    features = {"lang": f"l{rng.randrange(LANGUAGES)}", "turns": rng.randrange(5)}
    return {
        "context": context or {"id": f"{slug}-{rng.random()}", "features": features},
        "left": f"item-{left}",
        "right": f"item-{right}",
        "outcome": "left" if rng.random() < 0.5 + 0.02 * (right - left) else "right",
        "voter": f"w{rng.randrange(10**9)}",
        "propensity": 1 / (ITEMS * (ITEMS - 1)),
    }


def refit(call: Client, slug: str, reached: Server | None = None) -> tuple[float, float]:
    """Seconds of a refit, and the most memory that all processes but PostgreSQL's held meanwhile, in GB."""
    job, began, most = call("POST", f"/v1/boards/{slug}/refit")["id"], time.monotonic(), 0.0
    while call("GET", f"/v1/jobs/{job}")["state"] in ("queued", "running"):
        time.sleep(0.5)
        most = max(most, 0.0 if reached is None else memory(reached.pid))
    assert call("GET", f"/v1/jobs/{job}")["state"] == "succeeded", call("GET", f"/v1/jobs/{job}")
    return time.monotonic() - began, most


def memory(pid: int) -> float:
    first, total = psutil.Process(pid), 0
    for each in [first, *first.children(recursive=True)]:
        try:
            if "postgres" not in each.name():
                total += each.memory_info().rss
        except psutil.NoSuchProcess:
            continue
    return total / 1e9


def measure(slug: str, reached: Server) -> dict[str, float]:
    """Milliseconds of what users do, as medians, and the processor's share of a service that nobody asks anything."""
    call, rng, path = Client(reached.port, reached.key), random.Random(), f"/v1/boards/{slug}"
    known = call("GET", f"{path}/votes?limit=100")["votes"]
    contexts = [each["context"] for each in known if each["context"]]
    found = {
        "vote, new context": clocked(lambda: call("POST", f"{path}/votes", vote(rng, slug))),
        "vote, known context": clocked(lambda: call("POST", f"{path}/votes", vote(rng, slug, rng.choice(contexts)))),
        "1,000 votes": clocked(
            lambda: call("POST", f"{path}/votes/batch", {"votes": [vote(rng, slug) for _ in range(1000)]}), BATCHES
        ),
        "rankings": clocked(lambda: call("GET", f"{path}/rankings")),
        "rankings, cold": clocked(lambda: call("GET", f"{path}/rankings?level={rng.uniform(0.5, 0.99)}"), 30),
        "pairs": clocked(lambda: call("GET", f"{path}/pairs"), 30),
        "diagnostics": clocked(lambda: call("GET", f"{path}/diagnostics"), 30),
        "history": clocked(lambda: call("GET", f"{path}/rankings/history"), 30),
        "votes": clocked(lambda: call("GET", f"{path}/votes?limit=100"), 30),
        "boards": clocked(lambda: call("GET", "/v1/boards"), 30),
        "board": clocked(lambda: call("GET", path), 30),
    }
    found["vote until ranked"] = visible(call, path, rng, slug)
    # After it: a board's first draws are taken into its rankings by a refit.
    found["acquire"] = clocked(lambda: acquire(call, path, rng), 50)
    time.sleep(SETTLED)
    before = reached.spent()
    time.sleep(IDLE)
    found["idle, % of a processor"] = 100 * (reached.spent() - before) / IDLE
    return found


def acquire(call: Client, path: str, rng: random.Random) -> None:
    features = {"lang": f"l{rng.randrange(LANGUAGES)}", "turns": rng.randrange(5)}
    call("POST", f"{path}/acquire", {"contexts": [{"id": f"q{rng.random()}", "features": features}]})


def visible(call: Client, path: str, rng: random.Random, slug: str) -> float:
    """Milliseconds from an acknowledged vote to rankings that hold it, as a median of a few."""
    waits = []
    for _ in range(10):
        before = call("GET", f"{path}/rankings")["votes"]
        call("POST", f"{path}/votes", vote(rng, slug))
        began = time.monotonic()
        while call("GET", f"{path}/rankings")["votes"] == before and time.monotonic() - began < PATIENCE:
            time.sleep(POLL)
        waits.append(1000 * (time.monotonic() - began))
        time.sleep(PAUSE)
    return float(np.median(waits))


def clocked(do: Callable[[], object], times: int = CALLS) -> float:
    """Median milliseconds."""

    def each() -> Iterator[float]:
        for _ in range(times):
            began = time.perf_counter()
            do()
            yield 1000 * (time.perf_counter() - began)

    return float(np.median([*each()]))


def show(measured: dict[str, dict[str, float]]) -> None:
    table = Table("ms", *measured)
    for name in next(iter(measured.values())):
        table.add_row(name, *(f"{each[name]:.2f}" for each in measured.values()))
    Console().print(table)


if __name__ == "__main__":
    main()
