"""Import a file from its first line to its last."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from time import monotonic

from app.domain.boards import BoardConfig
from app.formats import plan
from app.formats.identities import Identities
from app.formats.reader import Reader, Row
from app.formats.rows import BadRow, BrokenFile, Located, Place, VoteRow
from app.formats.sources.opened import Opened
from app.formats.sources.source import FIRST, opened, peek, source_of
from app.services.imports.batches import BatchWriter, OpenUnit, PlacedJudgement, PlacedVote, ballot_of
from app.services.imports.orders import Order, Reject, Summary, Watcher
from app.services.imports.targets import config_for, open_board

BATCH = 10_000


def run(open_unit: OpenUnit, order: Order, watcher: Watcher) -> Summary:
    """Import a file.

    Each batch is a transaction of its own and every vote has the same id each time: an import that was stopped is
    completed by running it again.

    Raises
    ------
    UnusableFile
        where the file cannot be read as asked, or the board is not as asked; nothing was written.
    DomainError
        where the fields of the new board are refused; nothing was written.
    """
    started = monotonic()
    with opened(order.path) as file:
        source = source_of(file)
        first, records = peek(source.records(plan.wanted(order.request, source.columns)), FIRST)
        good = [each.record for each in first if isinstance(each.record, dict)]
        made = plan.make(order.request, source.columns, good)
        with open_unit() as uow:
            found = uow.boards.find(order.board)
            reader = _reader(made, config_for(order, made, found))
            board = found or open_board(uow, order, made)
        summary = Summary(board.slug, new_board=found is None)
        create_items = order.create_items or board.config.open_items
        writer = BatchWriter(open_unit, board, create_items=create_items, summary=summary)
        with ThreadPoolExecutor(1) as pool:
            _Import(reader, writer, summary=summary, watcher=watcher, pool=pool).take(records, file)
    summary.seconds = monotonic() - started
    return summary


class _Import:
    """One file on its way to one board: while a batch is written, the rows of the next are read."""

    def __init__(
        self, reader: Reader, writer: BatchWriter, *, summary: Summary, watcher: Watcher, pool: Executor
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._summary = summary
        self._watcher = watcher
        self._pool = pool
        self._identities = Identities(summary.board)
        self._votes: list[PlacedVote] = []
        self._judgements: list[PlacedJudgement] = []
        self._written: Future[list[Reject]] | None = None

    def take(self, records: Iterator[Located], file: Opened) -> None:
        """Import every record; where the file breaks, those before."""
        try:
            for located in records:
                self._take_one(located, file)
        except BrokenFile as error:
            self._summary.broken = str(error)
        self._flush(file)
        self._settle()

    def _take_one(self, located: Located, file: Opened) -> None:
        place, record = located
        try:
            if isinstance(record, BadRow):
                raise record
            if not self._reader.takes(record):
                self._summary.other_rows += 1
                return
            rows = self._reader.read(record)
        except BadRow as error:
            self._summary.bad_rows += 1
            self._watcher.rejected(Reject(place, str(error), 1))
            return
        for row in rows:
            self._gather(place, row, file)

    def _gather(self, place: Place, row: Row, file: Opened) -> None:
        if isinstance(row, VoteRow):
            for vote in self._identities.of(row):
                self._votes.append(PlacedVote(place, ballot_of(row, vote), row.excluded))
                if len(self._votes) >= BATCH:
                    self._flush(file)
        else:
            self._judgements.append(PlacedJudgement(place, row))
            if len(self._judgements) >= BATCH:
                self._flush(file)

    def _flush(self, file: Opened) -> None:
        """Hand over what has gathered, once the batch before it is written."""
        self._settle()
        self._watcher.advanced(file.position, file.size)
        self._written = self._pool.submit(self._write, self._votes, self._judgements)
        self._votes, self._judgements = [], []

    def _write(self, votes: list[PlacedVote], judgements: list[PlacedJudgement]) -> list[Reject]:
        rejects = self._writer.votes(votes) if votes else []
        return [*rejects, *(self._writer.judgements(judgements) if judgements else [])]

    def _settle(self) -> None:
        """Wait for the batch that is being written, and tell what it refused."""
        if self._written is not None:
            for reject in self._written.result():
                self._watcher.rejected(reject)


def _reader(made: plan.Plan, config: BoardConfig) -> Reader:
    outcomes = [category.name for category in config.categories]
    return Reader(made, outcomes=outcomes, kinds={feature.name: feature.kind for feature in config.features})
