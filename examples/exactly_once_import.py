"""Load files so that a crash in the middle loses nothing and a second run doubles nothing.

    python examples/exactly_once_import.py

Each file's name is the token of its commit: a file that has landed is not loaded again.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import pyarrow as pa
from pyarrow import csv

import instar


def load(table: instar.Table, files: list[Path]) -> None:
    """Append each file once, adding columns that the table has not seen yet."""
    for file in files:
        commit = table.append(csv.read_csv(file), token=file.name, evolve=True)
        print(f"{file.name}: {commit.rows} rows under schema {commit.schema_id}, version {commit.seqno}")


def main() -> None:
    """Load two files, then both again."""
    with tempfile.TemporaryDirectory() as folder, instar.open(f"{folder}/lake") as store:
        files = [Path(folder) / "monday.csv", Path(folder) / "tuesday.csv"]
        csv.write_csv(pa.table({"user": ["ada", "bob"], "clicks": [3, 4]}), files[0])
        csv.write_csv(pa.table({"user": ["eve"], "clicks": [5], "country": ["IT"]}), files[1])

        table = store.create_table("clicks", "user string, clicks bigint")
        load(table, files)
        load(table, files)
        print(table.snapshot().to_arrow().num_rows, "rows;", table.schema)


if __name__ == "__main__":
    main()
