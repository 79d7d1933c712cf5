"""The addresses of the pages. A page holds a fragment; the fragment has an address of its own, for refreshing."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, FastAPI, Header, HTTPException, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse

from app.web.choices import settle
from app.web.diagnostics import DiagnosticsView, diagnostics_view
from app.web.equilibrium import EquilibriumView, equilibrium_view
from app.web.history import HistoryView, history_view
from app.web.leaderboard import Leaderboard, leaderboard
from app.web.pages import HERE, Assets, Pages
from app.web.pairs import PairsView, pairs_view
from app.web.reader import Card, Reader
from app.web.reference import groups

router = APIRouter(include_in_schema=False, default_response_class=HTMLResponse)


def mount(app: FastAPI, reader: Reader) -> None:
    """Serve the pages and their static files from `app`."""
    app.state.pages, app.state.reader = Pages(), reader
    app.mount("/static", Assets(directory=HERE / "static"), name="static")
    app.include_router(router)


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


@router.get("/boards/{slug}")
def board(slug: str, request: Request, pages: PagesOf, reader: ReaderOf) -> Response:
    card = reader.card(slug)
    if card is None:
        return pages.answer("missing.html", status=404)
    view = _leaderboard(reader, card, request) if card.public else None
    return pages.answer("board.html", **_frame(card, "leaderboard"), view=view)


@router.get("/boards/{slug}/pairs")
def pairs(slug: str, request: Request, pages: PagesOf, reader: ReaderOf) -> Response:
    card = reader.card(slug)
    if card is None:
        return pages.answer("missing.html", status=404)
    view = _pairs(reader, card, request) if card.public else None
    return pages.answer("board.html", **_frame(card, "pairs"), view=view)


@router.get("/boards/{slug}/equilibrium")
def equilibrium(slug: str, pages: PagesOf, reader: ReaderOf) -> Response:
    card = reader.card(slug)
    if card is None:
        return pages.answer("missing.html", status=404)
    view = _equilibrium(reader, card) if card.public else None
    return pages.answer("board.html", **_frame(card, "equilibrium"), view=view)


@router.get("/boards/{slug}/history")
def history(slug: str, request: Request, pages: PagesOf, reader: ReaderOf) -> Response:
    card = reader.card(slug)
    if card is None:
        return pages.answer("missing.html", status=404)
    view = _history(reader, card, request) if card.public else None
    return pages.answer("board.html", **_frame(card, "history"), view=view)


@router.get("/boards/{slug}/diagnostics")
def diagnostics(slug: str, pages: PagesOf, reader: ReaderOf) -> Response:
    card = reader.card(slug)
    if card is None:
        return pages.answer("missing.html", status=404)
    view = _diagnostics(reader, card) if card.public else None
    return pages.answer("board.html", **_frame(card, "diagnostics"), view=view)


def _admitted(slug: str, reader: ReaderOf, authorization: Annotated[str | None, Header()] = None) -> Card:
    card = reader.card(slug)
    if card is None:
        raise HTTPException(404, "no such board")
    reader.admit(card, authorization)
    return card


Admitted = Annotated[Card, Depends(_admitted)]


@router.get("/boards/{slug}/leaderboard")
def leaderboard_part(card: Admitted, request: Request, pages: PagesOf, reader: ReaderOf) -> Response:
    return pages.fragment(
        request, "_leaderboard.html", (card, reader.version(card.slug)), lambda: _leaderboard(reader, card, request)
    )


@router.get("/boards/{slug}/heatmap")
def pairs_part(card: Admitted, request: Request, pages: PagesOf, reader: ReaderOf) -> Response:
    return pages.fragment(
        request, "_pairs.html", (card, reader.version(card.slug)), lambda: _pairs(reader, card, request)
    )


@router.get("/boards/{slug}/mixtures")
def equilibrium_part(card: Admitted, request: Request, pages: PagesOf, reader: ReaderOf) -> Response:
    return pages.fragment(
        request, "_equilibrium.html", (card, reader.version(card.slug)), lambda: _equilibrium(reader, card)
    )


@router.get("/boards/{slug}/trends")
def history_part(card: Admitted, request: Request, pages: PagesOf, reader: ReaderOf) -> Response:
    return pages.fragment(
        request, "_history.html", (card, reader.version(card.slug)), lambda: _history(reader, card, request)
    )


@router.get("/boards/{slug}/checks")
def diagnostics_part(card: Admitted, request: Request, pages: PagesOf, reader: ReaderOf) -> Response:
    return pages.fragment(
        request, "_diagnostics.html", (card, reader.version(card.slug)), lambda: _diagnostics(reader, card)
    )


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


def _equilibrium(reader: Reader, card: Card) -> EquilibriumView:
    ranking = reader.ranking(card.slug, settle({}, reader.menu(card.slug)))
    return equilibrium_view(ranking, reader.equilibria(card.slug), title=card.title)


def _diagnostics(reader: Reader, card: Card) -> DiagnosticsView:
    return diagnostics_view(reader.diagnostics(card.slug), title=card.title)


FRAMES = {
    "leaderboard": ("board.js", "_leaderboard.html", "leaderboard", ""),
    "pairs": ("pairs.js", "_pairs.html", "heatmap", "/pairs"),
    "history": ("pairs.js", "_history.html", "trends", "/history"),
    "equilibrium": ("pairs.js", "_equilibrium.html", "mixtures", "/equilibrium"),
    "diagnostics": ("diagnostics.js", "_diagnostics.html", "checks", "/diagnostics"),
}


def _frame(card: Card, current: str) -> dict[str, Any]:
    """What surrounds the fragment. The title of a board that is not public stays inside the fragment."""
    module, body, source, page = FRAMES[current]
    return {
        "heading": card.title if card.public else card.slug,
        "slug": card.slug,
        "current": current,
        "module": module,
        "body": body if card.public else None,
        "source": f"/boards/{card.slug}/{source}",
        "page": f"/boards/{card.slug}{page}",
    }
