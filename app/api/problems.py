"""Problem documents (RFC 9457): the one shape of every error."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from http import HTTPStatus
from typing import Annotated, Any, assert_never

import orjson
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, Field
from sqlalchemy.exc import InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from starlette.exceptions import HTTPException

from app.domain.errors import DomainError, Kind, Limited, Unavailable
from app.domain.parsing import BadFields, field_errors

log = logging.getLogger(__name__)
MEDIA_TYPE = "application/problem+json"
NAMESPACE = "urn:orthorank:problem:"
LONGEST = 200
DEEPEST = 3
MOST = 50


class FieldProblem(BaseModel):
    """One field that does not fit."""

    path: str
    expected: Any = None
    got: Any = None


class Problem(BaseModel):
    """An error: `type` is stable; `path`, `expected` and `got` tell of the first field at fault, `errors` of all."""

    type: Annotated[str, Field(examples=["urn:orthorank:problem:unknown-item"])]
    title: str
    status: int
    detail: str
    path: str | None = None
    expected: Any = None
    got: Any = None
    errors: list[FieldProblem] | None = None


RESPONSES: dict[int | str, dict[str, Any]] = {
    "default": {
        "description": "A problem document",
        "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
    }
}


def status_of(kind: Kind) -> HTTPStatus:
    """The HTTP status of a class of refusals."""
    match kind:
        case Kind.INVALID:
            return HTTPStatus.UNPROCESSABLE_ENTITY
        case Kind.MISSING:
            return HTTPStatus.NOT_FOUND
        case Kind.CONFLICT:
            return HTTPStatus.CONFLICT
        case Kind.UNAUTHENTICATED:
            return HTTPStatus.UNAUTHORIZED
        case Kind.FORBIDDEN:
            return HTTPStatus.FORBIDDEN
        case Kind.LIMITED:
            return HTTPStatus.TOO_MANY_REQUESTS
        case Kind.UNAVAILABLE:
            return HTTPStatus.SERVICE_UNAVAILABLE
        case _:
            assert_never(kind)


def describe(error: DomainError) -> dict[str, Any]:
    """The problem document of a refusal."""
    status = status_of(error.kind)
    document = _document(error.code, status, error.detail)
    fields = {"path": error.path, "expected": error.expected, "got": error.got}
    document |= {name: brief(value) for name, value in fields.items() if value is not None}
    if isinstance(error, BadFields):
        found = error.fields[:MOST]
        document["errors"] = [{"path": e.path, "expected": e.expected, "got": brief(e.got)} for e in found]
    return document


def brief(value: Any, depth: int = 0) -> Any:
    """What was sent, short enough to send back and always JSON."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int | float):
        text = repr(value) if abs(value) < 2**63 else "a number beyond 64 bits"
        return value if abs(value) < 2**53 else text
    if isinstance(value, list | tuple | set | frozenset) and depth < DEEPEST:
        return [brief(entry, depth + 1) for entry in list(value)[:MOST]]
    if isinstance(value, Mapping) and depth < DEEPEST:
        return {_short(str(name)): brief(entry, depth + 1) for name, entry in list(value.items())[:MOST]}
    return _short(value if isinstance(value, str) else type(value).__name__)


def install(app: FastAPI) -> None:
    """Answer every error of the application with a problem document."""
    app.add_exception_handler(DomainError, _refused)
    app.add_exception_handler(RequestValidationError, _malformed)
    app.add_exception_handler(HTTPException, _http)
    for away in (OperationalError, InterfaceError, PoolTimeout):
        app.add_exception_handler(away, _lost)
    app.add_exception_handler(Exception, _failed)


def answer(error: DomainError) -> Response:
    """The response to a refusal."""
    headers = {}
    if error.kind is Kind.UNAUTHENTICATED:
        headers["WWW-Authenticate"] = "Bearer"
    if isinstance(error, Limited | Unavailable):
        headers["Retry-After"] = str(error.retry_after)
    return _response(describe(error), headers)


def _refused(_: Request, error: Exception) -> Response:
    assert isinstance(error, DomainError)
    return answer(error)


def _malformed(_: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    return answer(BadFields(field_errors(error.errors(), skip=1)))


def _http(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return http_answer(error)


def http_answer(error: HTTPException) -> Response:
    """The response to what the framework refuses."""
    status = HTTPStatus(error.status_code)
    code = (
        "body-too-large" if status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE else status.phrase.lower().replace(" ", "-")
    )
    return _response(_document(code, status, str(error.detail)), dict(error.headers or {}))


def _lost(_: Request, error: Exception) -> Response:
    return lost(error)


def lost(error: Exception) -> Response:
    """The response where the database went away."""
    log.error("the database does not answer: %s", error)
    return answer(Unavailable("database-unavailable", "the database does not answer"))


def late(seconds: float) -> Response:
    """The response to a request that does not come in."""
    return http_answer(
        HTTPException(HTTPStatus.REQUEST_TIMEOUT, f"the request was not here in full after {seconds:g} s")
    )


def no_upgrade() -> Response:
    """The response to a request with a body that wants another protocol, to which the body is left."""
    detail = "this server speaks HTTP/1.1 alone: send a request with a body without Upgrade"
    return http_answer(HTTPException(HTTPStatus.BAD_REQUEST, detail))


def failure() -> Response:
    """The response where the service itself went wrong."""
    return _response(_document("internal", HTTPStatus.INTERNAL_SERVER_ERROR, "an error of the service itself"), {})


def _failed(_: Request, __: Exception) -> Response:
    return failure()


def _document(code: str, status: HTTPStatus, detail: str) -> dict[str, Any]:
    return {"type": NAMESPACE + code, "title": status.phrase, "status": int(status), "detail": _short(detail)}


def _response(document: dict[str, Any], headers: Mapping[str, str]) -> Response:
    return Response(orjson.dumps(document), document["status"], headers, media_type=MEDIA_TYPE)


def _short(text: str) -> str:
    clean = text.encode("utf-8", "replace").decode()
    return clean if len(clean) <= LONGEST else clean[:LONGEST] + "…"
