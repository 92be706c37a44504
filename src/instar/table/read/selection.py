"""Selecting the parts of one scan: what is read, what is skipped, and what is read to check the skipping."""

from __future__ import annotations

import logging
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from instar.errors import SkippingViolationError
from instar.skipping import explain_part
from instar.state.chunk import FILES
from instar.table.log.manifest import load_parts
from instar.table.metrics import PARTS_AUDITED, PARTS_CONSIDERED, PARTS_SKIPPED, PLANNING_SECONDS, VIOLATIONS
from instar.table.read.audit import Skipping
from instar.table.read.pruning import needed_parts, part_bounds

if TYPE_CHECKING:
    from instar.state import TableState
    from instar.table.log.part_set import PartSet
    from instar.table.read.audit import Policy
    from instar.table.read.pruning import Condition
    from instar.table.services import Services

__all__ = ["Selection", "found_violation", "select_parts"]

_log = logging.getLogger("instar.skipping")


class Selection(NamedTuple):
    """Parts to read for the result, and skipped parts that are read all the same, to check the decision."""

    read: PartSet
    checked: PartSet
    certain: bool = False
    """Whether the condition is proved for every row of what is read."""


def select_parts(
    services: Services,
    state: TableState,
    parts: PartSet,
    condition: Condition,
    policy: Policy,
) -> Selection:
    """Select among parts of a state."""
    if policy.mode is Skipping.OFF or not parts:
        return Selection(parts, parts.keep(np.zeros(len(parts), dtype=bool)))
    began = perf_counter()
    found = needed_parts(services.chunks, state, condition)
    needed = found.read[parts.mask]
    PLANNING_SECONDS.observe(perf_counter() - began)
    skipped = parts.keep(~needed)
    chosen = services.audits.choose(policy, skipped, state.table_id, str(condition.expression))
    read = parts if policy.mode is Skipping.AUDIT else parts.keep(needed)
    PARTS_CONSIDERED.inc(len(needed))
    PARTS_SKIPPED.inc(len(skipped))
    PARTS_AUDITED.inc(len(chosen))
    services.audits.note_read(read.bytes)
    return Selection(read, skipped.take(chosen), bool(found.certain[read.mask].all()))


def found_violation(
    services: Services,
    state: TableState,
    condition: Condition,
    key: str,
    row: Any,  # noqa: ANN401 -- any row
) -> SkippingViolationError:
    """Count and log that a part was skipped which a filter is true for, or fails on; return the error."""
    known = part_bounds(services.chunks, state, condition.expression)
    keys = load_parts(services.chunks, state, (), (FILES,)).keys
    why = explain_part(condition.expression, known.bounds, known.rows, keys.index(key), condition.now)
    error = SkippingViolationError(state.name, key, str(condition.expression), why.text, str(row))
    VIOLATIONS.inc()
    _log.critical("%s", error)
    return error
