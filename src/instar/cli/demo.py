"""`instar demo`: the main job from beginning to end, told as a story."""

from __future__ import annotations

import tempfile
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

import instar
from instar.cli.calendar import draw_calendar
from instar.cli.output import JsonOption, console, error_json, print_json, print_table, working
from instar.errors import FencedError, IncompatibleSchemaError, InstarError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pyspark.sql import DataFrame, SparkSession

    from instar import Store, Stream, Table

__all__ = ["demo"]

_COLUMNS = "user string not null, at timestamp not null, amount int, addr struct<city: string, zip: int>"

_APPENDS = 1000

_CLICKS = "user string not null, at timestamp not null, n int"


class _Story:
    """What the demo prints: for people as it happens, for programs as JSON at the end."""

    def __init__(self, *, quiet: bool) -> None:
        self.chapters: list[dict[str, Any]] = []
        self._quiet = quiet

    def chapter(self, title: str) -> None:
        """Begin a chapter."""
        self.chapters.append({"title": title, "found": []})
        self._print(Text(f"\n{len(self.chapters)}. {title}\n", "bold"))

    def say(self, text: str | Text) -> None:
        """Print something in words."""
        self._found(str(text))
        self._print(text)

    def show(self, columns: Iterable[str], rows: Iterable[Iterable[object]]) -> None:
        """Show rows."""
        from instar.files.values import text_value  # noqa: PLC0415 -- slow

        names = list(columns)
        texts = [["null" if value is None else text_value(value) for value in row] for row in rows]
        self._found([dict(zip(names, row, strict=True)) for row in texts])
        if not self._quiet:
            print_table(names, texts)

    def expect(self, kind: type[InstarError], call: Callable[[], object]) -> None:
        """Show the error that a call raises; the demo is broken if it raises none."""
        try:
            call()
        except kind as error:
            self._found(error_json(error.code, str(error)))
            self._print(Text(f"  {type(error).__name__}: {error}", "red"))
        else:
            raise AssertionError(f"expected {kind.__name__}")

    def _found(self, what: object) -> None:
        self.chapters[-1]["found"].append(what)

    def _print(self, text: str | Text) -> None:
        if not self._quiet:
            console().print(text)


