"""Generalised average ranking scores: the estimands, their graph and their names."""

from app.stats.errors import InvalidInput
from app.stats.gars.borda import Borda
from app.stats.gars.bradley_terry import BradleyTerry
from app.stats.gars.custom import CustomEstimand, custom, needs_every_pair
from app.stats.gars.estimand import Estimand, PairwiseEstimand, RivalMean, ShareEstimand
from app.stats.gars.graph import Graph, components
from app.stats.gars.quadratic import outer, quadratic
from app.stats.gars.rank_centrality import RankCentrality
from app.stats.gars.rivals import Robust, Threshold
from app.stats.gars.support import unsupported_shares

BUILT_IN: tuple[Estimand, ...] = (Borda(), BradleyTerry(), RankCentrality(), Threshold(), Robust())

__all__ = [
    "BUILT_IN",
    "Borda",
    "BradleyTerry",
    "CustomEstimand",
    "Estimand",
    "Graph",
    "PairwiseEstimand",
    "RankCentrality",
    "RivalMean",
    "Robust",
    "ShareEstimand",
    "Threshold",
    "components",
    "custom",
    "estimand",
    "needs_every_pair",
    "outer",
    "quadratic",
    "unsupported_shares",
]


def estimand(name: str) -> Estimand:
    """The built-in estimand of that name: borda, bt, rc, threshold or robust.

    Raises
    ------
    InvalidInput
        When there is none.
    """
    for candidate in BUILT_IN:
        if candidate.name == name:
            return candidate
    raise InvalidInput(f"no estimand is called {name!r}")
