"""`JavaProxy`: a Python object that implements interfaces of Spark's, and whether a Spark can work with it.

Spark calls the methods through Py4J, under the names that its own interfaces have. An interface's default
methods are never called in the JVM, so each of them has to be here, and a newer Spark may have others.
"""

from __future__ import annotations

import re
from functools import wraps
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar

from py4j.protocol import Py4JError

from instar.spark.native.relay import relayed
from instar.spark.problems import spark_errors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from instar.spark.native.gateway import Gateway

__all__ = ["JavaProxy", "answering", "why_not"]

F = TypeVar("F", bound="Callable[..., Any]")

_METHOD: Final = re.compile(r"^(?!.*\bstatic ).*?\.(?P<name>[\w$]+)\(")


def answering(callback: F) -> F:
    """Let every error of a callback reach its caller through Spark, as an instar error."""

    @wraps(callback)
    def wrapper(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 -- whatever the callback takes
        with spark_errors():
            return callback(*args, **kwargs)

    return relayed(wrapper)  # type: ignore[return-value]


class JavaProxy:
    """Only equal to itself, and so equal to nothing that Spark shows it: that is never the Python object."""

    interfaces: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls) -> None:
        cls.Java = type("Java", (), {"implements": list(cls.interfaces)})

    Java: ClassVar[type]
    """What Py4J asks for."""

    def toString(self) -> str:  # noqa: N802 -- Java's name, here and below
        """Say what this is."""
        return type(self).__name__

    def hashCode(self) -> int:  # noqa: N802
        """Return a number that stays."""
        return id(self) & 0x7FFF_FFFF

    def equals(self, other: object) -> bool:
        """Whether Spark may take one for the other."""
        return self is other


def why_not(gateway: Gateway, proxies: Iterable[type[JavaProxy]]) -> str | None:
    """Say why a Spark cannot work with these, or return None if it can."""
    for proxy in proxies:
        for interface in proxy.interfaces:
            try:
                listed = gateway.lines(gateway.jvm.java.lang.Class.forName(interface).getMethods())
            except Py4JError:
                return f"it has no {interface}"
            methods = {match["name"] for line in listed if (match := _METHOD.search(line))}
            unknown = sorted(name for name in methods if not hasattr(proxy, name))
            if unknown:
                return (
                    f"its {interface.rpartition('.')[2]} has {', '.join(unknown)}, which instar does not know"
                )
    return None
