"""`orthorank simulate`: voters that do not exist."""

from __future__ import annotations

import secrets
import signal
from collections import Counter
from threading import Event
from typing import Annotated, Literal

import typer
from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from app.cli.database import refusals_told, units_of_work
from app.cli.options import Data, connected
from app.domain.boards import DRAFT, Board
from app.domain.errors import Invalid
from app.domain.items import ItemDraft
from app.domain.parsing import parse
from app.services.simulate import FEATURES, Simulation, UnitsOfWork, active_items, prepare

commands = typer.Typer()

VOTES = 1000
ITEMS = 8
PRESETS = {"battle": "arena", "context": "ternary"}

Slug = Annotated[str, typer.Argument(metavar="BOARD", help="Slug of the board; made, public, when it is new.")]
Unit = Annotated[
    Literal["battle", "context"],
    typer.Option(help="Of a new board. battle: each vote is a draw of its own. context: several pairs of one prompt."),
]
Items = Annotated[int, typer.Option(min=2, max=200, help="Items of a new board; an existing one keeps its own.")]
Votes = Annotated[
    int | None,
    typer.Option(min=1, help="Votes to cast. Default: 1000, or without end where --rate is given.", show_default=False),
]
Rate = Annotated[
    float | None,
    typer.Option(min=0.01, help="Votes a second. Default: as fast as the service takes them.", show_default=False),
]
Seed = Annotated[
    int | None,
    typer.Option(
        min=0,
        max=2**31 - 1,
        help="Equal seeds cast equal votes, which count once. Default: a fresh one.",
        show_default=False,
    ),
]


@commands.command()
def simulate(
    board: Slug,
    unit: Unit = "battle",
    items: Items = ITEMS,
    votes: Votes = None,
    rate: Rate = None,
    seed: Seed = None,
    data: Data = None,
) -> None:
    """Cast simulated votes with their propensities, through the same service as real ones. Ctrl-C ends it."""
    most = VOTES if votes is None and rate is None else votes
    with refusals_told(), units_of_work(connected(data, redis=False)) as open_work:
        target = _board(open_work, board, unit, items)
        names = active_items(open_work, target)
        if len(names) < 2:
            raise Invalid("few-items", f"board {board!r} has fewer than two active items")
        simulation = Simulation(open_work, target, names, seed=secrets.randbits(31) if seed is None else seed)
        fates = _cast(simulation, most, rate)
    typer.echo(", ".join(f"{count:,} {fate}" for fate, count in sorted(fates.items())) or "no votes")
    raise typer.Exit(1 if fates["rejected"] else 0)


def _board(open_work: UnitsOfWork, slug: str, unit: str, n_items: int) -> Board:
    with open_work() as work:
        found = work.boards.find(slug)
    if found is not None:
        return found
    features = [{"name": each.name, "kind": each.kind} for each in FEATURES]
    document = {"slug": slug, "title": f"Simulation {slug}", "public": True, "unit": unit, "outcomes": PRESETS[unit]}
    draft = parse(DRAFT, {**document, "features": features, "segments": ["language"]})
    width = len(str(n_items))
    return prepare(open_work, draft, {f"model-{n:0{width}}": ItemDraft() for n in range(1, n_items + 1)})


def _cast(simulation: Simulation, most: int | None, rate: float | None) -> Counter[str]:
    stop, fates = Event(), Counter[str]()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    columns = (SpinnerColumn(), MofNCompleteColumn(), TextColumn("votes"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True)) as progress:
        bar = progress.add_task("votes", total=most)
        for batch in simulation.run(most=most, rate=rate, stop=stop):
            fates.update(batch)
            progress.advance(bar, batch.total())
    return fates
