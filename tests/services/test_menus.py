"""Rankings in today's scores: the pairs of a menu are labels of one offer."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
import orjson
import pytest
from sqlalchemy import Engine

from app.db.locks import Lock, lease
from app.db.models.snapshots import Score, Snapshot
from app.domain.boards import Board, BoardConfig
from app.domain.exclusions import ExclusionDraft
from app.domain.items import ItemDraft
from app.services import exclusions, items
from app.services.diagnostics import diagnostics
from app.services.live.run import Updater
from app.services.rankings.influence import influence
from app.services.rankings.query import RankingQuery
from app.services.refit.gathering import gather
from app.services.refit.inputs import ContextTable, Inputs, OfferTable, RankingTable, Roster, VoteTable
from app.services.refit.menus import with_pairs
from app.services.refit.population import populate
from app.stats.feedback.partitions import OUTSIDE
from tests.refitting import Bench, ballots, cast, features_of, new_board

ITEMS = ("ada", "bell", "curie", "dirac")
MOMENT = "2026-01-01T00:00:00Z"
WORTH = np.array([0.9, 0.3, 0.0, -0.8])


@pytest.fixture(scope="module")
def bench(database: Engine) -> Bench:
    return Bench(database)


def table(bench: Bench, snapshot: Snapshot, estimand: str) -> Score:
    with bench.work() as work:
        return work.snapshots.scores(snapshot.id, estimand, "debiased", "")[0]


def gathered(bench: Bench, board: Board) -> Inputs:
    with bench.work() as work:
        marks = work.gather.marks(board.id)
    with bench.work() as work:
        return gather(work.gather, board, marks)


def order_of(menu: Sequence[int], rng: np.random.Generator) -> list[str]:
    """A ranking by Plackett and Luce."""
    noisy = WORTH[list(menu)] + rng.gumbel(size=len(menu))
    return [ITEMS[menu[at]] for at in np.argsort(-noisy)]


def rankings(size: int, *, seed: int, of: int = 3, contexts: bool = True) -> list[dict[str, Any]]:
    """Rankings of menus drawn with unequal chances, some with ties, winners and unlisted items among them."""
    rng = np.random.default_rng(seed)
    return list(_rankings(size, rng, of=of, contexts=contexts))


def _rankings(size: int, rng: np.random.Generator, *, of: int, contexts: bool) -> Iterator[dict[str, Any]]:
    menus = list(combinations(range(len(ITEMS)), of))
    chances = np.arange(1, len(menus) + 1) / np.arange(1, len(menus) + 1).sum()
    for number in range(size):
        menu = menus[rng.choice(len(menus), p=chances)]
        order = order_of(menu, rng)
        tiers = [[[name] for name in order], [order[:1]], [order[:2]]][int(rng.integers(3))]
        vote: dict[str, Any] = {"menu": [ITEMS[at] for at in rng.permutation(menu)], "ranking": tiers}
        if len(tiers) == 1 and len(tiers[0]) == 1 and number % 2:
            vote["kind"] = "winner"
        yield vote | ({"context": {"id": f"c{number}"}} if contexts else {}) | {"created_at": MOMENT}


def as_pairs(bench: Bench, board: Board) -> list[dict[str, Any]]:
    """The pairs of a board's rankings as they are gathered, as votes that name a pair each."""
    inputs, names = gathered(bench, board), [category.name for category in board.config.categories]
    with bench.work() as work:
        contexts = work.gather.context_names(inputs.votes.context)
    columns = (inputs.votes.context, inputs.votes.left, inputs.votes.right, inputs.votes.outcome)
    return [
        {"context": {"id": contexts[context]}, "left": ITEMS[left], "right": ITEMS[right], "outcome": names[outcome]}
        | {"created_at": MOMENT}
        for context, left, right, outcome in zip(*(column.tolist() for column in columns), strict=True)
    ]


