"""Votes between refits: what they add is what a recomputation with the refit's own models gives, once each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from threading import Thread
from typing import Any

import numpy as np
import pytest
from sqlalchemy import Engine

from app.cache.news import Event
from app.db.locks import Lock, lease
from app.db.models.snapshots import Snapshot
from app.domain.boards import Board
from app.domain.contexts import ContextDraft
from app.domain.exclusions import ExclusionDraft
from app.domain.items import ItemDraft
from app.services import contexts, exclusions, items
from app.services.live import run
from app.services.live.reading import Reader, Touched
from app.services.live.run import Updater
from app.services.live.scoring import Refitted
from app.services.rankings.opened import Opener, open_snapshot
from app.services.rankings.query import RankingQuery
from app.services.rankings.read import ranking
from app.services.refit.features import covariates_of, levels_of
from app.services.refit.fitting import FoldModels
from app.services.refit.frame import Frame, frame_of
from app.services.refit.frozen import FrozenSegment
from app.services.refit.gathering import gather
from app.services.refit.segments import Segments
from app.services.refit.storage import Stored
from app.stats.debias.clusters import Clustering
from app.stats.debias.folds import Hashes, mix
from app.stats.debias.one_step import Target, one_step
from app.stats.debias.segments import segment
from app.stats.types import Bools, Covariates, Floats, Ints, Sample
from tests.refitting import ITEMS, Bench, ballots, cast, features_of, new_board
from tests.services.thinned import content_of


@pytest.fixture(scope="module")
def bench(database: Engine) -> Bench:
    return Bench(database)


def updater(bench: Bench) -> Updater:
    return Updater(bench.work, partial(lease, bench.engine, Lock.LIVE))


def read(bench: Bench, board: Board, **fields: Any) -> dict[str, Any]:
    with bench.work() as work:
        head = work.snapshots.head(board.id)
        query = RankingQuery(**{"pairs": "all", **fields})
        document = ranking(work, board, query, Opener(), snapshot_id=head.snapshot_id)
        return document | {"votes_pending": head.waiting(live=document["live"]["included"])}


def scores(document: dict[str, Any], field: str = "score") -> list[float]:
    return [row[field] for row in sorted(document["rankings"], key=lambda row: row["item"]) if row["rank"]]


@dataclass(frozen=True)
class Rows:
    """All rows of a board or a segment as of now, the refit's own among them, with the refit's models and tables.

    Parameters
    ----------
    sample, mu : rows and models.
    context_id, content : (n,) database ids, and hashes of what rows are of.
    earlier : (n,) rows that the refit had.
    refitted, frozen : what it left.
    stored : its own rows.
    """

    sample: Sample
    mu: FoldModels
    context_id: Ints
    content: Hashes
    earlier: Bools
    refitted: Refitted
    frozen: FrozenSegment
    stored: Stored

    def target(self, estimand: str) -> Target:
        return Target(self.refitted.estimands[estimand], self.frozen.every)


Heard = Callable[[Frame, Bools], Floats]
"""Margins (n, K, K, q) in each row, told which rows (n,) the refit had."""


def recomputed(
    bench: Bench, board: Board, snapshot: Snapshot, estimand: str, level: str = "", *, heard: Heard | None = None
) -> Any:
    """All rows scored anew."""
    rows, clustering = (
        rows_of(bench, board, snapshot, level, heard=heard),
        Clustering(fixed=True, unit=board.config.unit),
    )
    return one_step(rows.sample, rows.mu, {"": rows.target(estimand)}, clustering=clustering)[""]


def rows_of(bench: Bench, board: Board, snapshot: Snapshot, level: str = "", *, heard: Heard | None = None) -> Rows:
    with bench.work() as work:
        marks = work.gather.marks(board.id)
    with bench.work() as work:
        inputs = gather(work.gather, board, marks)
        opened = open_snapshot(work, snapshot)
        refitted = Refitted.open(work, board, snapshot)
        frozen = refitted.segment(work, snapshot, level)
    known = np.isin(inputs.roster.names, refitted.board.items)
    inputs = replace(inputs, roster=replace(inputs.roster, active=known))
    frame = frame_of(inputs, board.config)
    sample = frame.sample
    if board.config.unit == "context":
        earlier = np.isin(frame.context_id, opened.stored.frame.context_id[opened.stored.frame.context_id > 0])
    else:
        earlier = np.isin(np.arange(sample.n_rows), sample.votes.row[frame.vote_id <= snapshot.watermark])
    documents = inputs.documents
    covariates = refitted.covariates(documents) if refitted.featuriser else Covariates(np.zeros((len(documents), 0)))
    if heard is not None:
        covariates = Covariates(covariates.x[sample.pattern], heard(frame, earlier))
        sample = replace(sample, pattern=np.arange(sample.n_rows))
    fold, row = sample.fold.copy(), sample.votes.row
    alone = (frame.vote_id > snapshot.watermark) & (frame.context_id[row] == 0)
    fold[row[alone]] = refitted.board.spread.fold(mix(frame.vote_id[alone]))
    sample = frozen.nuisances.view(replace(sample, fold=fold), refitted=earlier)
    context_id, content = frame.context_id, content_of(inputs, frame)
    if level:
        stored = Stored(frame, covariates_of(inputs, board.config)[0], levels_of(inputs, board.config))
        rows = Segments(stored).rows(level)
        sample = segment(sample, rows, propensity=sample.votes.propensity)
        earlier, context_id, content = earlier[rows], context_id[rows], content[rows]
    mu = FoldModels(opened.models.models, covariates)
    return Rows(sample, mu, context_id, content, earlier, refitted, frozen, opened.stored)


def live_ballots(size: int, *, seed: int, contexts: int | None, offers: bool) -> list[dict[str, Any]]:
    sent = ballots(ITEMS, size, seed=seed, contexts=contexts)
    for number, vote in enumerate(sent):
        if offers and number % 3 == 0:
            vote["offer"] = f"o{number % 7}"
    return sent


CASES: list[dict[str, Any]] = [
    {"population": "fixed"},
    {"population": "fixed", "propensity": "estimated", "segments": ["lang"]},
    {"unit": "context", "segments": ["lang"]},
    {"unit": "context", "propensity": "estimated"},
]


@pytest.mark.parametrize("fields", CASES)
def test_live_scores_are_those_of_a_recomputation(bench: Bench, fields: dict[str, Any]) -> None:
    board, of_contexts = new_board(bench, **fields), fields.get("unit") == "context"
    cast(bench, board, live_ballots(260, seed=1, contexts=120, offers=of_contexts))
    if of_contexts:
        register(bench, board, [f"p{n}" for n in range(100, 130)])
    snapshot = bench.refit(board.slug)
    update = updater(bench)
    # Known contexts and new ones, offers of both, contexts that nobody votes on, and an item that is new.
    cast(bench, board, live_ballots(40, seed=2, contexts=150, offers=of_contexts))
    update.serve(board.id)
    if of_contexts:
        register(bench, board, [f"p{n}" for n in range(140, 170)])
        update.serve(board.id)
    with bench.work() as work:
        items.put(work, board, "euler", ItemDraft())
    late = ballots((*ITEMS, "euler"), 50, seed=3, contexts=160)
    cast(bench, board, late)
    update.serve(board.id)
    cast(bench, board, live_ballots(20, seed=4, contexts=None, offers=False))
    update.serve(board.id)
    for level in ("", *(["lang:de"] if "segments" in fields else [])):
        for estimand in ("borda", "bt", "rc"):
            answer = read(bench, board, estimand=estimand, segment=level or None)
            expected = recomputed(bench, board, snapshot, estimand, level)
            assert answer["live"]["included"]
            assert answer["rows"] == expected.estimate.n_rows
            assert scores(answer) == pytest.approx(expected.estimate.value.tolist(), abs=1e-9)
            assert scores(answer, "standard_error") == pytest.approx(
                expected.estimate.standard_error.tolist(), abs=1e-9
            )
            plug_in = read(bench, board, estimand=estimand, estimator="plugin", segment=level or None)
            assert scores(plug_in) == pytest.approx(expected.plug_in.tolist(), abs=1e-9)
    whole = read(bench, board)
    newcomer = next(row for row in whole["rankings"] if row["item"] == "euler")
    assert newcomer["votes"] == sum("euler" in (vote["left"], vote["right"]) for vote in late)
    assert newcomer["status"] == "few_votes"
    assert newcomer["rank"] is None
    assert whole["votes_pending"] == 0
    assert whole["votes"] == 260 + 40 + 50 + 20
    assert "active_set" in whole["live"]["reasons"]


def test_a_flood_is_taken_in_by_bounded_steps(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Votes, offers that they name in another order than they come, and contexts that nobody votes on."""
    board, update, sizes = new_board(bench, unit="context"), updater(bench), []
    cast(bench, board, ballots(ITEMS, 120, seed=27, contexts=60))
    snapshot = bench.refit(board.slug)
    sent = [vote | {"offer": f"o{number}"} for number, vote in enumerate(ballots(ITEMS, 40, seed=28, contexts=3))]
    cast(bench, board, sent)
    register(bench, board, [f"p{n}" for n in range(200, 260)])
    touched = Reader.touched

    def watched(reader: Reader, *marks: Any) -> Touched:
        found = touched(reader, *marks)
        sizes.append((found.seen, len(found.now.contexts.ids) - 1))
        return found

    monkeypatch.setattr(Reader, "touched", watched)
    monkeypatch.setattr(run, "AT_ONCE", 8)
    update.serve(board.id)
    assert sum(seen for seen, _ in sizes) == 40
    assert max(seen for seen, _ in sizes) <= 8
    assert max(size for _, size in sizes) <= 3 * 8
    answer, expected = read(bench, board), recomputed(bench, board, snapshot, "bt")
    assert (answer["rows"], answer["votes_pending"]) == (expected.estimate.n_rows, 0)
    assert scores(answer) == pytest.approx(expected.estimate.value.tolist(), abs=1e-9)
    assert scores(answer, "standard_error") == pytest.approx(expected.estimate.standard_error.tolist(), abs=1e-9)


