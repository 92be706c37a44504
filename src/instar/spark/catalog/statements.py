"""Statements that Spark does not hand to a catalog: UPDATE, DELETE, MERGE and HISTORY, by sqlglot's tokens.

Only what leads to the parts of a statement is understood here. Conditions and values stay the text that they
are, for Spark to read; just the names that tables go by in front of columns become those that we use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from sqlglot import TokenType
from sqlglot.dialects.spark import Spark
from sqlglot.errors import TokenError

from instar.errors import UsageError
from instar.schema.paths import format_path
from instar.spark.catalog.parameters import bind
from instar.table.write.merge import SOURCE, TARGET, Clause, When

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from sqlglot import Token

    from instar.spark.catalog.parameters import Arguments

__all__ = [
    "DeleteStatement",
    "ExplainStatement",
    "HistoryStatement",
    "MergeStatement",
    "RowStatement",
    "SameColumns",
    "Statement",
    "UpdateStatement",
    "check_elsewhere",
    "is_merge",
    "parse_statement",
    "split_statements",
]

Name = tuple[str, ...]


class UpdateStatement(NamedTuple):
    """`UPDATE table SET column = value, … WHERE condition`."""

    table: Name
    values: Mapping[str, str]
    where: str | None


class DeleteStatement(NamedTuple):
    """`DELETE FROM table WHERE condition`."""

    table: Name
    where: str | None


class SameColumns(NamedTuple):
    """Columns in which rows are equal that are the same; `nulls` if null equals null."""

    target: str
    source: str
    nulls: bool


class MergeStatement(NamedTuple):
    """`MERGE INTO table USING source ON … WHEN …`; the source is a table or a query in parentheses."""

    table: Name
    source: str
    on: tuple[SameColumns, ...]
    clauses: tuple[Clause, ...]


class HistoryStatement(NamedTuple):
    """`DESCRIBE HISTORY table LIMIT n`."""

    table: Name
    limit: int | None


RowStatement = UpdateStatement | DeleteStatement | MergeStatement


class ExplainStatement(NamedTuple):
    """`EXPLAIN` before a statement that changes rows."""

    statement: RowStatement

    @property
    def table(self) -> Name:
        """The table that would be changed."""
        return self.statement.table


Statement = RowStatement | HistoryStatement | ExplainStatement

_OPENING: Final = frozenset([TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE])
_CLOSING: Final = frozenset([TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE])
_TEXTS: Final = frozenset([TokenType.STRING, TokenType.IDENTIFIER])
_EXPLAINED: Final = frozenset(["EXTENDED", "CODEGEN", "COST", "FORMATTED"])
_ELSEWHERE: Final = {
    "OPTIMIZE": "call table.compact(), or `instar compact`",
    "VACUUM": "call table.vacuum() or store.vacuum(), or `instar vacuum`",
    "RESTORE": "call table.restore(version=…), or `instar restore`",
    "DESCRIBE DETAIL": "use DESCRIBE EXTENDED, or `instar describe`",
}
_EQUAL: Final = {"=": False, "==": False, "<=>": True}


def parse_statement(
    text: str, args: Arguments | None = None, *, escapes: Callable[[], bool] = lambda: True
) -> Statement | None:
    """Read a statement that is ours to run, or return None if it is for Spark.

    `args` are the values of its parameters, and `escapes` says whether backslashes in texts escape.
    """
    explains, text = _explained(text)
    try:
        reader = _Reader(text)
    except TokenError:
        return None  # Spark says what is wrong with it
    kind = next((words for words in _OURS if reader.accept(*words)), None)
    if kind is None or (explains and kind in _HISTORY):
        return None
    if args is not None:
        reader = _Reader(bind(text, reader.tokens, args, escapes=escapes()))
        reader.expect(*kind)
    if kind in _HISTORY:
        return _history(reader)
    statement = _CHANGES[kind](reader)
    return ExplainStatement(statement) if explains else statement


def check_elsewhere(text: str) -> None:
    """Raise if a statement is one that other table formats have, and say what there is here instead."""
    first, *others = text.upper().rstrip(" ;").split(maxsplit=2) or [""]
    # A table may be called `detail`.
    words = f"{first} {others[0]}" if first == "DESCRIBE" and len(others) > 1 else first
    if words in _ELSEWHERE:
        raise UsageError(f"there is no statement {words} here: {_ELSEWHERE[words]}")


def is_merge(text: str) -> bool:
    """Whether a statement is a merge, or explains one."""
    try:
        return _Reader(_explained(text)[1]).accept("MERGE")
    except TokenError:
        return False


def _explained(text: str) -> tuple[bool, str]:
    """Return whether a statement explains another, and the other, or else the statement itself."""
    try:
        command = next(iter(Spark().tokenize(text)), None)
        if command is None or command.text.upper() != "EXPLAIN" or command.token_type in _TEXTS:
            return False, text
        rest = text[command.end + 1 :]  # which is one token for sqlglot
        mode = next(iter(Spark().tokenize(rest)), None)
    except TokenError:
        return False, text
    in_mode = mode is not None and mode.text.upper() in _EXPLAINED
    return True, rest[mode.end + 1 :] if in_mode and mode is not None else rest


def split_statements(text: str) -> list[str]:
    """Take statements apart that stand one after the other, with semicolons between."""
    try:
        tokens = Spark().tokenize(text)
    except TokenError:
        return [text]  # Spark says what is wrong with it
    ends = [token.start for token in tokens if token.token_type is TokenType.SEMICOLON]
    starts = [0, *(end + 1 for end in ends)]
    pieces = [text[start:end] for start, end in zip(starts, [*ends, len(text)], strict=True)]
    return [piece.strip() for piece in pieces if Spark().tokenize(piece)]


class _Reader:
    """The tokens of a statement, and how far they have been read."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens: list[Token] = []
        for token in Spark().tokenize(text):
            if not self.tokens or token.start > self.tokens[-1].end:  # `3L` is one token, whatever it means
                self.tokens.append(token)
        while self.tokens and self.tokens[-1].token_type is TokenType.SEMICOLON:
            self.tokens.pop()
        self.at = 0

    def word(self, ahead: int = 0) -> str:
        """Return the next token if it is a word or a sign, in capitals; otherwise, or at the end, nothing."""
        at = self.at + ahead
        if at >= len(self.tokens) or self.tokens[at].token_type in _TEXTS:
            return ""
        return self.tokens[at].text.upper()

    def accept(self, *words: str) -> bool:
        """Go on if these words are next."""
        if any(self.word(ahead) != word for ahead, word in enumerate(words)):
            return False
        self.at += len(words)
        return True

    def expect(self, *words: str) -> None:
        """Go on behind these words, which must be next."""
        if not self.accept(*words):
            raise self.unexpected(" ".join(words))

    def unexpected(self, wanted: str) -> UsageError:
        """Return what to say where something else stands than should."""
        found = f"`{self.tokens[self.at].text}`" if self.at < len(self.tokens) else "the end"
        return UsageError(f"cannot read the statement: expected {wanted}, found {found}")

    def end(self) -> None:
        """Raise unless this is the end."""
        if self.at < len(self.tokens):
            raise self.unexpected("the end")

    def table(self) -> Name:
        """Read the name of a table, perhaps given as `IDENTIFIER('…')`."""
        if not self.accept("IDENTIFIER", "("):
            return self.name()
        token = self.tokens[self.at] if self.at < len(self.tokens) else None
        if token is None or token.token_type is not TokenType.STRING:
            raise self.unexpected("a name in quotes")
        self.at += 1
        self.expect(")")
        inner = _Reader(token.text)
        name = inner.name()
        inner.end()
        return name

    def name(self) -> Name:
        """Read a name with dots in it."""
        parts = [self._part()]
        while self.accept("."):
            parts.append(self._part())
        return tuple(parts)

    def alias(self, *following: str) -> str | None:
        """Read another name for a table, if there is one before the words that follow."""
        if self.accept("AS"):
            return self._part()
        return None if self.at >= len(self.tokens) or self.word() in following else self._part()

    def until(self, *words: str) -> list[Token]:
        """Read up to one of some words, or to the end, outside of parentheses and CASE."""
        start, depth = self.at, 0
        while self.at < len(self.tokens):
            token, word = self.tokens[self.at], self.word()
            if depth == 0 and word in words:
                break
            if token.token_type in _OPENING or word == "CASE":
                depth += 1
            elif token.token_type in _CLOSING or (word == "END" and depth):
                depth -= 1
                if depth < 0:
                    break
            self.at += 1
        if start == self.at:
            raise self.unexpected("an expression")
        return self.tokens[start : self.at]

    def written(self, tokens: Sequence[Token], names: Mapping[Name, str]) -> str:
        """Return tokens as they stand in the text, with other names, or none, in front of columns."""
        pieces, done, at = [], tokens[0].start, 0
        queries: list[bool] = []
        while at < len(tokens):
            token = tokens[at]
            if token.token_type in _OPENING:
                behind = tokens[at + 1].text.upper() if at + 1 < len(tokens) else ""
                queries.append(behind in {"SELECT", "WITH"})
            elif token.token_type in _CLOSING and queries:
                queries.pop()
            found = self._qualifier(tokens, at, names)
            if found:
                name = tuple(part.text.lower() for part in tokens[at : at + found : 2])
                if any(queries):
                    raise UsageError(
                        f"cannot read the statement: a subquery names `{format_path(name)}` in front of a "
                        "column. Give tables in subqueries other names, and write columns of the outer one "
                        "without"
                    )
                after = tokens[at + found - 1] if names[name] else tokens[at + found]
                pieces += [self.text[done : token.start], names[name]]
                done, at = after.start, at + found
            at += 1
        return "".join([*pieces, self.text[done : tokens[-1].end + 1]])

    def _qualifier(self, tokens: Sequence[Token], at: int, names: Mapping[Name, str]) -> int:
        """Return how many tokens from here on are a table's name and the dots behind its parts."""
        if at and tokens[at - 1].token_type is TokenType.DOT:
            return 0
        for name in names:
            size = 2 * len(name)
            window = tokens[at : at + size]
            parts = tuple(token.text.lower() for token in window[::2])
            dots = all(token.token_type is TokenType.DOT for token in window[1::2])
            plain = all(token.token_type is not TokenType.STRING for token in window)
            if len(window) == size and parts == name and dots and plain and at + size < len(tokens):
                return size
        return 0

    def _part(self) -> str:
        if self.at >= len(self.tokens):
            raise self.unexpected("a name")
        token = self.tokens[self.at]
        quoted = token.token_type is TokenType.IDENTIFIER
        is_word = token.token_type is not TokenType.STRING and token.text.replace("_", "a").isalnum()
        if not quoted and not is_word:
            raise self.unexpected("a name")
        self.at += 1
        return token.text


