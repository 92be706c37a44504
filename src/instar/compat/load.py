"""Versions from files: the name and the content of a file show its format."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Final

from instar.compat.avro import parse_avro
from instar.compat.columns import ColumnsVersion
from instar.compat.json_schema import parse_json_schema
from instar.errors import InvalidSchemaError, UsageError
from instar.schema import as_schema

if TYPE_CHECKING:
    from collections.abc import Sequence

    from instar.compat.judge import Version

__all__ = ["FORMATS", "load_version"]

FORMATS: Final = ("protobuf", "avro", "json-schema", "ddl")

_SUFFIXES: Final = {
    ".proto": "protobuf",
    ".binpb": "protobuf",
    ".desc": "protobuf",
    ".pb": "protobuf",
    ".avsc": "avro",
    ".sql": "ddl",
    ".ddl": "ddl",
}


def load_version(
    given: str, *, format_: str | None = None, includes: Sequence[Path] = (), message: str | None = None
) -> Version:
    """Load a version from a file, or from DDL text.

    `includes` are the folders in which a `.proto` file's imports are looked for; `message` names the message
    whose records are kept, if not all of the file.
    """
    if format_ is not None and format_ not in FORMATS:
        raise UsageError(f"{format_!r} is not a format: choose {', '.join(FORMATS)}")
    path = Path(given)
    kind = format_ or _SUFFIXES.get(path.suffix.lower())
    if kind == "protobuf":
        try:
            from instar.compat.protobuf.compile import load_protobuf  # noqa: PLC0415 -- an extra
        except ModuleNotFoundError:
            raise UsageError("protobuf needs a library of its own: install instar[stream]") from None
        return load_protobuf(path, includes=includes, message=message)
    text = _text(given)
    kind = kind or _guess(text)
    if kind == "avro":
        return parse_avro(text, given)
    if kind == "json-schema":
        return parse_json_schema(text, given)
    return ColumnsVersion(as_schema(text))


def _guess(text: str) -> str:
    """Tell formats of JSON apart: Avro has records, Spark has structs, and JSON Schema has the rest."""
    if not text.lstrip().startswith("{"):
        return "ddl"
    try:
        value = json.loads(text)
    except (json.JSONDecodeError, RecursionError):
        return "json-schema"
    return {"record": "avro", "struct": "ddl"}.get(str(value.get("type")), "json-schema")


def _text(given: str) -> str:
    """Return the content of a file, or DDL given as it is."""
    path = Path(given)
    if " " in given.strip() and "\n" not in given and not _is_file(path):
        return given
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        why = (error.strerror if isinstance(error, OSError) else None) or "it is not text"
        raise InvalidSchemaError(
            f"cannot read a schema from {given!r}: {why}. Give a file, or DDL such as 'user string, n int'"
        ) from None


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False
