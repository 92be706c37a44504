"""Guards: what can go wrong without an error is tried out before the first scan of a session is planned.

Spark takes over members of structs, and files, by ways that are not ours. Where one of them does not work as
it should, tables are read over files, as they are without a planner; a warning and a counter say so. Each
scan checks the same again: it raises if it would read fewer files than it was told, or columns that have no
ids.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from py4j.protocol import Py4JError

from instar.spark.planner.compiled import Feature, compiled_planner
from instar.table.metrics import PLANNER_FALLBACKS

if TYPE_CHECKING:
    from instar.spark.native.gateway import Gateway

__all__ = ["fall_back", "why_not"]

_found: WeakKeyDictionary[Gateway, str | None] = WeakKeyDictionary()
_warned: WeakKeyDictionary[Gateway, bool] = WeakKeyDictionary()


def why_not(gateway: Gateway) -> str | None:
    """Say why scans must not be planned in a session; None if all is well. It is tried out once."""
    if gateway not in _found:
        _found[gateway] = _try_out(gateway)
    return _found[gateway]


def fall_back(gateway: Gateway, why: str) -> None:
    """Plan no more scans in a session, and say so once."""
    PLANNER_FALLBACKS.inc()
    if _found.get(gateway) is None:
        _found[gateway] = why
    if gateway not in _warned:
        _warned[gateway] = True
        warnings.warn(f"tables are read without Spark's planner: {why}", stacklevel=2)


def _try_out(gateway: Gateway) -> str | None:
    try:
        compiled = compiled_planner(gateway)
        if compiled.planner is None:
            return compiled.missing[Feature.SCAN]
        found: str | None = compiled.planner.tryOut()
    except Py4JError as error:
        return f"trying it out failed: {str(error).splitlines()[0]}"
    return found
