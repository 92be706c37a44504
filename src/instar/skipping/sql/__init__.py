"""The front end for filters written in Spark's SQL."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from instar.schema import Schema
    from instar.skipping.expression import Expression
    from instar.skipping.functions import Session

__all__ = ["columns_mentioned", "parse_filter"]


def parse_filter(text: str, schema: Schema, session: Session | None = None) -> Expression:
    """Read a filter as Spark SQL in a session, by default in UTC and ANSI mode."""
    from instar.skipping.sql.parse import read_filter  # noqa: PLC0415 -- only who has a text loads sqlglot

    return read_filter(text, schema, session)


def columns_mentioned(text: str, schema: Schema) -> frozenset[int]:
    """Return the ids of the top-level columns that a filter names, also where it is not understood."""
    from instar.skipping.sql.mentions import find_mentions  # noqa: PLC0415 -- as above

    return find_mentions(text, schema)
