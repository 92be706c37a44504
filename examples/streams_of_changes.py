"""Follow a table while another part of the program writes to it and changes its schema.

    python examples/streams_of_changes.py

No Spark is needed. The listener keeps the schema that it began with, and is fenced when a column that it
reads is dropped.
"""

from __future__ import annotations

import tempfile

import pyarrow as pa

import instar
from instar.errors import ReaderFencedError


def main() -> None:
    """Write, evolve and listen."""
    with tempfile.TemporaryDirectory() as folder, instar.open(f"{folder}/lake") as store:
        orders = store.create_table("orders", "id bigint not null, state string, price double")
        listener = orders.listen(since=-1, timeout=1)

        orders.append(pa.table({"id": [1, 2], "state": ["new", "new"], "price": [9.5, 20.0]}))
        print("first", next(listener).rows.to_pylist())

        orders.evolve().add_column("note", "string").commit()
        orders.apply(
            pa.table({"id": [1, 1], "state": ["new", "paid"], "price": [9.5, 9.5], "_diff": [-1, 1]})
        )
        print("then", next(listener).rows.to_pylist())

        orders.evolve().drop_column("price").commit()
        orders.append(pa.table({"id": [3], "state": ["new"]}))
        try:
            next(listener)
        except ReaderFencedError as error:
            print("fenced:", error.fences[0])


if __name__ == "__main__":
    main()
