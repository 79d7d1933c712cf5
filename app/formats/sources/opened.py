"""Open a file, plain or gzip, and count how much of it was read."""

from __future__ import annotations

import gzip
import io
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, cast

from app.formats.rows import BrokenFile, UnusableFile

GZIP = b"\x1f\x8b"
CHUNK = 1 << 20
DAMAGE = (EOFError, gzip.BadGzipFile, zlib.error)


class _Unzipped(io.RawIOBase):
    """Decompressed bytes, as many as there are: a buffered read would lose those just before damage."""

    def __init__(self, raw: IO[bytes]) -> None:
        self._gzip = gzip.GzipFile(fileobj=raw)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        read = self._gzip.read1(len(buffer))
        buffer[: len(read)] = read
        return len(read)


class Opened:
    """The bytes of a file, decompressed as they are read.

    Parameters
    ----------
    path : the file; gzip is told by its first bytes, not by its name.
    """

    def __init__(self, path: Path) -> None:
        try:
            self._raw = path.open("rb")
            self.size = path.stat().st_size
        except OSError as error:
            raise UnusableFile(f"{path}: {error.strerror}") from None
        self.path = path
        self._unpacked: IO[bytes] | None = None
        self.compressed = self._raw.read(len(GZIP)) == GZIP
        self._raw.seek(0)
        stream = _Unzipped(self._raw) if self.compressed else cast(io.RawIOBase, self._raw)
        self._stream = io.BufferedReader(stream, CHUNK)

    @property
    def position(self) -> int:
        """Bytes of the file as it lies on the disk that were read so far."""
        return self._raw.tell()

    def start(self) -> bytes:
        """The first bytes, which stay to be read."""
        try:
            return self._stream.peek(1)[:4096]
        except DAMAGE as error:
            raise UnusableFile(f"{self.path}: damaged gzip: {error}") from None

    def lines(self) -> Iterator[bytes]:
        """Lines with their ends.

        Raises
        ------
        BrokenFile
            where compressed data stop or are damaged: a line that is cut off there is not read.
        """
        number = 0
        try:
            for number, line in enumerate(self._stream, 1):  # noqa: B007
                yield line
        except DAMAGE as error:
            raise BrokenFile(f"the gzip data stop or are damaged after line {number}: {error}") from None

    def chunks(self) -> Iterator[bytes]:
        """Blocks of bytes; raises as `lines` does."""
        try:
            while chunk := self._stream.read1(CHUNK):
                yield chunk
        except DAMAGE as error:
            raise BrokenFile(f"the gzip data stop or are damaged: {error}") from None

    def seekable(self) -> IO[bytes]:
        """The decompressed bytes as a file that one can jump about in; gzip is unpacked to the disk for it."""
        if not self.compressed:
            return self._raw
        self._unpacked = tempfile.TemporaryFile()  # noqa: SIM115
        for chunk in self.chunks():
            self._unpacked.write(chunk)
        return self._unpacked

    def close(self) -> None:
        """Give the file back."""
        if self._unpacked is not None:
            self._unpacked.close()
        self._stream.close()
        self._raw.close()
