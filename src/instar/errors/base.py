"""The base of every error. It stands alone, because every branch of the tree begins here."""

from __future__ import annotations

from typing import ClassVar

__all__ = ["InstarError"]


class InstarError(Exception):
    """Base of every error that instar raises on purpose."""

    __module__ = "instar.errors"
    code: ClassVar[str] = "error"

    def __init_subclass__(cls) -> None:
        """Show the public module in tracebacks and pickles, whichever module defines the class."""
        super().__init_subclass__()
        if cls.__module__.startswith("instar.errors."):
            cls.__module__ = "instar.errors"
