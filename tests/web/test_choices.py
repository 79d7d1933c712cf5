"""Selectors offer what exists, and addresses name it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from app.web.choices import DEFAULTS, Combination, Menu, choices, query, settle
from tests.web.answers import MENU

queries = st.dictionaries(
    st.sampled_from([*DEFAULTS, "other"]),
    st.sampled_from(
        ["bt", "borda", "plugin", "classical", "all", "observed", "language:de", "marginal", "elo", "0.9", "x"]
    ),
)


@given(queries)
def test_whatever_the_address_says_the_ranking_exists(wanted: dict[str, str]) -> None:
    settled = settle(wanted, MENU)
    chosen = (settled["estimand"], settled["estimator"], settled["segment"])
    assert chosen in {(c.estimand, c.estimator, c.segment) for c in MENU.combinations}
    if settled["pairs"] != "auto":
        assert Combination(chosen[0], chosen[1], settled["pairs"], chosen[2]) in MENU.combinations


@given(queries)
def test_settling_twice_changes_nothing(wanted: dict[str, str]) -> None:
    settled = settle(wanted, MENU)
    assert settle(settled, MENU) == settled


def test_the_address_leaves_the_defaults_out() -> None:
    assert query(settle({}, MENU)) == ""
    assert query(settle({"estimand": "borda", "level": "0.95"}, MENU)) == "?estimand=borda"


def test_an_elo_scale_is_offered_where_it_exists() -> None:
    offered = {c.name for c in choices(settle({"estimand": "bt"}, MENU), MENU)}
    assert "scale" in offered
    assert "scale" not in {c.name for c in choices(settle({"estimand": "borda", "scale": "elo"}, MENU), MENU)}


def test_models_alone_offer_no_interval() -> None:
    for estimator in ("plugin", "contextual-bt"):
        offered = {c.name for c in choices(settle({"estimator": estimator}, MENU), MENU)}
        assert not offered & {"interval", "level"}
    offered = {c.name for c in choices(settle({"estimator": "restricted"}, MENU), MENU)}
    assert offered >= {"interval", "level"}


def test_a_selector_with_one_option_is_left_out() -> None:
    menu = Menu((Combination("rc", "debiased", "all", ""),), ("marginal",), frozenset())
    assert [c.name for c in choices(settle({}, menu), menu)] == ["level"]
