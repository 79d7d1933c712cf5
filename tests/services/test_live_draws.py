"""Pairs drawn here, between refits: their answers add what a recomputation with the refit's own models gives."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import count, product
from threading import Thread
from typing import Any

import numpy as np
import pytest
from sqlalchemy import Engine

from app.db.locks import Lock, lease
from app.db.models.snapshots import Snapshot
from app.domain.exclusions import ExclusionDraft
from app.domain.items import ItemDraft
from app.services import exclusions, items
from app.services.acquire import run as acquire
from app.services.live import run
from app.services.live.run import Updater
from app.services.live.scoring import Refitted
from app.services.loaded.shelf import Shelf
from app.services.rankings.opened import open_snapshot
from app.services.refit.features import covariates_of, levels_of
from app.services.refit.fitting import FoldModels
from app.services.refit.frame import Frame, frame_of
from app.services.refit.inputs import Inputs
from app.services.refit.response import Responses
from app.services.refit.segments import Segments
from app.services.refit.storage import Stored
from app.stats.debias import thinning
from app.stats.debias.folds import mix
from app.stats.debias.one_step import Target
from app.stats.debias.segments import segment
from tests.refitting import ITEMS, Bench, ballots, cast, new_board
from tests.services.annotating import Row, Tool
from tests.services.thinned import Known, content_of, parts_of, stretched


@pytest.fixture(scope="module")
def bench(database: Engine) -> Bench:
    return Bench(database)


@pytest.fixture(scope="module")
def shelf(bench: Bench) -> Iterator[Shelf]:
    made = Shelf(bench.work)
    yield made
    made.close()


@pytest.fixture(autouse=True)
def seeded(monkeypatch: pytest.MonkeyPatch) -> None:
    seeds = count(7)
    monkeypatch.setattr(acquire, "generator", lambda: np.random.default_rng(next(seeds)))


def updater(bench: Bench) -> Updater:
    return Updater(bench.work, partial(lease, bench.engine, Lock.LIVE))


def numbers(document: dict[str, Any], field: str) -> list[float]:
    return [row[field] for row in sorted(document["rankings"], key=lambda row: row["item"]) if row["rank"]]


@dataclass
class Recount:
    """All rows of a board, scored anew with what a refit left; draws counted one by one.

    Parameters
    ----------
    tool : on the board.
    snapshot : the refit.
    before : what the refit read.
    levels : segments, '' is the whole board.
    thinned : whether the refit averaged over a draw of rows.
    """

    tool: Tool
    snapshot: Snapshot
    before: Inputs
    levels: Sequence[str] = ("",)
    thinned: bool = False

    def agree(self) -> None:
        """Live answers say the same."""
        for level, estimand in product(self.levels, ("borda", "bt", "rc")):
            answer = self.tool.read(estimand=estimand, segment=level or None)
            value, error, rows = self.scores(estimand, level)
            assert answer["live"]["included"]
            assert (answer["rows"], answer["contexts"]) == (rows, rows)
            assert numbers(answer, "score") == pytest.approx(value, abs=1e-9)
            assert numbers(answer, "standard_error") == pytest.approx(error, abs=1e-9)

    def scores(self, estimand: str, level: str = "") -> tuple[list[float], list[float], int]:
        """Scores, their errors, and the number of rows."""
        work = self.tool.bench.work
        inputs = self.tool.inputs()
        with work() as opened_work:
            refitted = Refitted.open(opened_work, self.tool.board, self.snapshot)
            frozen = refitted.segment(opened_work, self.snapshot, level)
            opened = open_snapshot(opened_work, self.snapshot)
        known = np.isin(inputs.roster.names, refitted.board.items)
        inputs = replace(inputs, roster=replace(inputs.roster, active=known))
        # Without assignments no offer is too young, and no answer is worth more than itself.
        frame = frame_of(replace(inputs, draws=None), self.tool.board.config)
        was = opened.stored.frame
        earlier = np.isin(frame.context_id, was.context_id[was.context_id > 0])
        sample, row = frame.sample, frame.sample.votes.row
        fold, alone = sample.fold.copy(), (frame.vote_id > self.snapshot.watermark) & (frame.context_id[row] == 0)
        fold[row[alone]] = refitted.board.spread.fold(mix(frame.vote_id[alone]))
        votes = replace(sample.votes, propensity=self._propensities(frame, was, inputs))
        sample = frozen.nuisances.view(replace(sample, votes=votes, fold=fold), refitted=earlier)
        chosen = np.ones(sample.n_rows, dtype=np.bool_)
        if level:
            stored = Stored(
                frame, covariates_of(inputs, self.tool.board.config)[0], levels_of(inputs, self.tool.board.config)
            )
            chosen = Segments(stored).rows(level)
        heard = self._heard(frame, inputs, chosen, was, opened.stored, level)
        mu = FoldModels(opened.models.models, refitted.covariates(inputs.contexts.features))
        part = segment(sample, chosen, propensity=sample.votes.propensity)
        target = Target(refitted.estimands[estimand], frozen.every)
        value, correction = parts_of(part, mu, target)
        if self.thinned:
            with work() as opened_work:
                known = Known.of(opened_work, self.snapshot, opened.stored, estimand, level)
            times = known.of_rows(frame.context_id[chosen], earlier[chosen], content_of(inputs, frame)[chosen])
            value, correction = stretched(known, (value, correction), times, target)
        psi = value + part.n_rows / heard * correction
        error = np.sqrt(psi.var(axis=0) / len(psi))
        return psi.mean(axis=0).tolist(), error.tolist(), part.n_rows

    @property
    def factors(self) -> Any:
        rates = Responses(self.before)._rates
        return np.minimum(rates.answered[-1] * rates.pair, 1.0)

    @cached_property
    def settled(self) -> set[int]:
        return {*Responses(self.before).without_too_young().offers.ids.tolist()}

    def _cells(self, inputs: Inputs) -> set[tuple[int, int, int]]:
        votes = inputs.votes
        names = np.array(inputs.roster.names)
        return {*zip(votes.offer.tolist(), names[votes.left].tolist(), names[votes.right].tolist(), strict=True)}

    def _factor(self, left: str, right: str) -> float:
        names = self.before.roster.names
        return float(self.factors[names.index(left), names.index(right)])

    def _propensities(self, frame: Frame, was: Frame, inputs: Inputs) -> Any:
        """As logged, times what the refit took for the chance of an answer, or times the pair's factor since."""
        known = dict(zip(was.vote_id.tolist(), was.sample.votes.propensity.tolist(), strict=True))
        drawn = {*inputs.offers.ids[inputs.offers.drawn].tolist()}
        offer = dict(zip(inputs.votes.ids.tolist(), inputs.votes.offer.tolist(), strict=True))
        early, made = self._cells(self.before), []
        votes = frame.sample.votes
        for number, logged, left, right in zip(
            frame.vote_id.tolist(), votes.propensity, votes.left, votes.right, strict=True
        ):
            names = frame.items[left], frame.items[right]
            if number in known:
                made.append(known[number])
            elif offer[number] in drawn and (offer[number], *names) not in early:
                made.append(logged * self._factor(*names))
            else:
                assert offer[number] not in drawn
                made.append(logged)
        return np.array(made)

    def _heard(self, frame: Frame, inputs: Inputs, chosen: Any, was: Frame, stored: Stored, level: str) -> float:
        """Rows that corrections stand for."""
        names, settled = inputs.roster.names, self.settled
        early, cells = self._cells(self.before), self._cells(inputs)
        known = {names[at] for at in np.flatnonzero(inputs.roster.active)}
        pairs = defaultdict(set)
        for offer, left, right in zip(inputs.draws.offer.tolist(), inputs.draws.left, inputs.draws.right, strict=True):
            if {names[left], names[right]} <= known:
                pairs[offer].add((names[left], names[right]))
        row_of = {context: row for row, context in enumerate(frame.context_id.tolist()) if context}
        offers_of = Counter(frame.exposure.row.tolist())
        total = Counter()
        for offer, context, drawn in zip(
            inputs.offers.ids.tolist(), inputs.offers.context.tolist(), inputs.offers.drawn, strict=True
        ):
            row = row_of[context]
            if not drawn or not chosen[row]:
                continue
            share = 1 / offers_of[row]
            answers = sum(1 / self._factor(*pair) for pair in pairs[offer] if (offer, *pair) in cells - early)
            if offer in settled:
                total["late"] += share * answers
            else:
                total["offers"] += share
                total["pairs"] += share * len(pairs[offer])
                total["answers"] += share * answers
        share = total["answers"] / total["pairs"] if total["pairs"] else 1.0
        return float(chosen.sum()) - total["offers"] * (1 - share) + total["late"] * self._per_pair(was, stored, level)

    def _per_pair(self, was: Frame, stored: Stored, level: str) -> float:
        """Offers for each pair drawn, at the refit."""
        there = Responses(self.before).without_too_young()
        inside = Segments(stored).rows(level) if level else np.ones(len(was.context_id), dtype=np.bool_)
        row_of = {context: row for row, context in enumerate(was.context_id.tolist()) if context}
        offers_of = Counter(was.exposure.row.tolist())
        share = {
            offer: 1 / offers_of[row_of[context]]
            for offer, context, drawn in zip(
                there.offers.ids.tolist(), there.offers.context.tolist(), there.offers.drawn, strict=True
            )
            if drawn and inside[row_of[context]]
        }
        draws = self.before.draws
        pairs = {*zip(draws.offer.tolist(), draws.left.tolist(), draws.right.tolist(), strict=True)}
        return sum(share.values()) / sum(share.get(offer, 0.0) for offer, _, _ in pairs)


