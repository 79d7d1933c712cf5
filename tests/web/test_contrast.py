"""Colours of the pages against WCAG 2.2: text 4.5 to 1 (1.4.3), charts and edges of controls 3 to 1 (1.4.11)."""

from __future__ import annotations

import re

import pytest

from app.web.pages import HERE

SHEET = (HERE / "static" / "orthorank.css").read_text()
LIGHT, DARK = (
    dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", block))
    for block in re.findall(r":root \{(.*?)\}", SHEET, re.DOTALL)
)
TEXT = [
    *[(ink, paper) for ink in ("ink", "soft", "accent") for paper in ("paper", "card", "moved")],
    *[(f"{tone}-ink", tone) for tone in ("info", "caution", "alarm")],
    *[("card", "accent"), ("caution-ink", "paper"), ("alarm-ink", "card")],
]
GRAPHICS = [("band", "card"), ("band", "moved"), ("accent", "card"), ("focus", "paper"), ("reference", "card")]


def luminance(colour: str) -> float:
    channels = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(first: str, second: str) -> float:
    low, high = sorted((luminance(first), luminance(second)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("colours", [LIGHT, DARK], ids=["light", "dark"])
@pytest.mark.parametrize(
    ("first", "second", "least"), [*((*pair, 4.5) for pair in TEXT), *((*pair, 3.0) for pair in GRAPHICS)]
)
def test_contrast(colours: dict[str, str], first: str, second: str, least: float) -> None:
    assert contrast(colours[first], colours[second]) >= least
