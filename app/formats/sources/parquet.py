"""Parquet files, batch by batch."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import pyarrow as pa
from pyarrow import parquet

from app.formats.rows import BrokenFile, Located, Place, UnusableFile
from app.formats.sources.opened import Opened

ROWS = 2_000


class ParquetRows:
    """Rows of a Parquet file; only the columns asked for are decoded.

    Parameters
    ----------
    opened : the file.
    """

    def __init__(self, opened: Opened) -> None:
        try:
            self._file = parquet.ParquetFile(opened.seekable())
        except (pa.ArrowException, OSError) as error:
            raise UnusableFile(f"{opened.path}: not a Parquet file: {error}") from None
        self.columns = tuple(self._file.schema_arrow.names)

    def records(self, wanted: Collection[str]) -> Iterator[Located]:
        """Every row, numbered from 1, with those of its columns that are wanted."""
        row = 0
        try:
            for batch in self._file.iter_batches(ROWS, columns=[name for name in self.columns if name in wanted]):
                for record in batch.to_pylist():
                    row += 1
                    yield Located(Place(row), record)
        except (pa.ArrowException, OSError) as error:
            raise BrokenFile(f"the Parquet data are damaged after row {row}: {error}") from None
