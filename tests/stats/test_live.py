"""Sums of live rows whose corrections count more than once, where answers to draws are still out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from app.experiments.boards import board, oracle
from app.stats.debias import Clustering, CrossFit
from app.stats.debias.live import Heard, LiveSums, live_sums, parts_behind
from app.stats.debias.one_step import Target, one_step
from app.stats.debias.segments import segment
from app.stats.gars import Graph, estimand
from app.stats.simulate import PAPER
from app.stats.types import Sample

TARGETS = {name: Target(estimand(name), Graph.complete(PAPER.n_items)) for name in ("borda", "bt", "rc")}


def counted(sample: Sample, times: float) -> Sample:
    """The sample with corrections that count so often."""
    return replace(sample, votes=replace(sample.votes, weight=times * sample.votes.weight))


def drawn(size: int, clustering: Clustering) -> tuple[Sample, CrossFit]:
    on = board(PAPER, PAPER.draw(size, seed=3), seed=3, clustering=clustering)
    votes = replace(on.sample.votes, voter=np.arange(len(on.sample.votes)) % 17)
    return replace(on.sample, votes=votes), oracle(on, PAPER.probabilities)


@pytest.mark.parametrize("by", ["context", "voter", "both"])
def test_refitted_rows_are_stretched_as_their_clusters_are(by: str) -> None:
    clustering = Clustering(by, "context")  # type: ignore[arg-type]
    sample, mu = drawn(120, Clustering(unit="context"))
    known = {name: each.estimate for name, each in one_step(sample, mu, TARGETS, clustering=clustering).items()}
    apart = parts_behind(sample, mu, TARGETS, known, clustering)
    expected = one_step(counted(sample, 1.25), mu, TARGETS, clustering=clustering)
    # Corrections stand for 96 of the 120 rows.
    for name, each in known.items():
        heard = Heard(offers=24.0, pairs=10.0)
        found = LiveSums.none(PAPER.n_items, apart[name]).estimate(each, heard)
        np.testing.assert_allclose(found.value, expected[name].estimate.value, atol=1e-12)
        np.testing.assert_allclose(found.covariance, expected[name].estimate.covariance, atol=1e-12)


def test_live_rows_are_stretched_with_those_of_the_refit() -> None:
    clustering = Clustering(unit="context")
    sample, mu = drawn(150, clustering)
    first, last = (
        segment(sample, rows, propensity=sample.votes.propensity)
        for rows in (np.arange(150) < 120, np.arange(150) >= 120)
    )
    known = {name: each.estimate for name, each in one_step(first, mu, TARGETS, clustering=clustering).items()}
    apart = parts_behind(first, mu, TARGETS, known, clustering)
    came = live_sums(last, mu, TARGETS, apart=True)
    # Half of the pairs drawn for 30 offers are heard, and late answers stand for 10 rows more.
    heard = Heard(offers=30.0, pairs=40.0, answers=20.0, late=10.0)
    assert heard.stretch(150) == pytest.approx(150 / 145)
    expected = one_step(counted(sample, 150 / 145), mu, TARGETS, clustering=clustering)
    for name, each in known.items():
        sums = LiveSums.none(PAPER.n_items, apart[name]) + came[name]
        found = sums.estimate(each, heard)
        np.testing.assert_allclose(found.value, expected[name].estimate.value, atol=1e-12)
        np.testing.assert_allclose(found.covariance, expected[name].estimate.covariance, atol=1e-12)
        for before in (Heard(), Heard(offers=24.0, pairs=10.0)):
            back = (sums - came[name]).estimate(each, before)
            was = LiveSums.none(PAPER.n_items, apart[name]).estimate(each, before)
            np.testing.assert_allclose(back.value, was.value, atol=1e-12)
            np.testing.assert_allclose(back.covariance, was.covariance, atol=1e-12)


def test_offers_without_any_pair_count_in_full() -> None:
    assert Heard(offers=3.0).stretch(100) == 1.0
