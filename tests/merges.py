"""Random merges, and what they come to in plain Python: every row is compared with every other one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from instar.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from instar.api.merge import Merge

__all__ = ["LAYOUT", "Clause", "draw_clauses", "draw_rows", "merged", "with_clauses"]

Row = tuple[Any, ...]
Expression = tuple[str, "Callable[[Any, Any], Any]"]
"""In SQL, and as a function of a row of the table and one of the data."""

LAYOUT = pa.schema([("k", pa.int64()), ("j", pa.string()), ("v", pa.int64())])


class Clause(NamedTuple):
    """What a clause is called, its condition, and what it sets columns to."""

    sort: str
    condition: Expression | None
    values: dict[str, Expression] | None = None


def _more(left: Any, right: Any) -> bool | None:  # noqa: ANN401 -- numbers or None
    return None if left is None or right is None else left > right


def _case(target: Row, source: Row) -> int | None:
    found: int | None = 100 if _more(source[2], 4) else target[2]
    return found


_TARGET: list[Expression] = [
    ("target.v > 4", lambda t, s: _more(t[2], 4)),  # noqa: ARG005 -- both are given, here and below
    ("target.j = 'a'", lambda t, s: t[1] == "a"),  # noqa: ARG005
    ("target.v is null", lambda t, s: t[2] is None),  # noqa: ARG005
]
_SOURCE: list[Expression] = [
    ("source.v > 4", lambda t, s: _more(s[2], 4)),  # noqa: ARG005
    ("not (source.v > 2)", lambda t, s: s[2] is not None and s[2] <= 2),  # noqa: ARG005
    ("source.k is not null", lambda t, s: s[0] is not None),  # noqa: ARG005
]
_BOTH: list[Expression] = [
    ("source.v > target.v", lambda t, s: _more(s[2], t[2])),
    ("source.j = target.j and target.v is not null", lambda t, s: s[1] == t[1] and t[2] is not None),
]
_UPDATES: list[dict[str, Expression] | None] = [
    None,
    {"v": ("source.v", lambda t, s: s[2])},  # noqa: ARG005
    {"k": ("target.k + 1", lambda t, s: None if t[0] is None else t[0] + 1)},  # noqa: ARG005
    {
        "v": ("case when source.v > 4 then 100 else target.v end", _case),
        "j": ("null", lambda t, s: None),  # noqa: ARG005
    },
]
_INSERTS: list[dict[str, Expression] | None] = [
    None,
    {"k": ("source.k", lambda t, s: s[0]), "j": ("'new'", lambda t, s: "new")},  # noqa: ARG005
]


def draw_rows(random: Random, most: int) -> list[Row]:
    """Draw rows that share keys, some of which are null."""
    return [
        (random.choice([None, *range(8)]), random.choice("ab"), random.choice([None, *range(9)]))
        for _ in range(random.randint(0, most))
    ]


def draw_clauses(random: Random) -> list[Clause]:
    """Draw one to four clauses."""
    clauses = []
    for _ in range(random.randint(1, 4)):
        match random.choice(("update", "delete", "insert", "sweep")):
            case "update":
                condition = random.choice([None, *_TARGET, *_SOURCE, *_BOTH])
                clauses.append(Clause("update", condition, random.choice(_UPDATES)))
            case "delete":
                clauses.append(Clause("delete", random.choice([None, *_TARGET, *_SOURCE, *_BOTH])))
            case "insert":
                clauses.append(Clause("insert", random.choice([None, *_SOURCE]), random.choice(_INSERTS)))
            case _:
                clauses.append(Clause("sweep", random.choice([None, *_TARGET])))
    return clauses


def with_clauses(merge: Merge, clauses: list[Clause]) -> Merge:
    """Say the clauses in SQL."""
    for sort, condition, values in clauses:
        where = None if condition is None else condition[0]
        into = None if values is None else {name: text for name, (text, _) in values.items()}
        match sort:
            case "update":
                merge = merge.when_matched_update(into, condition=where)
            case "delete":
                merge = merge.when_matched_delete(where)
            case "insert":
                merge = merge.when_not_matched_insert(into, condition=where)
            case _:
                merge = merge.when_not_matched_by_source_delete(where)
    return merge


def merged(table: list[Row], data: list[Row], on: list[int], clauses: list[Clause]) -> list[Row]:
    """Return what is left: raise `UsageError` where it is not known what a row is to become."""
    result: list[Row] = []
    for row in table:
        partners = [given for given in data if all(row[at] == given[at] for at in on)]
        if not partners:
            if _first(clauses, {"sweep"}, row, None) is None:
                result.append(row)
            continue
        found = [(_first(clauses, {"update", "delete"}, row, given), given) for given in partners]
        chosen = [(clause, given) for clause, given in found if clause is not None]
        if not chosen:
            result.append(row)
        elif any(clause.sort == "update" for clause, _ in chosen):
            if len(chosen) > 1:
                raise UsageError("which one?")
            ((clause, given),) = chosen
            result.append(_set(clause, row, given))
    for given in data:
        if not any(all(row[at] == given[at] for at in on) for row in table):
            insert = _first(clauses, {"insert"}, None, given)
            if insert is not None:
                result.append(_set(insert, (None, None, None), given))
    return result


def _first(clauses: list[Clause], sorts: set[str], target: Row | None, source: Row | None) -> Clause | None:
    return next(
        (
            clause
            for clause in clauses
            if clause.sort in sorts
            and (clause.condition is None or clause.condition[1](target, source) is True)
        ),
        None,
    )


def _set(clause: Clause, target: Row, source: Row) -> Row:
    if clause.values is None:
        return source
    names = LAYOUT.names
    return tuple(
        clause.values[name][1](target, source) if name in clause.values else target[at]
        for at, name in enumerate(names)
    )
