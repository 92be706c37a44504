"""What all tables have in common: types of columns, and how constraints are named.

Times are microseconds since 1970, in UTC. An id is derived from what it names (see `ids`), so that events
make the same rows in whatever order they come. A *stamp* orders events (see `OpenLineageEvent.stamp`): where
a value may be reported many times, the row keeps the stamp of the report that wins.
"""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from sqlalchemy import BigInteger, ForeignKey, MetaData, String, Text, Uuid
from sqlalchemy.orm import DeclarativeBase, mapped_column

__all__ = ["Base", "Key", "Stamp", "Words", "reference"]

_NAMES = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s",
    "pk": "pk_%(table_name)s",
}

# PostgreSQL would compare by the rules of a language.
_BYTEWISE = String(40).with_variant(String(40, collation="C"), "postgresql")

Key = Annotated[UUID, mapped_column(Uuid, primary_key=True)]
Stamp = Annotated[str, mapped_column(_BYTEWISE)]
Words = Annotated[str, mapped_column(Text)]


class Base(DeclarativeBase):
    """The base of every table."""

    metadata = MetaData(naming_convention=_NAMES)
    type_annotation_map = {int: BigInteger, UUID: Uuid, str: Text}  # noqa: RUF012 -- SQLAlchemy reads it once


def reference(target: str, *, cascade: bool = False, name: str | None = None) -> ForeignKey:
    """Return a reference to the id of a table; with `cascade`, the row goes with what it refers to."""
    return ForeignKey(f"{target}.uuid", ondelete="CASCADE" if cascade else None, name=name)
