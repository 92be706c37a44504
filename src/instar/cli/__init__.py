"""The `instar` command."""

from instar.cli.entry import main

__all__ = ["main"]
