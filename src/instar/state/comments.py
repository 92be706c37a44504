"""Comments: what people say about a table and its columns. They change nothing that is stored or read.

They are kept in the table's config beside its options, those of columns under the ids of their fields, so
that they stay when a column is renamed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from instar.errors import ColumnNotFoundError, UsageError
from instar.schema.algebra import walk_slots
from instar.schema.paths import format_path, parse_path
from instar.schema.types import Struct
from instar.state.commits import Configured

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from instar.schema import Schema
    from instar.schema.types import Field
    from instar.state.commits import ConfigValue, Step
    from instar.state.table_state import TableState

__all__ = ["COMMENT", "comment", "comments_in", "is_comment", "resolve_comments"]

COMMENT: Final = "comment"
"""The entry of the table itself; that of a field has its id behind it, after a dot."""
MAX_COMMENT: Final = 4000
"""How many characters a comment may have: a state carries all of them."""


def is_comment(name: str) -> bool:
    """Whether an entry of a config is a comment."""
    return name == COMMENT or name.startswith(f"{COMMENT}.")


def comments_in(schema: Schema, config: Mapping[str, ConfigValue]) -> dict[str | None, str]:
    """Return the comments of a table by the paths of its columns; that of the table itself is under None."""
    found: dict[str | None, str] = {None: str(config[COMMENT])} if COMMENT in config else {}
    for path, field in _walk(schema):
        text = config.get(f"{COMMENT}.{field.id}")
        if text is not None:
            found[format_path(path)] = str(text)
    return found


def resolve_comments(schema: Schema, comments: Mapping[str | None, str | None]) -> dict[str, str | None]:
    """Return comments as a config has them; one for a column that is not there is refused."""
    ids = {tuple(step.lower() for step in path): field.id for path, field in _walk(schema)}
    return {_entry(schema, ids, column): _checked(text, column) for column, text in comments.items()}


def comment(state: TableState, comments: Mapping[str | None, str | None]) -> tuple[Step, ...]:
    """Comment on a table or its columns; None removes a comment."""
    config = state.config or {}
    resolved = resolve_comments(state.history.latest, comments)
    changed = {name: text for name, text in resolved.items() if config.get(name) != text}
    return (Configured(dict(changed)),) if changed else ()


def _entry(schema: Schema, ids: Mapping[tuple[str, ...], int], column: str | None) -> str:
    if column is None:
        return COMMENT
    steps = tuple(step.lower() for step in parse_path(column))
    if steps not in ids:
        raise ColumnNotFoundError(column, known=tuple(format_path(path) for path, _ in _walk(schema)))
    return f"{COMMENT}.{ids[steps]}"


def _checked(text: str | None, column: str | None) -> str | None:
    """Return a comment as it is kept; an empty one is none."""
    if text is not None and len(text) > MAX_COMMENT:
        what = "the table" if column is None else f"`{column}`"
        raise UsageError(
            f"the comment on {what} has {len(text):,} characters, and may have {MAX_COMMENT:,}: shorten it"
        )
    return text or None


def _walk(schema: Schema) -> Iterator[tuple[tuple[str, ...], Field]]:
    """Yield every field with its path; through lists and maps it goes by element, key and value."""
    for path, slot in walk_slots(Struct(schema.fields)):
        if slot.field is not None:
            yield path, slot.field
