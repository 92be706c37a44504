"""`ALTER TABLE`: the changes that Spark asks a catalog for, as steps of our own, under our rules."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from instar.errors import UsageError
from instar.schema import as_schema, format_path
from instar.spark.catalog.properties import option_value
from instar.state.options import CLUSTER_BY

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from instar.schema import SchemaUpdate, Type
    from instar.spark.catalog.contract import StoredTable
    from instar.state import ConfigValue

__all__ = ["alter"]

_COMMENT: Final = "comment"


class _Alteration:
    """What one statement changes: the schema in one commit, and options and comments in others."""

    def __init__(self, table: StoredTable) -> None:
        self._table = table
        self._update: SchemaUpdate | None = None
        self._options: dict[str, ConfigValue | Sequence[str] | None] = {}
        self._comments: dict[str | None, str | None] = {}

    @property
    def update(self) -> SchemaUpdate:
        """The change of schema, begun when it is first needed."""
        if self._update is None:
            self._update = self._table.evolve()
        return self._update

    def add(self, change: Any) -> None:  # noqa: ANN401 -- a Java object
        """Take one more change."""
        kind = str(change.getClass().getSimpleName())
        if kind in {"SetProperty", "RemoveProperty"}:
            self._set(str(change.property()), str(change.value()) if kind == "SetProperty" else None)
        elif kind == "ClusterBy":
            columns = [format_path(tuple(column.fieldNames())) for column in change.clusteringColumns()]
            self._options[CLUSTER_BY] = columns or None
        elif kind in _COLUMN_CHANGES:
            self._change(kind, format_path(tuple(change.fieldNames())), change)
        else:
            raise UsageError(
                f"cannot make this change to `{self._table.name}` ({kind}): tables have no constraints, "
                "defaults or other orders of columns. Columns can be added, dropped, renamed, widened, "
                "made nullable and commented"
            )

    def commit(self) -> None:
        """Apply all changes."""
        if self._update is not None:
            self._update.commit()
        if self._options:
            self._table.configure(**self._options)
        for column, text in self._comments.items():
            self._table.comment(text, column)

    def _set(self, name: str, value: str | None) -> None:
        if name == _COMMENT:
            self._comments[None] = value
        else:
            self._options[name] = None if value is None else option_value(name, value)

    def _change(self, kind: str, path: str, change: Any) -> None:  # noqa: ANN401 -- a Java object
        match kind:
            case "AddColumn":
                self._add_column(path, change)
            case "RenameColumn":
                self.update.rename_column(path, str(change.newName()))
            case "DeleteColumn":
                if not change.ifExists() or self.update.schema.find_column(path) is not None:
                    self.update.drop_column(path)
            case "UpdateColumnType":
                self.update.widen_column(path, _type_of(change.newDataType()))
            case "UpdateColumnNullability" if change.nullable():
                self.update.make_nullable(path)
            case "UpdateColumnNullability":
                raise UsageError(
                    f"cannot make `{path}` of `{self._table.name}` not null: rows already written may be "
                    "null there"
                )
            case "UpdateColumnComment":
                text = change.newComment()
                self._comments[path] = None if text is None else str(text)

    def _add_column(self, path: str, change: Any) -> None:  # noqa: ANN401 -- a Java object
        if change.defaultValue() is not None:
            raise UsageError(f"cannot add `{path}` with a default: rows already written would be null there")
        if not change.isNullable():
            raise UsageError(
                f"cannot add `{path}` to `{self._table.name}` as not null: rows already written have no "
                "value in it"
            )
        position = change.position()
        place = "" if position is None else str(position.getClass().getSimpleName())
        self.update.add_column(
            path,
            _type_of(change.dataType()),
            first=place == "First",
            after=format_path((str(position.column()),)) if place == "After" else None,
        )
        text = change.comment()
        if text is not None:
            self._comments[path] = str(text)


_COLUMN_CHANGES: Final = frozenset(
    [
        "AddColumn",
        "DeleteColumn",
        "RenameColumn",
        "UpdateColumnComment",
        "UpdateColumnNullability",
        "UpdateColumnType",
    ]
)


def alter(table: StoredTable, changes: Iterable[Any]) -> None:
    """Apply the changes of one statement to a table."""
    changes = list(changes)
    drops = [change for change in changes if str(change.getClass().getSimpleName()) == "DeleteColumn"]
    dropped = {tuple(change.fieldNames()) for change in drops}
    if dropped >= {(name,) for name in table.schema.names}:
        raise UsageError(
            f"the columns of `{table.name}` cannot all be replaced: their values would be gone. Add, drop, "
            "rename and widen columns one by one"
        )
    alteration = _Alteration(table)
    for change in changes:
        alteration.add(change)
    alteration.commit()


def _type_of(data_type: Any) -> Type:  # noqa: ANN401 -- a Java object
    """Return a type of Spark's as ours."""
    field = {"name": "type", "type": json.loads(data_type.json()), "nullable": True, "metadata": {}}
    return as_schema(json.dumps({"type": "struct", "fields": [field]})).fields[0].type
