"""Votes on menus of any size as the games' estimators read them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from app.domain.boards import BoardConfig
from app.domain.outcomes import rule
from app.services.refit.frame import Frame, frame_of
from app.services.refit.games.contest import favours
from app.services.refit.inputs import Inputs, RankingTable
from app.services.refit.menus import counts_rankings, with_pairs
from app.services.refit.storage import Stored
from app.stats.feedback import OUTSIDE, Menus, MenuSample, MenuVotes, Tiers, estimated_propensities, menus_of
from app.stats.gars.graph import components
from app.stats.types import Bools, Floats, Ints

MOST_MENUS = 64
"""Menus up to which each is modelled; with more, the pairs of votes are taken as votes on pairs."""
LEAST_VOTES = 30
"""Votes on a menu from which on it counts beside others that show its pairs."""
MOST_FOLDS = 3
"""Folds of the models of menus: what contexts cost where requests are answered is in proportion."""


@dataclass(frozen=True)
class Ballots:
    """Votes on menus of the players.

    Parameters
    ----------
    stored : the rows, with the covariates and levels that they have.
    players : (k,) positions among the board's items; fewer than two where no vote links any.
    sample : rows and votes, items by their place among the players.
    """

    stored: Stored
    players: Ints
    sample: MenuSample


@dataclass(frozen=True)
class _Cast:
    """Counted votes (m,).

    Parameters
    ----------
    row, offer : of each.
    tiers : (m, K).
    propensity : as logged of the menu, NaN where it is not known.
    """

    row: Ints
    offer: Ints
    tiers: Tiers
    propensity: Floats

    def take(self, index: Bools) -> _Cast:
        return _Cast(self.row[index], self.offer[index], self.tiers[index], self.propensity[index])


def ballots_of(inputs: Inputs, config: BoardConfig, stored: Stored) -> Ballots | None:
    """The board's votes on menus, those on pairs among them; None where all are on pairs, or menus are too many.

    Where rankings leave votes on menus out, rows and folds are those that would count them.
    """
    if inputs.rankings is None or not (inputs.rankings.reason < 0).any():
        return None
    if not counts_rankings(inputs, config):
        counting = replace(config, propensity="auto")
        stored = replace(stored, frame=frame_of(with_pairs(inputs, counting), counting))
    cast = _joined(_rankings(inputs, inputs.rankings, config, stored.frame), _pairs(inputs, stored.frame, config))
    players = _linked(cast.tiers)
    cast = cast.take((cast.tiers[:, players] != OUTSIDE).sum(axis=1) > 1)
    menus, menu = menus_of(cast.tiers[:, players])
    counted = _counted(menus, menu)
    cast, menu = cast.take(counted[menu]), (np.cumsum(counted) - 1)[menu[counted[menu]]]
    menus = Menus(menus.members[counted])
    if len(menus.members) > MOST_MENUS:
        return None
    return Ballots(stored, players, _sample(stored.frame, cast, players, menus, menu))


def _rankings(inputs: Inputs, rankings: RankingTable, config: BoardConfig, frame: Frame) -> _Cast:
    """Votes on menus that are rows of the frame, without items that can no longer be drawn."""
    row = dict(zip(frame.vote_id.tolist(), frame.sample.votes.row.tolist(), strict=True))
    used = _kept(rankings, _lost(rankings.reason, inputs), config)
    here = np.array([number in row for number in rankings.ids.tolist()], dtype=np.bool_)
    counted = np.flatnonzero(here & (rankings.reason < 0))
    whole = ~(rankings.tiers[:, ~inputs.roster.active] != OUTSIDE).any(axis=1)
    return _Cast(
        np.array([row[number] for number in rankings.ids[counted].tolist()], dtype=np.int64),
        rankings.offer[counted],
        rankings.tiers[counted][:, inputs.roster.active],
        np.where(whole, used, np.nan)[counted],
    )


def _lost(reason: Ints, inputs: Inputs) -> Bools:
    """(m,) votes that are excluded with nothing in their place."""
    lost: Bools = (reason >= 0) & ~inputs.superseded(reason)
    return lost


def _kept(rankings: RankingTable, lost: Bools, config: BoardConfig) -> Floats:
    """(m,) logged propensities after exclusions: times the share of the menu's votes that count.

    On boards of battles a row goes with its vote, so the share is against that of all menus.
    """
    _, menu = np.unique(rankings.tiers != OUTSIDE, axis=0, return_inverse=True)
    menu, counted = menu.ravel(), (rankings.reason < 0).astype(np.float64)
    cast, overall = counted + lost, counted.sum() / (counted + lost).sum()
    share = (np.bincount(menu, counted) + overall) / (np.bincount(menu, cast) + 1.0)
    against = overall if config.unit == "battle" else 1.0
    used: Floats = np.minimum(rankings.propensity * share[menu] / against, 1.0)
    return used


def _pairs(inputs: Inputs, frame: Frame, config: BoardConfig) -> _Cast:
    """Votes on pairs as votes on menus of two: of both orders together, where both are shown.

    Their logged propensities are as sent: no good where votes are excluded, or pairs drawn here wait for an answer.
    """
    votes = frame.sample.votes
    assert inputs.rankings is not None
    own = np.flatnonzero(~np.isin(frame.vote_id, inputs.rankings.ids))
    lost = _lost(inputs.votes.reason, inputs) & ~np.isin(inputs.votes.ids, inputs.rankings.ids)
    good = inputs.draws is None and not lost.any()
    left, right = votes.left[own], votes.right[own]
    favour = favours(rule(config.categories))[votes.outcome[own]]
    tiers = np.full((own.size, frame.sample.n_items), OUTSIDE, dtype=np.int16)
    each = np.arange(own.size)
    tiers[each, left], tiers[each, right] = favour < 0, favour > 0
    seen = np.zeros((frame.sample.n_items,) * 2, dtype=np.bool_)
    seen[left, right] = True
    at = np.searchsorted(inputs.votes.ids, frame.vote_id[own], sorter=(order := np.argsort(inputs.votes.ids)))
    sent = np.where(good, inputs.votes.propensity[order[at]], np.nan)
    return _Cast(votes.row[own], inputs.votes.offer[order[at]], tiers, sent * (1.0 + seen[right, left]))


def _joined(one: _Cast, other: _Cast) -> _Cast:
    return _Cast(*(np.concatenate([getattr(one, name), getattr(other, name)]) for name in _Cast.__dataclass_fields__))


def _linked(tiers: Tiers) -> Ints:
    """The items that menus link with most votes."""
    on_menu = (tiers != OUTSIDE).astype(np.float64)
    label = components(on_menu.T @ on_menu > 0)
    votes = np.bincount(label, on_menu.sum(axis=0))
    return np.flatnonzero(label == votes.argmax())


def _counted(menus: Menus, menu: Ints) -> Bools:
    """(Q,) menus with enough votes, and those that show a pair which none of these shows.

    All menus of a pair count alike in its payoff: two votes on a large menu must not weigh as much as hundreds.
    """
    thick = np.bincount(menu, minlength=len(menus.members)) >= LEAST_VOTES
    together = menus.members.astype(np.float64)
    shown = together[thick].T @ together[thick] > 0
    alone = np.array([not shown[np.ix_(on, on)].all() for on in menus.members], dtype=np.bool_)
    counted: Bools = thick | alone
    return counted


def _sample(frame: Frame, cast: _Cast, players: Ints, menus: Menus, menu: Ints) -> MenuSample:
    """With a menu of its own for every pair that was on none: there the models speak alone."""
    _, place, count = np.unique(np.stack([cast.row, cast.offer, menu]), axis=1, return_inverse=True, return_counts=True)
    offers = np.maximum(np.bincount(frame.exposure.row, minlength=frame.sample.n_rows), 1)
    weight = 1.0 / count[place.ravel()] / offers[cast.row]
    votes = MenuVotes(cast.row, menu, cast.tiers[:, players], weight, np.ones(menu.size))
    sample = MenuSample(menus, votes, frame.sample.fold % MOST_FOLDS, frame.sample.pattern, frame.sample.context)
    known = np.isfinite(cast.propensity).all()
    used = cast.propensity if known else estimated_propensities(sample)
    return replace(sample, menus=_with_unseen(menus), votes=replace(votes, propensity=used))


def _with_unseen(menus: Menus) -> Menus:
    first, second = (each[~menus.shown] for each in menus.pairs)
    alone = np.zeros((first.size, menus.n_items), dtype=np.bool_)
    alone[np.arange(first.size), first] = alone[np.arange(first.size), second] = True
    return Menus(np.concatenate([menus.members, alone]))
