"""`instar import` and `instar upsert`: files of other formats become rows of a table."""

from __future__ import annotations

from pathlib import PurePath
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from instar.amounts import format_bytes, format_count
from instar.cli.options import ConsensusOption, StoreOption, complete_table, open_store
from instar.cli.output import JsonOption, console, print_json
from instar.errors import TableNotFoundError, UsageError
from instar.files import Format

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pyarrow as pa

    from instar import Commit, Store, Table
    from instar.api.writing import Data
    from instar.schema import History, Schema

__all__ = ["import_files", "upsert_files"]

FilesArgument = Annotated[list[str], typer.Argument(help="Files, directories, patterns or URLs.")]
TableOption = Annotated[
    str, typer.Option("--table", "-t", help="The table that gets the rows.", autocompletion=complete_table)
]
FormatOption = Annotated[
    Format | None,
    typer.Option(
        "--format",
        "-f",
        metavar="FORMAT",
        help="parquet, csv, json or arrow, if the file names do not say.",
    ),
]
EvolveOption = Annotated[
    bool, typer.Option("--evolve", help="Add missing columns, and widen those that are too narrow.")
]
FormerOption = Annotated[
    bool,
    typer.Option(
        "--allow-former-names", help="With --evolve, let a new column have the name of a former one."
    ),
]
DelimiterOption = Annotated[
    str | None,
    typer.Option(help="The delimiter of CSV; \\t is a tab. By default a comma, and a tab in *.tsv files."),
]
NullOption = Annotated[
    list[str] | None,
    typer.Option(
        "--null", metavar="TEXT", help="A text of CSV that is null in every column, such as NA. Repeatable."
    ),
]
WhereOption = Annotated[
    str | None, typer.Option(help="Only rows for which a condition in Spark SQL is true.")
]


def import_files(  # noqa: PLR0913 -- options of a command
    files: FilesArgument,
    *,
    table: TableOption,
    file_format: FormatOption = None,
    create: Annotated[bool, typer.Option("--create", help="Create the table if there is none.")] = False,
    order_by: Annotated[
        list[str] | None, typer.Option(help="With --create, a column that files are sorted by. Repeatable.")
    ] = None,
    key: Annotated[
        list[str] | None, typer.Option(help="With --create, a column that identifies a row. Repeatable.")
    ] = None,
    evolve: EvolveOption = False,
    allow_former_names: FormerOption = False,
    schema: Annotated[
        int | None, typer.Option(help="Write under an older schema of the table, by its id.")
    ] = None,
    discard_dropped: Annotated[
        bool,
        typer.Option("--discard-dropped", help="With --schema, discard values of columns that were dropped."),
    ] = False,
    token: Annotated[
        str | None,
        typer.Option(help="A text of your choice: an import with the same token happens only once."),
    ] = None,
    delimiter: DelimiterOption = None,
    null: NullOption = None,
    where: WhereOption = None,
    store: StoreOption = ".",
    consensus: ConsensusOption = None,
    as_json: JsonOption = False,
) -> None:
    """Append the rows of Parquet, CSV, JSON or Arrow files to a table, in one commit.

    CSV has a header, JSON one object a line. Values of text take the types of the table's columns; if one
    does not fit, the import stops and nothing is committed. The types of new CSV columns are guessed from all
    their values; times without a zone are in UTC. An empty value is null, and so are NA, NULL and the like,
    except in text columns. Files of this machine are read in process, Parquet up to 512 MiB and JSON up to
    64 MiB; Spark reads larger ones, and those below directories such as day=1.

    Examples:

        instar import events.parquet --table events --create --order-by at

        instar import new/*.csv --table events --evolve --token 2026-11-15

    """
    with open_store(store, consensus) as opened:
        target = _find(opened, table)
        if target is None and not create:
            raise TableNotFoundError(table, known=opened.tables(), may_create=True)
        if target is not None and (order_by or key):
            raise UsageError(f"`{table}` is there already: leave out --order-by and --key")
        if target is None and schema is not None:
            raise UsageError(f"there is no `{table}` yet, so it has no older schema: leave out --schema")

        def append(into: Table, data: Data) -> Commit:
            return into.append(
                data,
                token,
                evolve=evolve,
                former_names=allow_former_names,
                schema=schema,
                dropped="discard" if discard_dropped else "refuse",
            )

        write = _Write(opened, table, target, order_by=order_by or (), key=key or ())
        done = write.run(
            _Given(files, file_format, delimiter, where, tuple(null or ())), append, "importing", schema
        )
    _answer(done, "Imported", as_json=as_json)


def upsert_files(  # noqa: PLR0913 -- options of a command
    files: FilesArgument,
    *,
    table: TableOption,
    file_format: FormatOption = None,
    evolve: EvolveOption = False,
    allow_former_names: FormerOption = False,
    delimiter: DelimiterOption = None,
    null: NullOption = None,
    where: WhereOption = None,
    store: StoreOption = ".",
    consensus: ConsensusOption = None,
    as_json: JsonOption = False,
) -> None:
    """Add the rows of files to a table with a key, and replace rows that have the same key.

    A row of a file is a whole row: columns that it leaves out become null. Files are read as by import.

    Example:

        instar upsert corrections.csv --table customers

    """
    with open_store(store, consensus) as opened:
        target = opened.table(table)

        def upsert(into: Table, data: Data) -> Commit:
            return into.upsert(data, evolve=evolve, former_names=allow_former_names)

        write = _Write(opened, table, target)
        done = write.run(_Given(files, file_format, delimiter, where, tuple(null or ())), upsert, "upserting")
    # A commit counts updates: a row that replaces another is two.
    done["replaced"] = max(0, done["rows"] - done["read"])
    done["rows"] = done["read"]
    _answer(done, "Upserted", as_json=as_json)


