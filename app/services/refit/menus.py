"""The pairs of votes on menus: each vote on a menu is one offer in which every pair of the menu was labelled."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np

from app.domain.boards import BoardConfig
from app.domain.menus import verdicts_of
from app.services.refit.inputs import Inputs, OfferTable, RankingTable, VoteTable
from app.stats.debias.folds import Hashes, canonical_order, content_hash, mix
from app.stats.feedback.partitions import OUTSIDE, Tiers
from app.stats.types import Ints

CELLS = 2**19
"""Items, or pairs of them, that are looked at together, over all votes."""


def with_pairs(inputs: Inputs, config: BoardConfig) -> Inputs:
    """The inputs with the pairs of their rankings among the votes.

    What was shown first is not known of them: the toss of a coin decides, the same each time. Pairs without a verdict
    are ties, or half of a vote for either item where the board's outcomes have no tie. Their propensity is not known:
    that of a menu says nothing of how often a pair is on any. So a board whose propensities are all logged leaves
    rankings out.
    """
    if not counts_rankings(inputs, config):
        return inputs
    assert inputs.rankings is not None
    rankings, own = _in_order(inputs.rankings, inputs)
    rankings, offers = _with_offers(rankings, own, inputs, shared=config.unit == "context")
    return replace(inputs, votes=_with_votes(inputs, rankings, own, config), offers=offers)


def counts_rankings(inputs: Inputs, config: BoardConfig) -> bool:
    """Whether there are rankings, and their pairs are among the votes."""
    return inputs.rankings is not None and config.propensity != "logged"


@dataclass(frozen=True, slots=True)
class _Pairs:
    """Pairs on menus, (t,): the vote, the two items, and the verdict: 1 where the left one is better, -1, or 0."""

    vote: Ints
    left: Ints
    right: Ints
    verdict: Ints


def _in_order(rankings: RankingTable, inputs: Inputs) -> tuple[RankingTable, Hashes]:
    """The rankings in an order of content alone, and a hash of each one's content but for what it says.

    Equal ones differ by how many came before, those that were superseded apart. What was said is no part of it: a coin
    that hangs on the verdict would not be fair.
    """
    where = (_keys(inputs.contexts.ids, inputs.contexts.key, rankings.context), _offer_keys(rankings, inputs))
    names = content_hash(inputs.roster.names)
    hashed = [_hashes(part, names) for _, part in _parts(rankings.tiers, width=names.size)]
    menu, said = (np.concatenate(column) for column in zip(*hashed, strict=True))
    content = (*where, menu, rankings.voter, inputs.superseded(rankings.reason).astype(np.int64))
    order, occurrence = canonical_order(*content, ties=(said, rankings.propensity, rankings.created))
    return rankings.take(order), mix(*(column[order] for column in content), occurrence)


def _hashes(tiers: Tiers, names: Hashes) -> tuple[Hashes, Hashes]:
    """Of each vote: its menu, and what it says of it; sums over items, so that their order is of no account."""
    on_menu = tiers != OUTSIDE
    menu = np.where(on_menu, mix(names), 0).sum(axis=1, dtype=np.uint64)
    told = mix(np.broadcast_to(names, tiers.shape), tiers.astype(np.int64))
    return menu, np.where(on_menu, told, 0).sum(axis=1, dtype=np.uint64)


def _parts(tiers: Tiers, *, width: int) -> list[tuple[int, Tiers]]:
    """The votes, as many together as have so many cells of a width, each part with the place where it begins."""
    step = max(CELLS // max(width, 1), 1)
    return [(at, tiers[at : at + step]) for at in range(0, len(tiers), step)]


def _offer_keys(rankings: RankingTable, inputs: Inputs) -> Ints:
    keys = np.zeros_like(rankings.offer)
    named = rankings.offer > 0
    keys[named] = _keys(inputs.offers.ids, inputs.offers.key, rankings.offer[named])
    return keys


def _keys(ids: Ints, key: Ints, wanted: Ints) -> Ints:
    keys: Ints = key[np.searchsorted(ids, wanted)]
    return keys


def _with_offers(
    rankings: RankingTable, own: Hashes, inputs: Inputs, *, shared: bool
) -> tuple[RankingTable, OfferTable]:
    """Rankings that are an offer of their own with a number for it, and the offers with these.

    `shared`: all votes on a context are one offer unless they name one.
    """
    offers = inputs.offers
    alone = (rankings.offer == 0) & ~((rankings.context > 0) & shared)
    numbers = int(offers.ids.max(initial=0)) + 1 + np.arange(int(alone.sum()))
    offer = rankings.offer.copy()
    offer[alone] = numbers
    added = OfferTable(
        numbers,
        rankings.context[alone],
        own[alone].view(np.int64),
        rankings.created[alone],
        np.zeros(numbers.size, dtype=np.bool_),
    )
    columns = [np.concatenate([getattr(table, each.name) for table in (offers, added)]) for each in fields(added)]
    return replace(rankings, offer=offer), OfferTable(*columns)


def _with_votes(inputs: Inputs, rankings: RankingTable, own: Hashes, config: BoardConfig) -> VoteTable:
    """The votes with every pair of every menu, menu by menu; then the other halves of those that are two.

    Room for all is made at once, and filled by some menus at a time: together they are large.
    """
    verdicts, names = verdicts_of(config.categories), content_hash(inputs.roster.names)
    assert verdicts is not None
    pairs, even = _sizes(rankings.tiers)
    halves = verdicts.undecided[1:]
    places = np.cumsum([len(inputs.votes), pairs, *[even] * len(halves)])
    table = _room(inputs.votes, int(places[-1]))
    for begin, tiers in _parts(rankings.tiers, width=names.size * (names.size - 1) // 2):
        part = _pairs(tiers, own[begin : begin + len(tiers)], names)
        part = replace(part, vote=part.vote + begin)
        undecided = part.verdict == 0
        outcome = np.where(part.verdict > 0, verdicts.first, verdicts.second)
        outcome[undecided] = verdicts.undecided[0]
        told = [_votes(part, outcome, rankings, own)]
        told += [replace(told[0].take(undecided), outcome=np.full(int(undecided.sum()), other)) for other in halves]
        for place, votes in enumerate(told):
            _put(table, places[place], votes)
            places[place] += len(votes)
    return table


def _sizes(tiers: Tiers) -> tuple[int, int]:
    """How many pairs all menus have, and how many of them are of one tier."""
    alike = [(tiers == tier).sum(axis=1) for tier in range(int(tiers.max(initial=OUTSIDE)) + 1)]
    return _number((tiers != OUTSIDE).sum(axis=1)), sum(map(_number, alike))


def _number(items: Ints) -> int:
    """How many pairs there are within sets of so many items."""
    return int((items * (items - 1)).sum()) // 2


def _room(votes: VoteTable, size: int) -> VoteTable:
    """The votes, with room for more of them up to a size."""
    columns = {each.name: getattr(votes, each.name) for each in fields(votes)}
    table = VoteTable(**{name: np.empty(size, dtype=column.dtype) for name, column in columns.items()})
    _put(table, 0, votes)
    return table


def _put(table: VoteTable, place: int, votes: VoteTable) -> None:
    for each in fields(votes):
        getattr(table, each.name)[place : place + len(votes)] = getattr(votes, each.name)


def _pairs(tiers: Tiers, own: Hashes, names: Hashes) -> _Pairs:
    """Every pair of some menus, one of its items put left by the toss of a coin."""
    first, second = np.triu_indices(names.size, 1)
    on_menu = tiers != OUTSIDE
    vote, pair = np.nonzero(on_menu[:, first] & on_menu[:, second])
    first, second = first[pair], second[pair]
    heads = (mix(own[vote], names[first], names[second]) & np.uint64(1)).astype(np.bool_)
    left, right = np.where(heads, second, first), np.where(heads, first, second)
    return _Pairs(vote, left, right, np.sign(tiers[vote, right].astype(np.int64) - tiers[vote, left]))


def _votes(pairs: _Pairs, outcome: Ints, rankings: RankingTable, own: Hashes) -> VoteTable:
    """The pairs as votes; of an anonymous ranking all are one voter's."""
    vote = pairs.vote
    return VoteTable(
        ids=rankings.ids[vote],
        context=rankings.context[vote],
        offer=rankings.offer[vote],
        left=pairs.left,
        right=pairs.right,
        outcome=outcome,
        voter=np.where(rankings.voter[vote] == 0, own[vote].view(np.int64), rankings.voter[vote]),
        propensity=np.full(vote.size, np.nan),
        created=rankings.created[vote],
        reason=rankings.reason[vote],
    )
