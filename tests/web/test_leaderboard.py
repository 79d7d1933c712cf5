"""What a ranking's answer becomes on the page."""

from __future__ import annotations

from typing import Any

import pytest

from app.web.choices import settle
from app.web.leaderboard import Leaderboard, leaderboard
from tests.web.answers import MENU, ranking, standing, unknown


def shown(answer: dict[str, Any], **wanted: str) -> Leaderboard:
    return leaderboard(answer, settle(wanted, MENU), MENU, title="Chat")


def test_the_dot_stands_inside_its_bar() -> None:
    rows = shown(
        ranking(standing("a", score=1.2, interval=[0.9, 1.6]), standing("b", score=-1, interval=[-1.3, -0.2]))
    ).rows
    for row in rows:
        assert row.low is not None
        assert row.point is not None
        assert row.width is not None
        assert row.low < row.point < row.low + row.width


def test_what_is_not_known_is_a_dash_with_its_status() -> None:
    row = shown(ranking(standing("a"), unknown("b", "separated"))).rows[1]
    assert {row.rank, row.score, row.standard_error, row.best, row.effective, row.unsupported} == {"–"}
    assert (row.status, row.rank_interval, row.point, row.low) == ("one-sided", "", None, None)
    assert "no finite score" in row.status_meaning


def test_a_rank_interval_of_one_place_is_one_number() -> None:
    rows = shown(ranking(standing("a", rank_interval=[1, 1]), standing("b", rank_interval=[2, 4]))).rows
    assert [row.rank_interval for row in rows] == ["1", "2–4"]


def test_exclusions_are_counted_by_reason() -> None:
    assert (
        shown(ranking(votes_excluded={"superseded": 1200, "bot_check": 2, "x": 0})).excluded
        == "2 bot check, 1,200 superseded"
    )
    assert shown(ranking()).excluded == "none"


@pytest.mark.parametrize(
    "status", ["pending", "extrapolated", "few_votes", "few_contexts", "propensities_inconsistent", "disconnected"]
)
def test_every_board_status_has_words(status: str) -> None:
    notice = shown(ranking(status=status)).notice
    assert notice is not None
    assert notice.headline
    assert notice.meaning


def test_an_ordinary_board_has_no_banner() -> None:
    assert shown(ranking()).notice is None


@pytest.mark.parametrize(
    "url", ["javascript:alert(1)", "JavaScript:alert(1)", "data:text/html,x", " javascript:x", "//x.org", None]
)
def test_only_web_addresses_become_links(url: str | None) -> None:
    assert shown(ranking(standing("a", url=url))).rows[0].url == ""


def test_the_link_to_the_data_names_the_same_ranking() -> None:
    assert shown(ranking(), estimand="borda").json_url == "/v1/boards/chat/rankings?estimand=borda"


def test_the_reference_line_follows_the_scale() -> None:
    natural = shown(ranking(standing("a", interval=[-1, 1])))
    elo = shown(ranking(standing("a", interval=[800, 1200], score=1000)), scale="elo")
    assert [tick.label for tick in natural.ticks if tick.reference] == ["0.0"]
    assert [tick.label for tick in elo.ticks if tick.reference] == ["1,000"]


def test_the_help_line_names_the_level() -> None:
    assert "90% confidence" in shown(ranking(standing("a")), level="0.9").interval_meaning
    assert "no valid interval" in shown(ranking(standing("a")), estimator="plugin").interval_meaning


def test_observed_pairs_are_explained() -> None:
    assert "voted on" in shown(ranking(standing("a"), pairs="observed")).meaning
    assert "voted on" not in shown(ranking(standing("a"))).meaning


def test_votes_to_flip_are_named_where_they_are_known() -> None:
    flip = {"votes": 1234, "share": 0.0123, "leader": "a", "challenger": "b"}
    answer = ranking(standing("a"), standing("b", title="Bell"), votes_to_flip=flip)
    assert shown(answer).flip == "1,234 (1.23%), then Bell leads"
    assert shown(ranking(standing("a"))).flip == ""
