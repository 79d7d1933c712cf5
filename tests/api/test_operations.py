"""Health, request ids, logs."""

from __future__ import annotations

import json
import logging

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import Engine, text

from app.api.logs import JsonLines, request_id
from tests.api.conftest import problem


def test_the_process_and_its_parts_are_there(client: TestClient) -> None:
    assert client.get("/healthz").json() == {"status": "ok"}
    assert client.get("/readyz").json() == {"database": "ok", "migrations": "ok", "redis": "ok"}


def test_monitors_may_ask_for_heads_alone(client: TestClient) -> None:
    for path in ("/healthz", "/readyz"):
        answer = client.head(path)
        assert (answer.status_code, answer.content) == (200, b"")


def test_a_database_of_another_version_is_not_ready(client: TestClient, database: Engine) -> None:
    with database.begin() as connection:
        version = connection.execute(text("SELECT version_num FROM alembic_version")).scalar_one()
        connection.execute(text("UPDATE alembic_version SET version_num = 'older'"))
    try:
        assert client.head("/readyz").status_code == 503
        answer = client.get("/readyz")
        problem(answer, 503, "not-ready")
        assert answer.json()["migrations"] == "failed"
    finally:
        with database.begin() as connection:
            connection.execute(text("UPDATE alembic_version SET version_num = :version"), {"version": version})
    assert client.get("/readyz").status_code == 200


def test_each_request_has_an_id_and_a_line(client: TestClient, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="orthorank.requests"):
        own = client.get("/healthz", headers={"X-Request-ID": "abc-1"}).headers["x-request-id"]
        made = client.get("/v1/nothing", headers={"X-Request-ID": "not usable!"}).headers["x-request-id"]
    assert own == "abc-1"
    assert len(made) == 32
    lines = [json.loads(JsonLines().format(record)) for record in caplog.records if record.name == "orthorank.requests"]
    assert [(line["method"], line["path"], line["status"]) for line in lines] == [
        ("GET", "/healthz", 200),
        ("GET", "/v1/nothing", 404),
    ]


def test_a_log_line_holds_its_error_and_its_request() -> None:
    token = request_id.set("r-1")
    try:
        raise ValueError("broken")
    except ValueError as error:
        record = logging.LogRecord("name", logging.ERROR, "", 1, "it %s", ("failed",), (type(error), error, None))
    line = json.loads(JsonLines().format(record))
    request_id.reset(token)
    assert (line["message"], line["level"], line["request_id"]) == ("it failed", "error", "r-1")
    assert "broken" in line["error"]
