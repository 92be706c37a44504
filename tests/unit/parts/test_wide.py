"""Statistics of wide tables: the columns that people put first keep theirs."""

from __future__ import annotations

import pyarrow as pa
import pytest

from instar.parts import STATS_BUDGET, compute_stats
from instar.schema import parse_schema_ddl


@pytest.mark.parametrize("columns", [500, 2000, 5000])
def test_the_first_columns_of_a_wide_table_keep_their_bounds(columns: int) -> None:
    """However many there are; and so does the column that the table is sorted by, wherever it is."""
    schema = parse_schema_ddl(", ".join(f"c{at} bigint" for at in range(columns)))
    row = pa.table({f"c{at}": [at + 2**40] for at in range(columns)})
    last = schema.fields[-1].id
    stats = compute_stats(row, schema, [last])
    bounded = [field.id for field in schema.fields if field.id in stats and stats[field.id].min is not None]
    assert bounded[:200] == [field.id for field in schema.fields[:200]]
    assert bounded[-1] == last
    assert sum(22 for _ in bounded) < 1.2 * STATS_BUDGET
