"""Parameters in the query of a request: what each may be, and how it is described."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import parse_qsl

from instar.errors import UsageError
from instar.lineage.events import parse_time
from instar.lineage.queries.rows import Page

__all__ = ["LIMIT", "OFFSET", "PAGE", "Parameter", "page_of", "read_query"]

_MAX_OFFSET: Final = 2**53


@dataclass(frozen=True)
class Parameter:
    """One parameter. `kind` is integer, boolean, time or text; `choices` are the only texts allowed."""

    name: str
    kind: str = "text"
    description: str = ""
    default: Any = None
    required: bool = False
    least: int = 0
    most: int = _MAX_OFFSET
    choices: tuple[str, ...] = ()
    repeated: bool = False

    def read(self, text: str) -> Any:  # noqa: ANN401 -- depends on the kind
        """Return the value of a text, or raise."""
        if "\0" in text:
            raise UsageError(f"{self.name} contains a zero character")
        match self.kind:
            case "integer":
                return self._integer(text)
            case "boolean":
                if text.lower() not in {"true", "false"}:
                    raise UsageError(f"{self.name} must be true or false, not {text!r}")
                return text.lower() == "true"
            case "time":
                return parse_time(text)
        if self.choices and text.upper() not in self.choices:
            raise UsageError(f"{self.name} must be one of {', '.join(self.choices)}, not {text!r}")
        return text.upper() if self.choices else text

    def _integer(self, text: str) -> int:
        digits = text.removeprefix("-")
        if not (digits.isascii() and digits.isdecimal() and len(digits) < 19):  # noqa: PLR2004 -- 64 bits
            raise UsageError(f"{self.name} must be a whole number, not {text!r}")
        number = int(text)
        if not self.least <= number <= self.most:
            raise UsageError(f"{self.name} must be between {self.least} and {self.most}, not {number}")
        return number

    def to_openapi(self) -> dict[str, Any]:
        """Describe the parameter."""
        schemas: dict[str, dict[str, Any]] = {
            "integer": {"type": "integer", "minimum": self.least, "maximum": self.most},
            "boolean": {"type": "boolean"},
            "time": {"type": "string", "format": "date-time"},
            "text": {"type": "string"},
        }
        schema = schemas[self.kind]
        if self.choices:
            schema["enum"] = list(self.choices)
        if self.default is not None:
            schema["default"] = self.default
        if self.repeated:
            schema = {"type": "array", "items": schema}
        return {
            "name": self.name,
            "in": "query",
            "required": self.required,
            "description": self.description,
            "schema": schema,
        }


LIMIT: Final = Parameter("limit", "integer", "How many to return at most.", 100, least=0, most=1000)
OFFSET: Final = Parameter("offset", "integer", "How many to skip.", 0)
PAGE: Final = (LIMIT, OFFSET)


def page_of(query: dict[str, Any]) -> Page:
    """Return which part of a list is wanted."""
    return Page(query["limit"], query["offset"])


def read_query(parameters: tuple[Parameter, ...], raw: bytes) -> dict[str, Any]:
    """Read the query of a request. What is not known is ignored, as clients send more than we need."""
    given: dict[str, list[str]] = {}
    try:
        for name, text in parse_qsl(raw.decode("ascii"), keep_blank_values=True, errors="strict"):
            given.setdefault(name, []).append(text)
    except (UnicodeDecodeError, ValueError):
        raise UsageError("the query of the URL is not UTF-8, percent-encoded") from None
    found: dict[str, Any] = {}
    for parameter in parameters:
        texts = given.get(parameter.name, [])
        if parameter.required and not texts:
            raise UsageError(f"the parameter {parameter.name} is missing")
        values = [parameter.read(text) for text in texts]
        if parameter.repeated:
            found[parameter.name] = values
        else:
            found[parameter.name] = values[-1] if values else parameter.default
    return found
