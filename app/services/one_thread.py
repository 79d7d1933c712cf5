"""Work that is put down under a lock and done by one thread: begun with the first, ended with the process."""

from __future__ import annotations

from abc import ABC, abstractmethod
from threading import Condition, Thread


class OneThread(ABC):
    """A thread that waits for `changed`, under which everything that it is told is put down.

    Parameters
    ----------
    name : of the thread.
    last_words : seconds for what is still to be done when the process ends.
    """

    def __init__(self, name: str, *, last_words: float) -> None:
        self._name = name
        self._last_words = last_words
        self._changed = Condition()
        self._closed = False
        self._thread: Thread | None = None

    def close(self) -> None:
        """End the thread, and wait until what was put down is done."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join(self._last_words)

    def _notify(self) -> None:
        """Let the thread see what was put down; `changed` is held."""
        if self._thread is None:
            self._thread = Thread(target=self._run, name=self._name, daemon=True)
            self._thread.start()
        self._changed.notify()

    @abstractmethod
    def _run(self) -> None:
        """Do what is there until it is closed."""
