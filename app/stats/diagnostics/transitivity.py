"""Do items beat each other in circles, and is that more than noise?

Two questions. A triple is cyclic when its three mean shares point around; that is counted, and counted again where all
three differ from ½ beyond noise. And whether scores can carry the pairs at all: if log-odds of decisive votes are
differences of scores in every context, so are their means over contexts, and what is left of the debiased mean
log-odds beyond the best-fitting differences is noise around 0.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import chdtrc, ndtri

from app.stats.debias.clusters import Clustering
from app.stats.debias.weights import sums_by
from app.stats.diagnostics.pairwise import PairMeans, labels_of_votes
from app.stats.gars import Graph, components
from app.stats.types import Bools, Floats, Ints, Sample

SEED = 20260121
DRAWS = 400
DRAW_WORK = 1e8
"""Draws × votes at most."""
FEWEST_DRAWS = 50


@dataclass(frozen=True, slots=True)
class Triples:
    """Counts of triples whose three pairs were all voted on.

    Parameters
    ----------
    seen : such triples.
    cyclic : those whose shares point around.
    certain : those that do so beyond noise: with the level, every one of them is truly cyclic.
    critical : standard errors from ½ that this takes, Bonferroni over the pairs.
    """

    seen: int
    cyclic: int
    certain: int
    critical: float


@dataclass(frozen=True, slots=True)
class SkewTest:
    """Is there more to the pairs than differences of scores?

    Parameters
    ----------
    statistic : Σ over pairs (residual / model's standard error)².
    expected, degrees : its mean without skew, and the degrees of freedom of the scaled chi-square that it is compared
        with.
    p_value : the chance of so large a statistic without skew.
    pairs : pairs compared.
    skew : root mean square of the residual log-odds beyond what noise explains; 0 where noise explains all.
    """

    statistic: float
    expected: float
    degrees: float
    p_value: float
    pairs: int
    skew: float


def count_triples(share: Floats, error: Floats, *, level: float = 0.95) -> Triples:
    """Count cyclic triples.

    Parameters
    ----------
    share, error : (K, K) mean shares s_jk and standard errors, NaN where a pair has no votes.
    level : of the simultaneous statement about `certain`.
    """
    seen = np.isfinite(share)
    lead = np.where(seen, share - 0.5, 0.0)
    pairs = int(seen.sum()) // 2
    critical = float(ndtri(1.0 - (1.0 - level) / (2 * max(pairs, 1))))
    sure = lead > np.maximum(critical * np.where(seen, error, 0.0), 0.0)
    return Triples(_closed(seen) // 6, _closed(lead > 0) // 3, _closed(sure & (error > 0)) // 3, critical)


def strongest_cycles(share: Floats, error: Floats, most: int) -> list[tuple[int, int, int]]:
    """Cyclic triples (j beats k beats l beats j, j the lowest) by the weakest of their three z-values, largest first.

    Parameters
    ----------
    share, error : as in `count_triples`.
    most : how many.
    """
    z = np.nan_to_num(np.divide(share - 0.5, error, out=np.zeros(share.shape), where=error > 0), nan=0.0)
    z = np.maximum(z, 0.0)
    found: list[tuple[float, int, int, int]] = []
    for j in range(z.shape[0]):
        weakest = np.minimum(np.minimum(z[j, :, None], z[:, j][None, :]), z)
        weakest[: j + 1], weakest[:, : j + 1] = 0.0, 0.0
        flat = weakest.ravel()
        best = np.argsort(-flat, kind="stable")[:most] if flat.size <= 4096 else _largest(flat, most)
        found += [(float(flat[at]), j, *divmod(int(at), z.shape[0])) for at in best if flat[at] > 0]
        found = sorted(found, key=lambda each: -each[0])[:most]
    return [each[1:] for each in found]


def skew_test(
    sample: Sample, means: PairMeans, graph: Graph, *, clustering: Clustering, seed: int = SEED
) -> SkewTest | None:
    """Test that mean log-odds of decisive votes are differences of scores.

    The differences are fitted by least squares, pairs weighted by the model's variance of their correction; the null
    distribution of the residuals' weighted square is a scaled chi-square with the mean and the variance of draws in
    which every cluster's corrections get one standard normal factor.

    Parameters
    ----------
    sample : rows and votes.
    means : under the rule of decisive votes alone; see `comparators.decisive`.
    graph : the pairs and orders that are compared.
    clustering : of the corrections; where two ways are asked for, by voter.

    Returns
    -------
    None where the pairs close no circle, or no correction scatters.
    """
    net = _net(sample, means, graph)
    size = graph.n_items
    circles = net.number.size - size + int(components(net.edges).max(initial=-1)) + 1
    if circles < 1:
        return None
    statistic = float(_squares(net, net.odds[None])[0])
    draws = _null_draws(sample, net, clustering=clustering, seed=seed)
    mean, variance = float(draws.mean()), float(draws.var(ddof=1))
    if not (mean > 0.0 and variance > 0.0):
        return None
    degrees = 2.0 * mean**2 / variance
    excess = max(statistic - mean, 0.0) / float((1.0 / net.variance).sum())
    p_value = float(chdtrc(degrees, statistic * degrees / mean))
    return SkewTest(statistic, mean, degrees, p_value, net.number.size, float(np.sqrt(excess)))


@dataclass(frozen=True, slots=True)
class _Net:
    """The compared pairs j < k (e of them): where they are, their log-odds, and what each vote adds.

    Parameters
    ----------
    first, second, number : (e,) j, k and j K + k, ascending.
    odds, variance : (e,).
    edges : (K, K).
    votes, edge, step : the votes on them, the pair of each, and its part of the log-odds.
    """

    first: Ints
    second: Ints
    number: Ints
    odds: Floats
    variance: Floats
    edges: Bools
    votes: Ints
    edge: Ints
    step: Floats


def _net(sample: Sample, means: PairMeans, graph: Graph) -> _Net:
    votes, size = sample.votes, sample.n_items
    order = graph.order[votes.left, votes.right]
    low, high = np.minimum(votes.left, votes.right), np.maximum(votes.left, votes.right)
    cell = low * size + high
    variance = sums_by(cell, order**2 * means.odds_variance, size**2) / sample.n_rows**2
    # Votes that favour nobody say nothing here: a pair needs one that does.
    variance = np.where(sums_by(cell, np.abs(means.odds_step), size**2) > 0, variance, 0.0)
    number = np.flatnonzero(variance > 0)
    first, second = np.divmod(number, size)
    edges = np.zeros((size, size), dtype=np.bool_)
    edges[first, second] = edges[second, first] = True
    flow = graph.order * means.odds
    chosen = np.flatnonzero(variance[cell] > 0)
    step = order * np.where(votes.left < votes.right, 1.0, -1.0) * means.odds_step / sample.n_rows
    return _Net(
        first,
        second,
        number,
        (flow - flow.T)[first, second],
        variance[number],
        edges,
        chosen,
        np.searchsorted(number, cell[chosen]),
        step[chosen],
    )


def _squares(net: _Net, odds: Floats) -> Floats:
    """(b,) weighted squares of what (b, e) log-odds hold beyond differences of scores."""
    size, weight = net.edges.shape[0], 1.0 / net.variance
    laplacian = np.zeros((size, size))
    laplacian[net.first, net.second] = -weight
    laplacian += laplacian.T
    laplacian -= np.diag(laplacian.sum(axis=1))
    flow = np.zeros((len(odds), size))
    pulls = odds * weight
    for at, values in enumerate(pulls):
        flow[at] = sums_by(net.first, values, size) - sums_by(net.second, values, size)
    scores = flow @ np.linalg.pinv(laplacian, hermitian=True)
    residual = odds - scores[:, net.first] + scores[:, net.second]
    squares: Floats = (residual**2) @ weight
    return squares


def _null_draws(sample: Sample, net: _Net, *, clustering: Clustering, seed: int) -> Floats:
    """(draws,) the statistic of corrections times one normal factor per cluster."""
    size = net.number.size
    cluster = labels_of_votes(clustering, sample)[net.votes]
    # Clusters of one vote are independent of all else: those of a pair are one normal draw together.
    alone = np.bincount(cluster)[cluster] == 1
    deviation = np.sqrt(sums_by(net.edge[alone], net.step[alone] ** 2, size))
    edge, step = net.edge[~alone], net.step[~alone]
    label = np.unique(cluster[~alone], return_inverse=True)[1]
    n_draws = int(np.clip(DRAW_WORK / max(label.size, 1), FEWEST_DRAWS, DRAWS))
    generator = np.random.default_rng(seed)
    noise = generator.standard_normal((n_draws, size)) * deviation
    for draw in noise:
        factor = generator.standard_normal(int(label.max(initial=-1)) + 1)
        draw += sums_by(edge, factor[label] * step, size)
    return _squares(net, noise)


def _closed(adjacency: Bools) -> int:
    """Closed walks of length three."""
    steps = adjacency.astype(np.float64)
    return round(float(np.einsum("jk,kj->", steps @ steps, steps)))


def _largest(values: Floats, most: int) -> Ints:
    chosen = np.argpartition(-values, most)[:most]
    return chosen[np.argsort(-values[chosen], kind="stable")].astype(np.int64)
