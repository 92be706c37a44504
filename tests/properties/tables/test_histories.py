"""Random histories, read in process: every time, every schema, every column, against the model."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from instar.errors import ReaderFencedError
from instar.schema import Schema, arrow_schema
from tests.properties.schema.data import rows_of
from tests.properties.schema.strategies import projections
from tests.properties.tables.histories import SMALL, History, draw_history
from tests.properties.tables.model import row_key
from tests.properties.tables.stored import check_order, check_runs, check_statistics
from tests.tables import StillTime, World

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

    import pyarrow as pa

some = settings(max_examples=max(25, settings().max_examples // 40))
many = settings(max_examples=max(150, settings().max_examples // 10))


@pytest.fixture(autouse=True, scope="module")
def _small_parts() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("instar.table.write.append.PartLimits", lambda: SMALL)
        patch.setattr("instar.parts.write.ROW_GROUP_ROWS", 3)
        patch.setattr("instar.table.log.table_log.time", StillTime())
        yield


def keys_of(table: pa.Table, schema: Schema) -> Counter[Hashable]:
    """Return the rows of a table so that they can be compared with the model's."""
    table.validate(full=True)
    return Counter(
        row_key(row, schema.fields) for batch in table.to_batches() for row in rows_of(batch, schema)
    )


def check_reader(history: History, as_of: int, schema_id: int, reader: Schema) -> None:
    """Check what one reader sees at one time: the right rows, or a fence and nothing."""
    model, table = history.model, history.table
    if model.fences(schema_id, reader):
        with pytest.raises(ReaderFencedError):
            table.snapshot(as_of, schema=reader)
        return
    found = table.snapshot(as_of, schema=reader).to_arrow()
    assert found.schema.equals(arrow_schema(reader), check_metadata=True)
    assert keys_of(found, reader) == model.rows(as_of, reader)


def check_times(history: History) -> None:
    """Check every time that can be read, under every schema."""
    for as_of in history.times():
        for schema_id, schema in enumerate(history.model.schemas):
            check_reader(history, as_of, schema_id, schema)


def check_everything(history: History) -> None:
    """Check every time, and what the table says of its files; also of those that it was cloned from."""
    for one in (history, *history.others):
        check_times(one)
        check_runs(one.table)
        check_order(one.table)
        check_statistics(one.table)


@some
@given(st.data())
def test_nobody_notices_maintenance(data: st.DataObject) -> None:
    """Compactions, adoptions, vacuums and crashes between write and commit: after each, all is right."""
    world = World()
    draw_history(data, world.services(), care=True, check=check_everything, most=9)
    world.close()


@many
@given(st.data())
def test_every_snapshot_is_what_the_model_says(data: st.DataObject) -> None:
    """At every time, under every schema that is not fenced and in every projection, the rows are right."""
    world = World()
    history = draw_history(data, world.services())
    model = history.model
    check_times(history)
    for schema_id, schema in enumerate(model.schemas):
        as_of = data.draw(st.sampled_from(model.times() or [history.table.upper - 1]))
        for field in schema.fields:
            check_reader(history, as_of, schema_id, Schema((field,)))
        check_reader(history, as_of, schema_id, data.draw(projections(schema)))
    world.close()
