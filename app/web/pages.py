"""Templates become answers: escaped, under a strict policy, with an ETag of what they say."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import Any

from fastapi import Request, Response
from fastapi.responses import HTMLResponse
from fastapi.staticfiles import StaticFiles
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.types import Scope

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
    """The templates, compiled once."""

    def __init__(self) -> None:
        self._templates = Environment(
            loader=FileSystemLoader(HERE / "templates"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._templates.globals["asset"] = "/static/{}".format

    def answer(self, template: str, *, status: int = 200, **values: Any) -> HTMLResponse:
        """A whole page."""
        return HTMLResponse(self._templates.get_template(template).render(values), status, HEADERS)

    def fragment(self, request: Request, template: str, **values: Any) -> Response:
        """A part of a page, or 304 where the browser has it already."""
        body = self._templates.get_template(template).render(values).encode()
        etag = f'"{sha256(body).hexdigest()[:32]}"'
        headers = {**HEADERS, "ETag": etag}
        if etag in request.headers.get("If-None-Match", ""):
            return Response(status_code=304, headers=headers)
        return HTMLResponse(body, headers=headers)