class _Given(NamedTuple):
    """The options of a user about files."""

    paths: list[str]
    kind: Format | None
    delimiter: str | None
    where: str | None
    nulls: tuple[str, ...]

    @property
    def separator(self) -> str:
        """The character that separates values of CSV."""
        if self.delimiter is None:
            return "\t" if all(".tsv" in PurePath(path.lower()).suffixes for path in self.paths) else ","
        separator = "\t" if self.delimiter in {"\\t", "tab"} else self.delimiter
        if len(separator.encode()) != 1:
            raise UsageError(
                f"--delimiter {self.delimiter!r}: a delimiter is one character, such as ; or \\t"
            )
        return separator


class _Write:
    """One write of files to a table, which is created if it is missing, and dropped again if that fails."""

    def __init__(
        self,
        store: Store,
        name: str,
        table: Table | None,
        **layout: Any,  # noqa: ANN401 -- of create_table
    ) -> None:
        self._store = store
        self._name = name
        self._table = table
        self._layout = layout

    def run(
        self,
        given: _Given,
        write: Callable[[Table, Data], Commit],
        doing: str,
        schema_id: int | None = None,
    ) -> dict[str, Any]:
        """Read and write, and return a report."""
        from instar.cli.sources import Files, chosen_format, open_files  # noqa: PLC0415 -- slow
        from instar.schema import format_path  # noqa: PLC0415 -- slow
        from instar.table.write.upsert import key_paths  # noqa: PLC0415 -- slow

        kind = chosen_format(given.paths, given.kind)
        files = Files(given.paths, kind, given.separator, given.where, given.nulls)
        table = self._table
        schema = None if table is None else self._schema(table, schema_id)
        with open_files(files, schema, f"{doing} into {self._name}") as source:
            target = table or self._store.create_table(self._name, source.schema, **self._layout)
            before = target.state
            data, read = _counted(source.data)
            try:
                commit = write(target, data)
            except BaseException:
                if table is None:
                    self._store.drop_table(self._name)
                raise
        after = target.state
        found: dict[str, Any] = {"table": self._name, **commit._asdict()}
        found["read"] = read[0] if read else after.totals.rows - before.totals.rows
        found["repeated"] = commit.seqno <= before.seqno
        found["parts"] = after.totals.parts - before.totals.parts
        found["bytes"] = after.totals.bytes - before.totals.bytes
        found |= _changes(before.history, after.history, commit.schema_id)
        found["created"] = table is None
        found["nulls"] = source.marks.as_null
        found["not_nulls"] = source.marks.as_text
        found["key"] = [format_path(path) for path in key_paths(after)]
        return found

    def _schema(self, table: Table, schema_id: int | None) -> Schema:
        from instar.table.read.snapshot import resolve_reader  # noqa: PLC0415 -- slow

        return resolve_reader(table.state, schema_id, None).whole


def _counted(data: Data) -> tuple[Data, list[int]]:
    """Count the rows as they are read, where this process reads them."""
    import pyarrow as pa  # noqa: PLC0415 -- slow

    if not isinstance(data, pa.RecordBatchReader):
        return data, []
    seen = [0]

    def batches() -> Iterator[pa.RecordBatch]:
        for batch in data:
            seen[0] += batch.num_rows
            yield batch

    return pa.RecordBatchReader.from_batches(data.schema, batches()), seen


def _changes(before: History, after: History, schema_id: int) -> dict[str, Any]:
    """Return what a write added to a schema, and what it widened."""
    from instar.schema import ChangeKind  # noqa: PLC0415 -- slow

    changes = before.compare(after.schemas[schema_id]) if schema_id > before.latest_id else ()
    added = [change.new for change in changes if change.kind is ChangeKind.ADDED]
    widened = [f"{it.path}: {it.old} → {it.new}" for it in changes if it.kind is ChangeKind.WIDENED]
    return {"added": added, "widened": widened}


def _answer(found: dict[str, Any], verb: str, *, as_json: bool) -> None:
    if as_json:
        print_json(found)
        return
    if found["repeated"]:
        rows = format_count(found["rows"], "row")
        has = f"commit {found['seqno']} of {found['table']}, by the same token, has these {rows}"
        console().print(f"Nothing was written: {has}.")
        return
    replaced = found.get("replaced")
    instead = f", {format_count(replaced)} of them in place of others" if replaced else ""
    size = f"{format_count(found['parts'], 'part')}, {format_bytes(found['bytes'])}"
    into = f"into {found['table']} under schema {found['schema_id']}{instead}"
    console().print(f"{verb} {format_count(found['rows'], 'row')} {into}: {size}.")
    if found["added"]:
        console().print(f"Added {format_count(len(found['added']), 'column')}: {', '.join(found['added'])}.")
    if found["widened"]:
        console().print(f"Widened {', '.join(found['widened'])}.")
    for mark, columns in found["nulls"].items():
        console().print(f"Read {mark} as null in {', '.join(columns)}.")
    for mark, columns in found["not_nulls"].items():
        console().print(f"Kept {mark} as text in {', '.join(columns)}: --null {quote(mark)} makes it null.")
    if found["key"] and verb == "Imported":
        console().print(
            f"The key ({', '.join(found['key'])}) was not checked: `instar upsert` replaces rows by it."
        )


def _find(store: Store, name: str) -> Table | None:
    try:
        return store.table(name)
    except TableNotFoundError:
        return None
