"""Scores over time, in a real browser."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import Page, expect

from app.web.choices import settle
from app.web.history import history_view
from tests.web.answers import MENU, course, past, ranking, standing
from tests.web.fake_reader import HOSTILE, Site

Open = Callable[..., Page]


def test_a_row_says_where_an_item_was_and_whether_it_moved(site: Site, open_page: Open) -> None:
    page = open_page(f"{site.address}/boards/chat/history")
    rows = [
        [cell.inner_text() for cell in row.locator("td").all()[:4]] for row in page.locator(".trends tbody tr").all()
    ]
    assert rows == [
        ["2 → 1", "0.20 → 0.90", "+0.70", "Beyond noise"],
        ["1 → 2", "0.80", "0.00", "Within noise"],
        ["3", "−1.00 → −1.70", "−0.70", "–"],
    ]
    expect(page.locator(".trends tbody th")).to_have_text(["Aurora", "Basalt", HOSTILE])
    expect(page.locator("[data-part=facts]")).to_contain_text("3 of 9")


def test_lines_are_drawn_on_one_scale_inside_their_cells(site: Site, open_page: Open) -> None:
    page = open_page(f"{site.address}/boards/chat/history", viewport={"width": 400, "height": 900})
    for row in page.locator(".trends tbody tr").all():
        cell, line = row.locator(".course").bounding_box(), row.locator("polyline").bounding_box()
        assert cell is not None
        assert line is not None
        assert cell["x"] - 1 <= line["x"]
        assert line["x"] + line["width"] <= cell["x"] + cell["width"] + 1
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_choices_are_those_of_the_ranking(site: Site, open_page: Open) -> None:
    page = open_page(f"{site.address}/boards/chat/history")
    page.get_by_label("Score", exact=True).select_option("borda")
    page.wait_for_url("**/history?*estimand=borda*")
    expect(page.locator(".trends tbody tr")).to_have_count(3)
    assert site.reader.asked[-1]["estimand"] == "borda"
    assert page.get_by_label("Scale").count() == 0


def test_a_board_without_a_snapshot_says_so(site: Site, open_page: Open) -> None:
    site.reader.show(status="pending", snapshot=None, computed_at=None)
    site.reader.remember(points=[], items=[], snapshots=0)
    page = open_page(f"{site.address}/boards/chat/history")
    expect(page.get_by_role("note")).to_contain_text("No ranking yet")
    assert page.locator(".trends").count() == 0


def view(*rows: object) -> tuple[tuple[str, ...], tuple[str, ...]]:
    answer = past() | {"items": list(rows)}
    made = history_view(ranking(standing("a")), answer, settle({}, MENU), MENU, title="")
    return made.trends[0].lines, made.trends[0].bands


def test_a_gap_breaks_line_and_band() -> None:
    lines, bands = view(course("a", (0.0, None, 1.0), rank=(1, None, 1), beyond=None))
    assert lines == ("0.0,82.86", "1000.0,17.14")
    assert [len(band.split()) for band in bands] == [2, 2]


def test_without_errors_there_is_no_band() -> None:
    row = course("a", (0.0, 0.5, 1.0), rank=(1, 1, 1), beyond=None)
    lines, bands = view(row | {"interval": [None] * 3, "standard_error": [None] * 3})
    assert lines == ("0.0,96.0 500.0,50.0 1000.0,4.0",)
    assert bands == ()
