"""Where the time goes: CPU seconds of named functions, each without those of the named ones that it calls."""

from __future__ import annotations

import functools
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

Label = str | Callable[..., str]


class Stages:
    """Seconds by label while the watched functions run, in one thread.

    Parameters
    ----------
    whole : labels that take what they call as well.
    """

    def __init__(self, *whole: str) -> None:
        self._whole = frozenset(whole)
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self._open: list[str] = []
        self._since = 0.0

    @contextmanager
    def inside(self, label: str) -> Iterator[None]:
        """Charge what runs here to the label, until an inner one takes over."""
        self._charge()
        self._open.append(self._open[-1] if self._open and self._open[-1] in self._whole else label)
        try:
            yield
        finally:
            self._charge()
            self._open.pop()

    @contextmanager
    def watching(self, *watched: tuple[Any, str, Label]) -> Iterator[None]:
        """Charge every call of `owner.name` to a label, or to what the label makes of the call's arguments."""
        if not watched:
            yield
            return
        (owner, name, label), *rest = watched
        with patch.object(owner, name, self._timed(getattr(owner, name), label)), self.watching(*rest):
            yield

    def _charge(self) -> None:
        now = time.process_time()
        if self._open:
            self.seconds[self._open[-1]] += now - self._since
        self._since = now

    def _timed(self, function: Callable[..., Any], label: Label) -> Callable[..., Any]:
        @functools.wraps(function)
        def timed(*args: Any, **kwargs: Any) -> Any:
            with self.inside(label if isinstance(label, str) else label(*args)):
                return function(*args, **kwargs)

        return timed
