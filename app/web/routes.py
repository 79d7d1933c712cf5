"""The addresses of the pages. A page holds a fragment; the fragment has an address of its own, for refreshing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Depends, FastAPI, Header, HTTPException, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse

from app.domain.errors import limited
from app.services import access
from app.web.choices import settle
from app.web.diagnostics import DiagnosticsView, diagnostics_view
from app.web.equilibrium import EquilibriumView, equilibrium_view
from app.web.history import HistoryView, history_view
from app.web.leaderboard import Leaderboard, leaderboard
from app.web.pages import HERE, Assets, Pages
from app.web.pairs import PairsView, pairs_view
from app.web.reader import Card, Reader
from app.web.reference import groups

Count = Callable[[str], int]
"""Counts a request of a caller; seconds for which the caller has to wait."""


class Crowded(Exception):
    """A browser asks for more pages than one address may have; `wait`: seconds until it gets the next one."""

    def __init__(self, wait: int) -> None:
        super().__init__()
        self.wait = wait


def _counted(request: Request) -> None:
    """Count a page, or a part of one, for the address that asks: it reads what the API reads, and takes as long."""
    count: Count = request.app.state.count
    wait = count(access.counted_as(None, request.client.host if request.client else "unknown"))
    if wait:
        if "text/html" in request.headers.get("Accept", ""):
            raise Crowded(wait)
        raise limited("rate-limit", "too many requests", retry_after=wait)


router = APIRouter(include_in_schema=False, default_response_class=HTMLResponse, dependencies=[Depends(_counted)])


def mount(app: FastAPI, reader: Reader, count: Count) -> None:
    """Serve the pages and their static files from `app`; these are not counted."""
    app.state.pages, app.state.reader, app.state.count = Pages(), reader, count
    app.add_exception_handler(Crowded, _crowded)
    app.mount("/static", Assets(directory=HERE / "static"), name="static")
    app.include_router(router)


def _crowded(request: Request, error: Exception) -> Response:
    assert isinstance(error, Crowded)
    answer = _pages(request).answer("crowded.html", status=429, wait=error.wait)
    answer.headers["Retry-After"] = str(error.wait)
    return answer


def _pages(request: Request) -> Pages:
    pages: Pages = request.app.state.pages
    return pages


def _reader(request: Request) -> Reader:
    reader: Reader = request.app.state.reader
    return reader


PagesOf = Annotated[Pages, Depends(_pages)]
ReaderOf = Annotated[Reader, Depends(_reader)]


@router.get("/")
def home(reader: ReaderOf) -> Response:
    boards = reader.public_boards()
    return RedirectResponse(f"/boards/{boards[0].slug}" if len(boards) == 1 else "/boards")


@router.get("/boards")
def boards(pages: PagesOf, reader: ReaderOf) -> Response:
    return pages.answer("boards.html", boards=reader.public_boards())


@router.get("/docs")
def reference(request: Request, pages: PagesOf) -> Response:
    return pages.answer("reference.html", groups=groups(request.app.openapi()))


def _admitted(slug: str, reader: ReaderOf, authorization: Annotated[str | None, Header()] = None) -> Card:
    card = reader.card(slug)
    if card is None:
        raise HTTPException(404, "no such board")
    reader.admit(card, authorization)
    return card


Admitted = Annotated[Card, Depends(_admitted)]


def _leaderboard(reader: Reader, card: Card, request: Request) -> Leaderboard:
    menu = reader.menu(card.slug)
    settled = settle(request.query_params, menu)
    return leaderboard(reader.ranking(card.slug, settled), settled, menu, title=card.title)


def _pairs(reader: Reader, card: Card, request: Request) -> PairsView:
    settled = settle({}, reader.menu(card.slug))
    ranking, answer = reader.ranking(card.slug, settled), reader.pairs(card.slug)
    return pairs_view(ranking, answer, title=card.title, wanted=request.query_params.get("items", ""))


def _history(reader: Reader, card: Card, request: Request) -> HistoryView:
    menu = reader.menu(card.slug)
    settled = settle({**request.query_params, "scale": ""}, menu)
    ranking = reader.ranking(card.slug, settled)
    return history_view(ranking, reader.history(card.slug, settled), settled, menu, title=card.title)


def _equilibrium(reader: Reader, card: Card, _: Request) -> EquilibriumView:
    ranking = reader.ranking(card.slug, settle({}, reader.menu(card.slug)))
    return equilibrium_view(ranking, reader.equilibria(card.slug), title=card.title)


def _diagnostics(reader: Reader, card: Card, _: Request) -> DiagnosticsView:
    ranking = reader.ranking(card.slug, settle({}, reader.menu(card.slug)))
    return diagnostics_view(ranking, reader.diagnostics(card.slug), title=card.title)


@dataclass(frozen=True, slots=True)
class Section:
    """One view of a board: a page, and the fragment in it.

    Parameters
    ----------
    name : of the view.
    module, body : the page's script and the fragment's template.
    source, page : addresses of the fragment and of the page, below the board's.
    view : what the template reads.
    """

    name: str
    module: str
    body: str
    source: str
    page: str
    view: Callable[[Reader, Card, Request], Any]

    def whole(self, slug: str, request: Request, pages: PagesOf, reader: ReaderOf) -> Response:
        """The page; that of a board which is not public asks for a key and fetches the fragment with it."""
        card = reader.card(slug)
        if card is None:
            return pages.answer("missing.html", status=404)
        view = self.view(reader, card, request) if card.public else None
        return pages.answer("board.html", **self._frame(card), view=view)

    def part(self, card: Admitted, request: Request, pages: PagesOf, reader: ReaderOf) -> Response:
        """The fragment."""
        version = card, reader.version(card.slug)
        return pages.fragment(request, self.body, version, lambda: self.view(reader, card, request))

    def _frame(self, card: Card) -> dict[str, Any]:
        """What surrounds the fragment. The title of a board that is not public stays inside the fragment."""
        return {
            "heading": card.title if card.public else card.slug,
            "slug": card.slug,
            "current": self.name,
            "module": self.module,
            "body": self.body if card.public else None,
            "source": f"/boards/{card.slug}{self.source}",
            "page": f"/boards/{card.slug}{self.page}",
        }


SECTIONS = (
    Section("leaderboard", "board.js", "_leaderboard.html", "/leaderboard", "", _leaderboard),
    Section("pairs", "pairs.js", "_pairs.html", "/heatmap", "/pairs", _pairs),
    Section("history", "pairs.js", "_history.html", "/trends", "/history", _history),
    Section("equilibrium", "pairs.js", "_equilibrium.html", "/mixtures", "/equilibrium", _equilibrium),
    Section("diagnostics", "diagnostics.js", "_diagnostics.html", "/checks", "/diagnostics", _diagnostics),
)
for section in SECTIONS:
    router.get(f"/boards/{{slug}}{section.page}")(section.whole)
    router.get(f"/boards/{{slug}}{section.source}")(section.part)
