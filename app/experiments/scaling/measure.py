"""One board of a size, from its first vote to its readers."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from app.experiments.scaling.service import Client, Service
from app.stats.simulate import Arena
from app.stats.simulate.generator import draw_categories

SEED = 20260121
BATCH = 5_000
WRITERS, READERS = 2, 4
READING = 2.0
"""Seconds of reading."""
LIVE = 20
"""Votes whose way into the ranking is timed."""
LONGEST = 15.0
"""Seconds after which a vote counts as not live."""
OUTCOMES = ("left", "right", "tie", "both_bad")


@dataclass(frozen=True)
class Size:
    """A board: votes on contexts that never repeat, items, numeric features; workers, and processes of each."""

    votes: int
    items: int
    features: int
    processes: int
    workers: int = 1


@dataclass(frozen=True)
class Point:
    """What a board of a size costs.

    Parameters
    ----------
    size : of the board.
    ingest : votes a second, with contexts, by two connections in batches.
    refit : seconds from asking for it to its snapshot.
    cpu : seconds of processors that the workers of refits and their processes took for it.
    peak : bytes that they held at most.
    live : seconds until a vote is in the ranking, half of the votes sooner; None where that waits for a refit.
    reads : rankings a second, by four connections.
    """

    size: Size
    ingest: float
    refit: float
    cpu: float
    peak: int
    live: float | None
    reads: float


def measure(service: Service, size: Size) -> Point:
    """Fill a board, refit it, and go on."""
    with service.client() as call:
        return _measured(service, call, size)


def _measured(service: Service, call: Client, size: Size) -> Point:
    slug = f"n{size.votes}-k{size.items}"
    _make(call, slug, size)
    began = time.perf_counter()
    with ThreadPoolExecutor(WRITERS) as pool:
        list(pool.map(lambda part: _send(service, slug, size, part), range(WRITERS)))
    ingest = size.votes / (time.perf_counter() - began)
    with service.watched() as load:
        refit = _refit(call, slug)
    return Point(size, ingest, refit, load.cpu, load.peak, _live(call, slug, size), _reads(service, slug))


def _make(call: Client, slug: str, size: Size) -> None:
    features = [{"name": f"x{number:02}", "kind": "numeric"} for number in range(size.features)]
    never = {"votes": 1_000_000_000, "seconds": 86_400}
    call("POST", "/boards", {"slug": slug, "features": features, "refit": never})
    for number in range(size.items):
        call("PUT", f"/boards/{slug}/items/item-{number}", {})


def _send(service: Service, slug: str, size: Size, part: int) -> None:
    with service.client() as call:
        for number in range(part, -(-size.votes // BATCH), WRITERS):
            votes = list(_ballots(size, number, min(BATCH, size.votes - number * BATCH)))
            results = call("POST", f"/boards/{slug}/votes/batch", {"votes": votes})["results"]
            assert all(result["status"] == "created" for result in results), results[:3]


def _ballots(size: Size, number: int, count: int) -> Iterator[dict[str, Any]]:
    """A run of votes; the same for each number."""
    rng, board = np.random.default_rng([SEED, number]), Arena(size.items, size.features)
    x = rng.normal(size=(count, size.features)).round(4)
    left = rng.integers(size.items, size=count)
    right = (left + rng.integers(1, size.items, size=count)) % size.items
    outcome = draw_categories(rng, board.probabilities_at(x, left, right))
    for at in range(count):
        features = {f"x{column:02}": value for column, value in enumerate(x[at].tolist())}
        yield {
            "left": f"item-{left[at]}",
            "right": f"item-{right[at]}",
            "outcome": OUTCOMES[outcome[at]],
            "propensity": 1 / (size.items * (size.items - 1)),
            "context": {"id": f"c{number}-{at}", "features": features},
        }


def _refit(call: Client, slug: str) -> float:
    began = time.perf_counter()
    job = call("POST", f"/boards/{slug}/refit")
    while job["state"] in ("queued", "running"):
        time.sleep(0.1)
        job = call("GET", f"/jobs/{job['id']}")
    assert job["state"] == "succeeded", job
    return time.perf_counter() - began


def _live(call: Client, slug: str, size: Size) -> float | None:
    """The median time from sending a vote to reading a ranking that counts it."""
    took: list[float] = []
    for vote in _ballots(size, 10**6, LIVE):
        began = time.perf_counter()
        call("POST", f"/boards/{slug}/votes", vote)
        while (answer := call("GET", f"/boards/{slug}/rankings"))["votes_pending"] or not _counts(
            answer, len(took) + 1
        ):
            if time.perf_counter() - began > LONGEST:
                return None
            time.sleep(0.02)
        took.append(time.perf_counter() - began)
    return float(np.median(took))


def _counts(answer: dict[str, Any], votes: int) -> bool:
    live = answer.get("live")
    return live is not None and live["votes"] >= votes


def _reads(service: Service, slug: str) -> float:
    def read(_: int) -> int:
        until, done = time.perf_counter() + READING, 0
        with service.client() as call:
            while time.perf_counter() < until:
                call("GET", f"/boards/{slug}/rankings")
                done += 1
        return done

    with ThreadPoolExecutor(READERS) as pool:
        return sum(pool.map(read, range(READERS))) / READING
