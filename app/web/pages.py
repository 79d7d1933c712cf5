"""Templates become answers: escaped, under a strict policy, with an ETag of what they say."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from hashlib import sha256
from pathlib import Path
from typing import Any

from fastapi import Request, Response
from fastapi.responses import HTMLResponse
from fastapi.staticfiles import StaticFiles
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.types import Scope

from app.services.rankings.rendered import Rendered

HERE = Path(__file__).parent
POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
    "Vary": "Authorization",
}


class Assets(StaticFiles):
    """Static files that browsers ask for again with their ETag, so that an upgrade shows at once."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        answer = await super().get_response(path, scope)
        answer.headers["Cache-Control"] = "no-cache"
        return answer


class Pages:
    """The templates, compiled once, and the fragments rendered last."""

    def __init__(self) -> None:
        folder = HERE / "templates"
        self._edition = sha256(b"".join(path.read_bytes() for path in sorted(folder.iterdir()))).hexdigest()
        self._rendered = Rendered()
        self._templates = Environment(
            loader=FileSystemLoader(folder),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._templates.globals["asset"] = "/static/{}".format

    def answer(self, template: str, *, status: int = 200, **values: Any) -> HTMLResponse:
        """A whole page."""
        return HTMLResponse(self._templates.get_template(template).render(values), status, HEADERS)

    def fragment(self, request: Request, template: str, version: Hashable, view: Callable[[], Any]) -> Response:
        """A part of a page, or 304 where the browser has it already.

        Parameters
        ----------
        version : of the board; with the template and the address it decides the fragment.
        view : makes what the template reads; called only where nobody asked for this fragment before.
        """
        key = (self._edition, template, request.url.path, request.url.query, version)
        etag = f'"{sha256(repr(key).encode()).hexdigest()[:32]}"'
        headers = {**HEADERS, "ETag": etag}
        if etag in request.headers.get("If-None-Match", ""):
            return Response(status_code=304, headers=headers)

        def make() -> bytes:
            return self._templates.get_template(template).render(view=view()).encode()

        return HTMLResponse(self._rendered.get(key, make), headers=headers)
