"""The README's table of settings says what app/settings.py reads."""

from __future__ import annotations

import re
from pathlib import Path

from app.settings import variables

README = Path(__file__).parents[2] / "README.md"
ROW = re.compile(r"^\| `(ORTHORANK_\w+)` \| (.+?) \| (.+) \|$", re.MULTILINE)


def test_every_setting_is_listed_with_its_default_and_meaning() -> None:
    listed = {name: (default.strip("`"), meaning) for name, default, meaning in ROW.findall(README.read_text())}
    read = {name: (default or "unset", meaning) for name, default, meaning in variables()}
    depends_on_user = read.pop("ORTHORANK_DATA")
    assert listed.pop("ORTHORANK_DATA")[1] == depends_on_user[1]
    assert listed == read