@pytest.mark.parametrize("outcomes", ["arena", "binary", "quaternary"])
def test_rankings_score_as_their_pairs_in_one_offer_do(bench: Bench, outcomes: str) -> None:
    fields = {"unit": "context", "outcomes": outcomes}
    board, twin = new_board(bench, ITEMS, **fields), new_board(bench, ITEMS, **fields)
    cast(bench, board, rankings(150, seed=1))
    cast(bench, twin, as_pairs(bench, board))
    one, other = bench.refit(board.slug), bench.refit(twin.slug)
    for estimand in ("borda", "bt", "rc"):
        found, expected = table(bench, one, estimand), table(bench, other, estimand)
        assert found.value == pytest.approx(expected.value, abs=1e-9)
        assert np.frombuffer(found.covariance) == pytest.approx(np.frombuffer(expected.covariance), abs=1e-9)
        assert found.n_rows == 150


@pytest.mark.parametrize("unit", ["battle", "context"])
@pytest.mark.parametrize("contexts", [True, False])
def test_a_ranking_is_one_row_and_one_vote(bench: Bench, unit: str, contexts: bool) -> None:
    board = new_board(bench, ITEMS, unit=unit)
    cast(bench, board, rankings(60, seed=2, contexts=contexts))
    cast(bench, board, [{"left": "ada", "right": "bell", "outcome": "left"}] * 5)
    snapshot = bench.refit(board.slug)
    summary = snapshot.summary
    assert (summary["votes"], summary["rows"], summary["rankings"], summary["rankings_left_out"]) == (65, 65, 60, 0)
    assert (summary["propensity"], summary["refits_only"]) == ("estimated", "rankings")


def test_arrival_does_not_matter_to_the_bit(bench: Bench) -> None:
    sent = rankings(80, seed=3) + rankings(80, seed=4, contexts=False)
    for number, vote in enumerate(sent):
        vote |= {"voter": f"v{number % 7}"} if number % 3 else {}
    digests = set()
    for arrival in (range(160), np.random.default_rng(5).permutation(160)):
        board = new_board(bench, ITEMS, cluster="voter")
        for part in np.array_split(np.array(arrival), 3):
            cast(bench, board, [sent[at] for at in part])
        digests.add(bench.refit(board.slug).digest)
    assert len(digests) == 1


def test_what_was_said_does_not_decide_who_is_left(bench: Bench) -> None:
    board = new_board(bench, ITEMS, outcomes="binary")
    says = [["ada", "bell"], ["bell", "ada"]]
    sent = [{"menu": ["ada", "bell"], "ranking": [[name] for name in says[n % 2]]} for n in range(1000)]
    cast(bench, board, sent)
    votes = gathered(bench, board).votes
    left, better = votes.left == 0, votes.outcome == 0
    # Four equal cells of 250, standard deviation 13.7.
    cells = np.bincount(2 * left + better, minlength=4)
    assert np.abs(cells - 250).max() < 4 * 13.7


