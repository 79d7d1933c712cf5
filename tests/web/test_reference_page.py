"""The reference of the HTTP interface."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from fastapi import FastAPI, Query
from playwright.sync_api import Page, expect
from pydantic import BaseModel

from app.web.reference import groups
from tests.web.fake_reader import Site


class Sent(BaseModel):
    slug: str
    budget: float = 1.5


def small() -> FastAPI:
    app = FastAPI()

    @app.put("/things/{thing}", tags=["things"])
    def put(thing: str, sent: Sent, level: Annotated[float, Query(description="of confidence")] = 0.95) -> None:
        """Put <b>one</b> thing."""

    return app


def test_every_operation_is_told_with_its_parameters_and_body() -> None:
    (group,) = groups(small().openapi())
    (operation,) = group.operations
    assert (group.name, operation.method, operation.path) == ("things", "PUT", "/things/{thing}")
    fields = {field.name: field for field in operation.fields}
    assert fields["thing"].required
    assert (fields["level"].default, fields["level"].meaning) == ("0.95", "of confidence")
    assert (fields["slug"].place, fields["slug"].kind, fields["slug"].required) == ("body", "string", True)
    assert fields["budget"].default == "1.5"


def test_the_page_loads_nothing_from_elsewhere(site: Site, open_page: Callable[..., Page]) -> None:
    asked: list[str] = []
    page = open_page(f"{site.address}/boards")
    page.on("request", lambda request: asked.append(request.url))
    page.get_by_role("link", name="API").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("HTTP interface")
    assert asked
    assert all(url.startswith(site.address) for url in asked)
