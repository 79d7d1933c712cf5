"""Read what came in between two marks: the rows that it touches, as they were and as they are."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.db.marks import Marks
from app.db.models.snapshots import Snapshot
from app.db.packed import Columns
from app.db.unit_of_work import UnitOfWork
from app.domain.boards import Board
from app.services.live.judged import Judged
from app.services.live.touched import JUDGEMENTS, Touched
from app.services.refit.frozen import DRAWS, FrozenBoard
from app.services.refit.gathering import context_table, draw_table, offer_table, roster_of, vote_table
from app.services.refit.inputs import Inputs, OfferTable, Roster
from app.stats.types import Bools, Ints

NEVER = np.iinfo(np.int64).max


def basis_of(snapshot: Snapshot) -> Marks:
    """Up to where a refit read."""
    marks = snapshot.summary["marks"]
    return Marks(snapshot.watermark, marks["offers"], marks["rules"], datetime.fromisoformat(marks["moment"]))


@dataclass(frozen=True)
class Reader:
    """Reads one board against one refit.

    Parameters
    ----------
    work : the transaction.
    board, frozen : the board and what the refit left.
    basis : up to where the refit read.
    """

    work: UnitOfWork
    board: Board
    frozen: FrozenBoard
    basis: Marks

    def touched(self, before: Marks, now: Marks) -> Touched:
        """What came in after `before`, up to `now`."""
        fresh = self.work.gather.votes(self.board.id, now.votes, after=before.votes)
        # No refit with a ranking takes votes, so that all of them came since; they wait for the next one.
        ranked = self.work.gather.ranked_between(self.board.id, self.basis.votes, now.votes)
        judged = self._judged_between(before, now)
        if self.frozen.unit == "battle":
            touched = self._battles(fresh, before, now, judged=judged)
        else:
            touched = self._contexts(fresh, before, now, ranked=ranked, judged=judged)
        late = self.work.gather.ranked_between(self.board.id, before.votes, now.votes)
        if self._heard_others(before, now):
            touched = replace(touched, waits=(*touched.waits, JUDGEMENTS))
        return replace(touched, seen=touched.seen + late.size)

    def _heard_others(self, before: Marks, now: Marks) -> bool:
        """Whether judges that the refit did not hear judged anything."""
        return self.work.live.judged_by_others(self.board.id, before.moment, now.moment, judges=self.frozen.judges)

    def _judged_between(self, before: Marks, now: Marks) -> Ints:
        """Contexts newly judged by the judges that the refit heard."""
        judges = self.frozen.judges
        if not judges:
            return _nothing()
        return self.work.live.judged_between(self.board.id, before.moment, now.moment, judges=judges)

    def _battles(self, fresh: Columns, before: Marks, now: Marks, *, judged: Ints) -> Touched:
        """Every vote is a row of its own; what is new of its context changes one that came since the refit."""
        gather, board_id = self.work.gather, self.board.id
        again = gather.votes_of_contexts(board_id, judged, before.votes)
        since = again["ids"] > self.basis.votes
        again, kept = _take(again, since), not since.all()
        columns = _joined(again, fresh)
        excluded = self._excluded(columns)
        whole, newcomers = self._inputs(_take(columns, ~self._unfit(columns)), excluded)
        contexts = whole.contexts.ids[1:]
        known = np.unique(gather.votes_of_contexts(board_id, contexts, before.votes)["context"])
        heard = self._judgements(contexts, _nothing())
        old = replace(whole, votes=whole.votes.take(whole.votes.ids <= before.votes))
        old, new = heard.at(old, before.moment), heard.at(whole, now.moment)
        counts = int(fresh["ids"].size), int(np.isin(fresh["ids"], list(excluded)).sum())
        # Only draws have a number of an offer here.
        waits = _waits(draws=bool((fresh["offer"] > 0).any()), judgements=kept)
        rows = old if again["ids"].size else None, new, _nothing(), known
        return Touched(*rows, newcomers, *counts, self.basis.votes, _nothing(), waits)

    def _contexts(self, fresh: Columns, before: Marks, now: Marks, *, ranked: Ints, judged: Ints) -> Touched:
        """A vote changes the row of its context, and so does an offer without one; not of one that waits."""
        gather, board_id = self.work.gather, self.board.id
        touched = np.union1d(fresh["context"][fresh["context"] > 0], gather.offered_between(board_id, before, now))
        later = self._since(judged)
        touched = np.setdiff1d(np.union1d(touched, later), ranked)
        others = gather.votes_of_contexts(board_id, touched, now.votes)
        alone = _take(fresh, fresh["context"] == 0)
        columns = _joined(others, alone)
        excluded = self._excluded(columns)
        wrong = self._unfit(columns)
        unfit = _first(columns, wrong, touched)
        columns = _take(columns, ~wrong | (columns["context"] > 0))
        whole, newcomers = self._inputs(columns, excluded, contexts=touched)
        settled = self._settled(whole)
        refitted = self._refitted(columns, whole.offers, settled, touched)
        heard = self._judgements(touched, refitted)
        old, new = (
            heard.at(self._at(whole, marks, unfit, settled=settled, refitted=refitted), marks.moment)
            for marks in (before, now)
        )
        late = int(np.isin(fresh["ids"], list(excluded)).sum())
        counts, rows = (int(fresh["ids"].size), late), whole.offers.ids[settled]
        draws = self.frozen.answers is None and bool(whole.offers.drawn.any())
        waits = _waits(draws=draws, judgements=later.size < judged.size)
        return Touched(old, new, refitted, refitted, newcomers, *counts, self.basis.votes, rows, waits)

    def _since(self, judged: Ints) -> Ints:
        """Those of the contexts that may have come since the refit; rows of others keep what it heard."""
        gather, basis = self.work.gather, self.basis
        judged = np.setdiff1d(judged, gather.votes_of_contexts(self.board.id, judged, basis.votes)["context"])
        # Where pairs were drawn, the refit left out what was too young.
        offered = gather.offered_by(judged, basis.moment) if self.frozen.answers is None else _nothing()
        return np.setdiff1d(judged, offered)

    def _judgements(self, contexts: Ints, refitted: Ints) -> Judged:
        basis = self.basis.moment
        return Judged.read(self.work, self.board, self.frozen, contexts, basis=basis, refitted=refitted)

    def _at(self, whole: Inputs, marks: Marks, unfit: Ints, *, settled: Bools, refitted: Ints) -> Inputs:
        """The rows at a mark; votes from the first unfit one of their context on wait for the refit.

        A context without a row at the refit waits whole where its first vote does: it is no context without a vote.
        Nor is an offer that came since without one where all its votes wait.
        """
        contexts, votes = whole.contexts, whole.votes.take(whole.votes.ids <= marks.votes)
        fit = (votes.ids < unfit[np.searchsorted(contexts.ids, votes.context)]) | (votes.context == 0)
        late = np.setdiff1d(votes.offer[~fit], votes.offer[fit])
        votes = votes.take(fit)
        offered = self.work.gather.offered_by(contexts.ids[1:], marks.moment)
        waiting = (unfit <= marks.votes) & ~np.isin(contexts.ids, refitted)
        there = np.isin(contexts.ids, votes.context) | (np.isin(contexts.ids, offered) & ~waiting)
        made, hidden = self._made(whole.offers, marks, settled)
        others = np.concatenate([whole.offers.context[made], votes.context])
        there &= ~np.isin(contexts.ids, np.setdiff1d(whole.offers.context[hidden], others))
        there[0] = True
        kept = contexts.take(there)
        made &= np.isin(whole.offers.context, kept.ids) & (settled | ~np.isin(whole.offers.ids, late))
        return replace(whole, votes=votes, contexts=kept, offers=whole.offers.take(made))

    def _made(self, offers: OfferTable, marks: Marks, settled: Bools) -> tuple[Bools, Bools]:
        """(o,) offers that are there at a mark, and those that are known but no rows yet.

        That is draws that were too young at the refit, until they are read; and all, where it knew of none.
        """
        there = settled | (offers.ids <= marks.offers)
        hidden = ~there & (offers.ids <= self.basis.offers)
        if self.frozen.answers is None:
            hidden |= there & ~settled & offers.drawn
        return there & ~hidden, hidden

    def _settled(self, whole: Inputs) -> Bools:
        """(o,) offers that the refit had among its rows."""
        offers, answers = whole.offers, self.frozen.answers
        settled = offers.ids <= self.basis.offers
        if answers is not None:
            known = whole.votes.take(whole.votes.ids <= self.basis.votes)
            settled &= ~answers.too_young(offers, known)
        return settled

    def _refitted(self, columns: Columns, offers: OfferTable, settled: Bools, touched: Ints) -> Ints:
        """Contexts with a row of the refit."""
        voted = columns["context"][columns["ids"] <= self.basis.votes]
        young = offers.context[~settled & (offers.ids <= self.basis.offers)]
        offered = self.work.gather.offered_by(touched, self.basis.moment)
        offered = offered[~np.isin(offered, np.setdiff1d(young, offers.context[settled]))]
        return np.union1d(voted[voted > 0], offered)

    def _unfit(self, columns: Columns) -> Bools:
        """(m,) votes since the refit that take another one's place, lack what others have, or answer unknown draws."""
        since = columns["ids"] > self.basis.votes
        draws = self.frozen.answers is None
        unfit = np.isin(columns["ids"], list(self.work.live.revised(columns["ids"][since].tolist(), draws=draws)))
        if self.frozen.kind == "logged":
            unfit |= ~np.isfinite(columns["propensity"])
        return unfit & since

    def _excluded(self, columns: Columns) -> dict[int, str]:
        rules, as_of = self.basis.rules, self.basis.moment
        return self.work.gather.excluded_among(self.board.id, columns["ids"], rules=rules, as_of=as_of)

    def _inputs(
        self, columns: Columns, excluded: dict[int, str], *, contexts: Ints | None = None
    ) -> tuple[Inputs, Bools]:
        """Inputs of these votes, with the refit's items as the active ones; and which items are new since."""
        gather, board_id = self.work.gather, self.board.id
        roster, newcomers = self._roster()
        there = set(columns["ids"].tolist())
        known = {number: reason for number, reason in excluded.items() if number in there}
        votes, reasons = vote_table(columns, known, roster)
        asked = np.unique(votes.context) if contexts is None else contexts
        table = context_table(gather.contexts(board_id, asked, offered=None), self.board.config)
        if contexts is None:
            return Inputs(votes, reasons, table, _no_offers(), roster), newcomers
        offers = offer_table(gather.offers_of_contexts(board_id, contexts, int(NEVER)))
        drawn = offers.ids[offers.drawn] if self.frozen.answers is not None else _nothing()
        draws = draw_table(gather.draws_of_offers(board_id, drawn), roster) if drawn.size else None
        return Inputs(votes, reasons, table, offers, roster, draws=draws), newcomers

    def _roster(self) -> tuple[Roster, Bools]:
        roster = roster_of(self.work.gather, self.board.id)
        scored = np.isin(roster.names, self.frozen.items)
        return replace(roster, active=scored), roster.active & ~scored


def _first(columns: Columns, unfit: Bools, touched: Ints) -> Ints:
    """(contexts + 1,) number of the first vote that cannot be scored, by context after none."""
    first = np.full(touched.size + 1, NEVER)
    unfit = unfit & (columns["context"] > 0)
    np.minimum.at(first, np.searchsorted(touched, columns["context"][unfit]) + 1, columns["ids"][unfit])
    return first


def _waits(*, draws: bool, judgements: bool) -> tuple[str, ...]:
    return tuple(name for name, holds in {DRAWS: draws, JUDGEMENTS: judgements}.items() if holds)


def _take(columns: Columns, index: Bools) -> Columns:
    return {name: values[index] for name, values in columns.items()}


def _joined(first: Columns, second: Columns) -> Columns:
    """Both, by number."""
    columns = {name: np.concatenate([first[name], second[name]]) for name in first}
    order: NDArray[Any] = np.argsort(columns["ids"], kind="stable")
    return {name: values[order] for name, values in columns.items()}


def _nothing() -> Ints:
    return np.zeros(0, dtype=np.int64)


def _no_offers() -> OfferTable:
    nothing = _nothing()
    return OfferTable(nothing, nothing, nothing, nothing, np.zeros(0, dtype=np.bool_))
