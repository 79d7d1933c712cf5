"""The page of diagnostics, in a real browser."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from playwright.sync_api import Page, expect

from tests.web.fake_reader import HOSTILE, Site

Open = Callable[..., Page]


def support(*components: list[str]) -> dict[str, Any]:
    counts = {"pairs": 6, "supported": 4, "both_orders": 3}
    return {"status": "disconnected", **counts, "components": list(components)}


def test_sections_say_what_was_found(site: Site, open_page: Open) -> None:
    measure = {"value": 0.05, "standard_error": 0.01, "interval": [0.03, 0.07], "size": 6}
    site.reader.find(
        support=support(["aurora", "basalt"], [HOSTILE]),
        position={"status": "ok", "advantage": measure, "left_share": None},
    )
    page = open_page(f"{site.address}/boards/chat/diagnostics")
    expect(page.locator("#support")).to_contain_text("Some items are not linked.")
    expect(page.locator("#support")).to_contain_text("4 of 6")
    expect(page.locator("#support tbody tr")).to_have_count(2)
    expect(page.locator("#support")).to_contain_text(HOSTILE)
    assert page.locator("#support img, #support script").count() == 0
    expect(page.locator("#position")).to_contain_text("0.050 (0.030 to 0.070)")
    expect(page.locator("#voters")).to_have_count(0)


def test_items_have_their_titles(site: Site, open_page: Open) -> None:
    tie = {"outcomes": ["tie"], "rates": {"tie": 0.1}, "items": [{"item": "aurora", "rates": {"tie": 0.2}}]}
    site.reader.find(support=support(["aurora", "basalt"], ["unheard-of"]), outcomes={"status": "ok", **tie})
    page = open_page(f"{site.address}/boards/chat/diagnostics")
    expect(page.locator("#support tbody tr").first).to_contain_text("Aurora, Basalt")
    expect(page.locator("#support tbody tr").last).to_contain_text("unheard-of")
    expect(page.locator("#outcomes tbody tr")).to_contain_text("Aurora")


def test_the_ranking_leads_there(site: Site, open_page: Open) -> None:
    page = open_page(f"{site.address}/boards/chat")
    page.get_by_role("link", name="Diagnostics").click()
    expect(page).to_have_url(f"{site.address}/boards/chat/diagnostics")
    expect(page.locator(".notice")).to_contain_text("No ranking yet")


def test_new_findings_appear_by_themselves(site: Site, open_page: Open) -> None:
    page = open_page(f"{site.address}/boards/chat/diagnostics")
    site.reader.find(support=support(["aurora"]))
    expect(page.locator("#support")).to_contain_text("4 of 6")
