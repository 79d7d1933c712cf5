"""Writes the interface down: `python -m tests.contracts.snapshot`."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from app.main import create_app
from app.settings import DatabaseSettings, RedisSettings, load_settings

SNAPSHOT = Path(__file__).with_name("openapi.json")


def rendered(document: dict[str, Any]) -> str:
    """The document in the form in which differences are easy to read."""
    return json.dumps(document, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def write() -> None:
    """Write the interface that this version would publish. Nothing is connected to."""
    database, redis = DatabaseSettings(url="postgresql:///unused"), RedisSettings(url="redis://localhost/0")
    app = create_app(replace(load_settings(), database=database, redis=redis))
    SNAPSHOT.write_text(rendered(app.openapi()))


if __name__ == "__main__":
    write()
