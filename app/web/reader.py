"""What the pages ask of the service: a port, so that they can be tried without it."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from app.web.choices import Menu

Answer = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Card:
    """A board as a list shows it."""

    slug: str
    title: str
    public: bool


class Reader(Protocol):
    """Answers have the shape of the HTTP interface's own."""

    def public_boards(self) -> Sequence[Card]:
        """Boards that anybody may read, by title."""

    def card(self, slug: str) -> Card | None:
        """The board of this name, public or not."""

    def admit(self, card: Card, authorization: str | None) -> None:
        """Raise the interface's own error unless this header opens the board."""

    def version(self, slug: str) -> Hashable:
        """Equal as long as every answer about the board is; cheap."""

    def menu(self, slug: str) -> Menu:
        """The rankings that the board's newest snapshot holds."""

    def ranking(self, slug: str, settled: Mapping[str, str]) -> Answer:
        """`GET …/rankings` for choices that exist, each row with the item's title, organisation and url."""

    def pairs(self, slug: str) -> Answer:
        """`GET …/pairs`."""

    def equilibria(self, slug: str) -> Answer:
        """`GET …/equilibrium/segments`."""

    def history(self, slug: str, settled: Mapping[str, str]) -> Answer:
        """`GET …/rankings/history` for choices that exist."""

    def diagnostics(self, slug: str) -> Answer:
        """`GET …/diagnostics`."""
