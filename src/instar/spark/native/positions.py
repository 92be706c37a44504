"""`readers_of(gateway)`: what reads rows of files by their positions, on executors too.

Its classes (`positions.java`) are compiled for the driver, and executors get the same ones as a jar, once for
each application. Where they cannot be compiled, tables are read over files, and positions come from Spark's
own reader, which takes longer.
"""

from __future__ import annotations

import hashlib
import shutil
import tempfile
import threading
import zipfile
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from weakref import WeakKeyDictionary, finalize

from py4j.protocol import Py4JError

from instar.spark.native.java import compile_all, construct, why_not_compiled

if TYPE_CHECKING:
    from py4j.java_gateway import JavaGateway
    from pyspark import SparkContext

    from instar.spark.native.gateway import Gateway

__all__ = ["Readers", "readers_of", "why_no_readers"]

_PACKAGE: Final = "instar.positions"
_ISOLATED: Final = "spark.sql.artifact.isolation.enabled"
"""Whether tasks of a session get only the jars that were added in this session, and not the application's."""
_lock = threading.Lock()
_known: WeakKeyDictionary[SparkContext, Readers | str] = WeakKeyDictionary()
"""Those of each application, or why it has none."""
_compiled: WeakKeyDictionary[JavaGateway, Readers] = WeakKeyDictionary()
"""Those of each JVM: Py4J knows methods by the names of classes, so there must not be two of one name."""


class Readers(NamedTuple):
    """Two Java objects, and their classes."""

    format: Any
    """Spark's format of Parquet, which counts the positions of rows instead of making an object for each."""
    less: Any
    """What makes readers that tell positions into ones that leave out retracted rows, and finds positions."""
    jar: Path
    """Is there as long as an application may ask for it."""


def readers_of(gateway: Gateway) -> Readers | None:
    """Return what an application has; None if it cannot have it, or if a session keeps to its own jars."""
    found = _find(gateway)
    return None if isinstance(found, str) else found


def why_no_readers(gateway: Gateway) -> str | None:
    """Say why `readers_of` returns None, if it does."""
    found = _find(gateway)
    return f"executors cannot get the classes of readers ({found})" if isinstance(found, str) else None


def _find(gateway: Gateway) -> Readers | str:
    if gateway.settings([_ISOLATED]).get(_ISOLATED) == "true":
        return f"{_ISOLATED} is set"
    context = gateway.spark.sparkContext
    with _lock:
        if context not in _known:
            _known[context] = _give(gateway)
        return _known[context]


def _give(gateway: Gateway) -> Readers | str:
    """Give an application the classes of its JVM, or say why that is not possible."""
    try:
        made = _compiled.get(gateway.py4j)
        if made is None:
            made = _compiled[gateway.py4j] = _make(gateway.py4j)
        gateway.add_jar(made.jar)
    except Py4JError as error:
        return why_not_compiled(error)
    except OSError as error:
        return str(error)
    return made


def _make(gateway: JavaGateway) -> Readers:
    text = files(__package__).joinpath("positions.java").read_text()
    # The jar of another version of instar in the same application has classes of other names.
    package = f"{_PACKAGE}_{hashlib.blake2b(text.encode(), digest_size=8).hexdigest()}"
    compiler = compile_all(gateway, text.replace(f"package {_PACKAGE};", f"package {package};"))
    less = construct(gateway, compiler.getClassLoader().loadClass(f"{package}.Positions"))
    folder = tempfile.mkdtemp(prefix="instar-")
    finalize(gateway, shutil.rmtree, folder, ignore_errors=True)
    return Readers(less.format(), less, _jar(Path(folder) / f"{package}.jar", compiler.getBytecodes()))


def _jar(path: Path, codes: Any) -> Path:  # noqa: ANN401 -- a Java map of names and bytes
    """Write classes into a file."""
    with zipfile.ZipFile(path, "w") as jar:
        for name in codes.keySet():
            jar.writestr(f"{name.replace('.', '/')}.class", bytes(codes.get(name)))
    return path
