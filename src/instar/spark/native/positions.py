"""`readers_of(gateway)`: what reads rows of files by their positions, on executors too.

Its classes (`positions.java`) are compiled for the driver, and executors get the same ones as a jar, once for
each application. Where they cannot be compiled, tables are read over files, and positions come from Spark's
own reader, which takes longer.
"""

from __future__ import annotations

import hashlib
import tempfile
import threading
import zipfile
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from weakref import WeakKeyDictionary

from py4j.protocol import Py4JError

from instar.spark.native.java import compile_all, construct

if TYPE_CHECKING:
    from pyspark import SparkContext

    from instar.spark.native.gateway import Gateway

__all__ = ["Readers", "readers_of"]

_PACKAGE: Final = "instar.positions"
_lock = threading.Lock()
_known: WeakKeyDictionary[SparkContext, Readers | None] = WeakKeyDictionary()
_folders: WeakKeyDictionary[SparkContext, tempfile.TemporaryDirectory[str]] = WeakKeyDictionary()
"""Where the jar of an application is, as long as executors may ask for it."""


class Readers(NamedTuple):
    """Two Java objects."""

    format: Any
    """Spark's format of Parquet, which counts the positions of rows instead of making an object for each."""
    less: Any
    """What makes readers that tell positions into ones that leave out retracted rows, and finds positions."""


def readers_of(gateway: Gateway) -> Readers | None:
    """Return what an application has; None if it cannot have it."""
    context = gateway.spark.sparkContext
    with _lock:
        if context not in _known:
            folder = _folders[context] = tempfile.TemporaryDirectory(prefix="instar-")
            _known[context] = _make(gateway, Path(folder.name))
        return _known[context]


def _make(gateway: Gateway, folder: Path) -> Readers | None:
    text = files(__package__).joinpath("positions.java").read_text()
    # The jar of another version of instar in the same application has classes of other names.
    package = f"{_PACKAGE}_{hashlib.blake2b(text.encode(), digest_size=8).hexdigest()}"
    try:
        compiler = compile_all(gateway.py4j, text.replace(f"package {_PACKAGE};", f"package {package};"))
        gateway.add_jar(_jar(folder / f"{package}.jar", compiler.getBytecodes()))
        less = construct(gateway.py4j, compiler.getClassLoader().loadClass(f"{package}.Positions"))
        return Readers(less.format(), less)
    except (Py4JError, OSError):
        return None


def _jar(path: Path, codes: Any) -> Path:  # noqa: ANN401 -- a Java map of names and bytes
    """Write classes into a file."""
    with zipfile.ZipFile(path, "w") as jar:
        for name in codes.keySet():
            jar.writestr(f"{name.replace('.', '/')}.class", bytes(codes.get(name)))
    return path