def register(bench: Bench, board: Board, names: Sequence[str]) -> None:
    drafts = [ContextDraft(id=name, features=features_of(int(name[1:])), offered=True) for name in names]
    with bench.work() as work:
        contexts.register(work, board, drafts)


def test_one_sided_votes_move_both_scores(bench: Bench) -> None:
    board = new_board(bench)
    cast(bench, board, ballots(ITEMS, 300, seed=5))
    snapshot = bench.refit(board.slug)
    before = read(bench, board, estimand="borda")
    one_sided = {"left": "dirac", "right": "ada", "outcome": "left", "propensity": 1 / 12}
    cast(bench, board, [one_sided] * 40)
    assert read(bench, board)["votes_pending"] == 40
    updater(bench).serve(board.id)
    after = read(bench, board, estimand="borda")
    moved = {row["item"]: row["score"] for row in after["rankings"]}
    known = {row["item"]: row["score"] for row in before["rankings"]}
    assert moved["dirac"] > known["dirac"] + 0.01
    assert moved["ada"] < known["ada"] - 0.01
    assert after["snapshot"] == before["snapshot"] == str(snapshot.id)
    assert (after["votes"], after["votes_pending"], after["live"]["votes"]) == (340, 0, 40)
    assert after["votes_through"] > before["votes_through"]
    expected = recomputed(bench, board, snapshot, "borda")
    assert scores(after) == pytest.approx(expected.estimate.value.tolist(), abs=1e-9)


