"""Samples too large for F at every row: their slow twin, exports, and what stays exact."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
from scipy.special import logit

from app.stats.debias import Clustering, Moments, Target, influence_lines, influence_rows, one_step
from app.stats.debias import influence as influence_module
from app.stats.debias import thinning as thinning_module
from app.stats.debias.flips import votes_to_flip
from app.stats.debias.influence import influence_of
from app.stats.debias.layout import Layout
from app.stats.debias.thinning import Thinning
from app.stats.diagnostics import clustered_error, first_advantage, pair_means
from app.stats.diagnostics.pairwise import pair_sums
from app.stats.gars import BUILT_IN, Borda, BradleyTerry, Estimand, Graph, RankCentrality
from app.stats.types import Floats, Ints, Sample, Votes
from tests.stats.debias_samples import TERNARY, Case, random_case, slow_parts
from tests.stats.test_one_step import CLUSTERINGS

ROWS_USED = 60


@dataclass(frozen=True)
class Paired:
    """A case's models, which may be asked for single pairs."""

    case: Case

    def __call__(self, fold: int, patterns: Ints, /) -> Floats:
        return self.case.mu(fold, patterns)

    def at(self, fold: int, patterns: Ints, left: Ints, right: Ints) -> Floats:
        """(m, C)."""
        return self.case.table[fold, patterns, left, right]


@pytest.fixture(autouse=True)
def _low_threshold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thinning_module, "LEAST_ROWS", ROWS_USED)
    monkeypatch.setattr(thinning_module, "PAIRS", 0)


def _case(seed: int, clustering: Clustering) -> Case:
    """200 rows on many cells, so that they are thinned."""
    rng = np.random.default_rng(seed)
    return random_case(rng, n_items=4, n_rows=200, n_patterns=150, battle=clustering.unit == "battle")


def stretched_parts(case: Case, target: Target, thinning: Thinning) -> tuple[Floats, Floats, Floats]:
    """Mean of F over the rows drawn, stretched values (n, K) and corrections (m, K), written out."""
    values, corrections = slow_parts(case.sample, case.mu, target)
    drawn = np.flatnonzero(thinning.drawn)
    centre = values[drawn].mean(axis=0)
    stretched = np.tile(centre, (case.sample.n_rows, 1))
    stretched[drawn] += case.sample.n_rows / drawn.size * (values[drawn] - centre)
    return centre, stretched, corrections


