"""Answers in the shape of `GET …/rankings`, for tests that need no server."""

from __future__ import annotations

from typing import Any

from app.web.choices import Combination, Menu

MENU = Menu(
    combinations=(
        Combination("bt", "debiased", "all", ""),
        Combination("bt", "debiased", "observed", ""),
        Combination("bt", "debiased", "all", "language:de"),
        Combination("bt", "plugin", "all", ""),
        Combination("bt", "restricted", "observed", ""),
        Combination("bt", "classical", "observed", ""),
        Combination("bt", "contextual-bt", "observed", ""),
        Combination("borda", "debiased", "all", ""),
    ),
    intervals=("simultaneous", "marginal"),
    elo=frozenset({"bt"}),
)


def standing(item: str, **more: Any) -> dict[str, Any]:
    """One row with every number there."""
    numbers = {"score": 0.5, "standard_error": 0.1, "interval": [0.3, 0.7], "probability_best": 0.4}
    counts = {"rank": 1, "rank_interval": [1, 2], "votes": 40, "effective_votes": 38.6, "unsupported": 0.0}
    return {
        "item": item,
        "title": item.title(),
        "organisation": "",
        "url": "",
        "status": "ok",
        **numbers,
        **counts,
    } | more


def unknown(item: str, status: str) -> dict[str, Any]:
    """One row of which the votes determine nothing."""
    names = ("rank", "rank_interval", "score", "standard_error", "interval", "probability_best", "effective_votes")
    return standing(item, status=status, unsupported=None, **dict.fromkeys(names))


def ranking(*rows: dict[str, Any], **more: Any) -> dict[str, Any]:
    """The answer around the rows."""
    head = {"board": "chat", "status": "ok", "pairs": "all", "snapshot": "s1", "computed_at": "2026-11-30T12:00:00Z"}
    counts = {"votes": 3000, "votes_pending": 7, "votes_excluded": {}, "votes_to_flip": None}
    return {**head, **counts, "rankings": list(rows), "retired": []} | more


def pending_diagnostics() -> dict[str, Any]:
    """The answer of `GET …/diagnostics` before the first snapshot."""
    sections = ("balance", "overlap", "support", "learner", "position")
    more = ("intransitivity", "sensitivity", "outcomes", "voters", "drift")
    return {"board": "chat", "status": "pending", **dict.fromkeys((*sections, *more, "snapshot", "computed_at"))}


def mixture(segment: str | None, distribution: dict[str, float] | None) -> dict[str, Any]:
    """One row of `GET …/equilibrium/segments`."""
    if distribution is None:
        return {"segment": segment, "status": "pending", "votes": 0, "distribution": None, "exploitability": None}
    known = {"distribution": distribution, "exploitability": 0.021}
    return {"segment": segment, "status": "ok", "votes": 1234, **known}


def past() -> dict[str, Any]:
    """The answer of `GET …/rankings/history` with three snapshots; one item came in between."""
    moments = ("2026-11-28T12:00:00Z", "2026-11-29T12:00:00Z", "2026-11-30T12:00:00+00:00")
    return {
        "board": "chat",
        "snapshots": 9,
        "points": [{"snapshot": f"s{at}", "computed_at": moment} for at, moment in enumerate(moments)],
        "items": [
            course("aurora", (0.2, 0.5, 0.9), rank=(2, 1, 1), beyond=True),
            course("basalt", (0.8, 0.8, 0.8), rank=(1, 2, 2), beyond=False),
            course("cinder", (None, -1.0, -1.7), rank=(None, 3, 3), beyond=None),
        ],
    }


def course(
    item: str, scores: tuple[float | None, ...], *, rank: tuple[int | None, ...], beyond: bool | None
) -> dict[str, Any]:
    """One item of a history."""
    intervals = [None if score is None else [score - 0.2, score + 0.2] for score in scores]
    errors = [None if score is None else 0.1 for score in scores]
    row = {"item": item, "score": list(scores), "standard_error": errors, "interval": intervals, "rank": list(rank)}
    return row | {"changed_beyond_noise": beyond, "steps_beyond_noise": [None, *[beyond] * (len(scores) - 1)]}
