"""The heat map of mixtures, in a real browser."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import Page, expect

from tests.web.fake_reader import HOSTILE, Site

Open = Callable[..., Page]


def test_rows_are_mixtures_and_items_in_none_are_left_out(site: Site, open_page: Open) -> None:
    page = open_page(f"{site.address}/boards/chat/equilibrium")
    rows = [[cell.inner_text() for cell in row.locator("td").all()] for row in page.locator(".map tbody tr").all()]
    assert rows == [["50", "30", "20"], ["", "", "100"]]
    expect(page.locator(".map tbody th")).to_have_text(["Whole board", "lang:en"])
    expect(page.locator(".map thead th")).to_have_text(["Aurora", "Basalt", HOSTILE])
    expect(page.locator("[data-part=map]")).to_contain_text("1 more item is in no mixture.")
    expect(page.get_by_text("l2, λ = 0.05")).to_be_visible()


def test_a_cell_is_read_out_with_what_is_behind_it(site: Site, open_page: Open) -> None:
    page = open_page(f"{site.address}/boards/chat/equilibrium")
    page.locator(".map td", has_text="100").hover()
    readout = page.locator("#readout")
    expect(readout).to_contain_text("lang:en")
    expect(readout).to_contain_text("has a share of 100%")
    expect(readout).to_contain_text("1,234 votes; the best single rival gains 0.021. 80% of it would have to move")
    assert page.locator("#readout img, #readout script").count() == 0


def test_arrow_keys_walk_over_the_mixtures(site: Site, open_page: Open) -> None:
    page = open_page(f"{site.address}/boards/chat/equilibrium")
    page.locator(".map td[tabindex='0']").focus()
    expect(page.locator("#readout")).to_contain_text("Whole board: Aurora has a share of 50%")
    page.keyboard.press("ArrowRight")
    expect(page.locator("#readout")).to_contain_text("Basalt has a share of 30%")


def test_the_other_pages_lead_here(site: Site, open_page: Open) -> None:
    page = open_page(f"{site.address}/boards/chat/pairs")
    page.get_by_role("link", name="Equilibrium").click()
    expect(page).to_have_url(f"{site.address}/boards/chat/equilibrium")
    expect(page.locator("a[aria-current=page]")).to_have_text("Equilibrium")


def test_a_board_without_a_mixture_says_so(site: Site, open_page: Open) -> None:
    site.reader.show()
    page = open_page(f"{site.address}/boards/chat/equilibrium")
    expect(page.get_by_role("note")).to_contain_text("No mixture yet")
    assert page.locator(".map").count() == 0
