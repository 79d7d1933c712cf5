"""What a thread beside the work does again and again."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread

logger = logging.getLogger(__name__)


@contextmanager
def meanwhile(action: Callable[[], None], *, every: float) -> Iterator[None]:
    """Do it every so many seconds until the block ends; a failure is logged, and it is tried again."""
    over = Event()

    def run() -> None:
        while not over.wait(every):
            try:
                action()
            except Exception:
                logger.exception("what goes on beside a refit failed")

    thread = Thread(target=run, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
