"""Guards: what can go wrong without an error is tried out before the first scan of a session is planned.

Spark compares our objects, and takes over a listing, by ways that are not ours. Where one of them does not
work as it should, tables are read over files, as they are without a planner; a warning and a counter say so.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from py4j.protocol import Py4JError

from instar.spark.planner.listing import ListingLostError, list_files
from instar.spark.planner.objects import PlannerObject
from instar.table.metrics import PLANNER_FALLBACKS

if TYPE_CHECKING:
    from instar.spark.planner.interfaces import Interfaces

__all__ = ["fall_back", "why_unsafe"]

_found: WeakKeyDictionary[Interfaces, str | None] = WeakKeyDictionary()


class _Probe(PlannerObject):
    """An object that is compared with others."""

    def __init__(self, text: str) -> None:
        super().__init__(["java.lang.Runnable"])
        self._text = text

    @property
    def identity(self) -> str:
        return self._text

    def run(self) -> None:
        """Do nothing."""


def why_unsafe(interfaces: Interfaces) -> str | None:
    """Say why scans must not be planned in a session; None if all is well. It is tried out once."""
    if interfaces not in _found:
        _found[interfaces] = _try_out(interfaces)
    return _found[interfaces]


def fall_back(interfaces: Interfaces, why: str) -> None:
    """Plan no more scans in a session, and say so once."""
    PLANNER_FALLBACKS.inc()
    if _found.get(interfaces) is None:
        _found[interfaces] = why
    if interfaces not in _warned:
        _warned[interfaces] = True
        warnings.warn(f"tables are read without Spark's planner: {why}", stacklevel=2)


_warned: WeakKeyDictionary[Interfaces, bool] = WeakKeyDictionary()


def _try_out(interfaces: Interfaces) -> str | None:
    try:
        return _compares(interfaces) or _lists(interfaces)
    except Py4JError as error:
        return f"trying it out failed: {str(error).splitlines()[0]}"


def _compares(interfaces: Interfaces) -> str | None:
    """See whether Spark finds two objects equal that say the same, and tells others apart."""
    equals = interfaces.gateway.jvm.java.util.Objects.equals
    if not equals(_Probe("a"), _Probe("a")) or equals(_Probe("a"), _Probe("b")):
        return "Spark does not compare scans as they compare themselves"
    return None


def _lists(interfaces: Interfaces) -> str | None:
    """See whether Spark takes over files that it is told, and no others."""
    try:
        list_files(interfaces, [("file:/instar/one.parquet", 1), ("file:/instar/two.parquet", 2)])
    except ListingLostError as error:
        return str(error)
    return None
