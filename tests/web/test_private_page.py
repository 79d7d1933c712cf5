"""A board that is not public, in a real browser."""

from __future__ import annotations

from collections.abc import Callable

import httpx
from playwright.sync_api import Page, expect

from tests.web.fake_reader import KEY, PRIVATE, Site

Open = Callable[..., Page]


def forgive(complaints: list[str]) -> None:
    """Browsers report a refused request in the console; here it is what is being tried."""
    complaints[:] = [line for line in complaints if "401" not in line]


def test_the_page_tells_nothing_without_a_key(site: Site) -> None:
    body = httpx.get(f"{site.address}/boards/inner").text
    assert PRIVATE.title not in body
    assert "aurora" not in body
    assert httpx.get(f"{site.address}/boards/inner/leaderboard").status_code == 401


def test_a_key_opens_the_board_and_stays_in_the_tab(site: Site, open_page: Open, complaints: list[str]) -> None:
    page = open_page(f"{site.address}/boards/inner")
    page.get_by_label("Key").fill(KEY)
    page.get_by_role("button", name="Open").click()
    expect(page.get_by_role("heading", level=1)).to_have_text(PRIVATE.title)
    expect(page.locator("tbody tr")).to_have_count(4)
    assert KEY not in page.url
    assert page.evaluate("[localStorage.length, document.cookie]") == [0, ""]
    page.reload()
    expect(page.locator("tbody tr")).to_have_count(4)
    other = page.context.new_page()
    other.goto(page.url)
    expect(other.get_by_label("Key")).to_be_visible()
    forgive(complaints)


def test_a_wrong_key_is_refused_and_forgotten(site: Site, open_page: Open, complaints: list[str]) -> None:
    page = open_page(f"{site.address}/boards/inner")
    page.get_by_label("Key").fill("wrong")
    page.get_by_role("button", name="Open").click()
    expect(page.get_by_role("alert")).to_have_text("This key is not known.")
    assert page.evaluate("sessionStorage.length") == 0
    expect(page.locator("tbody tr")).to_have_count(0)
    forgive(complaints)
