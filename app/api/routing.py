"""Routes that read JSON strictly: no NaN, no half surrogates, no NUL, numbers as numbers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine
from http import HTTPStatus
from typing import Any

import orjson
from fastapi import APIRouter, Request, Response
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException

from app.api.problems import RESPONSES
from app.domain.errors import Invalid, Missing

BOARDS = "/v1/boards/"
"""What the path of everything about one board begins with."""
NUL = "\x00"
MAX_BODY = 32 * 1024 * 1024


class StrictRoute(APIRoute):
    """A route whose body was read by orjson before the framework looks at it."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def read_and_handle(request: Request) -> Response:
            check_address(request)
            # The framework asks the request for its body and its JSON, which keeps what was read once.
            declared = request.headers.get("content-length")
            request._body = body = await read_body(request.stream(), declared)
            if is_json(request.headers.get("content-type", "")):
                request._json = read_json(body)
            return await handle(request)

        return read_and_handle


def api_router(*, prefix: str = "", tag: str) -> APIRouter:
    """A router of strict routes that document their problems."""
    return APIRouter(prefix=prefix, tags=[tag], route_class=StrictRoute, responses=RESPONSES)


def check_address(request: Request) -> None:
    """Refuse addresses that PostgreSQL could not look for."""
    if NUL in request.url.path or NUL in request.scope["path"]:
        raise Missing("not-found", "no address holds a NUL")
    if any(NUL in value for value in request.query_params.values()):
        raise Invalid("bad-field", "no parameter may hold a NUL")


async def read_body(stream: AsyncIterator[bytes], declared: str | None) -> bytes:
    """The whole body, unless it is too large or says that it will be."""
    chunks, size = [], int(declared or "0")
    if size <= MAX_BODY:
        size = 0
        async for chunk in stream:
            size += len(chunk)
            if size > MAX_BODY:
                break
            chunks.append(chunk)
    if size > MAX_BODY:
        raise HTTPException(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"a body holds at most {MAX_BODY} bytes")
    return b"".join(chunks)


def read_json(body: bytes) -> Any:
    """The document in a body, or a refusal that says what is wrong with it."""
    if not body:
        return None
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise Invalid("bad-json", f"the body is not JSON: {error}", expected="JSON in UTF-8 (RFC 8259)") from None
    if b"\\u0000" in body:
        _refuse_nul(document)
    return document


def _refuse_nul(document: Any) -> None:
    open_: list[tuple[str, Any]] = [("", document)]
    while open_:
        path, value = open_.pop()
        if isinstance(value, str) and NUL in value:
            raise Invalid("bad-field", "no string may hold a NUL", path=path.strip("."), expected="no NUL")
        if isinstance(value, list):
            open_.extend((f"{path}.{number}", entry) for number, entry in enumerate(value))
        elif isinstance(value, dict):
            open_.extend((path, name) for name in value)
            open_.extend((f"{path}.{name}", entry) for name, entry in value.items())


def is_json(content_type: str) -> bool:
    """Whether a body of this type is read as JSON."""
    kind = content_type.partition(";")[0].strip().lower()
    return kind == "application/json" or (kind.startswith("application/") and kind.endswith("+json"))
