"""How large a schema may be: types that hold one another twice have columns without end.

A record of a few lines can have more columns than any machine can count, and JSON may be nested deeper
than anybody can follow. Both are refused when a version is loaded.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from instar.errors import InvalidSchemaError
from instar.schema.wellformed import MAX_DEPTH

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["MAX_COLUMNS", "MAX_JSON_DEPTH", "ColumnCount", "check_json_depth"]

MAX_COLUMNS: Final = 10_000
"""Columns of one record, those inside others too: each type counts wherever it is used."""

MAX_JSON_DEPTH: Final = 256
"""How deep the JSON of a schema may be nested: several levels of it are one of columns."""


class ColumnCount:
    """Counts columns while they are made, and raises before they are too many or too deep."""

    def __init__(self) -> None:
        self._columns = 0
        self._depth = 0

    @contextmanager
    def inside(self, columns: int) -> Iterator[None]:
        """Go one level deeper, where there are so many more columns."""
        self._columns += columns
        self._depth += 1
        if self._columns > MAX_COLUMNS:
            raise InvalidSchemaError(
                f"a record has more than {MAX_COLUMNS:,} columns: each type counts wherever it is used"
            )
        if self._depth > MAX_DEPTH:
            raise InvalidSchemaError(f"types are nested more than {MAX_DEPTH} levels deep")
        yield
        self._depth -= 1


def check_json_depth(value: Any, source: str) -> None:  # noqa: ANN401 -- JSON
    """Raise if a value is nested deeper than can be followed."""
    level = [value]
    for _ in range(MAX_JSON_DEPTH):
        level = [
            inner
            for each in level
            if isinstance(each, dict | list)
            for inner in (each.values() if isinstance(each, dict) else each)
        ]
        if not level:
            return
    raise InvalidSchemaError(f"{source} is nested too deep: its JSON has more than {MAX_JSON_DEPTH} levels")
