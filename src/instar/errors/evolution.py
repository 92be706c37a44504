"""Errors about schemas: a change that breaks the rules, or a reader or writer whose schema no longer fits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from instar.errors.base import InstarError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["FencedError", "IncompatibleSchemaError", "ReaderFencedError", "WriterFencedError"]


class IncompatibleSchemaError(InstarError):
    """The new schema breaks the evolution rules; `violations` lists every violation."""

    code = "incompatible-schema"

    def __init__(self, table: str | None, violations: Sequence[object]) -> None:
        self.table = table
        self.violations = tuple(violations)
        what = f"cannot evolve `{table}`" if table else "the schemas are not compatible"
        if len(self.violations) == 1:
            super().__init__(f"{what}: {self.violations[0]}")
        else:
            lines = "\n".join(f"  - {violation}" for violation in self.violations)
            super().__init__(f"{what}: {len(self.violations)} changes break the rules:\n{lines}")


class FencedError(InstarError):
    """A reader or writer was stopped because its schema no longer fits the table."""

    code = "fenced"


class ReaderFencedError(FencedError):
    """Something that the reader reads has changed in the table; no row was returned."""

    code = "reader-fenced"

    def __init__(
        self, table: str, fences: Sequence[object], *, reader_schema: int | None, latest: int
    ) -> None:
        self.table = table
        self.fences = tuple(fences)
        self.reader_schema = reader_schema
        self.latest = latest
        at = "" if reader_schema is None else f" at schema {reader_schema}"
        reasons = "; ".join(str(fence) for fence in self.fences)
        super().__init__(
            f"reader of `{table}`{at} is fenced: {reasons}. "
            f"Read without what changed, or open the table at schema {latest}."
        )


class WriterFencedError(FencedError):
    """The batch holds values in fields that the latest schema has deleted; nothing was committed."""

    code = "writer-fenced"

    def __init__(self, table: str, columns: Mapping[str, int], *, writer_schema: int, latest: int) -> None:
        self.table = table
        self.columns = tuple(columns)
        self.writer_schema = writer_schema
        self.latest = latest
        names = ", ".join(f"`{column}` (dropped by schema {by})" for column, by in columns.items())
        super().__init__(
            f"writer of `{table}` at schema {writer_schema} is fenced: the batch has values in {names}, "
            "which nobody could ever read. "
            f"Write under schema {latest}, or discard them: dropped='discard' (--discard-dropped)."
        )
