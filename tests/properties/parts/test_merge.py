"""Sorted runs are merged as if all their rows had been sorted at once, without holding them all."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING
from unittest.mock import patch

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from instar.parts import merge, merge_runs, sort_rows
from instar.schema import parse_schema_ddl
from tests.properties.parts.rows import as_bag, orderable_ids, plain_rows
from tests.properties.schema.data import batch_of, random_rows
from tests.properties.schema.ordering import row_key
from tests.properties.schema.strategies import schemas, thorough

if TYPE_CHECKING:
    from collections.abc import Iterator


@thorough
@given(st.data())
def test_merging_runs_is_sorting_all_their_rows(data: st.DataObject) -> None:
    """Whatever the types, how many runs there are, how they are cut into batches, and what fits in memory."""
    schema = data.draw(schemas(depth=2))
    random = Random(data.draw(st.integers(0, 2**32 - 1)))
    rows = random_rows(random, schema, 12)
    rows += random.choices(rows, k=12)
    order_by = orderable_ids(schema.fields)[:2]
    runs = []
    for begin in range(0, 24, (size := random.randint(1, 24))):
        table = pa.Table.from_batches([batch_of(rows[begin : begin + size], schema, random)])
        runs.append(sort_rows(table, schema, order_by).to_batches(max_chunksize=random.randint(1, 5)))
    most = random.choice((1, 300, 10**6))
    with patch.multiple(merge, TOGETHER_BYTES=most, _LEAST_BYTES=1):
        found = [row for table in merge_runs(runs, schema, order_by) for row in plain_rows(table, schema)]
    keys = [row_key(row, schema, order_by) for row in found]
    assert keys == sorted(keys)
    assert as_bag(found) == as_bag(rows)


def test_the_first_of_equal_rows_is_of_the_earliest_run() -> None:
    """Rows that are equal but not the same, such as zeros of either sign, keep the order of their runs."""
    schema = parse_schema_ddl("a double")
    runs = [pa.table({"a": [1.0, -0.0][::-1]}), pa.table({"a": [0.0, 1.0]}), pa.table({"a": [0.0]})]
    found = pa.concat_tables(merge_runs([run.to_batches() for run in runs], schema))["a"].to_pylist()
    assert [str(value) for value in found] == ["-0.0", "0.0", "0.0", "1.0", "1.0"]


def test_only_a_batch_of_each_run_is_held() -> None:
    """However long the runs are, they are read in step with what is yielded."""
    schema = parse_schema_ddl("a bigint")
    asked = [0, 0, 0]

    def run(number: int) -> Iterator[pa.RecordBatch]:
        for begin in range(0, 30_000, 300):
            asked[number] += 1
            yield pa.record_batch({"a": pa.array(range(begin + number, begin + 300, 3), pa.int64())})

    yielded = 0
    for table in merge_runs([run(0), run(1), run(2)], schema):
        yielded += table.num_rows
        assert sum(asked) * 100 - yielded <= 3 * 100
    assert yielded == 30_000
