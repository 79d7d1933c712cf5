"""One line of JSON for each request, with an id that the response carries too."""

from __future__ import annotations

import asyncio
import logging
import re
import time
from contextvars import ContextVar
from datetime import UTC, datetime
from itertools import count
from typing import Any
from uuid import uuid4

import orjson
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

log = logging.getLogger("orthorank.requests")
request_id: ContextVar[str | None] = ContextVar("request_id", default=None)
HEADER = "x-request-id"
PROCESS, NUMBERS = uuid4().hex[:16], count(1)
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
    name = name_of(sent)
    request_id.set(name)
    return name


def name_of(sent: str | None) -> str:
    """The id of a request: the one that it sent, where that is usable, or one of its own."""
    return sent if sent is not None and ACCEPTED.fullmatch(sent) else f"{PROCESS}{next(NUMBERS):016x}"


def log_request(scope: Scope, status: int, started: float) -> None:
    """Write the line of a request that began at a reading of the performance counter."""
    if log.isEnabledFor(logging.INFO):
        milliseconds = round((time.perf_counter() - started) * 1000, 1)
        fields = {"method": scope["method"], "path": scope["path"], "status": status, "ms": milliseconds}
        log.info("request", extra={"fields": fields})


class RequestLines:
    """Lines of POST requests that come by the thousand: those that end together are one record, written at once."""

    def __init__(self) -> None:
        self._ended: list[dict[str, Any]] = []

    def add(self, name: str, path: str, status: int, started: float) -> None:
        """The line of a request of this id that ends now, as `log_request` writes it."""
        if not log.isEnabledFor(logging.INFO):
            return
        if not self._ended:
            asyncio.get_running_loop().call_soon(self._write)
        milliseconds = round((time.perf_counter() - started) * 1000, 1)
        line = {"request_id": name, "method": "POST", "path": path, "status": status, "ms": milliseconds}
        self._ended.append(line)

    def _write(self) -> None:
        ended, self._ended = self._ended, []
        same = {"time": _written(time.time()), "level": "info", "logger": log.name, "message": "request"}
        log.info("requests", extra={"lines": [same | line for line in ended]})


def _written(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).isoformat()


class JsonLines(logging.Formatter):
    """Log records as JSON, one a line, with the id of the request they belong to."""

    def format(self, record: logging.LogRecord) -> str:
        lines: list[dict[str, Any]] | None = getattr(record, "lines", None)
        if lines is not None:
            return "\n".join([orjson.dumps(line).decode() for line in lines])
        document = {
            "time": _written(record.created),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            "request_id": request_id.get(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            document["error"] = self.formatException(record.exc_info)
        return orjson.dumps(document, default=str).decode()
