"""Where the command begins: interrupting it while it loads gives no traceback."""

from __future__ import annotations

import sys

__all__ = ["main"]


def main() -> None:
    """Run the command line; no traceback reaches the user."""
    try:
        if sys.argv[1:] == ["--version"]:  # this needs none of the rest
            from instar import __version__  # noqa: PLC0415 -- read from the package's metadata

            sys.stdout.write(f"instar {__version__}\n")
            sys.exit(0)
        from instar.cli.app import run_command  # noqa: PLC0415 -- takes its time

        run_command()
    except KeyboardInterrupt:
        sys.stderr.write("error: interrupted; nothing that was committed is lost\n")
        sys.exit(130)
