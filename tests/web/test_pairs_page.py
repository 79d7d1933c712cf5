"""The heat map of pairs, in a real browser."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import Page, expect

from tests.web.fake_reader import HOSTILE, START, Site

Open = Callable[..., Page]


def test_cells_show_shares_and_unseen_pairs_are_empty(site: Site, open_page: Open) -> None:
    page = open_page(f"{site.address}/boards/chat/pairs")
    rows = [[cell.inner_text() for cell in row.locator("td").all()] for row in page.locator(".map tbody tr").all()]
    assert rows[0] == ["", "", "80", ""]
    assert rows[2] == ["20", "", "", ""]


def test_a_cell_under_the_pointer_is_read_out_with_its_counts(site: Site, open_page: Open) -> None:
    page = open_page(f"{site.address}/boards/chat/pairs")
    page.locator(".map td", has_text="80").hover()
    readout = page.locator("#readout")
    expect(readout).to_contain_text("wins a share of 80% (70% to 90%)")
    expect(readout).to_contain_text("Aurora on the left: 30 left, 10 right, 2 both bad.")
    expect(readout).to_contain_text(HOSTILE)
    assert page.locator("#readout img, #readout script").count() == 0


def test_arrow_keys_walk_over_the_cells(site: Site, open_page: Open) -> None:
    page = open_page(f"{site.address}/boards/chat/pairs")
    page.locator(".map td[tabindex='0']").focus()
    expect(page.locator("#readout")).to_contain_text("Aurora against Basalt: no votes")
    page.keyboard.press("ArrowRight")
    expect(page.locator("#readout")).to_contain_text("80%")
    page.keyboard.press("ArrowUp")
    expect(page.locator(".map td:focus")).to_have_text("80")


def test_a_long_board_shows_its_best_items_first(site: Site, open_page: Open) -> None:
    site.reader.show(*(START[0] | {"item": f"m{k}"} for k in range(50)))
    page = open_page(f"{site.address}/boards/chat/pairs")
    expect(page.locator(".map tbody tr")).to_have_count(20)
    page.get_by_label("Items").select_option("50")
    expect(page.locator(".map tbody tr")).to_have_count(50)
    expect(page).to_have_url(f"{site.address}/boards/chat/pairs?items=50")
