"""Seeded replicates over processes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from typing import TypeVar

from threadpoolctl import threadpool_limits

Result = TypeVar("Result")


def replicates(task: Callable[[int], Result], seeds: Sequence[int], *, processes: int) -> Iterator[tuple[int, Result]]:
    """Run `task(seed)` for every seed and yield (seed, result) as they come.

    Parameters
    ----------
    task : picklable; what it returns depends on the seed alone, so that the number of processes changes nothing.
    seeds : one a replicate.
    processes : 1 stays in this process.
    """
    if processes == 1:
        yield from ((seed, task(seed)) for seed in seeds)
        return
    # Spawned, not forked: LightGBM's OpenMP may hang in a forked child.
    with ProcessPoolExecutor(processes, get_context("spawn")) as pool:
        pending = {pool.submit(_single_threaded, task, seed): seed for seed in seeds}
        for done in as_completed(pending):
            yield pending[done], done.result()


def _single_threaded(task: Callable[[int], Result], seed: int) -> Result:
    """Processes whose linear algebra threads fight for the same cores are slower than one.

    The limit holds for libraries that are loaded when it is set, so it is set here, where the task has brought them.
    """
    with threadpool_limits(1):
        return task(seed)
