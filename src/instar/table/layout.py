"""Where the objects of a table are, below the root of the store."""

from __future__ import annotations

from typing import Final

__all__ = [
    "MARKER",
    "TABLES",
    "adoption_key",
    "archive_key",
    "archives",
    "chunk_key",
    "clone_key",
    "clones",
    "lease_key",
    "leases",
    "part_key",
    "query_key",
    "recorded_queries",
    "rollup_key",
    "rollups",
    "sheet_key",
    "table_of",
    "table_root",
    "write_of",
]

MARKER: Final = "instar.store"
"""The object that makes a location a store."""

TABLES: Final = "tables"


def table_root(table_id: str) -> str:
    """Return the directory of everything that one table owns."""
    return f"{TABLES}/{table_id}"


def table_of(key: str) -> str:
    """Return the id of the table that an object belongs to."""
    return key.removeprefix(f"{TABLES}/").partition("/")[0]


def rollups(table_id: str) -> str:
    """Return the directory of a table's rollups."""
    return f"{table_root(table_id)}/rollups"


def rollup_key(table_id: str, seqno: int) -> str:
    """Return the key of the rollup at a seqno."""
    return f"{rollups(table_id)}/{seqno:020d}"


def chunk_key(table_id: str, write_id: str, number: int) -> str:
    """Return the key of a manifest chunk; like a part, it tells the write that it belongs to."""
    return f"{table_root(table_id)}/chunks/{write_id}-{number}"


def sheet_key(table_id: str, write_id: str, number: int) -> str:
    """Return the key of a sheet of retractions; like a part, it tells the write that it belongs to."""
    return f"{table_root(table_id)}/retractions/{write_id}-{number}"


def write_of(key: str) -> str:
    """Return the id of the write that a part, a chunk or a sheet belongs to."""
    return key.rpartition("/")[2].partition("-")[0]


def adoption_key(table_id: str, write_id: str) -> str:
    """Return the key of a list of adopted files; like a part, it tells the write that it belongs to."""
    return f"{table_root(table_id)}/adoptions/{write_id}-0"


def part_key(table_id: str, write_id: str, number: int | str) -> str:
    """Return the key of a part; the write that it belongs to can be read from it."""
    return f"{table_root(table_id)}/parts/{write_id}-{number}.parquet"


def archives(table_id: str) -> str:
    """Return the directory of what a table's log said before it was cut off."""
    return f"{table_root(table_id)}/history"


def archive_key(table_id: str, first: int, last: int) -> str:
    """Return the key of the lines of some commits."""
    return f"{archives(table_id)}/{first:020d}-{last:020d}"


def clones(table_id: str) -> str:
    """Return the directory of what tells which other tables refer to a table's objects."""
    return f"{table_root(table_id)}/clones"


def clone_key(table_id: str, clone_id: str) -> str:
    """Return the key of what tells that a clone refers to a table's objects."""
    return f"{clones(table_id)}/{clone_id}"


def recorded_queries(table_id: str) -> str:
    """Return the directory of the conditions that were asked of a table last."""
    return f"{table_root(table_id)}/queries"


def query_key(table_id: str, writer: int) -> str:
    """Return the key of the last conditions of some readers of a table."""
    return f"{recorded_queries(table_id)}/{writer:02d}"


def leases(table_id: str) -> str:
    """Return the directory of a table's leases."""
    return f"{table_root(table_id)}/leases"


def lease_key(table_id: str, lease_id: str) -> str:
    """Return the key of a lease."""
    return f"{leases(table_id)}/{lease_id}"
