"""Making a store a catalog of a session, if this Spark has what that takes.

Spark makes catalogs from the names of Java classes. Ours is put where it keeps those that it has made.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

from py4j.protocol import Py4JError

from instar.errors import UsageError
from instar.spark.catalog.catalog import StoreCatalog
from instar.spark.catalog.listing import say_name
from instar.spark.catalog.proxies import why_not
from instar.spark.catalog.staging import StagedTable
from instar.spark.catalog.tables import CatalogTable, TableInsert, TableRead, TableWrite, TableWriter
from instar.spark.native.gateway import gateway_of
from instar.spark.native.relay import install as install_relay

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from instar.spark.catalog.contract import CatalogStore
    from instar.spark.native.gateway import Gateway

__all__ = ["CATALOG", "find_catalog", "make_catalog", "why_no_catalog"]

CATALOG: Final = "instar"
"""What a catalog is called unless told otherwise."""
_PROXIES: Final = (
    StoreCatalog,
    CatalogTable,
    StagedTable,
    TableRead,
    TableWriter,
    TableWrite,
    TableInsert,
)

_made: WeakKeyDictionary[SparkSession, dict[str, StoreCatalog]] = WeakKeyDictionary()


def make_catalog(spark: SparkSession, store: CatalogStore, name: str = CATALOG) -> bool:
    """Make a store known as a catalog of a session; False if this Spark cannot have one.

    A client of Spark Connect cannot; of a Spark that lacks something else, a warning says so.
    """
    if getattr(spark, "_sc", None) is None:
        return False
    gateway = gateway_of(spark)
    reason = why_no_catalog(gateway)
    if reason is not None:
        warnings.warn(
            f"there is no catalog `{name}` in this Spark: {reason}. Views work, and so does "
            "store.table(name).read(spark)",
            RuntimeWarning,
            stacklevel=3,
        )
        return False
    own = _made.setdefault(spark, {})
    manager = gateway.session.sessionState().catalogManager()
    if name not in own and manager.isCatalogRegistered(name):
        raise UsageError(f"the session has another catalog `{name}`: register the store under another name")
    install_relay()
    own[name] = StoreCatalog(gateway, store, name)
    _catalogs(manager).put(name, say_name(gateway, own[name], name))
    return True


def find_catalog(spark: SparkSession, store: CatalogStore) -> str | None:
    """Return the name of a catalog of a session that shows a store, if there is one."""
    made = _made.get(spark, {})
    return next((name for name, catalog in made.items() if catalog.store is store), None)


def why_no_catalog(gateway: Gateway) -> str | None:
    """Say what a Spark lacks for catalogs, or return None if it lacks nothing."""
    try:
        _catalogs(gateway.session.sessionState().catalogManager())
        listed = "\n".join(gateway.lines(gateway.session.sessionState().catalog().getClass().getMethods()))
    except (Py4JError, LookupError):
        return "its catalogs are kept elsewhere"
    if "cacheTable(" not in listed or "getCachedTable(" not in listed:
        return "it keeps no plans of tables"
    return why_not(gateway, _PROXIES)


def _catalogs(manager: Any) -> Any:  # noqa: ANN401 -- Java objects
    """Return the catalogs of a session, by name."""
    for field in manager.getClass().getDeclaredFields():
        if field.getName() == "catalogs":
            field.setAccessible(True)
            return field.get(manager)
    raise LookupError("catalogs")
