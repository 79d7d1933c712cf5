"""One line of JSON for each request, with an id that the response carries too."""

from __future__ import annotations

import logging
import re
import time
from contextvars import ContextVar
from datetime import UTC, datetime
from uuid import uuid4

import orjson
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

log = logging.getLogger("orthorank.requests")
request_id: ContextVar[str | None] = ContextVar("request_id", default=None)
HEADER = "x-request-id"
ACCEPTED = re.compile(r"[A-Za-z0-9._-]{1,64}")


class RequestLog:
    """Gives each request an id, the caller's own where it sent a usable one, and logs what became of it."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        name = name_request(Headers(scope=scope).get(HEADER))
        started, status = time.perf_counter(), 500

        async def send_named(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message)[HEADER] = name
            await send(message)

        try:
            await self._app(scope, receive, send_named)
        finally:
            log_request(scope, status, started)


def name_request(sent: str | None) -> str:
    """Give the request that is being answered the id that it sent, or one of its own."""
    name = sent if sent is not None and ACCEPTED.fullmatch(sent) else uuid4().hex
    request_id.set(name)
    return name


def log_request(scope: Scope, status: int, started: float) -> None:
    """Write the line of a request that began at a reading of the performance counter."""
    if log.isEnabledFor(logging.INFO):
        milliseconds = round((time.perf_counter() - started) * 1000, 1)
        fields = {"method": scope["method"], "path": scope["path"], "status": status, "ms": milliseconds}
        log.info("request", extra={"fields": fields})


class JsonLines(logging.Formatter):
    """Log records as JSON, one a line, with the id of the request they belong to."""

    def format(self, record: logging.LogRecord) -> str:
        document = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            "request_id": request_id.get(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            document["error"] = self.formatException(record.exc_info)
        return orjson.dumps(document, default=str).decode()
