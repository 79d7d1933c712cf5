"""What a board's ranking rests on, computed at its refit: every section with a status, and null where nothing is known.

Sections: balance, overlap, support, learner, position, intransitivity, sensitivity, outcomes, voters, drift.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from app.domain.boards import BoardConfig
from app.services.refit.behaviour import (
    drift_section,
    interval_of,
    outcomes_section,
    position_section,
    voters_section,
)
from app.services.refit.design import balance_section, overlap_section, support_section
from app.services.refit.frame import Frame
from app.services.refit.payoffs import Payoffs
from app.services.refit.tables import Table
from app.stats.debias.balance import Balance
from app.stats.debias.one_step import ranked_items, thinning_of
from app.stats.debias.paired import PairedCrossFit
from app.stats.debias.support import Pairs, support_of
from app.stats.diagnostics import (
    PairMeans,
    calibrate,
    classical_chances,
    clustered_error,
    count_triples,
    decisive,
    kendall,
    log_losses,
    pair_means,
    rank_changes,
    share_chances,
    skew_test,
    strongest_cycles,
)
from app.stats.gars import Graph
from app.stats.inference import ranks
from app.stats.types import Bools, Floats, Ints, Rule, Sample

MOST_CYCLES = 10
SIGNIFICANT = 0.05
BOARD, HALF, DECISIVE = "board", "half", "decisive"
LOSSES = ("log_loss", "base_log_loss", "classical_log_loss", "gain_over_base", "gain_over_classical")

Section = dict[str, Any]


@dataclass(frozen=True)
class Fitted:
    """What the rest of a refit found.

    Parameters
    ----------
    frame, whole : the board's rows, and all of them with the propensities used.
    mu : what the fold models say, as it is remembered.
    learner : the name of their learner.
    chances : (m, C) what they say of votes that they never saw.
    balance, payoffs, tables : as they were found; tables of the whole board say which pairs each score rests on.
    """

    frame: Frame
    whole: Sample
    mu: PairedCrossFit
    learner: str
    chances: Floats
    balance: Balance | None
    payoffs: Payoffs
    tables: Sequence[Table]

    @property
    def heard(self) -> bool:
        """Whether there is a vote."""
        return len(self.whole.votes) > 0

    def graph(self, estimand: str) -> Graph:
        """The pairs that the debiased scores rest on by default."""
        debiased = [table for table in self.tables if table.estimator == "debiased" and not table.segment]
        modes = {table.estimand: table.auto for table in debiased}
        mode: Pairs = "observed" if modes.get(estimand) == "observed" else "all"
        return support_of(self.whole).graph(mode)


def diagnose(fitted: Fitted, config: BoardConfig) -> dict[str, Section]:
    """Every section."""
    frame, sample = fitted.frame, fitted.whole
    rules = _rules(config)
    alike = {(*rule.first, *rule.second): rule for rule in rules.values()}
    found = pair_means(sample, fitted.mu, list(alike.values())) if fitted.heard else []
    of_alike = dict(zip(alike, found, strict=fitted.heard))
    means = {name: of_alike[*rule.first, *rule.second] for name, rule in rules.items()} if fitted.heard else {}
    used = {"rows_used": _rows_used(fitted)}
    return {
        "balance": balance_section(fitted.balance, frame, sample),
        "overlap": overlap_section(frame, sample),
        "support": support_section(frame, sample),
        "learner": _learner(fitted, config),
        "position": position_section(frame, sample, fitted.mu) | used,
        "intransitivity": _intransitivity(fitted, means.get(DECISIVE)) | used,
        "sensitivity": _sensitivity(fitted, means) | used,
        "outcomes": outcomes_section(frame, sample, config),
        "voters": voters_section(frame, sample, fitted.chances),
        "drift": drift_section(frame, sample, sample.rule.scores(fitted.chances)),
    }


def _rows_used(fitted: Fitted) -> int:
    """Rows that mu of all pairs was averaged over; every vote corrects that."""
    thinning = thinning_of(fitted.whole, fitted.mu)
    return fitted.whole.n_rows if thinning is None else thinning.rows_used


def _rules(config: BoardConfig) -> dict[str, Rule]:
    """The board's rule; other ways to credit outcomes that favour nobody; and decisive votes alone."""
    first = np.array([each.first for each in config.categories], dtype=np.float64)
    second = np.array([each.second for each in config.categories], dtype=np.float64)
    board, even = Rule(first, second), np.flatnonzero(first == second)
    rules = {BOARD: board}
    alone = decisive(board)
    if alone is None:
        return rules
    if even.size:
        rules[HALF] = _credited(board, even, 0.5)
        half = rules[HALF]
        rules |= {f"drop {config.categories[at].name}": _credited(half, np.array([at]), 0.0) for at in even.tolist()}
        rules["drop all of these"] = _credited(board, even, 0.0)
    return rules | {DECISIVE: alone}


def _credited(rule: Rule, categories: Ints, weight: float) -> Rule:
    first, second = rule.first.copy(), rule.second.copy()
    first[categories] = second[categories] = weight
    return Rule(first, second)


