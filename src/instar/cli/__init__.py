"""The `instar` command."""

from instar.cli.app import app, main

__all__ = ["app", "main"]
