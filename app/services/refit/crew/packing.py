"""States and what tasks make, as pieces of bytes for the database, and back.

They are nested dataclasses of arrays, and must come back as they were, to the order of their bytes. So they are pickled
as for a process of this worker; but what is read back may name nothing except arrays and the dataclasses of this
project: whoever writes to the database still cannot make a worker run what he likes.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable, Iterator
from dataclasses import is_dataclass
from typing import Any

import numpy as np

PIECE = 16 << 20
"""Bytes of a piece: that much, and never all of it, is held beside the object itself."""
OURS = ("app.services.refit.", "app.stats.", "app.domain.")
"""Where the dataclasses come from."""
ARRAYS = {
    ("numpy", "ndarray"),
    ("numpy._core.numeric", "_frombuffer"),
    ("numpy._core.multiarray", "_reconstruct"),
    ("numpy._core.multiarray", "scalar"),
}
"""What arrays are pickled with."""


class Foreign(pickle.UnpicklingError):
    """Bytes that name what no state consists of."""


def _plain_dtype(*given: Any) -> np.dtype[Any]:
    """A type of numbers or letters: an array of objects would be read as addresses in memory."""
    made: np.dtype[Any] = np.dtype(*given)
    if made.hasobject:
        raise Foreign(f"{made}")
    return made


def pack(value: Any, store: Callable[[int, bytes], None]) -> None:
    """Hand over the pieces of a value, numbered from 0."""
    with io.BufferedWriter(_Stored(store), PIECE) as written:
        pickle.Pickler(written, protocol=5).dump(value)


def unpack(pieces: Iterator[bytes]) -> Any:
    """The value of the pieces.

    Raises
    ------
    Foreign
        Where it is none that `pack` was given here.
    """
    return _Reader(io.BufferedReader(_Read(pieces), PIECE)).load()


class _Reader(pickle.Unpickler):
    def find_class(self, module: str, name: str, /) -> Any:
        if (module, name) == ("numpy", "dtype"):
            return _plain_dtype
        if (module, name) in ARRAYS:
            return super().find_class(module, name)
        found = super().find_class(module, name) if module.startswith(OURS) and "." not in name else None
        if isinstance(found, type) and (is_dataclass(found) or issubclass(found, tuple)):
            return found
        raise Foreign(f"{module}.{name}")


class _Stored(io.RawIOBase):
    def __init__(self, store: Callable[[int, bytes], None]) -> None:
        self._store, self._number = store, 0

    def writable(self) -> bool:
        return True

    def write(self, given: Any, /) -> int:
        piece = bytes(memoryview(given)[:PIECE])
        self._store(self._number, piece)
        self._number += 1
        return len(piece)


class _Read(io.RawIOBase):
    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces, self._left = pieces, memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, room: Any, /) -> int:
        while not self._left:
            piece = next(self._pieces, None)
            if piece is None:
                return 0
            self._left = memoryview(piece)
        size = min(len(room), len(self._left))
        room[:size], self._left = self._left[:size], self._left[size:]
        return size
