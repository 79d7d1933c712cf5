"""The list of boards and the headers of every page."""

from __future__ import annotations

from collections.abc import Callable

import httpx
import pytest
from playwright.sync_api import Page, expect

from app.web.reader import Card
from tests.web.fake_reader import Site

Open = Callable[..., Page]


def test_the_only_public_board_is_the_first_page(site: Site) -> None:
    answer = httpx.get(site.address)
    assert answer.status_code == 307
    assert answer.headers["location"] == "/boards/chat"


def test_several_boards_are_listed(site: Site, open_page: Open) -> None:
    site.reader.boards.append(Card("code", "Code <b>models</b>", public=True))
    page = open_page(site.address)
    expect(page.locator(".boards a")).to_have_count(2)
    expect(page.locator(".boards")).to_contain_text("Code <b>models</b>")
    expect(page.locator(".boards")).not_to_contain_text("Inner circle")


def test_a_private_board_is_opened_by_name(site: Site, open_page: Open, complaints: list[str]) -> None:
    page = open_page(f"{site.address}/boards")
    page.get_by_label("Open a board").fill("inner")
    page.get_by_role("button", name="Open").click()
    expect(page.get_by_label("Key")).to_be_visible()
    complaints[:] = [line for line in complaints if "401" not in line]


@pytest.mark.parametrize("path", ["/boards", "/boards/chat", "/boards/chat/leaderboard", "/boards/none"])
def test_every_page_forbids_foreign_and_inline_code(site: Site, path: str) -> None:
    answer = httpx.get(site.address + path)
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert "unsafe" not in answer.headers["content-security-policy"]
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_an_unknown_board_is_a_page_with_status_404(site: Site) -> None:
    answer = httpx.get(f"{site.address}/boards/none")
    assert answer.status_code == 404
    assert "no board of this name" in answer.text
