"""A copy of a store that is written to meanwhile, as docs/deployment.md says: logs first, then data."""

from __future__ import annotations

import shutil
import threading
from typing import TYPE_CHECKING

import psycopg
import pyarrow as pa
from psycopg import sql

import instar
from tests.servers import postgres

if TYPE_CHECKING:
    from pathlib import Path

    from testbed.servers import PostgresServer

__all__ = ["postgres"]


def test_a_copy_taken_while_a_store_is_written_to_is_a_consistent_past(tmp_path: Path) -> None:
    """The copy opens, and has all rows of the first commits and nothing of the later ones."""
    lake, copy = tmp_path / "lake", tmp_path / "copy"
    stop, begun = threading.Event(), threading.Event()

    def write() -> None:
        with instar.open(lake) as store:
            table = store.create_table("t", "k bigint")
            for at in range(2000):
                table.append(pa.table({"k": [at]}))
                if at == 20:
                    begun.set()
                if stop.is_set():
                    break

    writer = threading.Thread(target=write)
    writer.start()
    try:
        assert begun.wait(60)
        copy.mkdir()
        shutil.copy(lake / "instar.store", copy / "instar.store")
        shutil.copytree(lake / "log", copy / "log")
        shutil.copytree(lake / "tables", copy / "tables", ignore=shutil.ignore_patterns("leases"))
    finally:
        stop.set()
        writer.join()
    with instar.open(copy, create=False) as store, instar.open(lake) as original:
        rows = store.table("t").snapshot().to_arrow()["k"].to_pylist()
        assert sorted(rows) == list(range(len(rows)))
        assert 20 < len(rows) <= original.table("t").count()
        store.table("t").append(pa.table({"k": [-1]}))
        assert store.table("t").count() == len(rows) + 1


def test_logs_in_postgresql_are_dumped_first(tmp_path: Path, postgres: PostgresServer) -> None:
    """A dump of the logs, then the data: what came between is not in the copy, and the rest is whole."""
    lake, copy = tmp_path / "lake", tmp_path / "copy"
    url = postgres.url()
    with instar.open(lake, consensus=url) as store:
        table = store.create_table("t", "k bigint")
        table.append(pa.table({"k": [1, 2]}))
        dumped = dump(url)
        table.append(pa.table({"k": [3]}))
        shutil.copytree(lake, copy)
    with instar.open(copy, consensus=dumped, create=False) as store:
        assert sorted(store.table("t").snapshot().to_arrow()["k"].to_pylist()) == [1, 2]
        store.table("t").append(pa.table({"k": [4]}))
        assert store.table("t").count() == 3
        assert store.vacuum(grace_ms=0).objects >= 1


def dump(url: str) -> str:
    """Copy the logs of a database in one transaction, and return where the copy is."""
    base, _, schema = url.partition("&schema=")
    with psycopg.connect(base) as connection:
        listed = "select table_name from information_schema.tables where table_schema = %s"
        names = [name for (name,) in connection.execute(listed, (schema,))]
        other = f"{schema}_copy"
        connection.execute(sql.SQL("create schema {}").format(sql.Identifier(other)))
        for name in names:
            places = {"one": sql.Identifier(schema, name), "other": sql.Identifier(other, name)}
            connection.execute(sql.SQL("create table {other} (like {one} including all)").format(**places))
            connection.execute(sql.SQL("insert into {other} select * from {one}").format(**places))
    return f"{base}&schema={other}"