def _called(table: Name, alias: str | None, new: str) -> dict[Name, str]:
    """Return the names that a table goes by in front of its columns, each with the one that we use."""
    if alias is not None:
        return {(alias.lower(),): new}
    lower = tuple(part.lower() for part in table)
    return {lower[at:]: new for at in range(len(lower))}


def _update(reader: _Reader) -> UpdateStatement:
    table = reader.table()
    names = _called(table, reader.alias("SET"), "")
    reader.expect("SET")
    values = _settings(reader, names, names)
    where = reader.written(reader.until(), names) if reader.accept("WHERE") else None
    reader.end()
    return UpdateStatement(table, values, where)


def _delete(reader: _Reader) -> DeleteStatement:
    table = reader.table()
    names = _called(table, reader.alias("WHERE"), "")
    where = reader.written(reader.until(), names) if reader.accept("WHERE") else None
    reader.end()
    return DeleteStatement(table, where)


def _history(reader: _Reader) -> HistoryStatement:
    table = reader.table()
    limit = None
    if reader.accept("LIMIT"):
        number = reader.word()
        if not number.isdecimal():
            raise reader.unexpected("a number")
        reader.at += 1
        limit = int(number)
    reader.end()
    return HistoryStatement(table, limit)


def _settings(reader: _Reader, targets: Mapping[Name, str], names: Mapping[Name, str]) -> dict[str, str]:
    """Read `column = value, …`; a column may have the name of its table in front."""
    values: dict[str, str] = {}
    while True:
        path = reader.name()
        lower = tuple(part.lower() for part in path)
        qualifier = max((len(name) for name in targets if lower[: len(name)] == name), default=0)
        column = format_path(path[qualifier:] or path)
        if column in values:
            raise UsageError(f"column `{column}` is set twice")
        if reader.word() not in {"=", "=="}:
            raise reader.unexpected("=")
        reader.at += 1
        values[column] = reader.written(reader.until(",", "WHERE", "WHEN"), names)
        if not reader.accept(","):
            return values


