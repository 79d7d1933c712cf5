"""Learners by name, and the way back from bytes to a model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numpy.typing import NDArray

from app.learners import constant
from app.learners.archive import unpack
from app.learners.classifier import model as classifier
from app.learners.classifier.learner import LightGBMLearner
from app.learners.davidson import model as davidson
from app.learners.davidson.learner import DavidsonLearner
from app.stats.errors import InvalidInput
from app.stats.types import OutcomeLearner, OutcomeModel

_LEARNERS: dict[str, type[OutcomeLearner]] = {"davidson": DavidsonLearner, "lightgbm": LightGBMLearner}
_READERS: dict[str, Callable[[dict[str, Any], dict[str, NDArray[Any]]], OutcomeModel]] = {
    davidson.KIND: davidson.read,
    classifier.KIND: classifier.read,
    constant.KIND: constant.read,
}


def learner(name: str) -> OutcomeLearner:
    """The learner called `name`: davidson or lightgbm.

    Raises
    ------
    InvalidInput : no learner is called so.
    """
    if name not in _LEARNERS:
        raise InvalidInput(f"no learner is called {name!r}; there is {', '.join(_LEARNERS)}")
    return _LEARNERS[name]()


def load_model(body: bytes) -> OutcomeModel:
    """The model that `to_bytes` wrote; it predicts the same to the bit.

    Raises
    ------
    InvalidInput : the bytes hold a kind of model that is not known.
    """
    header, arrays = unpack(body)
    if header["kind"] not in _READERS:
        raise InvalidInput(f"a model of unknown kind {header['kind']!r}")
    return _READERS[header["kind"]](header, arrays)
