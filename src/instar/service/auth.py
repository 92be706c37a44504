"""Who may send requests: bearer tokens with scopes; without tokens, only this machine, no other web page."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import SplitResult, urlsplit

from instar.errors import UsageError
from instar.service.bodies import BadRequestError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Guard", "is_foreign", "is_loopback", "read_tokens"]

SCOPES: Final = frozenset({"read", "write"})
_LEAST_LENGTH: Final = 16


def read_tokens(path: str) -> dict[str, frozenset[str]]:
    """Read a file of tokens: on each line a token and its scopes, such as `s3cr3t… read,write`.

    Tokens are kept as hashes. Empty lines and those that begin with # are ignored.
    """
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read the tokens in {path}: {error}") from None
    found: dict[str, frozenset[str]] = {}
    for number, line in enumerate(lines, start=1):
        words = line.split()
        if not words or line.lstrip().startswith("#"):
            continue
        scopes = frozenset("".join(words[1:]).split(",")) - {""}
        if len(words[0]) < _LEAST_LENGTH or not scopes or not scopes <= SCOPES:
            raise UsageError(
                f"line {number} of {path} has no token of at least {_LEAST_LENGTH} characters, followed by "
                "its scopes: read, write or read,write"
            )
        found[_digest(words[0])] = scopes
    if not found:
        raise UsageError(f"there are no tokens in {path}")
    return found


def is_loopback(host: str) -> bool:
    """Whether a host is this machine and nothing else."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower() == "localhost"


class Guard:
    """Decides whether a request may pass."""

    def __init__(self, tokens: dict[str, frozenset[str]] | None) -> None:
        self.tokens = tokens

    def check(self, headers: Mapping[str, str], *, writes: bool) -> None:
        """Let a request pass, or raise."""
        if self.tokens is None:
            self.check_local(headers)
            return
        scheme, _, token = headers.get("authorization", "").partition(" ")
        scopes = self.scopes(token.strip()) if scheme.lower() == "bearer" else None
        if scopes is None:
            challenge = {"WWW-Authenticate": 'Bearer realm="instar"'}
            raise BadRequestError(401, "send a token: Authorization: Bearer TOKEN", challenge)
        needed = "write" if writes else "read"
        if needed not in scopes:
            raise BadRequestError(403, f"this token does not have the scope {needed}")

    def scopes(self, token: str) -> frozenset[str] | None:
        """Return what a token allows, or None if it is not known. The time taken says nothing about it."""
        digest, found = _digest(token), None
        for known, scopes in (self.tokens or {}).items():
            if hmac.compare_digest(known, digest):
                found = scopes
        return found

    def check_local(self, headers: Mapping[str, str]) -> None:
        """Without tokens, refuse what other web pages send through a browser on this machine."""
        if self.tokens is not None:
            return
        host = _split(f"//{headers.get('host', '')}").hostname or ""
        if not is_loopback(host):
            raise BadRequestError(403, "without tokens, this service answers only to localhost")
        if is_foreign(headers):
            raise BadRequestError(403, "without tokens, this service does not answer to other web pages")


def is_foreign(headers: Mapping[str, str]) -> bool:
    """Whether a browser says that another web page has sent this."""
    origin = headers.get("origin")
    return origin is not None and _split(origin).netloc != headers.get("host")


def _split(url: str) -> SplitResult:
    try:
        return urlsplit(url)
    except ValueError:
        raise BadRequestError(400, "the headers Host and Origin are not those of a browser") from None


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).hexdigest()
