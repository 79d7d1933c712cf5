"""Frames, payoffs and fold models as bytes, and back: what later questions to a snapshot are answered from."""

from __future__ import annotations

import io
import json
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.services.refit.frame import Frame
from app.services.refit.payoffs import Payoffs
from app.stats.debias.clusters import Clustering
from app.stats.debias.folds import Spread
from app.stats.debias.propensity import Exposure, Labels
from app.stats.types import Covariates, Floats, Ints, Rule, Sample, Votes

PART = 64 << 20
"""Bytes of one stored part: the database holds no value above a gigabyte."""

Arrays = Mapping[str, NDArray[Any]]


@dataclass(frozen=True, slots=True)
class Stored:
    """The parts of a snapshot that rankings beyond its tables are computed from.

    Parameters
    ----------
    frame : the board's rows.
    covariates : the distinct ones.
    levels : segment name to the level of each distinct covariate row, '' where it is missing.
    """

    frame: Frame
    covariates: Covariates
    levels: dict[str, list[str]]


def pack_stored(stored: Stored) -> bytes:
    """Everything but the models."""
    frame, sample = stored.frame, stored.frame.sample
    header = {
        "items": frame.items,
        "kind": frame.kind,
        "fold_rule": frame.fold_rule,
        "n_folds": frame.n_folds,
        "few_units": frame.spread.few.tolist(),
        "clustering": [frame.clustering.by, frame.clustering.unit, frame.clustering.fixed],
        "levels": stored.levels,
        "designed": frame.designed,
    }
    arrays = {
        "first": sample.rule.first,
        "second": sample.rule.second,
        "context": sample.context,
        "fold": sample.fold,
        "pattern": sample.pattern,
        "group": frame.exposure.group,
        "active": frame.exposure.active,
        "offer_row": frame.exposure.row,
        "event": frame.event,
        **{f"labels.{name}": getattr(frame.labels, name) for name in Labels.__slots__},
        "held": frame.held,
        "lasting": frame.lasting,
        "labels_lasting": frame.labels_lasting,
        "time": frame.time,
        "context_id": frame.context_id,
        "vote_id": frame.vote_id,
        "x": stored.covariates.x,
        **{f"votes.{name}": getattr(sample.votes, name) for name in Votes.__slots__},
    }
    if stored.covariates.margins is not None:
        arrays["margins"] = stored.covariates.margins[:, *np.triu_indices(sample.n_items, 1)]
    return pack(header, arrays)


def unpack_stored(body: bytes) -> Stored:
    """What `pack_stored` was given, to the bit."""
    header, arrays = unpack(body)
    votes = Votes(**{name: arrays[f"votes.{name}"] for name in Votes.__slots__})
    rule = Rule(arrays["first"], arrays["second"])
    items = tuple(header["items"])
    sample = Sample(len(items), rule, votes, arrays["context"], arrays["fold"], arrays["pattern"])
    frame = Frame(
        items=items,
        sample=sample,
        exposure=Exposure(arrays["offer_row"], arrays["group"], arrays["active"], sample.n_rows),
        event=arrays["event"],
        labels=Labels(**{name: arrays[f"labels.{name}"] for name in Labels.__slots__}),
        held=arrays["held"],
        lasting=arrays["lasting"],
        labels_lasting=arrays["labels_lasting"],
        designed=header["designed"],
        time=arrays["time"],
        context_id=arrays["context_id"],
        vote_id=arrays["vote_id"],
        kind=header["kind"],
        fold_rule=header["fold_rule"],
        n_folds=header["n_folds"],
        spread=Spread(header["n_folds"], np.array(header.get("few_units", []), dtype=np.uint64)),
        clustering=Clustering(*header["clustering"]),
    )
    return Stored(frame, Covariates(arrays["x"], _margins(arrays.get("margins"), len(items))), header["levels"])


def pack_payoffs(payoffs: Payoffs) -> bytes:
    """Pairwise results."""
    arrays = {"share": payoffs.share, "error": payoffs.error, "counts": payoffs.counts}
    return pack({"rows_used": payoffs.rows_used}, arrays)


def unpack_payoffs(body: bytes) -> Payoffs:
    """What `pack_payoffs` was given."""
    header, arrays = unpack(body)
    return Payoffs(arrays["share"], arrays["error"], arrays["counts"], header["rows_used"])


def pack(header: Mapping[str, Any], arrays: Arrays) -> bytes:
    """A JSON header and arrays, whole numbers in the narrowest type, lightly compressed; equal content, equal bytes."""
    buffer = io.BytesIO()
    text = np.frombuffer(json.dumps(header, sort_keys=True).encode(), dtype=np.uint8)
    np.savez(buffer, allow_pickle=False, **{"header": text}, **{name: _narrow(each) for name, each in arrays.items()})
    return zlib.compress(buffer.getbuffer(), 1)


def unpack(body: bytes) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """The header, and the arrays with 64-bit numbers."""
    with np.load(io.BytesIO(zlib.decompress(body)), allow_pickle=False) as archive:
        arrays = {name: _wide(archive[name]) for name in archive.files if name != "header"}
        header: dict[str, Any] = json.loads(archive["header"].tobytes())
    return header, arrays


def parts(body: bytes) -> list[bytes]:
    """Cut into pieces that the database takes."""
    return [body[start : start + PART] for start in range(0, max(len(body), 1), PART)]


def joined(pieces: Iterable[bytes]) -> bytes:
    """Undo `parts`."""
    return b"".join(pieces)


def _margins(upper: NDArray[Any] | None, n_items: int) -> NDArray[Any] | None:
    """Both orders of each pair from the margins (u, K (K - 1) / 2, q) of one."""
    if upper is None:
        return None
    margins = np.full((len(upper), n_items, n_items, upper.shape[2]), np.nan, dtype=upper.dtype)
    first, second = np.triu_indices(n_items, 1)
    margins[:, first, second] = upper
    margins[:, second, first] = -upper
    return margins


def _narrow(values: NDArray[Any]) -> NDArray[Any]:
    if values.dtype != np.int64 or not values.size:
        return values
    narrow = np.promote_types(np.min_scalar_type(values.min()), np.min_scalar_type(values.max()))
    return values.astype(narrow) if narrow.kind in "iu" else values


def _wide(values: NDArray[Any]) -> Ints | Floats | NDArray[np.bool_]:
    return values.astype(np.int64) if values.dtype.kind in "iu" else values