def test_an_update_that_finds_nothing_is_no_news(bench: Bench) -> None:
    board = new_board(bench)
    cast(bench, board, ballots(ITEMS, 300, seed=5))
    bench.refit(board.slug)
    cast(bench, board, ballots(ITEMS, 3, seed=6))
    told: list[Event] = []

    class Told:
        def publish(self, board_id: int, event: Event, **data: Any) -> None:
            del board_id, data
            told.append(event)

    update = Updater(bench.work, partial(lease, bench.engine, Lock.LIVE), Told())
    update.serve(board.id)
    first, heard = read(bench, board)["live"], list(told)
    for _ in range(3):
        update.serve(board.id)
    assert read(bench, board)["live"] == first
    assert (heard, told) == (["rankings"], ["rankings"])
    cast(bench, board, ballots(ITEMS, 1, seed=7))
    update.serve(board.id)
    assert told == ["rankings"] * 2


def test_the_lead_that_live_votes_have_turned_is_not_counted_by_the_refit(bench: Bench) -> None:
    board = new_board(bench)
    cast(bench, board, ballots(ITEMS, 300, seed=5))
    bench.refit(board.slug)
    before = read(bench, board)
    leader, other = before["rankings"][0]["item"], before["rankings"][1]["item"]
    assert before["votes_to_flip"]["leader"] == leader
    cast(bench, board, [{"left": other, "right": leader, "outcome": "left", "propensity": 1 / 12}] * 60)
    updater(bench).serve(board.id)
    after = read(bench, board)
    assert after["rankings"][0]["item"] == other
    assert after["votes_to_flip"] is None


