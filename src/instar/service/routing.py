"""Which handler answers a request, decided on the path as it was sent.

Names contain `/`, `:` and `%2F`, so a path is split at its slashes before its parts are decoded.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote_to_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from instar.lineage import Database
    from instar.service.parameters import Parameter

__all__ = ["ApiCall", "Endpoint", "Match", "Reply", "Router"]


class Reply(NamedTuple):
    """What a handler answers: what the JSON says, a status, headers, and what became of how many events."""

    body: Any
    status: int = 200
    headers: dict[str, str] = {}  # noqa: RUF012 -- never changed
    events: Mapping[str, int] = {}


@dataclass(frozen=True)
class ApiCall:
    """A request as a handler sees it: everything is decoded and checked."""

    database: Database
    path: dict[str, str]
    query: dict[str, Any]
    body: Any
    now: int
    allow_local_webhooks: bool

    def __getitem__(self, name: str) -> str:
        """Return a name from the path."""
        return self.path[name]


@dataclass(frozen=True)
class Endpoint:
    """One method on one path. In the template, `{name}` is one part and `{name...}` is the rest."""

    method: str
    template: str
    handler: Callable[[ApiCall], Reply]
    summary: str
    parameters: Sequence[Parameter] = ()
    body: str | None = None
    writes: bool = False
    status: int = 200

    @property
    def parts(self) -> list[str]:
        """The parts of the template."""
        return self.template.strip("/").split("/")


class Match(NamedTuple):
    """What was found for a request: the endpoint and the names in its path, or the methods that exist."""

    endpoint: Endpoint | None
    path: dict[str, str]
    methods: list[str]


class Router:
    """All endpoints."""

    def __init__(self, endpoints: Sequence[Endpoint]) -> None:
        self.endpoints = list(endpoints)

    def find(self, method: str, raw_path: bytes) -> Match:
        """Find the endpoint of a request; a name that is not UTF-8 is no name."""
        try:
            raw = raw_path.partition(b"?")[0].strip(b"/").split(b"/")
            parts = [unquote_to_bytes(part).decode() for part in raw]
        except UnicodeDecodeError:
            return Match(None, {}, [])
        methods: list[str] = []
        for endpoint in self.endpoints:
            path = _match(endpoint.parts, parts)
            if path is None:
                continue
            if endpoint.method == method:
                return Match(endpoint, path, methods)
            methods.append(endpoint.method)
        return Match(None, {}, methods)


def _match(template: list[str], parts: list[str]) -> dict[str, str] | None:
    found: dict[str, str] = {}
    for position, expected in enumerate(template):
        if expected.endswith("...}"):
            rest = "/".join(parts[position:])
            return {**found, expected[1:-4]: rest} if rest else None
        if position >= len(parts):
            return None
        if expected.startswith("{"):
            if not parts[position]:
                return None
            found[expected[1:-1]] = parts[position]
        elif expected != parts[position]:
            return None
    return found if len(parts) == len(template) else None