def _merge(reader: _Reader) -> MergeStatement:
    table = reader.table()
    target = _called(table, reader.alias("USING"), TARGET)
    reader.expect("USING")
    source_tokens = reader.until("AS", "ON") if reader.word() == "(" else None
    if source_tokens is None:
        start = reader.at
        name = reader.name()
        source_text = reader.written(reader.tokens[start : reader.at], {})
    else:  # what stands behind the parentheses is its name
        close = _closing(source_tokens)
        reader.at -= len(source_tokens) - close - 1
        name, source_text = (), reader.written(source_tokens[: close + 1], {})
    source = _called(name, reader.alias("ON"), SOURCE)
    both = {**target, **source}
    if len(both) < len(target) + len(source):
        raise UsageError("the table and the source have one name: give one of them another with AS")
    reader.expect("ON")
    on = _matches(reader, target, source)
    clauses = []
    while reader.accept("WHEN"):
        clauses.append(_clause(reader, target, both))
    reader.end()
    if not clauses:
        raise reader.unexpected("WHEN")
    return MergeStatement(table, source_text, on, tuple(clauses))


def _closing(tokens: Sequence[Token]) -> int:
    """Return where the parenthesis is closed that the first token opens."""
    depth = 0
    for at, token in enumerate(tokens):
        depth += (token.token_type in _OPENING) - (token.token_type in _CLOSING)
        if depth == 0:
            return at
    raise UsageError("cannot read the statement: a parenthesis is not closed")


