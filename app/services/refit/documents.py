"""Feature documents as they were stored: read anew each time, as a million of them would not fit as objects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, overload

import orjson


class Documents(Sequence[Mapping[str, Any]]):
    """JSON objects by number.

    Parameters
    ----------
    texts : of them.
    """

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = texts

    def __len__(self) -> int:
        return len(self._texts)

    @overload
    def __getitem__(self, index: int) -> Mapping[str, Any]: ...

    @overload
    def __getitem__(self, index: slice) -> Documents: ...

    def __getitem__(self, index: int | slice) -> Mapping[str, Any] | Documents:
        if isinstance(index, slice):
            return Documents(self._texts[index])
        document: Mapping[str, Any] = orjson.loads(self._texts[index])
        return document

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        return map(orjson.loads, self._texts)
