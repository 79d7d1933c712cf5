"""What all experiments share on the command line: their options, the progress bar, the way results are shown."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Generic, NoReturn, TypeVar

import orjson
import typer
from rich.console import Console, RenderableType
from rich.progress import Progress

Result = TypeVar("Result")
PLOTS = (".svg", ".png", ".pdf")
CORES = os.cpu_count() or 1
WIDTH = 200
"""Columns of a table that is not printed on a terminal."""


def _plot_path(path: Path | None) -> Path | None:
    if path is not None and path.suffix not in PLOTS:
        raise typer.BadParameter(f"{path} ends in {path.suffix or 'nothing'!r}; expected one of {', '.join(PLOTS)}")
    return path


Processes = Annotated[int, typer.Option(min=1, help="processes at once; they change no number")]
AsJson = Annotated[bool, typer.Option("--json", help="print JSON instead of a table")]
Plot = Annotated[Path | None, typer.Option(callback=_plot_path, help="also draw to this svg, png or pdf")]
Learner = Annotated[str, typer.Option(help="the outcome learner: davidson or lightgbm")]


@contextmanager
def progress(what: str, total: int) -> Iterator[Callable[[], None]]:
    """A bar on standard error; call what it yields after each replicate."""
    with Progress(console=Console(stderr=True)) as shown:
        bar = shown.add_task(what, total=total)
        yield lambda: shown.advance(bar)


@dataclass(frozen=True)
class Report(Generic[Result]):
    """How the results of an experiment are shown.

    Parameters
    ----------
    table, record, draw : the terminal's view, JSON's, and the plot's.
    """

    table: Callable[[Result], RenderableType]
    record: Callable[[Result], Any]
    draw: Callable[[Result, Path], None]

    def show(self, result: Result, *, json: bool, plot: Path | None) -> None:
        """Print, and draw where that is asked for."""
        if json:
            typer.echo(orjson.dumps(self.record(result), option=orjson.OPT_INDENT_2))
        else:
            Console(width=None if Console().is_terminal else WIDTH).print(self.table(result))
        if plot is not None:
            self.draw(result, plot)


def finish(passed: bool) -> NoReturn:
    """Exit status 1 where a bar was missed."""
    raise typer.Exit(0 if passed else 1)
