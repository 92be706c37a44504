"""Queries of every kind, again and again: a session must not grow with the number of its queries."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

import instar
from instar.errors import ReaderFencedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from pyspark.sql import SparkSession

    from instar import Store
    from soak.turns import Turn

__all__ = ["KINDS", "Session", "open_store", "run_queries"]


def open_store(place: Path) -> Store:
    """Open a store in a directory."""
    return instar.open(place)


class Session:
    """A store with a plain table, one with retractions, and one whose view is fenced."""

    def __init__(self, spark: SparkSession, store: Store) -> None:
        self.spark = spark
        self.store = store
        rows = pa.table({"id": pa.array(range(8), pa.int32()), "v": ["a", "b"] * 4})
        self.plain = store.create_table("plain", "id int, v string", key=["id"])
        self.plain.append(rows)
        self.retracted = store.create_table("retracted", "id int, v string")
        self.retracted.append(rows)
        self.retracted.apply(rows.slice(0, 2).append_column("_diff", pa.array([-1, -1])))
        self.fenced = store.create_table("fenced", "id int, v string")
        self.fenced.append(rows)
        instar.register(spark, store)
        self.fenced.evolve().drop_column("v").commit()

    def sql(self, text: str) -> list[Any]:
        """Run a query over the views."""
        return self.spark.sql(text).collect()


def _count(session: Session) -> None:
    assert session.plain.read(session.spark).where("id > 3").count() == 4


def _join(session: Session) -> None:
    left, right = (table.read(session.spark) for table in (session.plain, session.retracted))
    assert left.join(right, "id").where(left.v == "a").count() == 3


def _sorted(session: Session) -> None:
    assert len(session.retracted.read(session.spark).orderBy("id").collect()) == 6


def _view(session: Session) -> None:
    assert session.sql("select v, count(*) from plain group by v order by v") == [("a", 4), ("b", 4)]


def _views(session: Session) -> None:
    assert session.sql("select * from retracted where id > (select min(id) + 4 from plain)") != []


def _fence(session: Session) -> None:
    try:
        session.sql("select v, count(*) from fenced group by v")
    except ReaderFencedError:
        return
    raise AssertionError("a view of a dropped column was read")


def _failure(session: Session) -> None:
    with suppress(Exception):
        session.sql("select raise_error(v) from plain group by v")


def _report(session: Session) -> None:
    assert instar.scan_reports(session.plain.read(session.spark).where("id = 1"))[0].total >= 1


def _format(session: Session) -> None:
    reader = session.spark.read.format("instar").options(store=session.store.location, table="plain")
    assert reader.load().where("id = 7").count() == 1


def _cached(session: Session) -> None:
    frame = session.retracted.follow(session.spark).cache()
    assert frame.groupBy("v").count().count() == 2
    frame.unpersist()


def _in_process(session: Session) -> None:
    assert session.retracted.snapshot().to_arrow(where="id >= 4").num_rows == 4


def _write(session: Session) -> None:
    table = session.store.create_table("scratch", "id int, v string", key=["id"])
    table.append(session.plain.read(session.spark))
    table.delete("id > 5", session.spark)
    table.upsert(session.plain.read(session.spark).where("id = 7"))
    assert table.read(session.spark).count() == 7
    session.store.drop_table("scratch")


KINDS: Final[Mapping[str, Callable[[Session], None]]] = {
    "count": _count,
    "join": _join,
    "sorted": _sorted,
    "view": _view,
    "views": _views,
    "fence": _fence,
    "failure": _failure,
    "report": _report,
    "format": _format,
    "cached": _cached,
    "in process": _in_process,
    "write": _write,
}

_ALONE: Final = {"write", "cached"}
"""Kinds of which two would get in each other's way."""
_LONGEST_SECONDS: Final = 600


def run_queries(session: Session, turns: Iterable[Turn]) -> Counter[str]:
    """Run queries of kinds that are drawn, up to sixteen at once, and return how many of each."""
    done: Counter[str] = Counter()
    for turn in turns:
        kinds = turn.random.choices(list(KINDS), k=turn.random.choice((1, 1, 4, 16)))
        pool = ThreadPoolExecutor(len(kinds))
        try:
            running = {pool.submit(KINDS[kind], session): kind for kind in kinds if kind not in _ALONE}
            for query, kind in running.items():
                query.result(timeout=_LONGEST_SECONDS)  # one that waits for ever is a fault
                done[kind] += 1
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
        for kind in _ALONE.intersection(kinds):
            KINDS[kind](session)
            done[kind] += 1
    return done
