"""Servers for the tests of backends that need one."""

from __future__ import annotations

from tests.servers import postgres

__all__ = ["postgres"]
