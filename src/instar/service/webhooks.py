"""Webhooks: alerts are delivered to addresses that users chose, but never into this machine.

The address is looked up once, checked, and connected to as it was checked, so a name cannot change its
meaning in between. Redirects are not followed.
"""

from __future__ import annotations

import contextlib
import http.client
import ipaddress
import socket
import ssl
import threading
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from instar.errors import InvalidEventError

__all__ = ["check_webhook", "deliver"]

_TIMEOUT: Final = 10
_DEADLINE: Final = 15
_NAT64: Final = ipaddress.IPv6Network("64:ff9b::/96"), ipaddress.IPv6Network("64:ff9b:1::/48")
_MAX_STATUS: Final = 299


def check_webhook(url: str, *, allow_local: bool) -> None:
    """Refuse a URL that alerts must not be sent to. A name is looked up again when they are sent."""
    _addresses(url, allow_local=allow_local)


def deliver(url: str, alert: dict[str, Any], *, allow_local: bool) -> str | None:
    """Send an alert; return what went wrong, or None."""
    try:
        address = _addresses(url, allow_local=allow_local)[0]
        parts = urlsplit(url)
        connection = _connection(parts.scheme, parts.hostname or "", parts.port, address)
        # A timeout is for each read: who answers letter by letter must not keep all other alerts waiting.
        late = threading.Event()
        deadline = threading.Timer(_DEADLINE, _hang_up, [connection.sock, late])
        deadline.start()
        try:
            target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
            headers = {"Content-Type": "application/json", "User-Agent": "instar"}
            connection.request("POST", target, msgspec.json.encode(alert), headers)
            status = connection.getresponse().status
        finally:
            deadline.cancel()
            connection.close()
    except (OSError, http.client.HTTPException, InvalidEventError, ValueError) as error:
        return str(error)
    if late.is_set():  # what there was of an answer may look like a whole one
        return f"the webhook did not answer within {_DEADLINE} seconds"
    return None if status <= _MAX_STATUS else f"the webhook answered with status {status}"


def _hang_up(connected: socket.socket, late: threading.Event) -> None:
    late.set()
    with contextlib.suppress(OSError):  # it is over already
        connected.shutdown(socket.SHUT_RDWR)


def _addresses(url: str, *, allow_local: bool) -> list[str]:
    try:
        parts = urlsplit(url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError:
        raise InvalidEventError(f"{url!r} is not a URL") from None
    if parts.scheme not in {"http", "https"} or not parts.hostname or "\r" in url or "\n" in url:
        raise InvalidEventError(f"a webhook must be a URL with http or https, not {url!r}")
    try:
        found = socket.getaddrinfo(parts.hostname, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise InvalidEventError(f"the host of {url!r} cannot be found: {error}") from None
    addresses = [str(entry[4][0]) for entry in found]
    bad = next((address for address in addresses if not allow_local and _is_local(address)), None)
    if bad is not None:
        raise InvalidEventError(
            f"{url!r} leads to {bad}, which is a local address. Start the service with "
            "--allow-local-webhooks to permit it"
        )
    return addresses


def _is_local(address: str) -> bool:
    ip = ipaddress.ip_address(address.partition("%")[0])
    return any(
        one.is_loopback
        or one.is_link_local
        or one.is_unspecified
        or one.is_multicast
        or one.is_reserved
        or getattr(one, "is_site_local", False)
        for one in (ip, *_embedded(ip))
    )


def _embedded(ip: ipaddress.IPv4Address | ipaddress.IPv6Address) -> list[ipaddress.IPv4Address]:
    """Return the IPv4 addresses that an IPv6 address contains, by every known scheme of gateways."""
    if isinstance(ip, ipaddress.IPv4Address):
        return []
    found = [ip.ipv4_mapped, ip.sixtofour, *(ip.teredo or ())]
    if any(ip in network for network in _NAT64):
        found.append(ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF))
    return [one for one in found if one is not None]


def _connection(scheme: str, host: str, port: int | None, address: str) -> http.client.HTTPConnection:
    """Return a connection that speaks to a host by its name, and goes to the address that was checked."""
    kind = http.client.HTTPSConnection if scheme == "https" else http.client.HTTPConnection
    connection = kind(host, port, timeout=_TIMEOUT)
    raw = socket.create_connection((address, connection.port), _TIMEOUT)
    if scheme == "https":
        try:
            raw = ssl.create_default_context().wrap_socket(raw, server_hostname=host)
        except BaseException:
            raw.close()
            raise
    connection.sock = raw
    return connection
