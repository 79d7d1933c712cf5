"""What every table shares: names of constraints, column types, the columns most rows have."""

from __future__ import annotations

from datetime import datetime
from typing import Any, ClassVar

from sqlalchemy import ARRAY, BigInteger, DateTime, Double, ForeignKey, Identity, LargeBinary, MetaData, Text, func
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

NAMING = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
    "pk": "pk_%(table_name)s",
}


class Base(DeclarativeBase):
    """Common types: every time is UTC with its zone, every integer 64 bits wide."""

    metadata = MetaData(naming_convention=NAMING)
    type_annotation_map: ClassVar[dict[Any, Any]] = {
        datetime: DateTime(timezone=True),
        int: BigInteger,
        float: Double,
        str: Text,
        bytes: LargeBinary,
        list[str]: ARRAY(Text),
        list[float]: ARRAY(Double),
        dict[str, Any]: JSONB(none_as_null=True),
    }


class Numbered:
    """Rows numbered by the server."""

    id: Mapped[int] = mapped_column(Identity(always=True), primary_key=True, sort_order=-2)


class OnBoard:
    """Rows that belong to a board."""

    board_id: Mapped[int] = mapped_column(ForeignKey("boards.id"), sort_order=-1)


class Dated:
    """Rows that say when they were written."""

    created_at: Mapped[datetime] = mapped_column(server_default=func.now())
