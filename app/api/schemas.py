"""Schemas of what is read or written as bytes, for the OpenAPI document."""

from __future__ import annotations

from typing import Any, Literal
from uuid import UUID

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from app.api.problems import Problem
from app.domain.ballots import BALLOT


class BatchResult(BaseModel):
    """The fate of one vote of a batch."""

    status: Literal["created", "duplicate", "rejected"]
    vote: UUID | None
    problem: Problem | None = None


class BatchResults(BaseModel):
    """The fate of each vote, in order."""

    results: list[BatchResult]


REFERENCE = "#/components/schemas/{model}"
_ANSWERS = models_json_schema([(Problem, "serialization"), (BatchResults, "serialization")], ref_template=REFERENCE)
_BALLOT = BALLOT.json_schema(ref_template=REFERENCE)
_SENT = {**_BALLOT.pop("$defs"), "Ballot": _BALLOT}
for _field in (field for schema in _SENT.values() for field in schema["properties"].values()):
    if _field.get("default", ...) is None:
        # As elsewhere in the document: a field that may be left out is null then.
        del _field["default"]
COMPONENTS: dict[str, Any] = {**_ANSWERS[1]["$defs"], **_SENT}
