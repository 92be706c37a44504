"""A snapshot as a dataset of pyarrow, which DuckDB scans: the filters of a query decide which parts it opens.

DuckDB gives conditions on columns as an Arrow expression, which can be read only as text. If the text is
certain, it becomes an instar filter, for skipping. The whole expression is still applied to the rows, so a
condition that is not understood costs time, never rows.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.dataset as ds

from instar.api.lazy import batches_for
from instar.schema import Decimal, Primitive, arrow_schema

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import pyarrow.compute as pc

    from instar.api.snapshot import Snapshot
    from instar.schema import Type

__all__ = ["SnapshotDataset", "sql_of_text"]


class SnapshotDataset(ds.Dataset):  # type: ignore[misc]  # pyarrow has no types
    """The rows of a snapshot; each scan reads the columns and opens the parts that it needs."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._schema = arrow_schema(snapshot.schema)

    @property
    def schema(self) -> pa.Schema:
        """The columns, as Arrow has them."""
        return self._schema

    def scanner(
        self,
        columns: Sequence[str] | None = None,
        filter: pc.Expression | None = None,  # noqa: A002 -- pyarrow's name
        **options: Any,  # noqa: ANN401 -- pyarrow's
    ) -> ds.Scanner:
        """Return a scan of some columns of the rows that an expression is true for."""
        known = {field.name: field.type for field in self._snapshot.schema.fields}
        where, looked_at = (None, set[str]()) if filter is None else sql_of_text(str(filter), known)
        wanted = self._schema.names if columns is None else list(columns)
        if filter is not None and where is None:
            looked_at = set(self._schema.names)
        names = [name for name in self._schema.names if name in {*wanted, *looked_at}]
        names = names or self._schema.names[:1]
        schema = pa.schema([self._schema.field(name) for name in names])
        batches = batches_for(self._snapshot, where, names)
        reader = pa.RecordBatchReader.from_batches(schema, batches)
        return ds.Scanner.from_batches(reader, columns=wanted, filter=filter, **options)


def sql_of_text(text: str, columns: Mapping[str, Type]) -> tuple[str | None, set[str]]:
    """Return in Spark SQL what the text of an expression says, and the columns that it looks at.

    There is none if a word of it is not understood, or if a column has a name that may be taken for more.
    """
    if not all(_NAME.fullmatch(name) for name in columns):
        return None, set()
    try:
        reading = _Reading(text, columns)
        return reading.whole(), reading.names
    except _UnknownError:
        return None, set()


_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TOKEN: Final = re.compile(
    r'\s*("(?:[^"\\\n]|\\["\\])*"'
    r"|[0-9]{4}-[0-9]{2}-[0-9]{2}(?: [0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,6})?Z?)?"
    r"|-?[0-9]+(?:\.[0-9]+)?(?![0-9.eE])"
    r"|null\[bool\]|[A-Za-z_][A-Za-z0-9_]*|==|!=|<=|>=|<|>|=|[(){}\[\],:])"
)
_COMPARISONS: Final = {"==": "=", "!=": "<>", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
_WHOLE: Final = {"tinyint", "smallint", "int", "bigint"}


class _UnknownError(Exception):
    """The text has something that is not read here."""


class _Reading:
    """The text of an expression, read from left to right."""

    def __init__(self, text: str, columns: Mapping[str, Type]) -> None:
        self._tokens = list(_tokens(text))
        self._at = 0
        self._columns = columns
        self.names: set[str] = set()

    def whole(self) -> str:
        """Read all of it."""
        found = self._condition()
        if self._at != len(self._tokens):
            raise _UnknownError
        return found

    def _condition(self) -> str:
        match self._next():
            case "is_valid":
                return f"({self._in_parentheses()} IS NOT NULL)"
            case "is_null":
                self._expect("(")
                name = self._column()
                self._expect(",", "{", "nan_is_null", "=", "false", "}", ")")
                return f"({name} IS NULL)"
            case "if_else":
                return self._one_of()
            case "(":
                if self._peek() in {"(", "is_valid", "is_null", "if_else"}:
                    left, by, right = self._condition(), self._next(), self._condition()
                    if by not in {"and", "or"}:
                        raise _UnknownError
                    found = f"({left} {by.upper()} {right})"
                else:
                    name = self._column()
                    comparison = _COMPARISONS.get(self._next())
                    if comparison is None:
                        raise _UnknownError
                    found = f"({name} {comparison} {self._literal(name)})"
                self._expect(")")
                return found
        raise _UnknownError

    def _one_of(self) -> str:
        """Read what `x IN (…)` is: null for null, or else whether it is one of the values."""
        self._expect("(", "is_valid")
        name = self._in_parentheses()
        self._expect(",", "is_in", "(", name, ",", "{", "value_set", "=")
        self._next()  # the type of the values, which is the column's
        self._expect(":", "[")
        values = [self._literal(name)]
        while self._peek() == ",":
            self._next()
            values.append(self._literal(name))
        self._expect("]", ",", "null_matching_behavior", "=", "MATCH", "}", ")", ",", "null[bool]", ")")
        return f"({name} IN ({', '.join(values)}))"

    def _in_parentheses(self) -> str:
        self._expect("(")
        name = self._column()
        self._expect(")")
        return name

    def _column(self) -> str:
        name = self._next()
        if name not in self._columns:
            raise _UnknownError
        self.names.add(name)
        return name

    def _literal(self, name: str) -> str:
        """Read a value of the type of a column."""
        text, type_ = self._next(), self._columns[name]
        kind = type_.name if isinstance(type_, Primitive) else ""
        if kind == "string" and text.startswith('"'):
            value = re.sub(r"\\(.)", r"\1", text[1:-1])
            return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
        if kind in _WHOLE and re.fullmatch("-?[0-9]+", text):
            return f"cast('{text}' as bigint)"
        if isinstance(type_, Decimal) and re.fullmatch(r"-?[0-9]+(\.[0-9]+)?", text):
            return f"{text}BD"
        if kind == "date" and re.fullmatch("[0-9-]{10}", text):
            return f"date'{text}'"
        if kind == "timestamp" and text.endswith("Z") and " " in text:
            return f"timestamp'{text[:-1]}+00:00'"
        if kind == "timestamp_ntz" and not text.endswith("Z") and " " in text:
            return f"timestamp_ntz'{text}'"
        raise _UnknownError

    def _expect(self, *tokens: str) -> None:
        for token in tokens:
            if self._next() != token:
                raise _UnknownError

    def _peek(self) -> str:
        if self._at >= len(self._tokens):
            raise _UnknownError
        return self._tokens[self._at]

    def _next(self) -> str:
        token = self._peek()
        self._at += 1
        return token


def _tokens(text: str) -> Iterator[str]:
    at = 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            raise _UnknownError
        yield found[1]
        at = found.end()