def only_rankings(size: int, items: int) -> Inputs:
    """Rankings of most of the items, with ties and unlisted ones, and no other vote."""
    rng, none, zero = np.random.default_rng(9), np.zeros(0, dtype=np.int64), np.zeros(size, dtype=np.int64)
    tiers = rng.integers(OUTSIDE, items // 2, (size, items), dtype=np.int16)
    return Inputs(
        VoteTable(*[none] * 7, np.zeros(0), none, none),
        (),
        ContextTable(*[np.zeros(1, dtype=np.int64)] * 4, [{}]),
        OfferTable(*[none] * 4, np.zeros(0, dtype=np.bool_)),
        Roster(
            ids=np.arange(items),
            names=tuple(f"i{number:02}" for number in range(items)),
            active=np.ones(items, dtype=np.bool_),
            **dict.fromkeys(("span_item", "span_from", "span_to"), none),
            **dict.fromkeys(("label_cost", "cost"), np.ones(items)),
        ),
        rankings=RankingTable(np.arange(size) + 1, zero, zero, tiers, zero, np.full(size, np.nan), zero, zero - 1),
    )


@pytest.mark.parametrize("outcomes", ["arena", "binary"])
def test_pairs_take_little_room_beside_themselves(outcomes: str, monkeypatch: pytest.MonkeyPatch) -> None:
    config, inputs = BoardConfig(outcomes=outcomes), only_rankings(300, 40)
    at_once = with_pairs(inputs, config).votes
    monkeypatch.setattr("app.services.refit.menus.CELLS", 2**13)
    tracemalloc.start()
    votes = with_pairs(inputs, config).votes
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    columns = [getattr(votes, name) for name in VoteTable.__slots__]
    assert peak < 1.2 * sum(column.nbytes for column in columns)
    for column, name in zip(columns, VoteTable.__slots__, strict=True):
        np.testing.assert_array_equal(column, getattr(at_once, name))
    assert inputs.rankings is not None
    tiers = inputs.rankings.tiers
    listed = (tiers != OUTSIDE).astype(np.int64)
    both = listed[:, :, None] * listed[:, None, :]
    twice = (
        1 + (tiers[:, :, None] == tiers[:, None, :]) if outcomes == "binary" else np.ones(both.shape, dtype=np.int64)
    )
    assert len(votes) == np.triu(both * twice, 1).sum()


def test_rows_of_many_pairs_take_some_copies_of_them() -> None:
    inputs = with_pairs(only_rankings(300, 40), BoardConfig(unit="context"))
    tracemalloc.start()
    found = populate(inputs, "context")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (len(found.rows), len(found.votes)) == (300, len(inputs.votes))
    assert peak < 6 * sum(getattr(inputs.votes, name).nbytes for name in VoteTable.__slots__)


def truth(estimand: str) -> Any:
    if estimand == "bt":
        return WORTH - WORTH.mean()
    shares = 1 / (1 + np.exp(WORTH[None, :] - WORTH[:, None]))
    return (shares.sum(axis=1) - 0.5) / (len(ITEMS) - 1)


@pytest.mark.parametrize("unit", ["battle", "context"])
def test_scores_of_menus_are_those_of_the_pairs_behind_them(bench: Bench, unit: str) -> None:
    rng = np.random.default_rng(6)
    menus = list(combinations(range(len(ITEMS)), 3))
    sent = []
    for number in range(1500):
        menu = menus[rng.choice(len(menus), p=[0.1, 0.2, 0.3, 0.4])]
        order = order_of(menu, rng)
        context = {"id": f"c{number}", "features": features_of(number)}
        sent.append({"menu": order, "ranking": [[name] for name in order], "context": context})
    board = new_board(bench, ITEMS, unit=unit, outcomes="binary")
    cast(bench, board, sent)
    snapshot = bench.refit(board.slug)
    for estimand in ("borda", "bt"):
        found = table(bench, snapshot, estimand)
        error = np.sqrt(np.diag(np.frombuffer(found.covariance).reshape(4, 4)))
        assert np.abs((np.array(found.value) - truth(estimand)) / error).max() < 3.5
        # Each of 1,500 rows has three pairs of the six: as good as 750 rows of all pairs, which depend on one another.
        assert 0.005 < error.max() < 0.1


def lines(bench: Bench, board: Board) -> list[dict[str, Any]]:
    with bench.work() as work:
        return [orjson.loads(line) for line in influence(work, board, RankingQuery(estimand="borda"))]


@pytest.mark.parametrize(
    "fields", [{}, {"unit": "context"}, {"cluster": "voter"}, {"unit": "context", "cluster": "both"}]
)
def test_influence_lines_name_a_ranking_once_and_give_the_error(bench: Bench, fields: dict[str, Any]) -> None:
    board = new_board(bench, ITEMS, **fields)
    cast(bench, board, [vote | {"voter": f"v{at % 9}"} for at, vote in enumerate(rankings(90, seed=7))])
    found = table(bench, bench.refit(board.slug), "borda")
    told = lines(bench, board)
    psi = np.array([[line["psi"][item] for item in found.items] for line in told])
    assert psi.mean(axis=0) == pytest.approx(found.value, abs=1e-9)
    assert all(len(set(line["votes"])) == len(line["votes"]) for line in told)
    assert len({vote for line in told for vote in line["votes"]}) == 90
    if not fields:
        off = psi - psi.mean(axis=0)
        error = np.diag(np.frombuffer(found.covariance).reshape(4, 4))
        assert (off**2).sum(axis=0) / len(psi) ** 2 == pytest.approx(error, rel=1e-9)


@pytest.mark.parametrize(("unit", "rows"), [("battle", 80), ("context", 100)])
def test_an_excluded_ranking_goes_as_a_vote_does(bench: Bench, unit: str, rows: int) -> None:
    board = new_board(bench, ITEMS, unit=unit)
    sent = [vote | {"voter": "bad" if at < 20 else f"v{at}"} for at, vote in enumerate(rankings(100, seed=8))]
    cast(bench, board, sent)
    with bench.work() as work:
        exclusions.add(work, board, ExclusionDraft(reason="bot", voter="bad"))
    summary = bench.refit(board.slug).summary
    assert (summary["votes"], summary["votes_excluded"], summary["rows"]) == (80, {"bot": 20}, rows)
    assert summary["rankings"] == 80


def test_a_superseded_ranking_leaves_no_trace(bench: Bench) -> None:
    first, second = (rankings(60, seed=seed) for seed in (9, 9))
    for vote in second:
        vote["ranking"] = vote["ranking"][::-1]
    scores = []
    for sent in ([*first, *second], second):
        board = new_board(bench, ITEMS, votes={"revotes": True})
        for vote in sent:
            cast(bench, board, [vote | {"voter": "v"}])
        snapshot = bench.refit(board.slug)
        assert snapshot.summary["votes"] == 60
        scores.append(table(bench, snapshot, "borda").value)
    assert scores[0] == pytest.approx(scores[1], abs=1e-12)


def test_a_board_of_logged_propensities_leaves_rankings_out_and_says_so(bench: Bench) -> None:
    board, twin = (new_board(bench, ITEMS, propensity="logged") for _ in range(2))
    for each in (board, twin):
        cast(bench, each, ballots(ITEMS, 120, seed=10))
    cast(bench, board, [vote | {"propensity": 0.25} for vote in rankings(30, seed=11)])
    one, other = bench.refit(board.slug), bench.refit(twin.slug)
    assert table(bench, one, "bt").value == table(bench, other, "bt").value
    assert (one.summary["rankings"], one.summary["rankings_left_out"], one.summary["votes"]) == (0, 30, 120)
    inputs = gathered(bench, board)
    assert inputs.rankings is not None
    assert np.isfinite(inputs.rankings.propensity).all()


@pytest.mark.parametrize("unit", ["battle", "context"])
def test_a_ranking_after_a_refit_waits_for_the_next(bench: Bench, unit: str) -> None:
    board = new_board(bench, ITEMS, unit=unit)
    cast(bench, board, ballots(ITEMS, 200, seed=12, contexts=100))
    snapshot = bench.refit(board.slug)
    assert snapshot.summary["refits_only"] is None
    cast(bench, board, [vote | {"context": {"id": f"p{at}"}} for at, vote in enumerate(rankings(9, seed=13))])
    cast(bench, board, rankings(4, seed=14, contexts=False))
    cast(bench, board, [rankings(1, seed=15)[0] | {"context": {"id": "new"}}])
    Updater(bench.work, partial(lease, bench.engine, Lock.LIVE)).serve(board.id)
    with bench.work() as work:
        head, state = work.snapshots.head(board.id), work.live.find(snapshot.id)
        assert state is not None
        assert (head.pending, state.rows, state.document["reasons"]) == (14, 0, ["votes_wait"])
    assert bench.refit(board.slug).summary["votes"] == 214


def test_tiers_are_read_as_they_were_sent(bench: Bench) -> None:
    board = new_board(bench, ITEMS)
    cast(bench, board, [{"menu": ["dirac", "bell", "ada"], "ranking": [["bell"], ["dirac"]], "propensity": 0.5}])
    cast(bench, board, [{"menu": ["curie", "bell", "ada"], "ranking": [["curie", "bell", "ada"]], "voter": "v"}])
    found = gathered(bench, board).rankings
    assert found is not None
    assert found.tiers.tolist() == [[2, 0, -1, 1], [0, 0, 0, -1]]
    assert (found.propensity[0], bool(np.isnan(found.propensity[1])), int(found.voter[0])) == (0.5, True, 0)
    assert found.voter[1] != 0


def test_voters_are_not_judged_by_pairs_of_rankings(bench: Bench) -> None:
    board = new_board(bench, ITEMS)
    cast(bench, board, [vote | {"voter": "v"} for vote in rankings(60, seed=16, contexts=False)])
    snapshot = bench.refit(board.slug)
    with bench.work() as work:
        found = diagnostics(work, board, snapshot_id=snapshot.id)
    assert found["voters"]["judged"] == 0
    assert {section["status"] for section in found.values() if isinstance(section, dict) and "status" in section}
    assert snapshot.summary["votes"] == 60


def test_a_ranking_that_is_dropped_takes_all_of_its_pairs_along(bench: Bench) -> None:
    board, lasting = new_board(bench, ITEMS), new_board(bench, ITEMS, unit="context")
    for each in (board, lasting):
        cast(bench, each, rankings(90, seed=17))
    flip = bench.refit(board.slug).summary["votes_to_flip"]["borda"]
    ahead = [line["psi"][flip["leader"]] - line["psi"][flip["challenger"]] for line in lines(bench, board)]
    left = sum(ahead) - np.cumsum(sorted(ahead, reverse=True))
    assert flip["votes"] == int(np.argmax(left < 0)) + 1
    assert flip["share"] == pytest.approx(flip["votes"] / 90)
    assert bench.refit(lasting.slug).summary["votes_to_flip"]["borda"] is None


@pytest.mark.parametrize(
    ("outcomes", "undecided"),
    [
        ("arena", ["tie"]),
        ("quaternary", ["both_good"]),
        ("binary", ["left", "right"]),
        ([("l", 1, 0), ("none", 0, 0), ("r", 0, 2)], ["l", "r"]),
    ],
)
def test_a_pair_without_a_verdict_is_a_tie_or_half_for_either(
    bench: Bench, outcomes: Any, undecided: list[str]
) -> None:
    if not isinstance(outcomes, str):
        outcomes = [dict(zip(("name", "first", "second"), each, strict=True)) for each in outcomes]
    board = new_board(bench, ITEMS, outcomes=outcomes)
    cast(bench, board, [{"menu": ["ada", "bell", "curie"], "ranking": [["bell"], ["ada", "curie"]]}])
    votes, names = gathered(bench, board).votes, [category.name for category in board.config.categories]
    told: dict[tuple[int, ...], list[str]] = {}
    for left, right, outcome in zip(votes.left.tolist(), votes.right.tolist(), votes.outcome.tolist(), strict=True):
        better = {names[0]: ITEMS[left], names[-1 if len(names) == 3 else 1]: ITEMS[right]}
        pair = (min(left, right), max(left, right))
        told.setdefault(pair, []).append(names[outcome] if pair == (0, 2) else better[names[outcome]])
    assert told == {(0, 1): ["bell"], (1, 2): ["bell"], (0, 2): undecided}
    sides = {(left, right) for left, right in zip(votes.left, votes.right, strict=True) if 1 not in (left, right)}
    assert len(sides) == 1, "both halves are of one ordered pair"


@pytest.mark.parametrize(
    ("size", "fields"),
    [
        (1, {}),
        (3, {"unit": "context"}),
        (40, {"propensity": "estimated-lightgbm"}),
        (40, {"segments": ["lang"], "cluster": "both", "unit": "context"}),
        (40, {"outcomes": "quinary", "population": "fixed", "learner": "lightgbm"}),
    ],
)
def test_boards_of_any_kind_take_rankings(bench: Bench, size: int, fields: dict[str, Any]) -> None:
    board = new_board(bench, (*ITEMS, "extra"), **fields)
    sent = rankings(size, seed=18, of=4)
    for number, vote in enumerate(sent):
        vote["context"] = {"id": f"p{number // 2}", "features": features_of(number // 2)}
    cast(bench, board, [*sent, {"menu": ["extra", "ada"], "ranking": [["extra"]]}])
    with bench.work() as work:
        items.put(work, board, "extra", ItemDraft(active=False))
    snapshot = bench.refit(board.slug)
    assert (snapshot.summary["votes"], snapshot.summary["rankings"]) == (size + 1, size + 1)
    assert np.isfinite(table(bench, snapshot, "borda").value).all()
