"""How voters behave: sides of the screen, ties, voters who stand out, and changes over time, in JSON's terms."""

from __future__ import annotations

from typing import Any

import numpy as np

from app.domain.boards import BoardConfig
from app.services.refit.frame import Frame
from app.stats.debias.one_step import CrossFit
from app.stats.diagnostics import Share, drift_of_items, first_advantage, judge_voters, left_share
from app.stats.diagnostics.voters import FALSE_DISCOVERIES, FEWEST_VOTES, Voters
from app.stats.inference import bands
from app.stats.types import Estimate, Floats, Sample

MOST_VOTERS = 50
"""How many voters are listed at most."""
LEVEL = 0.95
BEYOND_NOISE = 0.05

Section = dict[str, Any]


def position_section(frame: Frame, sample: Sample, mu: CrossFit) -> Section:
    """What being shown first is worth: debiased, and as counted."""
    if not len(sample.votes):
        return {"status": "no_votes", "advantage": None, "left_share": None}
    advantage = first_advantage(sample, mu, clustering=frame.clustering)
    counted = left_share(sample, clustering=frame.clustering)
    return {
        "status": "one_sided" if advantage is None else "ok",
        "advantage": None if advantage is None else _share(advantage, sample),
        "left_share": None if counted is None else _share(counted, sample),
    }


def outcomes_section(frame: Frame, sample: Sample, config: BoardConfig) -> Section:
    """How often each outcome that credits both sides alike comes up, overall and for each item."""
    even = [at for at, each in enumerate(config.categories) if each.first == each.second]
    names = [config.categories[at].name for at in even]
    if not even or not len(sample.votes):
        return {"status": "no_ties" if len(sample.votes) else "no_votes", "outcomes": names, "rates": None, "items": []}
    votes = sample.votes
    item = np.concatenate([votes.left, votes.right])
    counts = np.zeros((sample.n_items, sample.rule.n_categories))
    np.add.at(counts, (item, np.tile(votes.outcome, 2)), 1.0)
    total = counts.sum(axis=1)
    return {
        "status": "ok",
        "outcomes": names,
        "rates": _rates(counts.sum(axis=0)[even], float(total.sum()), names),
        "items": [
            {"item": name, "votes": int(total[at]), "rates": _rates(counts[at, even], float(total[at]), names)}
            for at, name in enumerate(frame.items)
        ],
    }


def voters_section(frame: Frame, sample: Sample, chances: Floats) -> Section:
    """Voters with at least 20 votes against the model, those least likely to be honest first.

    A voter is told by the number of one of the votes, which leads to the name where it may be told. Pairs of one
    ranking are no independent answers: only votes on two items are judged.
    """
    _, vote, pairs = np.unique(frame.vote_id, return_inverse=True, return_counts=True)
    single = pairs[vote] == 1
    votes = sample.votes.take(single)
    found = judge_voters(votes, chances[single], sample.rule)
    head = {"least_votes": FEWEST_VOTES, "false_discoveries": FALSE_DISCOVERIES}
    if found is None:
        nothing: Section = {"judged": 0, "flagged": 0, "taste": None, "listed": []}
        return {"status": "few_votes" if len(sample.votes) else "no_votes", **head, **nothing}
    one = np.zeros(int(votes.voter.max()) + 1, dtype=np.int64)
    one[votes.voter] = frame.vote_id[single]
    order = np.lexsort((np.abs(found.agreement.z), found.p_value, ~found.flagged))[:MOST_VOTERS]
    flagged = int(found.flagged.sum())
    return {
        "status": "conspicuous" if flagged else "ok",
        **head,
        "judged": int(found.voter.size),
        "flagged": flagged,
        "taste": {"agreement": found.agreement.taste, "side": found.side.taste},
        "listed": [{"vote": int(one[found.voter[at]]), **_voter(found, at)} for at in order.tolist()],
    }


def drift_section(frame: Frame, sample: Sample, expected: Floats) -> Section:
    """Each item in the later half of the rows against the earlier half.

    Parameters
    ----------
    expected : (m,) score of the left item out of fold.
    """
    times = frame.time[sample.votes.row]
    cut = int(np.median(times)) if times.size else 0
    if not times.size or int(times.max()) <= cut or int(times.min()) == int(times.max()):
        return {"status": "one_time" if times.size else "no_votes", "since": None, "drifting": 0, "items": []}
    found = drift_of_items(sample, expected, times > cut, clustering=frame.clustering)
    known = np.isfinite(found.standard_error)
    beyond = known & (found.p_value < BEYOND_NOISE)
    rows = [
        {
            "item": name,
            "change": float(found.change[at]) if known[at] else None,
            "standard_error": float(found.standard_error[at]) if known[at] else None,
            "p_value": float(found.p_value[at]) if known[at] else None,
            "beyond_noise": bool(beyond[at]),
        }
        for at, name in enumerate(frame.items)
    ]
    return {"status": "drift" if beyond.any() else "ok", "since": cut, "drifting": int(beyond.sum()), "items": rows}


def interval_of(value: float, error: float, n_rows: int) -> list[float]:
    """The 95% interval of one number."""
    band = bands(Estimate(np.array([value]), np.array([[error**2]]), n_rows), kind="marginal", level=LEVEL)
    return [float(band.lower[0]), float(band.upper[0])]


def _share(share: Share, sample: Sample) -> Section:
    return {
        "value": share.value,
        "standard_error": share.standard_error,
        "interval": interval_of(share.value, share.standard_error, sample.n_rows),
        "size": share.size,
    }


def _rates(counts: Floats, total: float, names: list[str]) -> dict[str, float] | None:
    if not total:
        return None
    return dict(zip(names, (counts / total).tolist(), strict=True))


def _voter(found: Voters, at: int) -> Section:
    return {
        "votes": int(found.votes[at]),
        "agreement": float(found.agreement.value[at]),
        "agreement_z": float(found.agreement.z[at]),
        "side": float(found.side.value[at]),
        "side_z": float(found.side.z[at]),
        "p_value": float(found.p_value[at]),
        "flagged": bool(found.flagged[at]),
    }
