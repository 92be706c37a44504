"""Where the command begins: an interruption while everything else is still being loaded is no traceback."""

from __future__ import annotations

import sys

__all__ = ["main"]


def main() -> None:
    """Run the command line; no traceback reaches the user."""
    try:
        from instar.cli.app import run_command  # noqa: PLC0415 -- takes its time

        run_command()
    except KeyboardInterrupt:
        sys.stderr.write("error: interrupted; nothing that was committed is lost\n")
        sys.exit(130)
