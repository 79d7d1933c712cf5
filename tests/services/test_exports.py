"""Exports: an import of one gives the same board again."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

from app.db.unit_of_work import UnitOfWork
from app.domain.features import Feature

NUMBERS = count()
Open = Callable[[], UnitOfWork]
FEATURES = (Feature("lang", "categorical"), Feature("size", "numeric"), Feature("v", "vector", 2))
