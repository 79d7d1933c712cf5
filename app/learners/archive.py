"""Arrays and plain values as one byte string: npz with a JSON header, no pickle, equal bytes for equal content."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

_HEADER = "header"


def pack(header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """One byte string of a JSON-able header and named arrays."""
    text = np.frombuffer(json.dumps(header, sort_keys=True).encode(), dtype=np.uint8)
    buffer = io.BytesIO()
    np.savez_compressed(buffer, allow_pickle=False, **{_HEADER: text}, **arrays)
    return buffer.getvalue()


def unpack(body: bytes) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """The header and the arrays that `pack` was given."""
    with np.load(io.BytesIO(body), allow_pickle=False) as archive:
        arrays = {name: archive[name] for name in archive.files}
    header: dict[str, Any] = json.loads(arrays.pop(_HEADER).tobytes())
    return header, arrays
