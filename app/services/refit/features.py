"""From feature documents to covariates, and the levels that segments are made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from app.domain.boards import BoardConfig
from app.learners import Featuriser
from app.stats.types import Covariates

Documents = Sequence[Mapping[str, Any]]


def covariates_of(documents: Documents, config: BoardConfig) -> tuple[Covariates, bytes]:
    """Covariates of the distinct documents, and the featuriser that made them as bytes."""
    if not config.features:
        return Covariates(np.zeros((len(documents), 0))), b""
    featuriser = Featuriser.fit(config.features, documents)
    return Covariates(featuriser.transform(documents)), featuriser.to_bytes()


def levels_of(documents: Documents, config: BoardConfig) -> dict[str, list[str]]:
    """Of each declared segment, the level of every document; '' where it is missing."""
    return {name: [str(document.get(name, "")) for document in documents] for name in config.segments}
