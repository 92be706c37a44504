"""Classes for the JVM of a session, compiled there by what Spark compiles its queries with."""

from __future__ import annotations

import threading
from importlib.resources import files
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from py4j.java_gateway import JavaGateway

__all__ = ["compiled_object"]

_lock = threading.Lock()
_known: WeakKeyDictionary[JavaGateway, dict[str, Any]] = WeakKeyDictionary()


def compiled_object(gateway: JavaGateway, file: str, name: str, *arguments: object) -> Any:  # noqa: ANN401
    """Return the object that a JVM has of a class in a file beside this one.

    What is in the file is compiled on first use, and the object made by the class's only constructor.
    """
    with _lock:
        known = _known.setdefault(gateway, {})
        if name not in known:
            known[name] = _make(gateway, file, name, arguments)
        return known[name]


def _make(gateway: JavaGateway, file: str, name: str, arguments: tuple[object, ...]) -> Any:  # noqa: ANN401
    jvm = gateway.jvm
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(jvm.java.lang.Class.forName("org.apache.spark.SparkConf").getClassLoader())
    compiler.cook(files(__package__).joinpath(file).read_text())
    (constructor,) = compiler.getClassLoader().loadClass(name).getConstructors()
    given = jvm.java.util.ArrayList()  # an array takes no object of Python's
    for argument in arguments:
        given.add(argument)
    return constructor.newInstance(given.toArray())
