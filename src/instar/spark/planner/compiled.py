"""`compiled_planner(gateway)`: the classes of `planner.java`, compiled by what Spark compiles queries with.

They are compiled once for each JVM. Which features there are is found by looking: a Spark that lacks an
interface does without its feature, and one that the rest does not compile with, does without planned scans.
"""

from __future__ import annotations

import secrets
import threading
from enum import Enum
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from weakref import WeakKeyDictionary

from py4j.protocol import Py4JError

from instar.spark.native.java import compile_class, construct, why_not_compiled
from instar.spark.native.positions import readers_of, why_no_readers
from instar.spark.native.settings import READ_OPTIONS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from py4j.java_gateway import JavaGateway

    from instar.spark.native.gateway import Gateway

__all__ = ["Compiled", "Feature", "compiled_planner", "find_class", "number_of"]

_SQL: Final = "org.apache.spark.sql"


class Feature(Enum):
    """What the planner may do with a table."""

    SCAN = "scans"
    JOINS = "pruning by joins"
    ANSWERS = "answers from metadata"
    LIMITS = "limits"


_INTERFACES: Final[Mapping[Feature, tuple[str, ...]]] = {
    Feature.SCAN: (f"{_SQL}.internal.connector.SupportsPushDownCatalystFilters",),
    Feature.JOINS: (f"{_SQL}.internal.connector.SupportsRuntimeCatalystFiltering",),
    Feature.ANSWERS: (f"{_SQL}.connector.read.SupportsPushDownAggregates",),
    Feature.LIMITS: (
        f"{_SQL}.connector.read.SupportsPushDownLimit",
        f"{_SQL}.connector.read.SupportsPushDownTopN",
    ),
}
_OF_SCANS: Final = (Feature.JOINS,)
"""Features whose interfaces a scan implements; those of others its builder does."""


class Compiled(NamedTuple):
    """The classes of a JVM, if it can have them, and why it has no feature that it lacks."""

    planner: Any | None
    missing: Mapping[Feature, str]


def compiled_planner(gateway: Gateway) -> Compiled:
    """Return what makes tables and scans in the JVM of a session; what it takes is compiled once."""
    with _lock:
        found = _sessions.get(gateway)
        if found is None:
            found = _sessions[gateway] = _of_session(gateway)
        return found


def number_of(gateway: Gateway, known: Any) -> str | None:  # noqa: ANN401 -- a table or a scan of Spark's
    """Return the number by which what is behind a table or a scan is found; None if it is none of ours."""
    planner = compiled_planner(gateway).planner
    return None if planner is None else planner.numberOf(known)


def find_class(gateway: Gateway, name: str) -> Any | None:  # noqa: ANN401 -- a Java class
    """Return a class of Spark's by its name, if there is one."""
    jvm = gateway.jvm
    try:
        loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
        return jvm.java.lang.Class.forName(name, False, loader)  # noqa: FBT003 -- not to be initialised
    except Py4JError:
        return None


def _of_session(gateway: Gateway) -> Compiled:
    known = _classes.get(gateway.py4j)
    if known is None:
        known = _classes[gateway.py4j] = _compile(gateway)
    planner, missing = known
    if planner is None:
        return Compiled(None, missing)
    if gateway.relations is None:
        return Compiled(None, {**missing, Feature.SCAN: "it cannot compile what relations are made with"})
    readers = readers_of(gateway)
    if readers is None:
        return Compiled(None, {**missing, Feature.SCAN: str(why_no_readers(gateway))})
    options = gateway.java_map(READ_OPTIONS)
    made = construct(gateway.py4j, planner, gateway.session, options, gateway.relations, readers.less)
    return Compiled(made, missing)


def _compile(gateway: Gateway) -> tuple[Any | None, Mapping[Feature, str]]:
    """Return the class that makes the others; None if they cannot be had, and why."""
    missing = {
        feature: f"it has no {name}"
        for feature, names in _INTERFACES.items()
        for name in names
        if find_class(gateway, name) is None
    }
    if Feature.SCAN in missing:
        return None, missing
    # Py4J knows classes by their names, so those of one compilation are called like no others.
    package = f"instar.planner_{secrets.token_hex(8)}"
    text = files(__package__).joinpath("planner.java").read_text()
    text = text.replace("package instar;", f"package {package};")
    has = {feature: names for feature, names in _INTERFACES.items() if feature not in missing}
    builders = [name for feature, names in has.items() if feature not in _OF_SCANS for name in names]
    scans = [name for feature in has if feature in _OF_SCANS for name in has[feature]]
    for mark, names in (("OF BUILDERS", builders), ("OF SCANS", scans)):
        text = text.replace(f"/*{mark}*/", "".join(f", {name}" for name in names))
    for name in (name for feature in missing for name in _INTERFACES[feature]):
        text = text.replace(f"import {name};\n", "")
    try:
        return compile_class(gateway.py4j, text, f"{package}.Planner"), missing
    except Py4JError as error:
        return None, {**missing, Feature.SCAN: f"its classes are others: {why_not_compiled(error)}"}


_sessions: WeakKeyDictionary[Gateway, Compiled] = WeakKeyDictionary()
_classes: WeakKeyDictionary[JavaGateway, tuple[Any | None, Mapping[Feature, str]]] = WeakKeyDictionary()
_lock = threading.RLock()
