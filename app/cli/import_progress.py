"""What an import shows: a bar, the first rejected lines, a summary."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Any, Self

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

from app.services.imports.orders import Reject, Summary

SHOWN = 20


class Terminal:
    """Watches an import on standard error, where a bar moves if a person looks on.

    Parameters
    ----------
    name : of the file.
    rejects : where every rejected line is written.
    """

    def __init__(self, name: str, rejects: Path | None) -> None:
        console = Console(stderr=True, soft_wrap=True)
        columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
        self._progress = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
        self._task = self._progress.add_task(escape(name))
        self._console = console
        self._rejects = None if rejects is None else rejects.open("w", encoding="utf-8")
        self._told = 0

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()
        if self._told > SHOWN:
            more = "" if self._rejects is not None else "; --rejects FILE writes them all"
            self._console.print(f"… and {self._told - SHOWN:,} more rejected lines{more}", highlight=False)
        if self._rejects is not None:
            self._rejects.close()

    def advanced(self, position: int, size: int) -> None:
        """Move the bar."""
        self._progress.update(self._task, completed=position, total=size)

    def rejected(self, reject: Reject) -> None:
        """Show the line if it is among the first, and keep it."""
        self._told += 1
        if self._told <= SHOWN:
            times = "" if reject.times == 1 else f" ({reject.times:,} times)"
            self._console.print(escape(f"{reject.place}: {reject.reason}{times}"), highlight=False)
        if self._rejects is not None:
            line, element = reject.place
            told = reject.reason if element is None else f"element {element}: {reject.reason}"
            reason = told.replace("\t", " ").replace("\n", " ")
            self._rejects.write(f"{line}\t{reject.times}\t{reason}\n")


def document_of(summary: Summary) -> dict[str, Any]:
    """The summary for programs."""
    return {
        "board": summary.board,
        "new_board": summary.new_board,
        "created": summary.created,
        "duplicate": summary.duplicate,
        "rejected": summary.rejected,
        "votes": dict(summary.votes),
        "judgements": dict(summary.judgements),
        "excluded": summary.excluded,
        "filtered": summary.other_rows,
        "seconds": round(summary.seconds, 3),
        "per_second": round(_rate(summary)),
        "error": summary.broken,
    }


def lines_of(summary: Summary) -> list[str]:
    """The summary for people."""
    made = " (new)" if summary.new_board else ""
    lines = [
        f"{summary.board}{made}: {summary.created:,} created, {summary.duplicate:,} duplicate, "
        f"{summary.rejected:,} rejected in {summary.seconds:.1f} s ({_rate(summary):,.0f} a second)"
    ]
    if summary.judgements:
        lines.append(f"judgements among them: {summary.judgements['created']:,} created")
    if summary.excluded:
        lines.append(f"excluded, as the file says: {summary.excluded:,}")
    if summary.other_rows:
        lines.append(f"rows left out by the conditions: {summary.other_rows:,}")
    if summary.broken is not None:
        lines.append(f"the file is damaged, what came before is imported: {summary.broken}")
    return lines


def _rate(summary: Summary) -> float:
    done = summary.created + summary.duplicate + summary.rejected
    return done / summary.seconds if summary.seconds else 0.0
