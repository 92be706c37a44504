"""Errors that ask the caller to change the call: an argument cannot be understood, used or stored."""

from __future__ import annotations

from typing import TYPE_CHECKING

from instar.errors.base import InstarError

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "AmbiguousEvolutionError",
    "DataMismatchError",
    "FileSystemMissingError",
    "FormatTooNewError",
    "FormerNameError",
    "InvalidEventError",
    "InvalidNameError",
    "InvalidSchemaError",
    "MissingExtraError",
    "UnsupportedTypeError",
    "UsageError",
    "WorkerVersionError",
]


class UsageError(InstarError):
    """The call itself is wrong: nothing was done, and the same call will fail again."""

    code = "usage"


class InvalidSchemaError(UsageError):
    """A schema text or value cannot be understood; `position` is an offset into `text`."""

    code = "invalid-schema"

    def __init__(self, problem: str, *, text: str | None = None, position: int | None = None) -> None:
        self.problem = problem
        self.text = text
        self.position = position
        super().__init__(_with_caret(problem, text, position))


class UnsupportedTypeError(InvalidSchemaError):
    """A type that a table cannot hold without losing something."""

    code = "unsupported-type"

    def __init__(
        self,
        type_name: str,
        why: str,
        *,
        path: str | None = None,
        text: str | None = None,
        position: int | None = None,
    ) -> None:
        self.type_name = type_name
        self.why = why
        self.path = path
        where = f" of column `{path}`" if path else ""
        super().__init__(f"type {type_name}{where} cannot be stored: {why}", text=text, position=position)


class AmbiguousEvolutionError(UsageError):
    """Two schemas compared by name leave open whether a column was renamed or replaced."""

    code = "ambiguous-evolution"

    def __init__(self, candidates: Sequence[tuple[str, str]]) -> None:
        self.candidates = tuple(candidates)
        lines = "".join(
            f"\n  - is `{new}` the old `{old}` renamed, or a new column?" for old, new in self.candidates
        )
        super().__init__(
            f"the change cannot be decided from names alone:{lines}\n"
            "Rename first to keep the values, or drop first to lose them; then evolve to the schema."
        )


class FormerNameError(UsageError):
    """Data would add a column under a name that another column had before."""

    code = "former-name"

    def __init__(
        self,
        table: str,
        column: str,
        field_id: int,
        schema_id: int,
        *,
        now: str | None,
        others: Sequence[str] = (),
    ) -> None:
        self.table = table
        self.column = column
        self.field_id = field_id
        self.schema_id = schema_id
        self.now = now
        self.others = tuple(others)
        more = f" The same applies to {', '.join(f'`{it}`' for it in self.others)}." if self.others else ""
        became = f"is `{now}` now" if now is not None else "was dropped"
        change = f"by schema {schema_id + 1}"
        what = f"to fill `{now}`, write" if now is not None else "to write as before it was dropped, write"
        super().__init__(
            f"cannot add column `{column}` to `{table}`: field {field_id} had this name, and {became}, "
            f"{change}. Nothing was written; {what} under the old schema: schema={schema_id} "
            f"(--schema {schema_id}). If this is a new column, say so: former_names=True "
            f"(--allow-former-names).{more}"
        )


class InvalidNameError(UsageError):
    """A name that is not allowed in a store."""

    code = "invalid-name"

    def __init__(self, name: str, why: str) -> None:
        self.name = name
        self.why = why
        super().__init__(f"{name!r} is not a usable name: {why}")


class InvalidEventError(UsageError):
    """An OpenLineage event, or something else that was sent to the service, cannot be understood."""

    code = "invalid-event"

    def __init__(self, why: str) -> None:
        self.why = why
        super().__init__(f"this cannot be stored, and none of it was kept: {why}")


class DataMismatchError(UsageError):
    """Data does not fit the table, and nothing of it was written; `row` counts from 0."""

    code = "data-mismatch"

    def __init__(
        self, column: str, reason: str, *, row: int | None = None, sample: str | None = None
    ) -> None:
        self.column = column
        self.reason = reason
        self.row = row
        self.sample = sample
        where = "" if row is None else f" Row {row}, counted from 0: {sample}"
        named = column if "`" in column else f"`{column}`"
        super().__init__(f"column {named} of the data does not fit: {reason}.{where}")

    def __reduce__(self) -> tuple[object, ...]:
        """Travel between processes: an executor raises it, and the driver shows it."""
        return _rebuild_mismatch, (self.column, self.reason, self.row, self.sample)


class MissingExtraError(UsageError):
    """The call needs a package that is not installed: an extra of instar, or another library."""

    code = "missing-extra"

    def __init__(self, extra: str | None, *, package: str | None = None) -> None:
        self.extra = extra
        self.package = package
        super().__init__(
            f"this needs packages that are not installed. Install them: pip install 'instar[{extra}]'"
            if package is None
            else f"this needs {package}, which is not installed. Install it: pip install {package}"
        )


class FormatTooNewError(UsageError):
    """The stored format is newer than this instar understands."""

    code = "format-too-new"

    def __init__(self, what: str, *, found: int, supported: int) -> None:
        self.what = what
        self.found = found
        self.supported = supported
        super().__init__(
            f"{what} is written in format {found}, and this instar reads formats up to {supported}. "
            "Upgrade instar to open it."
        )


def _rebuild_mismatch(column: str, reason: str, row: int | None, sample: str | None) -> DataMismatchError:
    return DataMismatchError(column, reason, row=row, sample=sample)


def _with_caret(problem: str, text: str | None, position: int | None) -> str:
    """Point at the offending place of a text, on the line that holds it."""
    if text is None or position is None:
        return problem
    start = text.rfind("\n", 0, position) + 1
    end = text.find("\n", position)
    line = text[start : end if end >= 0 else len(text)]
    number = text.count("\n", 0, position) + 1
    column = position - start
    return f"{problem}\n  line {number}, column {column + 1}:\n    {line}\n    {' ' * column}^"


class WorkerVersionError(UsageError):
    """Spark's workers have another instar than the driver, or none."""

    code = "worker-version"

    def __init__(self, found: str | None, expected: str) -> None:
        self.found = found
        self.expected = expected
        has = "no instar" if found is None else f"instar {found}"
        super().__init__(
            f"Spark's workers have {has}, and the driver has instar {expected}: workers must understand what "
            f"the driver plans. Install instar {expected} for the Python that workers run (PYSPARK_PYTHON), "
            "or use the driver's version"
        )

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return type(self), (self.found, self.expected)


class FileSystemMissingError(UsageError):
    """A Spark session cannot open the files of a store: it has no file system for the store's URL."""

    code = "file-system-missing"

    def __init__(self, url: str, package: str, why: str) -> None:
        self.url = url
        self.package = package
        self.why = why
        scheme = url.partition(":")[0]
        remedy = f"Start the session with spark.jars.packages={package}" if package else "Configure one"
        super().__init__(
            f"Spark cannot open {url} itself: the session has no file system for {scheme}:// ({why}). "
            f"{remedy}; `instar doctor` checks it. Calls without a session still work: to_arrow, and "
            "delete, update, upsert and merge of Arrow data"
        )
