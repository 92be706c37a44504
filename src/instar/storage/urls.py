"""URLs as they may be shown in an error or a log: without passwords."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["hide_password"]

_USER: Final = re.compile(r"(://[^:/@]*):.*@")  # up to the last @: a password need not be well written
_PARAMETER: Final = re.compile(r"((?:^|[?&\s])(?:ssl)?password\s*=)[^&]*")


def hide_password(url: str) -> str:
    """Return a URL, or words for libpq, with an ellipsis for the password, if there is one."""
    return _PARAMETER.sub(r"\1…", _USER.sub(r"\1:…@", url))