def test_updaters_side_by_side_count_every_vote_once(bench: Bench) -> None:
    board = new_board(bench, unit="context")
    cast(bench, board, ballots(ITEMS, 200, seed=6, contexts=100))
    snapshot = bench.refit(board.slug)

    def vote(seed: int) -> None:
        update = updater(bench)
        for part in range(5):
            cast(bench, board, ballots(ITEMS, 3, seed=seed * 10 + part, contexts=110))
            update.serve(board.id)

    threads = [Thread(target=vote, args=(seed,)) for seed in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    updater(bench).serve(board.id)
    answer, expected = read(bench, board), recomputed(bench, board, snapshot, "bt")
    assert answer["votes"] == 260
    assert scores(answer) == pytest.approx(expected.estimate.value.tolist(), abs=1e-9)


def test_what_is_no_sum_waits_and_is_said(bench: Bench) -> None:
    board = new_board(bench, votes={"revotes": True})
    sent = [vote | {"voter": f"v{n}"} for n, vote in enumerate(ballots(ITEMS, 120, seed=7, contexts=120))]
    cast(bench, board, sent)
    bench.refit(board.slug)
    before = read(bench, board)
    cast(bench, board, [sent[0] | {"outcome": "tie" if sent[0]["outcome"] != "tie" else "left"}])
    unlogged = {key: value for key, value in ballots(ITEMS, 1, seed=8)[0].items() if key != "propensity"}
    cast(bench, board, [unlogged])
    updater(bench).serve(board.id)
    after = read(bench, board)
    assert after["votes_pending"] == 2
    assert scores(after) == scores(before)
    assert list(after["live"]["reasons"]) == ["votes_wait"]
    with bench.work() as work:
        exclusions.add(work, board, ExclusionDraft(reason="bot", voter="v5"))
    with bench.work() as work:
        assert board.id in work.live.lagging()
    updater(bench).serve(board.id)
    assert list(read(bench, board)["live"]["reasons"]) == ["exclusions", "votes_wait"]
    with bench.work() as work:
        assert board.id not in work.live.lagging()
    # The next refit takes all of it in.
    bench.refit(board.slug)
    final = read(bench, board)
    assert (final["votes_pending"], final["votes"]) == (0, 120)


def test_votes_of_excluded_voters_do_not_count_live(bench: Bench) -> None:
    board = new_board(bench)
    cast(bench, board, [vote | {"voter": f"v{n % 9}"} for n, vote in enumerate(ballots(ITEMS, 150, seed=9))])
    with bench.work() as work:
        exclusions.add(work, board, ExclusionDraft(reason="bot", voter="v5"))
    bench.refit(board.slug)
    before = read(bench, board)
    cast(bench, board, [vote | {"voter": "v5"} for vote in ballots(ITEMS, 10, seed=10)])
    updater(bench).serve(board.id)
    after = read(bench, board)
    assert scores(after) == scores(before)
    assert (after["votes"], after["votes_pending"]) == (before["votes"], 0)


def test_a_refit_is_asked_for_before_live_rows_are_many(bench: Bench) -> None:
    board, woken = new_board(bench), []
    cast(bench, board, ballots(ITEMS, 100, seed=11))
    bench.refit(board.slug)
    update = Updater(bench.work, partial(lease, bench.engine, Lock.LIVE), wake=woken.append)
    cast(bench, board, ballots(ITEMS, 39, seed=12))
    update.serve(board.id)
    assert not woken
    cast(bench, board, ballots(ITEMS, 1, seed=13))
    update.serve(board.id)
    assert woken == [board.id]
    with bench.work() as work:
        assert work.jobs.pending(board.id) is not None


def test_a_new_snapshot_starts_where_the_votes_are(bench: Bench) -> None:
    board, update = new_board(bench), updater(bench)
    cast(bench, board, ballots(ITEMS, 100, seed=14))
    bench.refit(board.slug)

    def late(*_: Any) -> None:
        cast(bench, board, ballots(ITEMS, 7, seed=15))
        update.catch_up(*_)

    with bench.work() as work:
        job = work.jobs.request(board.id)
        work.commit()
    cast(bench, board, ballots(ITEMS, 5, seed=16))
    replace(bench.refitter, catch_up=late).serve(board.id)
    assert bench.job(job.id).state == "succeeded"
    answer = read(bench, board)
    assert (answer["votes"], answer["votes_pending"], answer["live"]["votes"]) == (112, 0, 7)


def test_a_board_of_other_rules_waits_for_its_refit(bench: Bench) -> None:
    board = new_board(bench, propensity="estimated-lightgbm")
    cast(bench, board, ballots(ITEMS, 100, seed=17, contexts=100))
    bench.refit(board.slug)
    cast(bench, board, ballots(ITEMS, 5, seed=18, contexts=100))
    updater(bench).serve(board.id)
    answer = read(bench, board)
    assert answer["live"]["included"] is False
    assert list(answer["live"]["reasons"]) == ["learned_propensities"]
    assert answer["votes_pending"] == 5


def on(number: int, vote: dict[str, Any]) -> dict[str, Any]:
    return vote | {"context": {"id": f"p{number}", "features": features_of(number)}}


def test_a_segment_without_errors_does_not_claim_to_be_live(bench: Bench) -> None:
    board = new_board(bench, cluster="voter", segments=["lang"])
    german, english = ballots(ITEMS, 120, seed=21), ballots(ITEMS, 120, seed=20, voters=30)
    # One voter is one cluster.
    cast(bench, board, [on(2 * n, vote | {"voter": "one"}) for n, vote in enumerate(german)])
    cast(bench, board, [on(2 * n + 1, vote) for n, vote in enumerate(english)])
    bench.refit(board.slug)
    before = read(bench, board, segment="lang:de")
    assert scores(before, "standard_error") == [None] * len(ITEMS)
    cast(bench, board, [on(0, ballots(ITEMS, 1, seed=22)[0])])
    updater(bench).serve(board.id)
    assert read(bench, board)["live"]["included"]
    for estimator in ("debiased", "plugin"):
        answer = read(bench, board, segment="lang:de", estimator=estimator)
        assert (answer["live"]["included"], list(answer["live"]["reasons"])) == (False, ["as_refitted"])
        assert answer["votes_pending"] == 1


def test_marks_taken_before_a_snapshot_caught_up_take_it_back_nowhere(bench: Bench) -> None:
    board, update = new_board(bench, unit="context"), updater(bench)
    cast(bench, board, ballots(ITEMS, 120, seed=23, contexts=60))
    with bench.work() as work:
        early = work.gather.marks(board.id)
    snapshot = bench.refit(board.slug)
    with bench.work() as work:
        update._step(work, board, snapshot, early)
        state = work.live.find(snapshot.id)
        assert state is not None
        assert state.moment > early.moment


def test_votes_that_wait_leave_the_rows_of_context_boards_alone(bench: Bench) -> None:
    board = new_board(bench, unit="context")
    cast(bench, board, [vote | {"offer": "first"} for vote in ballots(ITEMS, 120, seed=24, contexts=60)])
    bench.refit(board.slug)
    before = read(bench, board)
    on_known, alone = ballots(ITEMS, 40, seed=25, contexts=60), ballots(ITEMS, 3, seed=26)
    late = [*(vote | {"offer": "second"} for vote in on_known), *alone]
    cast(bench, board, [{name: vote[name] for name in vote if name != "propensity"} for vote in late])
    updater(bench).serve(board.id)
    after = read(bench, board)
    assert scores(after) == pytest.approx(scores(before), abs=1e-12)
    assert (after["rows"], after["votes_pending"]) == (before["rows"], 43)
    assert list(after["live"]["reasons"]) == ["votes_wait"]
