"""A board that is looked at again and again while votes come in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from app.experiments.boards import Board, board, cross_fit, oracle
from app.experiments.coverage.bars import Bar, never_missing
from app.experiments.coverage.bars import below as covers_less
from app.experiments.coverage.case import ESTIMANDS, Results, Truths, truths_of
from app.experiments.coverage.measure import measured
from app.stats.debias import Clustering, CrossFit, Scores, estimate
from app.stats.inference import IntervalKind
from app.stats.simulate import PAPER, Generator

UNIT = Clustering(unit="context")
FIRST, STEP = 100, 50
# A refit is due once the rows since the last one are half of those that it knew.
GROWTH = 1.5
KINDS: Mapping[str, IntervalKind] = {"anytime": "anytime", "fixed": "bonferroni"}


@dataclass(frozen=True)
class Watched:
    """Every 50 offers somebody looks; between refits new rows are scored by the models that there are."""

    learner: str
    generator: Generator = PAPER
    n: int = 2000
    setting: str = "anytime"
    name: str = "every 50 offers"

    @property
    def rules(self) -> Mapping[str, Bar]:
        return {"anytime": Bar(limit=never_missing, ideal=False), "fixed": covers_less(0.88)}

    @property
    def estimands(self) -> Sequence[str]:
        return [each.name for each in ESTIMANDS]

    def truths(self) -> Truths:
        return truths_of(self.generator)

    def replicate(self, truths: Truths, seed: int) -> Results:
        whole = board(self.generator, self.generator.draw(self.n, seed=seed), seed=seed, clustering=UNIT)
        best = _scores(whole, oracle(whole, self.generator.probabilities))
        return ever_missed(_judged(_scores(seen, mu), best, truths) for seen, mu in self._looks(whole))

    def _looks(self, whole: Board) -> Iterator[tuple[Board, CrossFit]]:
        """The board at each look, with the models of its last refit."""
        due = 0.0
        for n_rows in range(FIRST, self.n + 1, STEP):
            seen = whole.up_to(n_rows)
            if n_rows >= due:
                mu, due = cross_fit(seen, self.learner), GROWTH * n_rows
            yield seen, mu


def _scores(seen: Board, mu: CrossFit) -> dict[str, Scores]:
    return estimate(seen.sample, mu, ESTIMANDS, clustering=UNIT)


def _judged(scores: dict[str, Scores], best: dict[str, Scores], truths: Truths) -> Results:
    """Each kind of interval at one look; the ideal is that of the whole board, so only the last look compares."""
    return {
        (rule, name): measured(each.every, best[name].every, truths[name], kind=kind)
        for rule, kind in KINDS.items()
        for name, each in scores.items()
    }


def ever_missed(looks: Iterable[Results]) -> Results:
    """The last look, a hit only where no look missed."""
    missed: set[tuple[str, str]] = set()
    last: Results = {}
    for last in looks:
        missed |= {place for place, result in last.items() if not result.hit}
    return {place: replace(result, hit=place not in missed) for place, result in last.items()}


def anytime(learner: str) -> Iterator[Watched]:
    """A board that grows."""
    yield Watched(learner)
