"""What the fold models say about where labels would help."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from app.stats.gars import Estimand, Graph, outer, quadratic
from app.stats.types import Floats, Rule


@dataclass(frozen=True, slots=True)
class Beliefs:
    """Scores and label noise of u contexts, in the eyes of V fold models.

    Parameters
    ----------
    p : (V, u, K, K) score of the first item.
    noise : (V, u, K, K) variance of <q_jk, Y_jk>, Σ_c mu q² (as <q, mu> = 0).
    """

    p: Floats
    noise: Floats

    @classmethod
    def of(cls, probabilities: Iterable[Floats], rule: Rule) -> Beliefs:
        """From each fold model's mu (u, K, K, C)."""
        scores, noises = [], []
        for mu in probabilities:
            scores.append(rule.scores(mu))
            noises.append(rule.noise(mu, scores[-1]))
        return cls(np.stack(scores), np.stack(noises))

    def sensitivities(self, estimand: Estimand, graph: Graph, weight: Floats) -> Floats:
        """a_jk(x) = tr(W J V J') = noise · g' W g of each model (DMLRank, arXiv 2601.21816, Section 5).

        Parameters
        ----------
        weight : (K, K) W of the criterion; the identity for A-optimality.

        Returns
        -------
        (V, u, K, K), 0 on the diagonal.
        """
        forms = [quadratic(estimand, p, graph, weight) for p in self.p]
        return np.stack([noise * form for noise, form in zip(self.noise, forms, strict=True)])

    def covariance(self, estimand: Estimand, graph: Graph, propensity: Floats) -> Floats:
        """Sigma(pi) = Var F + E Σ J V J' / pi: what n times the estimator's covariance would be.

        Parameters
        ----------
        propensity : (u, K, K), positive where the graph has weight.

        Returns
        -------
        (K, K), averaged over the models.
        """
        inverse = np.divide(1.0, propensity, out=np.zeros(propensity.shape), where=propensity > 0)
        total = np.zeros((graph.n_items, graph.n_items))
        for p, noise in zip(self.p, self.noise, strict=True):
            value = estimand.value(p, graph)
            centred = value - value.mean(axis=0)
            total += (centred.T @ centred + outer(estimand, p, graph, noise * inverse)) / len(p)
        return total / len(self.p)


def reliability(sensitivities: Floats) -> float:
    """How far log a tells pairs and contexts apart beyond the noise of its estimation: ρ in [0, 1].

    One minus the fold models' scatter over the variance of their mean. Raising a to the power ρ draws the policy
    towards the uniform one where few labels are known, and lets go as they come in.

    Parameters
    ----------
    sensitivities : (V, ...) non-negative a of each fold model; cells where one of them is 0 say nothing.
    """
    known = sensitivities[:, (sensitivities > 0).all(axis=0)]
    models, cells = known.shape
    if models < 2 or cells < 2:
        return 0.0
    logs = np.log(known)
    noise = float(logs.var(axis=0, ddof=1).mean())
    total = float(logs.mean(axis=0).var(ddof=1))
    return min(max(1.0 - noise / total, 0.0), 1.0) if total > 1e-12 else 0.0
