"""A service whose next snapshot is at the test's command."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from fastapi import HTTPException

from app.web.choices import Menu
from app.web.reader import Answer, Card
from tests.web.answers import MENU, mixture, past, pending_diagnostics, ranking, standing, unknown

HOSTILE = "<img src=x onerror=\"document.title='owned'\">\"'><script>document.title='owned'</script>"
PUBLIC = Card("chat", "Chat assistants", public=True)
PRIVATE = Card("inner", "Inner circle", public=False)
KEY = "opensesame"

START = (
    standing("aurora", rank=1, rank_interval=[1, 2], score=0.9, interval=[0.7, 1.1], organisation="Northlab"),
    standing("basalt", rank=2, rank_interval=[1, 2], score=0.8, interval=[0.6, 1.0], url="https://example.org/basalt"),
    standing(
        "cinder", rank=3, rank_interval=[3, 3], score=-1.7, interval=[-2.0, -1.4], title=HOSTILE, organisation=HOSTILE
    ),
    unknown("drift", "few_votes"),
)


def swapped() -> list[dict[str, Any]]:
    """The start with the first two changed over: aurora by noise, basalt beyond its former interval."""
    aurora, basalt, *rest = START
    first = basalt | {"rank": 1, "score": 1.3, "interval": [1.1, 1.5]}
    return [first, aurora | {"rank": 2, "score": 0.85}, *rest]


class Site:
    """A served application and the fake behind it."""

    def __init__(self, address: str, reader: FakeReader) -> None:
        self.address = address
        self.reader = reader


class FakeReader:
    """Two boards with the same answers, one of them private."""

    def __init__(self) -> None:
        self.asked: list[Mapping[str, str]] = []
        self.boards = [PUBLIC, PRIVATE]
        self._checks = pending_diagnostics()
        self._past = past()
        self.show(*START)

    def show(self, *rows: dict[str, Any], **more: Any) -> None:
        """What rankings answer from now on."""
        self._answer = ranking(*rows, **more)

    def remember(self, **more: Any) -> None:
        """What histories answer from now on."""
        self._past = past() | more

    def find(self, **sections: dict[str, Any]) -> None:
        """What diagnostics answer from now on."""
        self._checks = pending_diagnostics() | {"status": "ok", "snapshot": "s1"} | sections

    def public_boards(self) -> Sequence[Card]:
        return [card for card in self.boards if card.public]

    def card(self, slug: str) -> Card | None:
        return next((card for card in self.boards if card.slug == slug), None)

    def admit(self, card: Card, authorization: str | None) -> None:
        if not card.public and authorization != f"Bearer {KEY}":
            raise HTTPException(401)

    def version(self, slug: str) -> Hashable:
        return slug, repr(self._answer), repr(self._checks), repr(self._past)

    def menu(self, slug: str) -> Menu:  # noqa: ARG002
        return MENU

    def ranking(self, slug: str, settled: Mapping[str, str]) -> Answer:
        self.asked.append(settled)
        return self._answer | {"board": slug}

    def history(self, slug: str, settled: Mapping[str, str]) -> Answer:
        self.asked.append(settled)
        return self._past | {"board": slug}

    def diagnostics(self, slug: str) -> Answer:
        return self._checks | {"board": slug}

    def equilibria(self, slug: str) -> Answer:
        rows = [row["item"] for row in self._answer["rankings"]]
        whole = dict(zip(rows, (0.5, 0.3, 0.2), strict=False)) if rows else None
        english = dict(zip(rows, (0.0, 0.0, 1.0), strict=False))
        overall = mixture(None, whole)
        found = [mixture("lang:en", english) | {"distance": 0.8}, mixture("lang:fr", None) | {"distance": None}]
        settings = {"lambda": 0.05, "regulariser": "l2"}
        head = {"board": slug, "status": overall["status"], "snapshot": "s1", "computed_at": "2026-11-30T12:00:00Z"}
        return {**head, "settings": settings, "items": rows, "overall": overall, "segments": found if rows else []}

    def pairs(self, slug: str) -> Answer:  # noqa: ARG002
        counts = {"first_left": {"left": 30, "right": 10, "both_bad": 2}, "second_left": {"left": 12}}
        pair = {"first": "aurora", "second": "cinder", "score": 0.8, "interval": [0.7, 0.9], "counts": counts}
        return {"pairs": [pair]}
