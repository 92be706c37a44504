"""`instar serve`: the lineage service."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from instar.cli.lineage import DatabaseOption, require_lineage
from instar.cli.output import JsonOption, console, print_json
from instar.durations import parse_duration

__all__ = ["serve"]


def serve(
    *,
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="The port to listen on; 0 takes any that is free.")] = 5000,
    db: DatabaseOption = "sqlite:///lineage.db",
    tokens: Annotated[
        str | None, typer.Option(help="A file of tokens: on each line a token and `read`, `write` or both.")
    ] = None,
    retain: Annotated[
        str | None, typer.Option(help="Delete what was superseded longer ago than this: 90d, 24h.")
    ] = None,
    max_body: Annotated[int, typer.Option(help="The largest body of a request, in bytes.")] = 16 * 2**20,
    allow_local_webhooks: Annotated[
        bool, typer.Option("--allow-local-webhooks", help="Allow webhooks that point to this machine.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Serve lineage: OpenLineage events in, the Marquez API out.

    Without tokens, the service listens on this machine only. On SIGINT and SIGTERM it answers the current
    requests, then stops.

    Examples:

        instar serve --db sqlite:///lineage.db

        instar serve --host 0.0.0.0 --db postgresql://lineage@db/lineage --tokens tokens.txt --retain 90d

    """
    require_lineage()
    from instar.service.app import ServiceOptions  # noqa: PLC0415 -- an extra
    from instar.service.auth import read_tokens  # noqa: PLC0415 -- an extra
    from instar.service.serve import serve as run  # noqa: PLC0415 -- an extra

    options = ServiceOptions(
        tokens=read_tokens(tokens) if tokens is not None else None,
        max_body=max_body,
        allow_local_webhooks=allow_local_webhooks,
        retain=parse_duration(retain) * 1000 if retain is not None else None,
    )

    def ready(url: str) -> None:
        if as_json:
            print_json({"url": url})
        else:
            console().print(f"Serving lineage on {url}. Press Ctrl+C to stop.")
        sys.stdout.flush()  # the parent process waits for the URL

    run(db, host, port, options, ready=ready)