CASES: list[dict[str, Any]] = [
    {"acquisition": {"mode": "one", "overlap": 2}},
    {"acquisition": {"mode": "bernoulli", "budget": 1.5}, "segments": ["lang"]},
]


def half_answered(tool: Tool) -> list[Row]:
    """Votes that bring their propensities, beside draws of the last hour; what is still out.

    Later draws, and those of one item, are answered less often; one answer is of an excluded voter.
    """
    cast(tool.bench, tool.board, ballots(ITEMS, 90, seed=1, contexts=60))
    drawn = [row for start in range(100, 300, 20) for row in tool.draw(range(start, start + 20))]
    tool.age()
    chance = np.linspace(0.95, 0.3, len(drawn)) * [
        0.2 if "dirac" in (row["left"], row["right"]) else 1.0 for row in drawn
    ]
    heard = tool.rng.random(len(drawn)) < chance
    tool.answer([row for row, answered in zip(drawn, heard, strict=True) if answered])
    with tool.bench.work() as work:
        exclusions.add(work, tool.board, ExclusionDraft(reason="bot", voter="v5-p105"))
    return [row for row, answered in zip(drawn, heard, strict=True) if not answered]


def leased_again(tool: Tool) -> list[Row]:
    """Leases of the pool run out and are given to somebody else, who answers some of them; what he has left."""
    tool.register(range(500, 530), offered=False)
    pool = tool.ask(count=16, annotator="anna")
    tool.answer(pool[:4], voter="anna")
    tool.lapse(pool[4:10])
    again = tool.ask(count=24, annotator="ben")
    assert {row["context"] for row in again} & {row["context"] for row in pool}
    tool.answer(again[::2], voter="ben")
    return again[1::2]


