"""The page of a board, in a real browser."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.web.fake_reader import HOSTILE, START, Site, swapped

Open = Callable[..., Page]


HIDDEN = "Object.defineProperty(document, 'hidden', {value: true, configurable: true})"
"""A page that nobody sees does not ask by itself."""


def items(page: Page) -> list[str | None]:
    return [row.get_attribute("data-item") for row in page.locator("tbody tr").all()]


def test_the_board_shows_every_item_with_rank_interval_and_dash(site: Site, open_page: Open) -> None:
    page = open_page(f"{site.address}/boards/chat")
    assert items(page) == ["aurora", "basalt", "cinder", "drift"]
    expect(page.locator("tr[data-item=aurora]")).to_contain_text("1–2")
    expect(page.locator("tr[data-item=drift] td.score")).to_have_text("–")
    expect(page.locator("tr[data-item=drift] .chip")).to_have_text("few votes")
    expect(page.get_by_role("heading", name="How to read this board")).to_be_visible()
    expect(page.locator(".facts")).to_contain_text("3,000")


def test_a_new_snapshot_appears_by_itself_and_shows_what_moved(site: Site, open_page: Open) -> None:
    page = open_page(f"{site.address}/boards/chat")
    expect(page.locator(".move")).to_have_count(0)
    site.reader.show(*swapped(), snapshot="s2", votes=3200)
    expect(page.locator(".facts")).to_contain_text("3,200")
    assert items(page)[:2] == ["basalt", "aurora"]
    expect(page.locator("tr[data-item=basalt] .move")).to_have_text("▲1")
    expect(page.locator("tr[data-item=basalt] .move")).to_have_class("move beyond")
    expect(page.locator("tr[data-item=aurora] .move")).to_have_class("move")
    expect(page.locator("#announce")).to_contain_text("Basalt moved from place 2 to 1")


def test_a_vote_that_waits_leaves_the_table_in_place(site: Site, open_page: Open) -> None:
    page = open_page(f"{site.address}/boards/chat")
    page.evaluate("document.querySelector('tr[data-item=aurora]').dataset.mark = 'same'")
    site.reader.show(*START, votes_pending=99)
    expect(page.locator(".facts")).to_contain_text("99")
    expect(page.locator("tr[data-mark=same]")).to_have_count(1)


def test_an_unchanged_board_is_answered_without_a_body(site: Site, open_page: Open) -> None:
    page = open_page(f"{site.address}/boards/chat")
    with page.expect_response(lambda answer: "/leaderboard" in answer.url and answer.status == 304):
        pass


def test_a_hidden_page_does_not_ask(site: Site, open_page: Open) -> None:
    page = open_page(f"{site.address}/boards/chat")
    page.evaluate(HIDDEN)
    page.wait_for_timeout(1000)
    before = len(site.reader.asked)
    page.wait_for_timeout(4500)
    assert len(site.reader.asked) == before


def test_a_choice_changes_the_ranking_and_the_address(site: Site, open_page: Open) -> None:
    page = open_page(f"{site.address}/boards/chat")
    page.get_by_label("Score", exact=True).select_option("borda")
    expect(page).to_have_url(f"{site.address}/boards/chat?estimand=borda")
    expect(page.locator("#meaning")).to_contain_text("share won")
    expect(page.get_by_label("Scale")).to_have_count(0)
    assert site.reader.asked[-1]["estimand"] == "borda"
    page.evaluate(HIDDEN)
    page.go_back()
    expect(page.get_by_label("Scale")).to_have_count(1)
    expect(page).to_have_url(f"{site.address}/boards/chat")


def test_an_address_with_choices_opens_on_them(site: Site, open_page: Open) -> None:
    page = open_page(f"{site.address}/boards/chat?segment=language:de&interval=marginal")
    expect(page.get_by_label("Segment")).to_have_value("language:de")
    expect(page.get_by_label("Interval", exact=True)).to_have_value("marginal")
    assert site.reader.asked[0]["segment"] == "language:de"


def test_the_keyboard_reaches_and_changes_the_choices(site: Site, open_page: Open) -> None:
    page = open_page(f"{site.address}/boards/chat")
    page.keyboard.press("Tab")
    expect(page.get_by_text("Skip to the content")).to_be_focused()
    page.get_by_label("Score", exact=True).focus()
    page.keyboard.press("b")
    page.keyboard.press("o")
    expect(page).to_have_url(re.compile("estimand=borda"))
    expect(page.get_by_label("Score", exact=True)).to_be_focused()


def test_hostile_titles_are_inert_text(site: Site, open_page: Open) -> None:
    page = open_page(f"{site.address}/boards/chat")
    site.reader.show(*swapped(), snapshot="s2")
    expect(page.locator("tr[data-item=basalt] .move")).to_be_visible()
    expect(page.locator("tr[data-item=cinder] th")).to_contain_text(HOSTILE)
    assert page.locator("tbody img, tbody script").count() == 0
    assert page.title() == "Chat assistants · orthorank"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("path", ["/boards/chat", "/boards/chat/pairs", "/boards", "/boards/inner"])
def test_no_page_scrolls_sideways_on_a_telephone(
    site: Site, open_page: Open, complaints: list[str], path: str, scheme: str
) -> None:
    page = open_page(site.address + path, viewport={"width": 360, "height": 740}, color_scheme=scheme)
    page.wait_for_timeout(200)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    complaints[:] = [line for line in complaints if "401" not in line]


@pytest.mark.parametrize("path", ["", "/equilibrium"])
def test_every_view_is_in_sight_on_a_telephone(site: Site, open_page: Open, path: str) -> None:
    page = open_page(f"{site.address}/boards/chat{path}", viewport={"width": 360, "height": 740})
    wide, seen = page.locator(".views").evaluate("views => [views.scrollWidth, views.clientWidth]")
    assert wide <= seen


def test_the_narrow_table_is_still_a_table_to_a_screen_reader(site: Site, open_page: Open) -> None:
    page = open_page(f"{site.address}/boards/chat", viewport={"width": 360, "height": 740})
    nodes = page.context.new_cdp_session(page).send("Accessibility.getFullAXTree")["nodes"]
    roles = Counter(node["role"]["value"] for node in nodes if not node["ignored"])
    assert (roles["table"], roles["row"], roles["columnheader"], roles["rowheader"]) == (1, 5, 9, 4)


def test_the_board_reads_without_scripts(site: Site, open_page: Open) -> None:
    page = open_page(f"{site.address}/boards/chat?estimand=borda", java_script_enabled=False)
    assert items(page) == ["aurora", "basalt", "cinder", "drift"]
    expect(page.get_by_role("button", name="Show")).to_be_visible()


def test_a_server_that_is_gone_is_said(site: Site, open_page: Open, complaints: list[str]) -> None:
    page = open_page(f"{site.address}/boards/chat")
    page.route("**/leaderboard*", lambda route: route.abort())
    expect(page.locator("#connection")).to_contain_text("does not answer")
    assert items(page)[0] == "aurora"
    page.unroute("**/leaderboard*")
    expect(page.locator("#connection")).to_be_empty()
    complaints[:] = [line for line in complaints if "ERR_FAILED" not in line]


LONGEST_TASK = """() => new Promise((done) => {
  const most = (list) => Math.max(0, ...list.getEntries().map((task) => task.duration));
  new PerformanceObserver((list) => done(most(list))).observe({ type: "longtask", buffered: true });
  setTimeout(() => done(0), 500);
})"""


def test_two_hundred_items_are_swapped_quickly(site: Site, open_page: Open) -> None:
    rows = [START[0] | {"item": f"m{k}", "rank": k + 1, "score": 2 - k / 100} for k in range(200)]
    site.reader.show(*rows)
    page = open_page(f"{site.address}/boards/chat")
    expect(page.locator("tbody tr")).to_have_count(200)
    site.reader.show(*reversed(rows), snapshot="s2")
    expect(page.locator("tbody tr").first).to_have_attribute("data-item", "m199")
    assert page.evaluate(LONGEST_TASK) < 1000


def test_votes_to_flip_are_a_fact_of_the_board(site: Site, open_page: Open) -> None:
    page = open_page(f"{site.address}/boards/chat")
    expect(page.locator(".facts")).not_to_contain_text("flip")
    flip = {"votes": 12, "share": 0.004, "leader": "aurora", "challenger": "basalt"}
    site.reader.show(*START, votes_to_flip=flip, snapshot="s2")
    expect(page.locator(".facts")).to_contain_text("12 (0.40%), then Basalt leads")