def _matches(
    reader: _Reader, target: Mapping[Name, str], source: Mapping[Name, str]
) -> tuple[SameColumns, ...]:
    """Read which columns are equal in rows that are the same."""
    matches = []
    while True:
        left = reader.name()
        nulls = _EQUAL.get(reader.word())
        if nulls is None:
            raise reader.unexpected("= or <=> between two columns; say more in WHEN … AND, or in the source")
        reader.at += 1
        right = reader.name()
        sides = [
            (_column(left, target), _column(right, source)),
            (_column(right, target), _column(left, source)),
        ]
        found = next(((one, other) for one, other in sides if one and other), None)
        if found is None:
            raise UsageError(
                f"cannot merge on `{format_path(left)}` and `{format_path(right)}`: compare a column of the "
                "table with one of the source, each with the name of its table in front"
            )
        matches.append(SameColumns(found[0] or "", found[1] or "", nulls))
        if not reader.accept("AND"):
            return tuple(matches)


def _column(path: Name, names: Mapping[Name, str]) -> str | None:
    """Return the column that a path with one of some names in front means."""
    lower = tuple(part.lower() for part in path)
    for name in names:
        if lower[: len(name)] == name and len(path) > len(name):
            return format_path(path[len(name) :])
    return None


def _clause(reader: _Reader, target: Mapping[Name, str], both: Mapping[Name, str]) -> Clause:
    matched = not reader.accept("NOT")
    reader.expect("MATCHED")
    by_source = not matched and reader.accept("BY", "SOURCE")
    if not matched and not by_source:
        reader.accept("BY", "TARGET")
    condition = reader.written(reader.until("THEN"), both) if reader.accept("AND") else None
    reader.expect("THEN")
    if reader.accept("DELETE") and (matched or by_source):
        return Clause(When.MATCHED_DELETE if matched else When.NOT_MATCHED_BY_SOURCE_DELETE, condition)
    if matched and reader.accept("UPDATE", "SET"):
        values = None if reader.accept("*") else _settings(reader, target, both)
        return Clause(When.MATCHED_UPDATE, condition, values)
    if not matched and not by_source and reader.accept("INSERT"):
        return Clause(
            When.NOT_MATCHED_INSERT, condition, None if reader.accept("*") else _inserted(reader, both)
        )
    allowed = "DELETE or UPDATE SET" if matched else "DELETE" if by_source else "INSERT"
    raise reader.unexpected(allowed)


def _inserted(reader: _Reader, names: Mapping[Name, str]) -> dict[str, str]:
    """Read `(column, …) VALUES (value, …)`."""
    reader.expect("(")
    columns = [format_path(reader.name())]
    while reader.accept(","):
        columns.append(format_path(reader.name()))
    reader.expect(")")
    reader.expect("VALUES")
    reader.expect("(")
    values = [reader.written(reader.until(","), names)]
    while reader.accept(","):
        values.append(reader.written(reader.until(","), names))
    reader.expect(")")
    if len(values) != len(columns):
        raise UsageError(f"{len(columns)} columns cannot be inserted with {len(values)} values")
    return dict(zip(columns, values, strict=True))


_HISTORY: Final = frozenset([("DESCRIBE", "HISTORY"), ("DESC", "HISTORY")])
_CHANGES: Final[Mapping[Name, Callable[[_Reader], RowStatement]]] = {
    ("UPDATE",): _update,
    ("DELETE", "FROM"): _delete,
    ("MERGE", "INTO"): _merge,
}
_OURS: Final = (*_CHANGES, *_HISTORY)
