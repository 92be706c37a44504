"""What a catalog does in the JVM, if it can compile classes: say its name, and list any number of tables.

Where it cannot, the same is done by calls between Python and the JVM, of which there are many.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from instar.errors import UsageError
from instar.spark.native.java import compiled_object

if TYPE_CHECKING:
    from collections.abc import Sequence

    from instar.spark.native.gateway import Gateway

__all__ = ["list_identifiers", "list_summaries", "say_name"]

_KIND: Final = "MANAGED"


def say_name(gateway: Gateway, catalog: Any, name: str) -> Any:  # noqa: ANN401 -- a Java object
    """Return a catalog that says its name without a call to Python."""
    made = _compiled(gateway)
    return catalog if made is None else made.named(catalog, name)


def list_identifiers(gateway: Gateway, namespace: Any, names: Sequence[str]) -> Any:  # noqa: ANN401 -- Java arrays
    """Return the tables of a namespace."""
    made = _compiled(gateway)
    if made is not None:
        return made.identifiers(namespace, gateway.strings(names))
    kind = gateway.jvm.org.apache.spark.sql.connector.catalog.Identifier
    return gateway.array(kind, [kind.of(namespace, name) for name in names])


def list_summaries(gateway: Gateway, namespace: Any, names: Sequence[str]) -> Any:  # noqa: ANN401 -- Java arrays
    """Return the tables of a namespace, each with its kind."""
    made = _compiled(gateway)
    if made is not None:
        return made.summaries(namespace, gateway.strings(names), _KIND)
    catalog = gateway.jvm.org.apache.spark.sql.connector.catalog
    of, kind = catalog.Identifier.of, catalog.TableSummary
    return gateway.array(kind, [kind.of(of(namespace, name), _KIND) for name in names])


def _compiled(gateway: Gateway) -> Any | None:  # noqa: ANN401 -- a Java object
    """Return what makes many at once, if this Spark can have it."""
    try:
        return compiled_object(gateway.py4j, "catalogs.java", "instar.catalogs.Catalogs")
    except UsageError:
        return None
