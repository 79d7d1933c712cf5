"""Kinds of boards by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType

from app.experiments.coverage.arrivals import late_joiner
from app.experiments.coverage.case import Case
from app.experiments.coverage.clusters import fixed_contexts, voters
from app.experiments.coverage.exclusions import exclusions
from app.experiments.coverage.leases import leases
from app.experiments.coverage.live import lives
from app.experiments.coverage.live_leases import live_leases
from app.experiments.coverage.plain import single_pair, table1
from app.experiments.coverage.sparse import sparse
from app.experiments.coverage.watched import anytime

SETTINGS: Mapping[str, Callable[[str], Iterable[Case]]] = MappingProxyType(
    {
        "table1": table1,
        "single-pair": single_pair,
        "voters": voters,
        "fixed-contexts": fixed_contexts,
        "late-joiner": late_joiner,
        "leases": leases,
        "live": lives,
        "live-leases": live_leases,
        "exclusions": exclusions,
        "anytime": anytime,
        "sparse": sparse,
    }
)
ALL = "all"


def cases(names: Sequence[str], learner: str, sizes: Sequence[int] = ()) -> Iterator[Case]:
    """The cases of some settings, in the order of the names.

    Parameters
    ----------
    names : keys of `SETTINGS`, or `all`.
    learner : name of the outcome learner.
    sizes : rows of Table 1's boards, the paper's where none are given.
    """
    for name in SETTINGS if ALL in names else dict.fromkeys(names):
        yield from table1(learner, sizes) if name == "table1" else SETTINGS[name](learner)
