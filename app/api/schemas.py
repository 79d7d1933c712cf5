"""Schemas of answers that are written as bytes, for the OpenAPI document."""

from __future__ import annotations

from typing import Any, Literal
from uuid import UUID

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from app.api.problems import Problem


class BatchResult(BaseModel):
    """The fate of one vote of a batch."""

    status: Literal["created", "duplicate", "rejected"]
    vote: UUID | None
    problem: Problem | None = None


class BatchResults(BaseModel):
    """The fate of each vote, in order."""

    results: list[BatchResult]


COMPONENTS: dict[str, Any] = models_json_schema(
    [(Problem, "serialization"), (BatchResults, "serialization")], ref_template="#/components/schemas/{model}"
)[1]["$defs"]
