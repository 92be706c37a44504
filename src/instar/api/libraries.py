"""Optional libraries: a call that needs a missing one raises an error that says what to install."""

from __future__ import annotations

from importlib.util import find_spec

from instar.errors import MissingExtraError

__all__ = ["check_library"]


def check_library(name: str) -> None:
    """Raise `MissingExtraError` if a library is not installed."""
    if find_spec(name) is None:
        raise MissingExtraError(None, package=name)
