"""The interface as it is written down: a change of it is a change of tests/contracts/openapi.json, seen in review."""

from __future__ import annotations

import json
from typing import Any

import pytest
from fastapi.testclient import TestClient

from tests.contracts.snapshot import SNAPSHOT, rendered


@pytest.fixture
def document(client: TestClient) -> dict[str, Any]:
    """What the service publishes."""
    answer: dict[str, Any] = client.get("/openapi.json").json()
    return answer


def test_the_interface_is_as_written_down(document: dict[str, Any]) -> None:
    assert rendered(document) == SNAPSHOT.read_text(), "if it was meant: python -m tests.contracts.snapshot"


def test_it_is_openapi_3_1_and_every_reference_leads_somewhere(document: dict[str, Any]) -> None:
    assert document["openapi"].startswith("3.1")
    for reference in _references(document):
        place: Any = document
        for part in reference.removeprefix("#/").split("/"):
            place = place[part]


def test_every_operation_documents_its_problems(document: dict[str, Any]) -> None:
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            assert operation.get("description"), (path, method)
            assert "application/problem+json" in operation["responses"]["default"]["content"], (path, method)
            assert "422" not in operation["responses"], (path, method)


def _references(value: Any) -> list[str]:
    if isinstance(value, dict):
        own = [value["$ref"]] if isinstance(value.get("$ref"), str) else []
        return own + [found for inner in value.values() for found in _references(inner)]
    return [found for inner in value for found in _references(inner)] if isinstance(value, list) else []


def test_the_file_is_a_document() -> None:
    assert json.loads(SNAPSHOT.read_text())["info"]["title"] == "orthorank"
