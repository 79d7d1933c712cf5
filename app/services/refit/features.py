"""From feature documents to covariates, and the levels that segments are made of."""

from __future__ import annotations

import numpy as np

from app.domain.boards import BoardConfig
from app.learners import Featuriser
from app.services.refit.inputs import Inputs
from app.stats.types import Covariates


def covariates_of(inputs: Inputs, config: BoardConfig) -> tuple[Covariates, bytes]:
    """Covariates of the distinct patterns, and as bytes the featuriser that made them of the distinct documents."""
    documents = inputs.contexts.features
    if config.features:
        featuriser = Featuriser.fit(config.features, documents)
        x, body = featuriser.transform(documents), featuriser.to_bytes()
    else:
        x, body = np.zeros((len(documents), 0)), b""
    if inputs.judges is None:
        return Covariates(x), body
    document, margins = inputs.judges.document, inputs.judges.margins
    return Covariates(x[document], None if margins is None else margins.of(np.arange(document.size))), body


def levels_of(inputs: Inputs, config: BoardConfig) -> dict[str, list[str]]:
    """Of each declared segment, the level of every pattern; '' where it is missing."""
    documents = inputs.documents
    return {name: [str(document.get(name, "")) for document in documents] for name in config.segments}
