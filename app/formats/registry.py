"""The formats that `import` knows by name."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

from app.formats.format import Format

MAPPED = Format(name="map")

ARENA = Format(
    name="arena",
    fields={"left": "model_a", "right": "model_b", "outcome": "winner"},
    optional={
        "id": "question_id",
        "context": "question_id",
        "voter": "judge",
        "created_at": "tstamp",
        "anonymous": "anony",
        "feature.language": "language",
        "feature.is_code": "is_code",
        "feature.turn": "turn",
    },
)
"""Battles as FastChat's clean-up writes them; a = left."""

CRITERIA = (
    *("complexity", "creativity", "domain_knowledge", "problem_solving", "real_world", "specificity"),
    "technical_accuracy",
)

ARENA_140K = Format(
    name="arena-140k",
    fields={"left": "model_a", "right": "model_b", "outcome": "winner"},
    optional={
        "id": "id",
        "context": "id",
        "voter": "evaluation_session_id",
        "created_at": "timestamp",
        "feature.language": "language",
        "feature.is_code": "is_code",
        "feature.turns": "conv_metadata.turns",
        "feature.user_tokens": "conv_metadata.sum_user_tokens",
        "feature.creative_writing": "category_tag.creative_writing_v0.1.creative_writing",
        "feature.instruction_following": "category_tag.if_v0.1.if",
        "feature.math": "category_tag.math_v0.1.math",
        **{f"feature.{name}": f"category_tag.criteria_v0.1.{name}" for name in CRITERIA},
    },
)
"""The human preferences that lmarena-ai published in 2025; texts of conversations are not read."""

MTBENCH = Format(
    name="mtbench",
    outcomes="ternary",
    fields={
        "context": "question_id/turn",
        "left": "model_a",
        "right": "model_b",
        "outcome": "winner",
        "voter": "judge_id",
        "judge": "source",
    },
    optional={"feature.category": "category"},
    votes_where=("source", "human"),
    judge_spellings={"tie_inconsistent": "tie"},
)
"""MT-Bench: human rows are votes, the others judgements, where a verdict that flips with the order is a tie."""

MORE = ("context", "offer", "voter", "voter_type", "propensity", "excluded", "kind", "menu", "ranking")

ORTHORANK = Format(
    name="orthorank",
    fields={"id": "id", "left": "left", "right": "right", "outcome": "outcome", "created_at": "created_at"},
    optional={name: name for name in MORE},
    every_feature=True,
)
"""What `export` writes."""

FormatName = Literal["arena", "arena-140k", "mtbench", "orthorank", "map"]

FORMATS: Mapping[FormatName, Format] = MappingProxyType(
    {"arena": ARENA, "arena-140k": ARENA_140K, "mtbench": MTBENCH, "orthorank": ORTHORANK, "map": MAPPED}
)
