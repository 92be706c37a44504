"""`SqlPrompt`: where statements are typed, with those of before and with names that begin as what is typed.

Nothing here runs a statement.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import Completer, Completion
from prompt_toolkit.filters import Condition
from prompt_toolkit.history import FileHistory, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings

from instar.errors import InstarError
from instar.schema.paths import quote_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from prompt_toolkit.completion import CompleteEvent
    from prompt_toolkit.document import Document
    from prompt_toolkit.history import History
    from prompt_toolkit.key_binding import KeyPressEvent

    from instar import Store

__all__ = ["SqlCompleter", "SqlPrompt"]

_WORD: Final = re.compile(r"`?[\w/.-]*$")
_NAME: Final = re.compile(r"`([^`]+)`|\b(\w+)\b")
_TABLES_LISTED: Final = 1000
_COLUMNS_OF: Final = 4
"""Of how many tables that a statement names the columns are offered."""
_KEYWORDS: Final = (
    *("alter table", "add column", "and", "as of", "between", "case", "clustered", "column", "comment"),
    *("count(*)", "create table", "delete from", "describe", "describe history", "distinct", "drop column"),
    *("drop table", "exit", "explain", "from", "group by", "having", "insert into", "insert overwrite"),
    *("join", "left join", "limit", "matched", "merge into", "not", "null", "on", "or", "order by"),
    *("rename column", "rename to", "select", "set", "show columns in", "show create table", "show tables"),
    *("tblproperties", "timestamp as of", "truncate table", "type", "union all", "update", "using", "values"),
    *("version as of", "when", "where", "with"),
)


class SqlCompleter(Completer):
    """Offers keywords, tables, and the columns of the tables that a statement names."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:
        """Offer what begins as the word before the cursor, whatever the case of letters."""
        found = _WORD.search(document.text_before_cursor)
        typed = "" if found is None else found[0]
        if not typed and not complete_event.completion_requested:
            return
        for word in self.words(document.text):
            if word.lower().lstrip("`").startswith(typed.lower().lstrip("`")):
                yield Completion(word, start_position=-len(typed))

    def words(self, statement: str) -> Iterable[str]:
        """Return what may stand in a statement: columns first, then tables, then keywords."""
        try:
            tables = self._store.tables()[:_TABLES_LISTED]
            named = {quoted or plain for quoted, plain in _NAME.findall(statement)} & set(tables)
            schemas = [self._store.table(table).schema for table in sorted(named)[:_COLUMNS_OF]]
            columns = [name for schema in schemas for name in schema.names]
        except InstarError:  # nothing to offer is no reason to stop
            tables, columns = [], []
        return dict.fromkeys([*map(quote_name, columns), *map(quote_name, tables), *_KEYWORDS])


class SqlPrompt:
    """Asks for one statement after the other, each up to its semicolon, over as many lines as it takes."""

    def __init__(self, store: Store) -> None:
        keys = KeyBindings()

        @Condition
        def goes_on() -> bool:
            text = self._session.default_buffer.document.text.strip()
            return bool(text) and not text.endswith(";") and text.lower() not in {"exit", "quit", "\\q"}

        @keys.add("enter", filter=goes_on)
        def _(event: KeyPressEvent) -> None:
            event.current_buffer.insert_text("\n")

        self._session: PromptSession[str] = PromptSession(
            "sql> ",
            history=_history(),
            completer=SqlCompleter(store),
            complete_while_typing=False,
            key_bindings=keys,
            multiline=goes_on,
            prompt_continuation=lambda width, *_: "... ".rjust(width),
        )

    def ask(self) -> str:
        """Return what was typed; raise `EOFError` where nothing more comes."""
        return self._session.prompt()


def _history() -> History:
    """Return where statements are kept, from one time to the next, if that is possible."""
    home = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    path = Path(home) / "instar" / "sql_history"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(mode=0o600)
    except OSError:
        return InMemoryHistory()
    return FileHistory(str(path))