def demo(
    *,
    keep: Annotated[
        str | None, typer.Option(help="Create the store here and keep it; by default it is temporary.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Show one table on Spark, and a stream of tables that converge on one schema."""
    story = _Story(quiet=as_json)
    with tempfile.TemporaryDirectory() as temporary:
        with working("starting Spark"):
            from instar.spark.session import cancelling, local_session  # noqa: PLC0415 -- slow

            spark = local_session("instar demo", {"spark.sql.session.timeZone": "UTC"})
        with instar.open(keep or f"{temporary}/lake") as store, cancelling(spark):
            table = store.create_table("events", _COLUMNS, order_by=["at"])
            _write(story, table, spark)
            _evolve(story, table)
            _read(story, table, spark)
            _skip(story, table, spark)
            _fence(story, table, spark)
            _listen(story, table, spark)
            _delete(story, table, spark)
            _log(story, table)
            _compact(story, store)
            _stream(story, store, spark)
    if as_json:
        print_json({"store": keep, "chapters": story.chapters})
    elif keep is not None:
        console().print(f"\nThe store is at {keep}: try `instar tables --store {keep}`.")


def _write(story: _Story, table: Table, spark: SparkSession) -> None:
    story.chapter("Write events with Spark")
    commit = table.append(_events(spark, 0, 100_000))
    story.say(
        f"Appended {commit.rows:,} rows under schema {commit.schema_id}, in {table.state.totals.parts} parts."
    )
    _show(story, table.read(spark).orderBy("at").limit(3))


def _evolve(story: _Story, table: Table) -> None:
    story.chapter("Change the schema: one metadata write each, no file is touched")
    parts = table.state.totals.parts
    table.evolve().add_column("country", "string", after="user").add_column("addr.street", "string").commit()
    table.evolve().rename_column("user", "user_id").widen_column("amount", "bigint").commit()
    table.evolve().drop_column("addr.zip").make_nullable("at").commit()
    rows = [(str(number), str(schema)) for number, schema in enumerate(table.schemas)]
    story.show(("schema", "columns"), rows)
    story.say(f"Still the same {parts} parts. What would lose data is refused, with every reason:")
    story.expect(IncompatibleSchemaError, lambda: table.evolve().widen_column("amount", "int").commit())


def _read(story: _Story, table: Table, spark: SparkSession) -> None:
    story.chapter("Read old and new as one")
    new = spark.createDataFrame(
        [("zoe", "IT", "2026-02-01 12:00:00", 5_000_000_000, "Rome")],
        "user_id string, country string, at string, amount bigint, city string",
    ).selectExpr(
        "user_id", "country", "cast(at as timestamp) at", "amount", "named_struct('city', city) addr"
    )
    table.append(new)
    _show(story, table.read(spark).where("amount > 4999999 or amount < 3").orderBy("at"))


def _skip(story: _Story, table: Table, spark: SparkSession) -> None:
    story.chapter("Open only the files that a query needs")
    where = "date_trunc('month', at) = '2026-02-01' and coalesce(country, 'none') <> 'none'"
    found = table.read(spark).where(where)
    (report,) = instar.scan_reports(found)
    story.say(f"where {where}")
    story.say(
        f"finds {found.count()} row in {report.read} of {report.total} parts; the others are ruled out:"
    )
    story.show(
        ("condition", "parts it excludes alone"), [(own.text, str(own.excludes)) for own in report.conjuncts]
    )


def _fence(story: _Story, table: Table, spark: SparkSession) -> None:
    story.chapter("A reader is never lied to, and no writer loses values in silence")
    narrow = table.snapshot(schema=0, columns=["user"]).to_spark(spark)
    story.say(
        f"A reader of schema 0 that only reads `user` goes on: {narrow.count():,} rows. One that reads all:"
    )
    story.expect(FencedError, lambda: table.snapshot(schema=0))
    story.say("A writer that still has values for the dropped `addr.zip`:")
    story.expect(FencedError, lambda: table.append(_events(spark, 0, 10), schema=0))


def _listen(story: _Story, table: Table, spark: SparkSession) -> None:
    story.chapter("Listen to what changes")
    listen = table.listen(columns=["user_id", "amount"], timeout=5)
    table.append(spark.createDataFrame([("amy", 1), ("ben", 2)], "user_id string, amount bigint"))
    changes = next(listen)
    rows = changes.rows.to_pylist()
    story.show(changes.rows.schema.names, [row.values() for row in rows])


def _delete(story: _Story, table: Table, spark: SparkSession) -> None:
    story.chapter("Delete, and still read the past")
    before = table.upper - 1
    commit = table.delete("amount >= 50000", spark)
    now, then = table.read(spark).count(), table.snapshot(as_of=before).to_spark(spark).count()
    story.say(
        f"Retracted {commit.rows:,} rows: {now:,} are left, and as of the time before there are {then:,}."
    )


def _log(story: _Story, table: Table) -> None:
    story.chapter("What happened")
    lines = [
        (seqno, at, what, schema) for seqno, at, _, what, schema in (it.line() for it in table.history())
    ]
    story.show(("seqno", "at (UTC)", "what", "schema"), lines[::-1])


def _compact(story: _Story, store: Store) -> None:
    import pyarrow as pa  # noqa: PLC0415 -- slow

    story.chapter("A thousand small appends, a compaction, and the same query before and after")
    table = store.create_table("visits", "id bigint, page string", order_by=["id"], key=["id"])
    for number in range(_APPENDS):
        first = number * 7 % _APPENDS  # they come in no order
        table.append(pa.table({"id": [first, first + _APPENDS], "page": ["/", "/shop"]}))
    where = "id between 100 and 102"
    before, found = table.explain(where), table.snapshot().to_arrow(where)
    report = table.compact(full=True)
    after = table.explain(where)
    story.say(f"Compaction wrote {report.parts_before:,} parts as {report.parts_after}, without Spark.")
    story.show(
        ("when", "parts in the table", f"parts that `{where}` opens"),
        [("before", str(before.total), str(before.read)), ("after", str(after.total), str(after.read))],
    )
    same = table.snapshot().to_arrow(where).sort_by("id").equals(found.sort_by("id"))
    story.say(f"The rows are {'the same' if same else 'OTHERS'}. A lookup of key 101, without Spark:")
    row = table.lookup(101).to_pylist()[0]
    story.show(list(row), [[str(value) for value in row.values()]])


def _stream(story: _Story, store: Store, spark: SparkSession) -> None:
    story.chapter("Ten days of a stream, three versions, and the evolver")
    stream = store.create_stream("clicks", _CLICKS, version="v0.0.1", time="at", kinds={"regular": "1d"})
    stream.write(_clicks(spark, 0, 4), version="v0.0.1")
    stream.write(_clicks(spark, 4, 8).selectExpr("user", "at", "bigint(n) n"), version="v0.0.2")
    page = _clicks(spark, 8, 10).selectExpr("user", "at", "bigint(n) n", "concat('/', n) page")
    stream.write(page, version="v0.0.3")
    stream.write(_clicks(spark, 9, 10), version="v0.0.1")
    story.say("Each day is a table, stamped with the highest version that was written to it:")
    _calendar(story, stream)
    found = stream.read(spark, start="2026-11-03")
    story.say(f"They are read as one frame, {stream.schema}: {found.count():,} rows since the third day.")
    story.say("The evolver brings every table to the latest version, one short commit each:")
    report = store.evolver(always=True).run_once()
    story.say(f"{report.stamped} tables stamped, {report.failed} failed.")
    _calendar(story, stream)


def _calendar(story: _Story, stream: Stream) -> None:
    cells = [(table.start, table.version) for table in stream.tables("regular")]
    story.say(draw_calendar(cells, list(stream.versions)))


def _clicks(spark: SparkSession, first: int, last: int) -> DataFrame:
    return spark.range(first * 1000, last * 1000).selectExpr(
        "concat('user', id % 7) user",
        "timestamp'2026-11-01' + make_dt_interval(cast(id div 1000 as int), 0, 0, id % 1000) at",
        "cast(id as int) n",
    )


def _events(spark: SparkSession, start: int, end: int) -> DataFrame:
    return spark.range(start, end).selectExpr(
        "concat('user', id % 1000) user",
        "timestamp'2026-01-01' + make_dt_interval(0, 0, 0, id) at",
        "cast(id as int) amount",
        "named_struct('city', 'Turin', 'zip', cast(10121 as int)) addr",
    )


def _show(story: _Story, frame: DataFrame) -> None:
    rows = [row.asDict(recursive=True) for row in frame.collect()]
    story.show(frame.columns, [row.values() for row in rows])
