"""What each engine does on S3, one operation at a time: what a user would call, with nothing kept warm.

A handle is open where the operation says so; everything else is opened by the operation itself.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Protocol

import instar
from bench.engines import load_engine
from bench.engines.ours import TABLE
from bench.workload import SCHEMA, tiny_batch

if TYPE_CHECKING:
    from pathlib import Path

    from bench.workload import Question
    from testbed.servers import S3Server

__all__ = ["Contender", "contender"]


class Contender(Protocol):
    """An engine with one table in an object store."""

    def create(self) -> None:
        """Make the table, and keep a handle."""

    def append(self) -> object:
        """Append ten rows, through the handle."""

    def evolve(self) -> object:
        """Add a column, through the handle."""

    def refresh(self) -> object:
        """Look whether the table has changed, through the handle, and hold what is current."""

    def read(self) -> object:
        """Read all rows, through the handle."""

    def open(self) -> object:
        """Open the table anew."""

    def seed(self, parts: int) -> None:
        """Make another table that believes to have many parts."""

    def plan(self, question: Question) -> int:
        """Open that table anew, and return how many files a question needs."""


def contender(name: str, server: S3Server, options: dict[str, str], scratch: Path) -> Contender:
    """Return an engine; seeds are put past what counts."""
    kinds: dict[str, type[Any]] = {"instar": _Ours, "delta-rs": _Delta, "pyiceberg": _Iceberg}
    made: Contender = kinds[name](server, options, scratch / name)
    return made


def _upload(server: S3Server, directory: Path, url: str) -> None:
    """Put the files of a directory below a URL."""
    client, prefix = server.client(), url.removeprefix(f"s3://{server.bucket}/")
    for path in directory.rglob("*"):
        if path.is_file():
            client.put_object(
                Bucket=server.bucket, Key=f"{prefix}/{path.relative_to(directory)}", Body=path.read_bytes()
            )


class _Ours:
    def __init__(self, server: S3Server, options: dict[str, str], scratch: Path) -> None:
        self._server, self._options, self._scratch = server, options, scratch
        self._url, self._large = server.url(), server.url()
        self._open = ExitStack()
        self._table: instar.Table

    def create(self) -> None:
        store = self._open.enter_context(instar.open(self._url, options=self._options))
        self._table = store.create_table(TABLE, SCHEMA)

    def append(self) -> object:
        return self._table.append(tiny_batch())

    def evolve(self) -> object:
        return self._table.evolve().add_column("added", "bigint").commit()

    def refresh(self) -> object:
        with self._table.snapshot() as snapshot:
            return snapshot

    def read(self) -> object:
        return self._table.snapshot().to_arrow()

    def open(self) -> object:
        with instar.open(self._url, options=self._options) as store:
            return store.table(TABLE)

    def seed(self, parts: int) -> None:
        load_engine("instar").seed(str(self._scratch), parts)
        _upload(self._server, self._scratch, self._large)

    def plan(self, question: Question) -> int:
        with instar.open(self._large, options=self._options) as store:
            return store.table(TABLE).explain(question.sql).read


class _Delta:
    def __init__(self, server: S3Server, options: dict[str, str], scratch: Path) -> None:
        self._server, self._options, self._scratch = server, options, scratch
        self._url, self._large = server.url(), server.url()
        self._table: Any = None

    def create(self) -> None:
        from deltalake import DeltaTable, Schema  # noqa: PLC0415 -- only there in the bench's environment

        self._table = DeltaTable.create(self._url, Schema.from_arrow(SCHEMA), storage_options=self._options)

    def append(self) -> object:
        from deltalake import write_deltalake  # noqa: PLC0415 -- as above

        return write_deltalake(self._table, tiny_batch(), mode="append")

    def evolve(self) -> object:
        from deltalake import Field  # noqa: PLC0415 -- as above

        return self._table.alter.add_columns([Field("added", "long")])

    def refresh(self) -> object:
        return self._table.update_incremental()

    def read(self) -> object:
        self._table.update_incremental()
        return self._table.to_pyarrow_table()

    def open(self) -> object:
        from deltalake import DeltaTable  # noqa: PLC0415 -- as above

        return DeltaTable(self._url, storage_options=self._options)

    def seed(self, parts: int) -> None:
        load_engine("delta-rs").seed(str(self._scratch), parts)
        _upload(self._server, self._scratch, self._large)

    def plan(self, question: Question) -> int:
        from deltalake import DeltaTable  # noqa: PLC0415 -- as above

        table = DeltaTable(self._large, storage_options=self._options)
        return len(table.file_uris(file_pruning_predicate=question.sql))


class _Iceberg:
    def __init__(self, server: S3Server, options: dict[str, str], scratch: Path) -> None:
        scratch.mkdir()
        self._url, self._options, self._scratch = server.url(), options, scratch
        self._table: Any = None

    def create(self) -> None:
        catalog = self._catalog()
        catalog.create_namespace("bench")
        self._table = catalog.create_table("bench.small", SCHEMA)

    def append(self) -> object:
        return self._table.append(tiny_batch())

    def evolve(self) -> object:
        from pyiceberg.types import LongType  # noqa: PLC0415 -- only there in the bench's environment

        with self._table.update_schema() as update:
            update.add_column("added", LongType())
        return self._table

    def refresh(self) -> object:
        return self._table.refresh()

    def read(self) -> object:
        return self._table.refresh().scan().to_arrow()

    def open(self) -> object:
        return self._catalog().load_table("bench.small")

    def seed(self, parts: int) -> None:
        from bench.engines.manifests import write_manifest  # noqa: PLC0415 -- as above

        table = self._catalog().create_table("bench.large", SCHEMA)
        with table.transaction() as transaction, transaction.update_snapshot().fast_append() as append:
            manifest = write_manifest(append, range(parts))
            append._manifests = lambda: [manifest]  # noqa: SLF001 -- otherwise it encodes them one by one

    def plan(self, question: Question) -> int:
        table = self._catalog().load_table("bench.large")
        return len(list(table.scan(row_filter=question.sql).plan_files()))

    def _catalog(self) -> Any:  # noqa: ANN401 -- pyiceberg is not there to be checked
        from pyiceberg.catalog.sql import SqlCatalog  # noqa: PLC0415 -- as above

        return SqlCatalog(
            "bench",
            uri=f"sqlite:///{self._scratch}/catalog.db",
            warehouse=self._url,
            **{
                "s3.endpoint": self._options["AWS_ENDPOINT_URL"],
                "s3.region": self._options["AWS_REGION"],
                "s3.access-key-id": self._options["AWS_ACCESS_KEY_ID"],
                "s3.secret-access-key": self._options["AWS_SECRET_ACCESS_KEY"],
            },
        )
