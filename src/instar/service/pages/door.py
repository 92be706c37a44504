"""Who may see the pages. If tokens are set, a person signs in with one and gets a cookie.

The cookie opens the pages and nothing else: the API wants the token itself, so no other web page can use the
browser of somebody who has signed in to write anything. Sessions are kept in memory; a restart ends them.
"""

from __future__ import annotations

import hashlib
import secrets
import threading
import time
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qs

from starlette.requests import Request
from starlette.responses import Response

from instar.service.auth import is_foreign
from instar.service.bodies import BadRequestError, read_body

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.types import Receive, Scope, Send

    from instar.service.auth import Guard
    from instar.service.pages.site import Site

__all__ = ["Door", "Sessions"]

COOKIE: Final = "instar_session"
_SECONDS: Final = 12 * 3600
_MOST: Final = 10_000
_MAX_FORM: Final = 16 * 1024


class Sessions:
    """People who have signed in, by a hash of what is in their cookie; new ones replace the oldest."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._ends: dict[str, float] = {}
        self._lock = threading.Lock()

    def begin(self) -> str:
        """Return what the cookie of a new session says."""
        key = secrets.token_urlsafe(32)
        with self._lock:
            now = self._clock()
            # The oldest come first, and all last equally long.
            while self._ends and (len(self._ends) >= _MOST or next(iter(self._ends.values())) <= now):
                del self._ends[next(iter(self._ends))]
            self._ends[_digest(key)] = now + _SECONDS
        return key

    def knows(self, key: str) -> bool:
        """Whether a cookie belongs to somebody who has signed in, not too long ago."""
        with self._lock:
            return self._ends.get(_digest(key), 0) > self._clock()

    def end(self, key: str) -> None:
        """Forget a session."""
        with self._lock:
            self._ends.pop(_digest(key), None)


class Door:
    """The pages, for those who may see them, and a form for the others."""

    def __init__(self, site: Site, guard: Guard) -> None:
        self.site = site
        self.guard = guard
        self.sessions = Sessions()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request for a page."""
        request = Request(scope, receive)
        path = scope["path"]
        if self.guard.tokens is None or path.startswith("/static/"):
            self.guard.check_local(request.headers)
            await self.site(scope, receive, send)
        elif request.method == "POST" and path == "/sign-in":
            await (await self._sign_in(request))(scope, receive, send)
        elif request.method == "POST" and path == "/sign-out":
            _check_origin(request)
            self.sessions.end(request.cookies.get(COOKIE, ""))
            await _moved("/", _cookie(request, "", 0))(scope, receive, send)
        elif self.sessions.knows(request.cookies.get(COOKIE, "")) or self._has_token(request):
            await self.site(scope, receive, send)
        else:
            response = self.site.sign_in(_wanted(request), None, 401)
            await response(scope, receive, send)

    def _has_token(self, request: Request) -> bool:
        if "authorization" not in request.headers:
            return False
        self.guard.check(request.headers, writes=request.method not in {"GET", "HEAD"})
        return True

    async def _sign_in(self, request: Request) -> Response:
        _check_origin(request)
        form = parse_qs((await read_body(request, _MAX_FORM)).decode("latin-1"), max_num_fields=10)
        token = form.get("token", [""])[-1].strip()
        wanted = _local(form.get("next", ["/"])[-1])
        if "read" not in (self.guard.scopes(token) or ()):
            return self.site.sign_in(wanted, "This token is not known, or may not read.", 401)
        return _moved(wanted, _cookie(request, self.sessions.begin(), _SECONDS))


def _check_origin(request: Request) -> None:
    """Refuse a form that a page of somebody else has sent."""
    if is_foreign(request.headers):
        raise BadRequestError(403, "this form was sent by another web page")


def _wanted(request: Request) -> str:
    if request.method not in {"GET", "HEAD"}:
        return "/"
    query = request.scope["query_string"].decode("latin-1")
    return _local(request.scope["path"] + (f"?{query}" if query else ""))


def _local(target: str) -> str:
    """Return an address on this site; whatever leads elsewhere is the first page."""
    is_local = target.startswith("/") and not target.startswith(("//", "/\\")) and target.isprintable()
    return target if is_local and target.isascii() and "\\" not in target else "/"


def _moved(target: str, cookie: str) -> Response:
    headers = {"Location": target, "Set-Cookie": cookie, "Cache-Control": "no-store"}
    return Response(status_code=303, headers=headers)


def _cookie(request: Request, value: str, seconds: int) -> str:
    secure = "; Secure" if request.scope["scheme"] == "https" else ""
    return f"{COOKIE}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Lax{secure}"


def _digest(key: str) -> str:
    return hashlib.sha256(key.encode("utf-8", "surrogateescape")).hexdigest()
