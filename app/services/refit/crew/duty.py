"""What a worker is busy with, so that it helps others only where it has nothing to lead."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from uuid import UUID


class Duty:
    """Of one worker process, whose tasks run in threads.

    `called` is who called for help last while another was helped: often the same refit's next stage.
    """

    def __init__(self) -> None:
        self.called: UUID | None = None
        self._leads, self._helps = 0, Lock()
        self._counting = Lock()

    @property
    def free(self) -> bool:
        """Whether the process leads nothing."""
        return not self._leads

    @contextmanager
    def leading(self) -> Iterator[None]:
        """Lead a refit, whoever is helped meanwhile."""
        self._count(1)
        try:
            yield
        finally:
            self._count(-1)

    @contextmanager
    def helping(self) -> Iterator[bool]:
        """Help another worker: whether this one helps nobody else."""
        alone = self._helps.acquire(blocking=False)
        try:
            yield alone
        finally:
            if alone:
                self._helps.release()

    def _count(self, more: int) -> None:
        with self._counting:
            self._leads += more
