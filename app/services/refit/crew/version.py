"""By what workers know that they compute the same numbers."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

from threadpoolctl import threadpool_info

import app
from app.stats.gars import CustomEstimand

DECIDING = ("numpy", "scipy", "scikit-learn", "lightgbm")


def fingerprint(estimands: Sequence[CustomEstimand]) -> str:
    """One short name for all code behind the numbers, and for the kind of processor that the last bits hang on.

    Parameters
    ----------
    estimands : those that the installation adds.
    """
    total = hashlib.sha256(repr([sys.version_info[:3], *map(version, DECIDING)]).encode())
    total.update(repr(sorted({each.get("architecture", "") for each in threadpool_info()})).encode())
    root = Path(app.__file__).parent
    for path in [*sorted(root.rglob("*.py")), *_sources(estimands)]:
        total.update(path.read_bytes())
    return total.hexdigest()[:16]


def _sources(estimands: Sequence[CustomEstimand]) -> list[Path]:
    modules = [sys.modules.get(getattr(each.function, "__module__", "")) for each in estimands]
    return [Path(each.__file__) for each in modules if each is not None and each.__file__ is not None]
