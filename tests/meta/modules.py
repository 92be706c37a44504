"""Where the meta tests find the code that they look at."""

from __future__ import annotations

import importlib
import pkgutil
from pathlib import Path

import instar

ROOT = Path(__file__).parent.parent.parent
SOURCE = ROOT / "src" / "instar"


def module_names() -> list[str]:
    """Return every module that must work without Spark."""
    found = (module.name for module in pkgutil.walk_packages(instar.__path__, "instar."))
    return [name for name in found if not name.startswith("instar.spark") and not name.endswith("__main__")]


def import_all() -> None:
    """Import all of them, so that every class is defined."""
    for name in module_names():
        importlib.import_module(name)
