"""The second stage: payoffs as functions of the context, from debiased pseudo-outcomes (NashEval, Section 5.2)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from app.learners.archive import pack, unpack
from app.learners.davidson.cells import dealt
from app.learners.payoffs.regression import FOLDS, Fitted, Targets, regress
from app.learners.trees import Forest
from app.stats.errors import InvalidInput
from app.stats.feedback.pseudo import Corrections
from app.stats.types import Floats, Ints

Form = Literal["plug-in", "offset", "linear", "paper"]
SecondStage = Form | Literal["auto"]
AUTO: tuple[Form, ...] = ("plug-in", "offset", "paper")
KIND = "payoffs"


@dataclass(frozen=True, slots=True)
class PayoffRegression:
    """A(x), clipped to [-1, 1].

    Parameters
    ----------
    form : `offset`: f(mu(x)) + (Σ f'_m)(x) × a regression of the mean residual, weighted; `linear`: the same without
        trees, for any number of pairs; `paper`: a regression of the pseudo-outcome itself; `plug-in`: f(mu(x)).
    fitted : the regression.
    loss : out-of-fold weighted loss of each form tried, less that of f(mu).
    """

    form: Form
    fitted: Fitted
    loss: Mapping[Form, float]

    def values(self, x: Floats, start: Floats, slope: Floats) -> Floats:
        """(u, P) payoffs of the pairs.

        Parameters
        ----------
        x : (u, d).
        start, slope : (u, P) f(mu) and Σ f'_m there.
        """
        return np.clip(_formed(self.form, self.fitted.predict(x), start, slope), -1.0, 1.0)

    def to_bytes(self) -> bytes:
        """The regression as bytes that `read` takes."""
        header = {"kind": KIND, "form": self.form, "trees": self.fitted.forest.texts, "loss": {**self.loss}}
        fitted = self.fitted
        return pack(header, {"linear": fitted.linear, "centre": fitted.centre, "scale": fitted.scale})


def read(body: bytes) -> PayoffRegression:
    """The regression that `to_bytes` wrote; it predicts the same to the bit."""
    header, arrays = unpack(body)
    if header["kind"] != KIND:
        raise InvalidInput(f"bytes of kind {header['kind']!r}, expected {KIND!r}")
    return PayoffRegression(header["form"], _fitted(header, arrays), header["loss"])


def _fitted(header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Fitted:
    nothing = np.zeros((0, arrays["linear"].shape[1]))
    return Fitted(Forest(header["trees"]), arrays["linear"], arrays["centre"], arrays["scale"], nothing)


def fit_payoffs(
    x: Floats, found: Corrections, group: Ints, *, stage: SecondStage | Sequence[Form], seed: int
) -> PayoffRegression:
    """Fit the second stage.

    Parameters
    ----------
    x : (n, d) covariates of the rows.
    found : the rows' pseudo-outcomes.
    group : (n,) rows of one group stay on one side of the inner folds.
    stage : a form, or the one of least out-of-fold loss Σ S/e (Z - A)²: of several, or with `auto` of `AUTO`.
    seed : of the inner folds.
    """
    part = dealt(group, FOLDS, seed=seed)
    fits = {form: _FITS[form](x, found, part, seed) for form in _forms(stage)}
    losses = {form: _loss(form, fitted, found) for form, fitted in fits.items()}
    best: Form = min(losses, key=lambda form: losses[form])
    return PayoffRegression(best, fits[best], losses)


def _forms(stage: SecondStage | Sequence[Form]) -> Sequence[Form]:
    if not isinstance(stage, str):
        return stage
    return AUTO if stage == "auto" else (stage,)


def _formed(form: Form, predicted: Floats, start: Floats, slope: Floats) -> Floats:
    if form == "paper":
        return predicted
    return start + slope * predicted


def _loss(form: Form, fitted: Fitted, found: Corrections) -> float:
    """Σ weight ((r - (A - f(mu)))² - r²) / Σ weight: what Σ S/e (Z - A)² is more than the plug-in's, f linear."""
    payoff = np.clip(_formed(form, fitted.crossed, found.start, found.slope), -1.0, 1.0)
    step = payoff - found.start
    total = float(found.weight.sum())
    return float((found.weight * step * (step - 2.0 * found.residuals)).sum()) / total if total > 0 else 0.0


def _offset(x: Floats, found: Corrections, part: Ints, seed: int) -> Fitted:
    return regress(Targets(x, found.residuals, found.weight, part), seed=seed)


def _linear(x: Floats, found: Corrections, part: Ints, seed: int) -> Fitted:
    return regress(Targets(x, found.residuals, found.weight, part), seed=seed, trees=False)


def _paper(x: Floats, found: Corrections, part: Ints, seed: int) -> Fitted:
    return regress(Targets(x, found.pseudo_outcomes, np.ones(found.start.shape), part), seed=seed)


def _plug_in(x: Floats, found: Corrections, part: Ints, seed: int) -> Fitted:  # noqa: ARG001
    shape = found.start.shape
    width = x.shape[1]
    return Fitted(
        Forest([""] * shape[1]), np.zeros((width + 1, shape[1])), np.zeros(width), np.ones(width), np.zeros(shape)
    )


_FITS: Mapping[Form, Callable[[Floats, Corrections, Ints, int], Fitted]] = {
    "plug-in": _plug_in,
    "offset": _offset,
    "linear": _linear,
    "paper": _paper,
}
