"""Appends of parts: several of one write stand side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING

from instar.table import begin_write, create_table
from instar.table.write.append import INLINE_PARTS
from tests.tables import all_rows, make_parts

if TYPE_CHECKING:
    from tests.tables import World


def test_one_write_may_append_many_parts_more_than_once(world: World) -> None:
    """The chunks of an append are not overwritten by the next append of the same write."""
    services = world.services()
    log = create_table(services, "events", "n int")
    parts = make_parts(log.load().table_id, "w", 2 * INLINE_PARTS + 2)
    with begin_write(services, log) as writer:
        writer.append(parts[: INLINE_PARTS + 1], 0)
        state = writer.append(parts[INLINE_PARTS + 1 :], 0).state
    rows = all_rows(services, state)
    assert [row["key"] for row in rows.values()] == [part.key for part in parts]
