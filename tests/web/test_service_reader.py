"""The pages over the real services: votes, a refit, pages."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import Engine

from tests.refitting import FEATURES, Bench, ballots

ITEMS = {"ada": "Ada <3", "bell": "Bell & sons", "curie": "Curie"}
Make = Callable[..., str]


@pytest.fixture(scope="module")
def bench(database: Engine) -> Bench:
    return Bench(database)


@pytest.fixture(scope="module")
def make_board(client: TestClient, admin: dict[str, str]) -> Make:
    def make(slug: str, **fields: object) -> str:
        body = {"slug": slug, "title": f"Board {slug}", "features": FEATURES, "segments": ["lang"], **fields}
        assert client.post("/v1/boards", json=body, headers=admin).status_code == 201
        for name, title in ITEMS.items():
            path = f"/v1/boards/{slug}/items/{name}"
            assert client.put(path, json={"title": title, "organisation": "Lab"}, headers=admin).status_code == 201
        return slug

    return make


@pytest.fixture(scope="module")
def ranked(client: TestClient, admin: dict[str, str], make_board: Make, bench: Bench) -> str:
    """A public board with a ranking."""
    slug = make_board("ranked", public=True)
    votes = ballots(tuple(ITEMS), 400, seed=3, contexts=200)
    client.post(f"/v1/boards/{slug}/votes/batch", json={"votes": votes}, headers=admin)
    bench.refit(slug)
    return slug


def test_a_ranked_board_shows_titles_escaped_and_the_api_s_numbers(client: TestClient, ranked: str) -> None:
    page = client.get(f"/boards/{ranked}").text
    first = client.get(f"/v1/boards/{ranked}/rankings").json()["rankings"][0]
    assert "Ada &lt;3" in page
    assert f'data-score="{first["score"]!r}"' in page
    assert f'data-item="{first["item"]}"' in page


def test_every_choice_that_the_selectors_offer_is_answered(client: TestClient, ranked: str) -> None:
    more = ("estimator=restricted&segment=lang:de", "estimator=contextual-bt&scale=elo")
    for query in (
        *("estimand=rc&estimator=plugin", "estimator=classical&scale=elo", "segment=lang:de&interval=marginal"),
        *more,
    ):
        page = client.get(f"/boards/{ranked}/leaderboard?{query}")
        assert page.status_code == 200
        for part in query.split("&"):
            assert f'value="{part.partition("=")[2]}" selected' in page.text, part


def test_the_pairs_are_shown_in_the_order_of_the_ranking(client: TestClient, ranked: str) -> None:
    page = client.get(f"/boards/{ranked}/pairs").text
    order = [row["item"] for row in client.get(f"/v1/boards/{ranked}/rankings").json()["rankings"]]
    places = [
        page.index(f'<th scope="row" title="{ITEMS[item].replace("&", "&amp;").replace("<", "&lt;")}">')
        for item in order
    ]
    assert places == sorted(places)
    assert "No votes on this pair" not in page


def test_a_fragment_changes_its_tag_with_votes_and_titles_only(
    client: TestClient, admin: dict[str, str], ranked: str
) -> None:
    def tag() -> str:
        return client.get(f"/boards/{ranked}/leaderboard").headers["etag"]

    first = tag()
    assert tag() == first
    assert client.get(f"/boards/{ranked}/leaderboard", headers={"If-None-Match": first}).status_code == 304
    client.post(f"/v1/boards/{ranked}/votes", json=ballots(tuple(ITEMS), 1, seed=99)[0], headers=admin)
    second = tag()
    assert second != first
    assert client.get(f"/boards/{ranked}/leaderboard", headers={"If-None-Match": first}).status_code == 200
    client.put(f"/v1/boards/{ranked}/items/bell", json={"title": "Bell II"}, headers=admin)
    assert tag() != second
    client.put(f"/v1/boards/{ranked}/items/bell", json={"title": ITEMS["bell"]}, headers=admin)


def test_a_board_without_a_snapshot_says_so(client: TestClient, make_board: Make) -> None:
    slug = make_board("fresh", public=True)
    for path in (f"/boards/{slug}", f"/boards/{slug}/pairs"):
        page = client.get(path)
        assert page.status_code == 200
        assert "No ranking yet" in page.text


def test_a_private_board_opens_with_its_key_alone(client: TestClient, admin: dict[str, str], make_board: Make) -> None:
    slug = make_board("secret")
    other = make_board("other")
    path = f"/boards/{slug}/leaderboard"
    assert client.get(path).status_code == 401
    for board, status in ((slug, 200), (other, 403)):
        body = {"scopes": ["read"], "board": board}
        key = client.post("/v1/keys", json=body, headers=admin).json()["key"]
        assert client.get(path, headers={"Authorization": f"Bearer {key}"}).status_code == status
    assert "Board secret" not in client.get(f"/boards/{slug}").text
    listed = client.get("/boards").text
    assert "Board secret" not in listed


def test_mixtures_show_titles_and_follow_costs(client: TestClient, admin: dict[str, str], ranked: str) -> None:
    page = client.get(f"/boards/{ranked}/equilibrium")
    assert "Ada &lt;3" in page.text
    assert "lang:de" in page.text
    fragment = f"/boards/{ranked}/mixtures"
    tag = {"If-None-Match": client.get(fragment).headers["ETag"]}
    assert client.get(fragment, headers=tag).status_code == 304
    cost = {"title": "Ada <3", "organisation": "Lab", "cost": 5.0}
    assert client.put(f"/v1/boards/{ranked}/items/ada", json=cost, headers=admin).status_code == 200
    dear = client.get(fragment, headers=tag)
    assert dear.status_code == 200
    assert "Ada &lt;3" not in dear.text
    assert client.get("/boards/nowhere/equilibrium").status_code == 404


def test_the_history_of_a_ranked_board_shows_titles(client: TestClient, ranked: str) -> None:
    page = client.get(f"/boards/{ranked}/history")
    assert page.status_code == 200
    assert "Ada &lt;3" in page.text
    assert page.text.count("<polyline") == len(ITEMS)
    assert "1 of 1" in page.text
