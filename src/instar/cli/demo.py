"""`instar demo`: the main job from beginning to end, told as a story."""

from __future__ import annotations

import tempfile
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

import instar
from instar.cli.output import console, print_table, working
from instar.errors import FencedError, IncompatibleSchemaError, InstarError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pyspark.sql import DataFrame, SparkSession

    from instar import Table

__all__ = ["demo"]

_COLUMNS = "user string not null, at timestamp not null, amount int, addr struct<city: string, zip: int>"


def demo(
    keep: Annotated[
        str | None, typer.Option(help="Make the store here and keep it; otherwise it is temporary.")
    ] = None,
) -> None:
    """Tell the story of one table on Spark: write, evolve, read old and new, skip, fence, listen, delete."""
    with tempfile.TemporaryDirectory() as temporary:
        with working("starting Spark"):
            from instar.spark.session import local_session  # noqa: PLC0415 -- only this command needs it here

            spark = local_session("instar demo", {"spark.sql.session.timeZone": "UTC"})
        with instar.open(keep or f"{temporary}/lake") as store:
            table = store.create_table("events", _COLUMNS, order_by=["at"])
            _write(table, spark)
            _evolve(table)
            _read(table, spark)
            _skip(table, spark)
            _fence(table, spark)
            _listen(table, spark)
            _delete(table, spark)
            _log(table)
        if keep is not None:
            console().print(f"\nThe store is at {keep}: try `instar tables --store {keep}`.")


def _write(table: Table, spark: SparkSession) -> None:
    _chapter(1, "Write events with Spark")
    commit = table.append(_events(spark, 0, 100_000))
    _say(
        f"Appended {commit.rows:,} rows under schema {commit.schema_id}, in {table.state.totals.parts} parts."
    )
    _show(table.read(spark).orderBy("at").limit(3))


def _evolve(table: Table) -> None:
    _chapter(2, "Change the schema: one metadata write each, no file is touched")
    parts = table.state.totals.parts
    table.evolve().add_column("country", "string", after="user").add_column("addr.street", "string").commit()
    table.evolve().rename_column("user", "user_id").widen_column("amount", "bigint").commit()
    table.evolve().drop_column("addr.zip").make_nullable("at").commit()
    rows = [(str(number), str(schema)) for number, schema in enumerate(table.schemas)]
    print_table(("schema", "columns"), rows)
    _say(f"Still the same {parts} parts. What would lose data is refused, with every reason:")
    _expect(IncompatibleSchemaError, lambda: table.evolve().widen_column("amount", "int").commit())


def _read(table: Table, spark: SparkSession) -> None:
    _chapter(3, "Read old and new as one")
    new = spark.createDataFrame(
        [("zoe", "IT", "2026-02-01 12:00:00", 5_000_000_000, "Rome")],
        "user_id string, country string, at string, amount bigint, city string",
    ).selectExpr(
        "user_id", "country", "cast(at as timestamp) at", "amount", "named_struct('city', city) addr"
    )
    table.append(new)
    _show(table.read(spark).where("amount > 4999999 or amount < 3").orderBy("at"))


def _skip(table: Table, spark: SparkSession) -> None:
    _chapter(4, "Open only the files that a query needs")
    where = "date_trunc('month', at) = '2026-02-01' and coalesce(country, 'none') <> 'none'"
    found = table.read(spark).where(where)
    (report,) = instar.scan_reports(found)
    _say(f"where {where}")
    _say(f"finds {found.count()} row in {report.read} of {report.total} parts; the others are ruled out:")
    print_table(
        ("condition", "parts it excludes alone"), [(own.text, str(own.excludes)) for own in report.conjuncts]
    )


def _fence(table: Table, spark: SparkSession) -> None:
    _chapter(5, "A reader is never lied to, and no writer loses values in silence")
    narrow = table.snapshot(schema=0, columns=["user"]).to_spark(spark)
    _say(f"A reader of schema 0 that only reads `user` goes on: {narrow.count():,} rows. One that reads all:")
    _expect(FencedError, lambda: table.snapshot(schema=0))
    _say("A writer that still has values for the dropped `addr.zip`:")
    _expect(FencedError, lambda: table.append(_events(spark, 0, 10), schema=0))


def _listen(table: Table, spark: SparkSession) -> None:
    _chapter(6, "Listen to what changes")
    listen = table.listen(columns=["user_id", "amount"], timeout=5)
    table.append(spark.createDataFrame([("amy", 1), ("ben", 2)], "user_id string, amount bigint"))
    changes = next(listen)
    _rows(changes.rows.schema.names, changes.rows.to_pylist())


def _delete(table: Table, spark: SparkSession) -> None:
    _chapter(7, "Delete, and still read the past")
    before = table.upper - 1
    commit = table.delete("amount >= 50000", spark)
    now, then = table.read(spark).count(), table.snapshot(as_of=before).to_spark(spark).count()
    _say(f"Retracted {commit.rows:,} rows: {now:,} are left, and as of the time before there are {then:,}.")


def _log(table: Table) -> None:
    _chapter(8, "What happened")
    rows = [(str(c.seqno), c.what, "-" if c.schema_id is None else str(c.schema_id)) for c in table.history()]
    print_table(("seqno", "what", "schema"), rows[::-1])


def _events(spark: SparkSession, start: int, end: int) -> DataFrame:
    return spark.range(start, end).selectExpr(
        "concat('user', id % 1000) user",
        "timestamp'2026-01-01' + make_dt_interval(0, 0, 0, id) at",
        "cast(id as int) amount",
        "named_struct('city', 'Turin', 'zip', cast(10121 as int)) addr",
    )


def _show(frame: DataFrame) -> None:
    _rows(frame.columns, [row.asDict(recursive=True) for row in frame.collect()])


def _rows(columns: Iterable[str], rows: Iterable[dict[str, Any]]) -> None:
    print_table(columns, [[str(value) for value in row.values()] for row in rows])


def _expect(kind: type[InstarError], call: Callable[[], object]) -> None:
    """Show the error that a call raises; a demo in which it does not is broken."""
    try:
        call()
    except kind as error:
        console().print(Text(f"  {type(error).__name__}: {error}", "red"))
    else:
        raise AssertionError(f"expected {kind.__name__}")


def _say(text: str) -> None:
    console().print(text)


def _chapter(number: int, title: str) -> None:
    console().print(f"\n[bold]{number}. {title}[/bold]\n")