@pytest.mark.parametrize("clustering", CLUSTERINGS, ids=str)
@pytest.mark.parametrize("estimand", [Borda(), BradleyTerry()], ids=lambda each: each.name)
def test_pairwise_scores_equal_the_slow_twin(clustering: Clustering, estimand: Estimand) -> None:
    """F over the rows drawn, every vote's correction; the variance of the stretched rows by cluster."""
    case = _case(1, clustering)
    target = Target(estimand, Graph.complete(4))
    result = one_step(case.sample, Paired(case), {0: target}, clustering=clustering)[0]
    thinning = Thinning.of(case.sample)
    assert thinning is not None
    assert thinning.rows_used == ROWS_USED
    centre, stretched, corrections = stretched_parts(case, target, thinning)
    n = case.sample.n_rows
    score = centre + corrections.sum(axis=0) / n
    covariance = np.zeros((4, 4))
    for term in clustering.terms(case.sample):
        label = np.concatenate([term.row, term.vote])
        parts = np.concatenate([stretched - score, corrections])
        sums = np.stack([np.bincount(label, weights=part) for part in parts.T])
        covariance += term.sign * sums @ sums.T / n**2
    assert result.rows_used == ROWS_USED
    assert result.estimate.n_rows == n
    np.testing.assert_allclose(result.plug_in, centre, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(result.estimate.value, score, rtol=1e-12, atol=1e-12)
    if np.linalg.eigvalsh(covariance)[0] >= -1e-12 * np.abs(covariance).max():
        scale = np.abs(covariance).max()
        np.testing.assert_allclose(result.estimate.covariance, covariance, atol=1e-11 * scale)


@pytest.mark.parametrize("clustering", CLUSTERINGS, ids=str)
def test_pair_means_and_the_first_sides_advantage_use_every_vote(clustering: Clustering) -> None:
    case, weight = _case(8, clustering), (1 - np.eye(4)) / 6
    thinning = Thinning.of(case.sample)
    assert thinning is not None
    means = pair_means(case.sample, Paired(case), [TERNARY])[0]
    exact = pair_means(case.sample, case.mu, [TERNARY])[0]
    for name in ("share_step", "odds_step", "odds_variance"):
        np.testing.assert_allclose(getattr(means, name), getattr(exact, name), rtol=1e-12)
    p = TERNARY.scores(case.table[case.sample.fold, case.sample.pattern])
    for mean, whole, of_row in ((means.share, exact.share, p), (means.odds, exact.odds, logit(p))):
        moved = whole - of_row.mean(axis=0) + of_row[thinning.drawn].mean(axis=0)
        np.testing.assert_allclose(mean, moved, rtol=1e-9, atol=1e-9)
    found = first_advantage(case.sample, Paired(case), clustering=clustering)
    assert found is not None
    value = np.tensordot(p, weight, 2) - 1.0
    own = value[thinning.drawn].mean()
    assert found.value == pytest.approx(own + (weight * pair_sums(case.sample, exact.share_step)).sum() / 200)
    stretched = own + thinning.stretch(np.arange(200)) * (value - own)
    steps = exact.share_step * weight[case.sample.votes.left, case.sample.votes.right]
    error = clustered_error(clustering, case.sample, (stretched - found.value) / 200, steps / 200)
    assert found.standard_error == pytest.approx(error)


@pytest.mark.parametrize("name", ["borda", "bt", "rc"])
@pytest.mark.parametrize("room", [0, 10**6])
def test_votes_to_flip_rest_on_the_stretched_rows_or_on_those_drawn(
    name: str, room: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(influence_module, "KEPT", room)
    case = _case(9, Clustering())
    thinning = Thinning.of(case.sample)
    assert thinning is not None
    target = Target(next(each for each in BUILT_IN if each.name == name), Graph.complete(4))
    value = one_step(case.sample, Paired(case), {0: target}, clustering=Clustering())[0].estimate.value
    influence = influence_of(case.sample, Paired(case), {0: target})[0]
    found = votes_to_flip(influence, value, by_row=True)
    assert found is not None
    if name == "rc":
        part = thinning.part(case.sample)
        alone = votes_to_flip(influence_of(part, case.mu, {0: target})[0], value, by_row=True)
        assert alone is not None
        assert found.votes == round(alone.votes * 200 / ROWS_USED)
        return
    _, psi, corrections = stretched_parts(case, target, thinning)
    np.add.at(psi, case.sample.votes.row, corrections)
    gain = psi[:, [found.leader]] - psi
    gain[np.bincount(case.sample.votes.row, minlength=200) == 0] = 0.0
    left = (psi[:, [found.leader]] - psi).sum(axis=0) - np.cumsum(-np.sort(-gain, axis=0), axis=0)
    assert found.votes == 1 + min(int(np.argmax(own < 0)) for own in left.T if (own < -1e-7).any())
    assert influence.rows_used == ROWS_USED


def test_other_scores_are_those_of_the_rows_drawn() -> None:
    clustering = Clustering("both", "context")
    case = _case(2, clustering)
    targets = {each.name: Target(each, Graph.complete(4)) for each in BUILT_IN}
    found = one_step(case.sample, Paired(case), targets, clustering=clustering)
    assert list(found) == list(targets)
    thinning = Thinning.of(case.sample)
    assert thinning is not None
    part = thinning.part(case.sample)
    alone = one_step(part, case.mu, targets, clustering=clustering)
    for name in ("rc", "threshold", "robust"):
        np.testing.assert_array_equal(found[name].estimate.value, alone[name].estimate.value)
        np.testing.assert_array_equal(found[name].estimate.covariance, alone[name].estimate.covariance)
        assert found[name].rows_used == found[name].estimate.n_rows == ROWS_USED
    assert (found["bt"].estimate.value != alone["bt"].estimate.value).all()


@pytest.mark.parametrize("clustering", CLUSTERINGS, ids=str)
@pytest.mark.parametrize("estimand", [BradleyTerry(), RankCentrality()], ids=lambda each: each.name)
def test_exported_lines_reproduce_thinned_scores_and_errors(clustering: Clustering, estimand: Estimand) -> None:
    case = _case(3, clustering)
    mu = Paired(case)
    result = one_step(case.sample, mu, {0: Target(estimand, Graph.complete(4))}, clustering=clustering)[0]
    lines = list(influence_lines(case.sample, mu, result, clustering=clustering))
    psi, cluster = np.concatenate([each.psi for each in lines]), np.concatenate([each.cluster for each in lines])
    row, vote = np.concatenate([each.row for each in lines]), np.concatenate([each.vote for each in lines])
    thinning = Thinning.of(case.sample)
    assert thinning is not None
    own = np.arange(200) if estimand.name == "bt" else np.flatnonzero(thinning.drawn)
    assert sorted(row[vote < 0]) == own.tolist()
    assert (case.sample.votes.row[vote[vote >= 0]] == row[vote >= 0]).all()
    score = psi.mean(axis=0)
    variance = np.zeros(4)
    for column, sign in zip(cluster.T, (1.0, 1.0, -1.0), strict=False):
        sums = np.stack([np.bincount(column, weights=(psi - score)[:, item]) for item in range(4)])
        variance += sign * (sums**2).sum(axis=1) / psi.shape[0] ** 2
    np.testing.assert_allclose(score, result.estimate.value, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(np.sqrt(variance), result.estimate.standard_error, rtol=1e-10)


def test_moments_of_stretched_rows_merge_to_the_estimate() -> None:
    case = _case(4, Clustering())
    mu, target = Paired(case), Target(BradleyTerry(), Graph.complete(4))
    result = one_step(case.sample, mu, {0: target}, clustering=Clustering(fixed=True))[0]
    parts = [Moments.of(each.psi) for each in influence_rows(case.sample, mu, target)]
    merged = sum(parts[1:], parts[0]).estimate()
    np.testing.assert_allclose(merged.value, result.estimate.value, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(merged.covariance, result.estimate.covariance, atol=1e-12)


@pytest.mark.parametrize("shard", [1, 1000])
def test_small_blocks_change_nothing(shard: int, monkeypatch: pytest.MonkeyPatch) -> None:
    case = _case(5, Clustering("both"))
    targets = {each.name: Target(each, Graph.complete(4)) for each in (Borda(), BradleyTerry())}
    whole = one_step(case.sample, Paired(case), targets, clustering=Clustering("both"))
    layout = Layout.of
    monkeypatch.setattr(
        Layout, "of", lambda sample, valued=None, **_: layout(sample, block=100, shard=shard, valued=valued)
    )
    parts = one_step(case.sample, Paired(case), targets, clustering=Clustering("both"))
    for name, result in whole.items():
        np.testing.assert_allclose(parts[name].estimate.value, result.estimate.value, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(parts[name].estimate.covariance, result.estimate.covariance, atol=1e-12)


def test_few_rows_few_cells_and_models_of_all_pairs_are_not_thinned(monkeypatch: pytest.MonkeyPatch) -> None:
    case = _case(6, Clustering())
    target = {0: Target(BradleyTerry(), Graph.complete(4))}
    exact = one_step(case.sample, case.mu, target, clustering=Clustering())[0]
    assert exact.rows_used == 200
    plain = replace(case.sample, pattern=np.zeros(200, dtype=np.int64))
    assert Thinning.of(case.sample) is not None
    assert Thinning.of(plain) is None
    monkeypatch.setattr(thinning_module, "LEAST_ROWS", 200)
    assert Thinning.of(case.sample) is None
    same = one_step(case.sample, Paired(case), target, clustering=Clustering())[0]
    np.testing.assert_array_equal(same.estimate.value, exact.estimate.value)
    np.testing.assert_array_equal(same.estimate.covariance, exact.estimate.covariance)


def test_thinned_scores_spread_as_their_errors_say() -> None:
    """With F that varies a lot the error is far above that of the same rows unthinned."""
    rng = np.random.default_rng(7)
    truth = rng.dirichlet(np.full(3, 0.3), size=(1, 400, 3, 3))
    pairs = np.argwhere(~np.eye(3, dtype=bool))
    scores, errors, exact = [], [], []
    for _ in range(300):
        pattern = rng.integers(0, 400, 300)
        left, right = pairs[rng.integers(0, 6, 300)].T
        outcome = (rng.random((300, 1)) > np.cumsum(truth[0, pattern, left, right], axis=1)).sum(axis=1).clip(0, 2)
        rows = np.arange(300)
        votes = Votes(rows, left, right, outcome, np.ones(300), rows, np.full(300, 1 / 6))
        sample = Sample(3, TERNARY, votes, rows, np.zeros(300, dtype=np.int64), pattern)
        case, target = Case(sample, truth), {0: Target(Borda(), Graph.complete(3))}
        result = one_step(sample, Paired(case), target, clustering=Clustering())[0].estimate
        scores.append(result.value)
        errors.append(result.standard_error)
        exact.append(one_step(sample, case.mu, target, clustering=Clustering())[0].estimate.standard_error)
    spread = np.std(scores, axis=0)
    # The relative error of a spread over 300 boards is 4%.
    np.testing.assert_allclose(np.mean(errors, axis=0), spread, rtol=0.15)
    assert (np.mean(exact, axis=0) < 0.85 * np.mean(errors, axis=0)).all()
