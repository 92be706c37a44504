"""Selecting the parts of one scan: what is read, what is skipped, and what is read to check the skipping."""

from __future__ import annotations

import logging
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from instar.errors import SkippingViolationError
from instar.skipping import explain_part
from instar.state.chunk import FILES
from instar.table.log.manifest import keep_parts, load_columns
from instar.table.metrics import PARTS_AUDITED, PARTS_CONSIDERED, PARTS_SKIPPED, PLANNING_SECONDS, VIOLATIONS
from instar.table.read.audit import Skipping
from instar.table.read.pruning import needed_parts, part_bounds, total_bytes

if TYPE_CHECKING:
    from instar.state import TableState
    from instar.state.manifest import Columns
    from instar.table.log.manifest import Mask
    from instar.table.read.audit import Policy
    from instar.table.read.pruning import Condition
    from instar.table.services import Services

__all__ = ["Selection", "found_violation", "select_parts"]

_log = logging.getLogger("instar.skipping")


class Selection(NamedTuple):
    """Parts to read for the result, and parts that were skipped and shall be read to check that."""

    read: Columns
    checked: Columns


def select_parts(
    services: Services,
    state: TableState,
    parts: tuple[Columns, Mask],
    condition: Condition,
    policy: Policy,
) -> Selection:
    """Select among parts, which are given with the mask that tells which live parts of the state they are."""
    columns, mask = parts
    if policy.mode is Skipping.OFF or not columns[FILES].num_rows:
        return Selection(columns, keep_parts(columns, np.zeros(columns[FILES].num_rows, dtype=bool)))
    began = perf_counter()
    needed = needed_parts(services.chunks, state, condition).read[mask]
    PLANNING_SECONDS.observe(perf_counter() - began)
    skipped = keep_parts(columns, ~needed)
    chosen = services.audits.choose(policy, skipped, state.table_id, str(condition.expression))
    checked = {name: batch.take(pa.array(chosen, pa.int64())) for name, batch in skipped.items()}
    read = columns if policy.mode is Skipping.AUDIT else keep_parts(columns, needed)
    PARTS_CONSIDERED.inc(len(needed))
    PARTS_SKIPPED.inc(skipped[FILES].num_rows)
    PARTS_AUDITED.inc(len(chosen))
    services.audits.note_read(total_bytes(read))
    return Selection(read, checked)


def found_violation(
    services: Services,
    state: TableState,
    condition: Condition,
    key: str,
    row: Any,  # noqa: ANN401 -- any row
) -> SkippingViolationError:
    """Count and log that a part was skipped which a filter is true for, or fails on; return the error."""
    known = part_bounds(services.chunks, state, condition.expression)
    keys = load_columns(services.chunks, state, (), (FILES,))[FILES].column("key").to_pylist()
    why = explain_part(condition.expression, known.bounds, known.rows, keys.index(key), condition.now)
    error = SkippingViolationError(state.name, key, str(condition.expression), why.text, str(row))
    VIOLATIONS.inc()
    _log.critical("%s", error)
    return error
