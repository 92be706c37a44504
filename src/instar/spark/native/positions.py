"""`position_format(gateway)`: a format of Spark's that counts rows, instead of making an object for each.

Its classes are compiled for the driver, and executors get the same ones as a jar, once for each application.
Where they cannot be compiled, positions come from Spark's own reader, which takes longer.
"""

from __future__ import annotations

import hashlib
import tempfile
import threading
import zipfile
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

from py4j.protocol import Py4JError

from instar.spark.native.java import compile_all, construct

if TYPE_CHECKING:
    from pyspark import SparkContext

    from instar.spark.native.gateway import Gateway

__all__ = ["position_format"]

_PACKAGE: Final = "instar.positions"
_lock = threading.Lock()
_known: WeakKeyDictionary[SparkContext, Any] = WeakKeyDictionary()
_folders: WeakKeyDictionary[SparkContext, tempfile.TemporaryDirectory[str]] = WeakKeyDictionary()
"""Where the jar of an application is, as long as executors may ask for it."""


def position_format(gateway: Gateway) -> Any | None:  # noqa: ANN401 -- a Java object
    """Return the format, made once for each application; None if this Spark cannot have it."""
    context = gateway.spark.sparkContext
    with _lock:
        if context not in _known:
            folder = _folders[context] = tempfile.TemporaryDirectory(prefix="instar-")
            _known[context] = _make(gateway, Path(folder.name))
        return _known[context]


def _make(gateway: Gateway, folder: Path) -> Any | None:  # noqa: ANN401 -- a Java object
    text = files(__package__).joinpath("positions.java").read_text()
    # The jar of another version of instar in the same application has classes of other names.
    package = f"{_PACKAGE}_{hashlib.blake2b(text.encode(), digest_size=8).hexdigest()}"
    try:
        compiler = compile_all(gateway.py4j, text.replace(f"package {_PACKAGE};", f"package {package};"))
        gateway.add_jar(_jar(folder / f"{package}.jar", compiler.getBytecodes()))
        return construct(gateway.py4j, compiler.getClassLoader().loadClass(f"{package}.PositionFormat"))
    except (Py4JError, OSError):
        return None


def _jar(path: Path, codes: Any) -> Path:  # noqa: ANN401 -- a Java map of names and bytes
    """Write classes into a file."""
    with zipfile.ZipFile(path, "w") as jar:
        for name in codes.keySet():
            jar.writestr(f"{name.replace('.', '/')}.class", bytes(codes.get(name)))
    return path
