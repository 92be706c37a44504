"""Classes for the JVM of a session, compiled there by what Spark compiles its queries with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from py4j.java_gateway import JavaGateway

__all__ = ["compile_class"]


def compile_class(gateway: JavaGateway, source: str, name: str) -> Callable[..., Any]:
    """Compile a text of Java, and return what makes objects of one of its classes: its only constructor."""
    jvm = gateway.jvm
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(jvm.java.lang.Class.forName("org.apache.spark.SparkConf").getClassLoader())
    compiler.cook(source)
    (constructor,) = compiler.getClassLoader().loadClass(name).getConstructors()

    def make(*arguments: object) -> Any:  # noqa: ANN401 -- a Java object
        given = jvm.java.util.ArrayList()  # an array takes no object of Python's
        for argument in arguments:
            given.add(argument)
        return constructor.newInstance(given.toArray())

    return make