def _learner(fitted: Fitted, config: BoardConfig) -> Section:
    """Log loss out of fold against the overall shares and against classical Bradley-Terry; calibration by outcome."""
    sample, chances = fitted.whole, fitted.chances
    head: Section = {"name": fitted.learner}
    if not fitted.heard:
        return {"status": "no_votes", **head, **dict.fromkeys(LOSSES), "calibration": []}
    losses = log_losses(chances, sample.votes)
    rivals = {"base": share_chances(sample), "classical": classical_chances(sample)}
    rival_losses = {name: log_losses(given, sample.votes) for name, given in rivals.items()}
    gains = {name: _gain(fitted, rival - losses) for name, rival in rival_losses.items()}
    worse = any(gain["interval"][1] < 0 for gain in gains.values())
    return {
        "status": "worse" if worse else "ok",
        **head,
        "log_loss": float(losses.mean()),
        **{f"{name}_log_loss": float(rival.mean()) for name, rival in rival_losses.items()},
        **{f"gain_over_{name}": gain for name, gain in gains.items()},
        "calibration": [
            {"outcome": each.name, **_calibration(chances[:, at], sample.votes.outcome == at)}
            for at, each in enumerate(config.categories)
        ],
    }


def _gain(fitted: Fitted, difference: Floats) -> Section:
    """Mean of a number per vote with its clustered interval."""
    sample, size = fitted.whole, difference.size
    value = float(difference.mean())
    error = clustered_error(fitted.frame.clustering, sample, np.zeros(sample.n_rows), (difference - value) / size)
    return {"value": value, "standard_error": error, "interval": interval_of(value, error, sample.n_rows), "size": size}


def _calibration(predicted: Floats, happened: Bools) -> Section:
    found = calibrate(predicted, happened)
    columns = (found.predicted, found.observed, found.standard_error, found.count)
    names = ("predicted", "observed", "standard_error", "votes")
    return {
        "expected_error": found.expected_error,
        "chi_square": found.chi_square,
        "degrees": found.degrees,
        "p_value": found.p_value,
        "bins": [dict(zip(names, row, strict=True)) for row in zip(*(each.tolist() for each in columns), strict=True)],
    }


def _intransitivity(fitted: Fitted, means: PairMeans | None) -> Section:
    """Cyclic triples by the debiased mean shares, and the test of anything beyond differences of scores."""
    share, error, items = fitted.payoffs.share, fitted.payoffs.error, fitted.frame.items
    triples = count_triples(share, error)
    clustering = fitted.frame.clustering
    graph = support_of(fitted.whole).observed if fitted.heard else None
    test = None if means is None or graph is None else skew_test(fitted.whole, means, graph, clustering=clustering)
    skewed = test is not None and test.p_value < SIGNIFICANT
    finding = "cyclic" if triples.certain else "skewed" if skewed else "ok" if triples.seen else "few_pairs"
    return {
        "status": finding if fitted.heard else "no_votes",
        **asdict(triples),
        "share": triples.cyclic / triples.seen if triples.seen else None,
        "cycles": [[items[at] for at in cycle] for cycle in strongest_cycles(share, error, MOST_CYCLES)],
        "test": None if test is None else asdict(test),
    }


def _sensitivity(fitted: Fitted, means: Mapping[str, PairMeans]) -> Section:
    """Ranks under other ways to credit ties and their like, from the same models."""
    names = [name for name in means if name not in (BOARD, DECISIVE)]
    if not names:
        return {"status": "no_ties" if fitted.heard else "no_votes", "rules": names, "estimands": []}
    found = [
        _compared(fitted, "bt", {name: means[name].bradley_terry(fitted.graph("bt")) for name in (BOARD, *names)}),
        _compared(fitted, "borda", {name: means[name].borda(fitted.graph("borda")) for name in (BOARD, *names)}),
    ]
    leaders = {rule["leader"] for each in found for rule in each["rules"]}
    return {"status": "ok" if len(leaders) <= 1 else "leader_changes", "rules": names, "estimands": found}


def _compared(fitted: Fitted, estimand: str, scores: Mapping[str, Floats]) -> Section:
    ranked = ranked_items(fitted.graph(estimand))
    items = [fitted.frame.items[at] for at in ranked]
    kept = {name: score[ranked] for name, score in scores.items()}
    place = {name: ranks(score).tolist() for name, score in kept.items()}
    rules = [{"rule": name, **_change(items, kept[BOARD], score)} for name, score in kept.items()]
    order = np.argsort(place[BOARD], kind="stable").tolist()
    return {
        "estimand": estimand,
        "rules": rules,
        "items": [{"item": items[at], "ranks": {name: place[name][at] for name in place}} for at in order],
    }


def _change(items: Sequence[str], before: Floats, after: Floats) -> Section:
    if not items:
        return {"leader": None, "kendall": None, "largest_change": None, "item": None}
    change = rank_changes(before, after)
    at = int(np.abs(change).argmax())
    return {
        "leader": items[int(after.argmax())],
        "kendall": kendall(before, after),
        "largest_change": int(change[at]),
        "item": items[at] if change[at] else None,
    }
