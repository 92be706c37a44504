"""Classes for the JVM of a session, compiled there by what Spark compiles its queries with."""

from __future__ import annotations

import threading
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

from py4j.protocol import Py4JError

from instar.errors import UsageError

if TYPE_CHECKING:
    from py4j.java_gateway import JavaGateway

__all__ = ["compile_all", "compile_class", "compiled_object", "construct", "why_not_compiled"]

_COMPILER: Final = "org.codehaus.janino.SimpleCompiler"
_lock = threading.Lock()
_known: WeakKeyDictionary[JavaGateway, dict[str, Any]] = WeakKeyDictionary()


def compiled_object(gateway: JavaGateway, file: str, name: str, *arguments: object) -> Any:  # noqa: ANN401
    """Return the object that a JVM has of a class in a file beside this one, made on first use."""
    with _lock:
        known = _known.setdefault(gateway, {})
        if name not in known:
            try:
                made = compile_class(gateway, files(__package__).joinpath(file).read_text(), name)
                known[name] = construct(gateway, made, *arguments)
            except Py4JError as error:
                raise UsageError(
                    f"this Spark cannot compile instar's classes ({why_not_compiled(error)}): read tables "
                    "that need it with spark.read.format('instar'), and change rows in this process, as "
                    "table.delete(condition) does"
                ) from error
        return known[name]


def compile_class(gateway: JavaGateway, source: str, name: str) -> Any:  # noqa: ANN401 -- a Java class
    """Compile a text of Java, and return one of its classes; `Py4JError` says why it cannot be had."""
    return compile_all(gateway, source).getClassLoader().loadClass(name)


def compile_all(gateway: JavaGateway, source: str) -> Any:  # noqa: ANN401 -- a compiler
    """Compile a text of Java, and return the compiler, which has its classes and their bytes."""
    find = gateway.jvm.java.lang.Class.forName
    none = gateway.new_array(gateway.jvm.java.lang.Class, 0)
    compiler = (
        find(_COMPILER)
        .getDeclaredConstructor(none)
        .newInstance(gateway.new_array(gateway.jvm.java.lang.Object, 0))
    )
    compiler.setParentClassLoader(find("org.apache.spark.SparkConf").getClassLoader())
    compiler.cook(source)
    return compiler


def why_not_compiled(error: Py4JError) -> str:
    """Say in one line why a class cannot be had."""
    return str(getattr(error, "java_exception", error)).partition("\n")[0]


def construct(gateway: JavaGateway, java_class: Any, *arguments: object) -> Any:  # noqa: ANN401 -- Java objects
    """Return an object of a class that has one constructor."""
    given = gateway.jvm.java.util.ArrayList()  # an array takes no object of Python's
    for argument in arguments:
        given.add(argument)
    (constructor,) = java_class.getConstructors()
    return constructor.newInstance(given.toArray())
