"""Statistics of wide tables: the columns that people put first keep theirs."""

from __future__ import annotations

import pyarrow as pa
import pytest

import instar
from instar.errors import UsageError
from instar.parts import STATS_BUDGET, compute_stats
from instar.schema import parse_schema_ddl
from instar.state.chunk import field_of_group


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


def test_columns_that_queries_look_for_keep_their_bounds() -> None:
    """Those of the key, of clustering and of the option `stats`, which follows a rename."""
    with instar.open("memory://wide") as store:
        ddl = ", ".join(f"c{at} bigint" for at in range(1000))
        table = store.create_table("t", ddl, key=["c990"], cluster_by=["c991"], options={"stats": ["c992"]})
        row = pa.table({f"c{at}": [at] for at in range(1000)})
        table.append(row)
        unbounded = table.unbounded()
        assert {"c990", "c991", "c992"}.isdisjoint(unbounded)
        assert {"c989", "c993"} <= set(unbounded)
        assert table.explain("c992 > 5000").read == 0
        table.evolve().rename_column("c993", "late").commit()
        table.configure(stats=["late", "c999"])
        table.append(row.rename_columns(["late" if it == "c993" else it for it in row.column_names]))
        assert table.explain("late > 5000").read == 1
        with pytest.raises(UsageError, match="'stats' is a list of at most 100 columns, not 101"):
            table.configure(stats=[f"c{at}" for at in range(101)])


def test_columns_without_bounds_are_found_in_one_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each column is looked at once, not once for every other column."""
    looks: list[str] = []

    def look(name: str) -> int:
        looks.append(name)
        return field_of_group(name)

    with instar.open("memory://one pass") as store:
        table = store.create_table("t", ", ".join(f"c{at} bigint" for at in range(50)))
        table.append(pa.table({f"c{at}": [at] for at in range(50)}))
        monkeypatch.setattr("instar.table.log.part_set.field_of_group", look)
        assert table.unbounded() == []
    assert len(looks) == 50