@pytest.mark.parametrize(("fields", "drawn"), [(CASES[0], None), (CASES[1], None), (CASES[1], 50)])
def test_draws_add_what_a_recomputation_gives(
    bench: Bench, shelf: Shelf, fields: dict[str, Any], drawn: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the refit drew rows to average over."""
    if drawn is not None:
        monkeypatch.setattr(thinning, "LEAST_ROWS", drawn)
        monkeypatch.setattr(thinning, "PAIRS", 0)
    board = new_board(bench, unit="context", **fields)
    tool, update = Tool(bench, shelf, board, np.random.default_rng(3)), updater(bench)
    late, young = half_answered(tool), tool.draw([*range(300, 312), 100, 5])
    before = tool.inputs()
    snapshot = bench.refit(board.slug)
    levels = ("", "lang:de") if "segments" in fields else ("",)
    recount = Recount(tool, snapshot, before, levels, drawn is not None)
    assert len(recount.settled) < before.offers.ids.size
    assert recount.factors.min() < 0.7 * recount.factors.max()

    def agree() -> None:
        update.serve(board.id)
        recount.agree()

    tool.answer(late[::3])
    agree()
    # Those that were too young for a row, new draws, one on contexts that had a row, and votes that bring their own.
    tool.answer(young[::2])
    fresh = tool.draw([*range(400, 430), 101, 3, 301])
    tool.answer(fresh[::2])
    cast(bench, board, ballots(ITEMS, 15, seed=5, contexts=110))
    monkeypatch.setattr(run, "AT_ONCE", 7)
    agree()
    left = leased_again(tool)
    with bench.work() as work:
        items.put(work, board, "euler", ItemDraft())
    tool.answer([*tool.draw(range(600, 620)), *fresh[1::4]])
    agree()
    answer = tool.read()
    assert (answer["votes_pending"], list(answer["live"]["reasons"])) == (0, ["active_set"])
    # Draws that nobody has answered yet come in with the next vote.
    tool.draw(range(700, 720))
    tool.answer(left[:1], voter="ben")
    agree()


def test_annotators_and_updaters_side_by_side_count_every_draw_once(bench: Bench, shelf: Shelf) -> None:
    board = new_board(bench, unit="context", acquisition={"mode": "bernoulli", "budget": 1.5})
    tool = Tool(bench, shelf, board, np.random.default_rng(4))
    for start in range(0, 200, 20):
        tool.answer(tool.draw(range(start, start + 20))[::2])
    open_draws = tool.draw(range(200, 220))
    before = tool.inputs()
    recount = Recount(tool, bench.refit(board.slug), before)

    def label(number: int) -> None:
        mine, update = Tool(bench, shelf, board, np.random.default_rng(number)), updater(bench)
        for part in range(4):
            rows = mine.draw(range(1000 * number + 8 * part, 1000 * number + 8 * part + 8))
            mine.answer(rows[part % 2 :: 2], voter=f"a{number}")
            update.serve(board.id)
        mine.answer(open_draws[number::5], voter=f"a{number}")
        update.serve(board.id)

    threads = [Thread(target=label, args=(number,)) for number in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    updater(bench).serve(board.id)
    assert tool.read()["votes_pending"] == 0
    recount.agree()


def test_a_step_that_breaks_off_leaves_nothing_behind(
    bench: Bench, shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the sums are stored, before the marks say so."""
    board = new_board(bench, unit="context", acquisition={"mode": "one"})
    tool, update = Tool(bench, shelf, board, np.random.default_rng(5)), updater(bench)
    tool.answer(tool.draw(range(120))[::2])
    before = tool.inputs()
    recount = Recount(tool, bench.refit(board.slug), before)
    tool.answer(tool.draw(range(200, 220))[::2])

    def broken(*_: Any, **__: Any) -> None:
        raise ConnectionError

    with monkeypatch.context() as patched:
        patched.setattr(run, "_advance", broken)
        with pytest.raises(ConnectionError):
            update.serve(board.id)
    update.serve(board.id)
    recount.agree()


def test_the_first_draws_of_a_board_ask_for_a_refit(bench: Bench, shelf: Shelf) -> None:
    board, woken = new_board(bench, unit="context", acquisition={"mode": "one"}), []
    tool = Tool(bench, shelf, board, np.random.default_rng(6))
    update = Updater(bench.work, partial(lease, bench.engine, Lock.LIVE), wake=woken.append)
    cast(bench, board, ballots(ITEMS, 120, seed=8, contexts=60))
    bench.refit(board.slug)
    before = tool.read()
    tool.register(range(60, 70), offered=True)
    drawn = tool.draw([*range(40), *range(60, 110)])
    tool.answer(drawn[::2])
    update.serve(board.id)
    after = tool.read()
    assert (after["votes"], after["votes_pending"], after["rows"]) == (120, 45, before["rows"])
    assert numbers(after, "score") == pytest.approx(numbers(before, "score"), abs=1e-12)
    assert list(after["live"]["reasons"]) == ["draws", "votes_wait"]
    assert woken == [board.id]
    # From the refit on answers are live.
    bench.refit(board.slug)
    tool.answer(drawn[1::2])
    update.serve(board.id)
    final = tool.read()
    assert (final["votes"], final["votes_pending"], [*final["live"]["reasons"]]) == (210, 0, [])


def test_draws_ask_for_a_refit_as_they_are_answered(bench: Bench, shelf: Shelf) -> None:
    """Not as they are made: the next refit would make no rows of what nobody has answered."""
    board, woken = new_board(bench, unit="context", acquisition={"mode": "one"}), []
    tool = Tool(bench, shelf, board, np.random.default_rng(8))
    update = Updater(bench.work, partial(lease, bench.engine, Lock.LIVE), wake=woken.append)
    known = tool.draw(range(100))
    tool.answer(known[:90])
    bench.refit(board.slug)
    ahead = tool.draw(range(200, 300))
    tool.answer(known[90:95])
    update.serve(board.id)
    answer = tool.read()
    assert (answer["live"]["rows"], list(answer["live"]["reasons"]), woken) == (100, [], [])
    tool.answer(ahead[:60])
    update.serve(board.id)
    assert (list(tool.read()["live"]["reasons"]), woken) == (["many_rows"], [board.id])
