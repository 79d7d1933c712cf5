"""The container files start what the code has: same commands, same variables, same uv."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from app.cli import MODULES
from app.settings import DatabaseSettings, EstimandSettings, RedisSettings, WorkerSettings

ROOT = Path(__file__).parents[2]
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
OURS = ("migrate", "api", "live", "worker", "beat")


def test_every_service_is_there() -> None:
    assert set(COMPOSE["services"]) == {*OURS, "postgres", "redis"}


@pytest.mark.parametrize("service", OURS)
def test_a_service_runs_a_command_of_the_code_with_its_variables(service: str) -> None:
    described = COMPOSE["services"][service]
    program, command = described["command"][:2]
    assert program == "orthorank"
    assert command in {name for names in MODULES.values() for name in names}
    known = {DatabaseSettings.model_config["env_prefix"] + "URL", RedisSettings.model_config["env_prefix"] + "URL"}
    known.add((EstimandSettings.model_config["env_prefix"] + "estimands").upper())
    known.add((WorkerSettings.model_config["env_prefix"] + "processes").upper())
    assert set(described["environment"]) == known


def test_the_image_takes_the_uv_of_the_makefile() -> None:
    wanted = re.search(r"UV_VERSION := (\S+)", (ROOT / "Makefile").read_text())
    assert wanted is not None
    assert f"uv=={wanted[1]}" in (ROOT / "Dockerfile").read_text()


def test_what_the_image_copies_is_there() -> None:
    copied = re.findall(r"^COPY (.+) \S+$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    assert copied
    assert all((ROOT / name).exists() for line in copied for name in line.split())
