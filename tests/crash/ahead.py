"""Imports that children would have to make, made before they are born."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["import_ahead"]


def import_ahead(work: Callable[[], object]) -> None:
    """Let a child do some work, and import here what it had to import.

    instar loads what it needs at its first use. Working here instead would leave threads behind, which a fork
    does not take along.
    """
    hear, speak = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.close(hear)
            work()
            with os.fdopen(speak, "w") as told:
                told.write("\n".join(list(sys.modules)))
            code = 0
        finally:
            os._exit(code)
    os.close(speak)
    with os.fdopen(hear) as told:
        names = told.read().split("\n")
    assert os.waitpid(child, 0)[1] == 0, "a child failed; see its traceback"
    for name in names:
        if name not in sys.modules:
            with suppress(ImportError):  # some modules make up others
                import_module(name)
