"""Answers as bytes, made once: a snapshot never changes, so neither does what is said of it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock

MOST_BYTES = 64 << 20


class Rendered:
    """The answers asked for last, up to a number of bytes."""

    def __init__(self, most: int = MOST_BYTES) -> None:
        self._most = most
        self._lock = Lock()
        self._size = 0
        self._kept: OrderedDict[Hashable, bytes] = OrderedDict()

    def get(self, key: Hashable, make: Callable[[], bytes]) -> bytes:
        """The answer under a key, made where it is not there. What `make` raises is not kept."""
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        body = make()
        with self._lock:
            self._size += len(body) - len(self._kept.get(key, b""))
            self._kept[key] = body
            while self._size > self._most:
                self._size -= len(self._kept.popitem(last=False)[1])
        return body
