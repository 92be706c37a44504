"""Random types, schemas, histories and changes, legal and not, for every test about schemas.

Ids are unique but neither dense nor ascending, so nothing can rely on their order. Data is in `data.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from hypothesis import settings
from hypothesis import strategies as st
from msgspec.structs import replace

from instar.errors import InvalidSchemaError
from instar.schema import Decimal, Field, List, Map, Primitive, Schema, Struct, Type
from instar.schema.schema import number_type
from instar.schema.types import PRIMITIVES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from hypothesis.strategies import DrawFn, SearchStrategy

__all__ = [
    "NAMES",
    "Ids",
    "Past",
    "draw_legal",
    "edit_slot",
    "edit_struct",
    "every_field",
    "every_slot",
    "every_struct",
    "histories",
    "leaf_types",
    "legal_schemas",
    "mutated_schemas",
    "mutations",
    "next_schemas",
    "pasts",
    "projections",
    "readers",
    "schemas",
    "thorough",
    "types",
    "widenings",
    "without_ids",
]

NAMES = (
    *("a", "b", "c", "d", "B", "element", "key", "value", "select", "order", "array", "map"),
    *("a.b", "a`b", "two words", "1st", "naïve", "日本", "a,b", "a:int", "not null", "f1", "_x"),
)
"""Few enough that a dropped name is soon used again; some need quotes, some look like syntax."""

thorough = settings(max_examples=2 * settings().max_examples)
"""For laws with many corners: search twice as long as the profile says."""

# Made once: making and checking a strategy takes longer than drawing from it.
_BOOLEANS = st.booleans()
_KINDS = st.sampled_from(("leaf", "leaf", "struct", "list", "map"))
_KEY_KINDS = st.sampled_from(("leaf", "leaf", "struct", "list"))
_COMMON = [Primitive(name) for name in ("int", "string", "smallint", "tinyint", "float", "double")]
_DECIMALS = [Decimal(p, s) for p in (1, 5, 10, 18, 38) for s in sorted({0, 1, p // 2, p - 1, p})]
_LEAVES: SearchStrategy[Type] = st.sampled_from(
    [*_COMMON * 6, *(Primitive(name) for name in sorted(PRIMITIVES)), *_DECIMALS]
)
_NAME_LISTS = {
    most: st.lists(st.sampled_from(NAMES), min_size=1, max_size=most, unique_by=str.lower) for most in (3, 4)
}

Fields = tuple[Field, ...]
Path = tuple[int | str, ...]
"""Where something is: positions of fields, and `element` or `value` below a list or map."""


class Ids:
    """An endless supply of different ids in no particular order."""

    PRIME = 9973

    def __init__(self, factor: int, start: int) -> None:
        self.factor = factor
        self.last = start

    def fresh(self) -> int:
        """Return an id that was not returned before."""
        self.last = (self.last + self.factor) % self.PRIME
        return self.last


def draw_ids(draw: DrawFn) -> Ids:
    """Draw a supply of ids; the simplest one counts up from 1."""
    return Ids(draw(st.sampled_from((1, 7, 4321, 9972))), draw(st.sampled_from((0, 5, 9000))))


def leaf_types() -> SearchStrategy[Type]:
    """Draw a type without members; a few of them can widen, so those are drawn more often."""
    return _LEAVES


def draw_type(draw: DrawFn, ids: Ids, depth: int, *, in_key: bool = False) -> Type:
    """Draw a type of at most some depth; below a map's key there are no maps."""
    match draw(_KEY_KINDS if in_key else _KINDS) if depth > 0 else "leaf":
        case "struct":
            return Struct(draw_fields(draw, ids, depth - 1, in_key=in_key))
        case "list":
            return List(draw_type(draw, ids, depth - 1, in_key=in_key), draw(_BOOLEANS))
        case "map":
            key = draw_type(draw, ids, draw(st.sampled_from((0, 0, depth - 1))), in_key=True)
            return Map(key, draw_type(draw, ids, depth - 1), draw(_BOOLEANS))
    return draw(_LEAVES)


def draw_fields(draw: DrawFn, ids: Ids, depth: int, *, in_key: bool = False, most: int = 3) -> Fields:
    """Draw the members of a struct, or the columns of a table."""
    return tuple(
        Field(ids.fresh(), name, draw_type(draw, ids, depth, in_key=in_key), draw(_BOOLEANS))
        for name in draw(_NAME_LISTS[most])
    )


@st.composite
def types(draw: DrawFn, depth: int = 3) -> Type:
    """Draw any type."""
    return draw_type(draw, draw_ids(draw), depth)


@st.composite
def schemas(draw: DrawFn, depth: int = 2, most: int = 4) -> Schema:
    """Draw a schema."""
    return Schema(draw_fields(draw, draw_ids(draw), depth, most=most))


def without_ids(schema: Schema) -> object:
    """Return all that a schema says but for its ids, as plain tuples."""
    return _plain(Struct(schema.fields))


def _plain(type_: Type) -> object:
    match type_:
        case Struct(fields=members):
            return ("struct", *((m.name, _plain(m.type), m.nullable) for m in members))
        case List(element=element, element_nullable=nullable):
            return "list", _plain(element), nullable
        case Map(key=key, value=value, value_nullable=nullable):
            return "map", _plain(key), _plain(value), nullable
    return type_


# --- looking into a schema ------------------------------------------------------------------------


def every_slot(fields: Fields, path: Path = ()) -> Iterator[tuple[Path, Type, bool]]:
    """Yield everything that has a type and may be null, but for what is inside a map's key."""
    for at, field in enumerate(fields):
        yield from _slots_of(field.type, field.nullable, (*path, at))


def _slots_of(type_: Type, nullable: bool, path: Path) -> Iterator[tuple[Path, Type, bool]]:
    yield path, type_, nullable
    match type_:
        case Struct(fields=members):
            yield from every_slot(members, path)
        case List(element=element, element_nullable=element_nullable):
            yield from _slots_of(element, element_nullable, (*path, "element"))
        case Map(value=value, value_nullable=value_nullable):
            yield from _slots_of(value, value_nullable, (*path, "value"))


def every_struct(fields: Fields) -> Iterator[tuple[Path, Fields]]:
    """Yield the table itself and every struct that may evolve."""
    yield (), fields
    for path, type_, _ in every_slot(fields):
        if isinstance(type_, Struct):
            yield path, type_.fields


def every_field(fields: Fields) -> Iterator[tuple[Path, Field]]:
    """Yield every field that may evolve, with the path of its struct and position."""
    for path, members in every_struct(fields):
        for at, member in enumerate(members):
            yield (*path, at), member


def edit_slot(fields: Fields, path: Path, edit: Callable[[Type, bool], tuple[Type, bool]]) -> Fields:
    """Return the fields with one slot replaced."""
    at, *rest = path
    assert isinstance(at, int)
    type_, nullable = _edit(fields[at].type, fields[at].nullable, tuple(rest), edit)
    return (*fields[:at], replace(fields[at], type=type_, nullable=nullable), *fields[at + 1 :])


def _edit(
    type_: Type, nullable: bool, path: Path, edit: Callable[[Type, bool], tuple[Type, bool]]
) -> tuple[Type, bool]:
    if not path:
        return edit(type_, nullable)
    match type_:
        case Struct(fields=members):
            return Struct(edit_slot(members, path, edit)), nullable
        case List(element=element, element_nullable=element_nullable):
            return List(*_edit(element, element_nullable, path[1:], edit)), nullable
        case Map(key=key, value=value, value_nullable=value_nullable):
            return Map(key, *_edit(value, value_nullable, path[1:], edit)), nullable
    raise AssertionError(path)


def edit_struct(fields: Fields, path: Path, edit: Callable[[Fields], Fields]) -> Fields:
    """Return the fields with the members of one struct, or the columns, replaced."""
    if not path:
        return edit(fields)

    def members(type_: Type, nullable: bool) -> tuple[Type, bool]:
        assert isinstance(type_, Struct)
        return Struct(edit(type_.fields)), nullable

    return edit_slot(fields, path, members)


# --- legal changes --------------------------------------------------------------------------------


def widenings(type_: Type) -> list[Type]:
    """Return some types that hold every value of a type, and more."""
    match type_:
        case Primitive(name="tinyint"):
            return [Primitive(name) for name in ("smallint", "int", "bigint", "double")]
        case Primitive(name="smallint"):
            return [Primitive(name) for name in ("int", "bigint", "double")]
        case Primitive(name="int"):
            return [Primitive(name) for name in ("bigint", "double")]
        case Primitive(name="float"):
            return [Primitive("double")]
        case Decimal(precision=precision, scale=scale):
            wider = [(precision + 1, scale), (precision + 1, scale + 1), (precision + 5, scale + 2)]
            return [Decimal(p, s) for p, s in wider if p <= 38]
    return []


def _legal_edits(fields: Fields) -> list[tuple[str, Path]]:
    edits: list[tuple[str, Path]] = []
    for path, members in every_struct(fields):
        edits += [("add", (*path, at)) for at in {0, len(members) // 2, len(members)}]
        edits += [("rename", (*path, at)) for at in range(len(members))]
        # Drops are what the laws are about, so they come up twice as often.
        edits += [("drop", (*path, at)) for at in range(len(members)) if len(members) > 1] * 2
        edits += [("replace", (*path, at)) for at in range(len(members))]
    for path, type_, nullable in every_slot(fields):
        edits += [("nullable", path)] * (not nullable)
        edits += [("widen", path)] * (2 * bool(widenings(type_)))
    return edits


def _free_name(draw: DrawFn, siblings: Fields) -> str:
    taken = {field.name.lower() for field in siblings}
    return draw(st.sampled_from([name for name in NAMES if name.lower() not in taken]))


def _apply_legal(draw: DrawFn, fields: Fields, ids: Ids, kind: str, path: Path) -> Fields:
    at = path[-1]

    def edit(members: Fields) -> Fields:
        assert isinstance(at, int)
        match kind:
            case "add":
                type_ = draw_type(draw, ids, draw(st.integers(0, 2)))
                new = Field(ids.fresh(), _free_name(draw, members), type_, nullable=True)
                return (*members[:at], new, *members[at:])
            case "rename":
                name = _free_name(draw, members)
                return (*members[:at], replace(members[at], name=name), *members[at + 1 :])
            case "replace":  # dropped, and at once added again: the same in all but its id
                type_ = number_type(members[at].type, iter(ids.fresh, None))
                new = Field(ids.fresh(), members[at].name, type_, nullable=True)
                return (*members[:at], new, *members[at + 1 :])
        return (*members[:at], *members[at + 1 :])

    match kind:
        case "nullable":
            return edit_slot(fields, path, lambda type_, _: (type_, True))
        case "widen":
            return edit_slot(
                fields, path, lambda type_, nullable: (draw(st.sampled_from(widenings(type_))), nullable)
            )
    return edit_struct(fields, path[:-1], edit)


def draw_legal(draw: DrawFn, schema: Schema, ids: Ids, most: int = 3, only: str | None = None) -> Schema:
    """Draw a schema that obeys the rules: some permitted changes, anywhere, of one kind if there is any."""
    fields = schema.fields
    for _ in range(draw(st.integers(1, most))):
        edits = _legal_edits(fields)
        wanted = [edit for edit in edits if edit[0] == only]
        kind, path = draw(st.sampled_from(wanted or edits))
        fields = _apply_legal(draw, fields, ids, kind, path)
    return Schema(fields)


@st.composite
def legal_schemas(draw: DrawFn, schema: Schema, ids: Ids) -> Schema:
    """Draw a schema that may follow another one."""
    return draw_legal(draw, schema, ids)


# --- histories ------------------------------------------------------------------------------------


class Past(NamedTuple):
    """The schemas that a table went through, and ids that it never used."""

    schemas: tuple[Schema, ...]
    ids: Ids


def draw_past(draw: DrawFn, most: int = 8, depth: int = 2) -> Past:
    """Draw a legal history."""
    ids = draw_ids(draw)
    found = [Schema(draw_fields(draw, ids, depth, most=4))]
    for _ in range(draw(st.integers(0, most - 1))):
        found.append(draw_legal(draw, found[-1], ids))
    return Past(tuple(found), ids)


@st.composite
def pasts(draw: DrawFn, most: int = 8, depth: int = 2) -> Past:
    """Draw a legal history with its supply of ids."""
    return draw_past(draw, most, depth)


@st.composite
def histories(draw: DrawFn, most: int = 8, depth: int = 2) -> tuple[Schema, ...]:
    """Draw a legal history of one to `most` schemas."""
    return draw_past(draw, most, depth).schemas


# --- changes that may break the rules -------------------------------------------------------------


def _mutate(draw: DrawFn, fields: Fields, past: Past) -> Fields:
    """Make one change that may be against the rules; the result may even be no schema."""
    kinds = ("require", "retype", "shuffle", "revive", "move", "add required", "key", "renumber", "wrap")
    slots = list(every_slot(fields))
    match draw(st.sampled_from(kinds)):
        case "require":
            path = draw(st.sampled_from([path for path, _, _ in slots]))
            return edit_slot(fields, path, lambda type_, _: (type_, False))
        case "retype":
            path = draw(st.sampled_from([path for path, _, _ in slots]))
            new = draw_type(draw, past.ids, draw(st.sampled_from((0, 0, 1))))
            return edit_slot(fields, path, lambda _, nullable: (new, nullable))
        case "shuffle":
            path, members = draw(st.sampled_from(list(every_struct(fields))))
            order = draw(st.permutations(range(len(members))))
            return edit_struct(fields, path, lambda members: tuple(members[at] for at in order))
        case "revive":
            return _revive(draw, fields, past)
        case "move":
            source, moved = draw(st.sampled_from(list(every_field(fields))))
            without = edit_struct(
                fields,
                source[:-1],
                lambda members: tuple(member for member in members if member.id != moved.id),
            )
            return _insert(draw, without, moved, past) if without else fields
        case "add required":
            new_type = draw_type(draw, past.ids, draw(st.integers(0, 1)))
            return _insert(draw, fields, Field(past.ids.fresh(), "new", new_type, nullable=False), past)
        case "key":
            return _change_key(draw, fields, past)
        case "renumber":
            return _renumber(draw, fields, past)
        case _:
            path = draw(st.sampled_from([path for path, _, _ in slots]))
            return edit_slot(fields, path, lambda type_, nullable: (List(type_), nullable))


def _insert(draw: DrawFn, fields: Fields, field: Field, past: Past) -> Fields:
    """Put a field somewhere: plainly, or hidden inside a new struct, list or map."""
    match draw(st.sampled_from(("plain", "plain", "struct", "list", "value", "key"))):
        case "struct":
            wrapped: Type | None = Struct((field,))
        case "list":
            wrapped = List(Struct((field,)))
        case "value":
            wrapped = Map(Primitive("int"), Struct((field,)))
        case "key":
            wrapped = Map(Struct((field,)), Primitive("int"))
        case _:
            wrapped = None
    new = field if wrapped is None else Field(past.ids.fresh(), "wrapper", wrapped, nullable=True)
    path, members = draw(st.sampled_from(list(every_struct(fields))))
    new = replace(new, name=_free_name(draw, members))
    at = draw(st.integers(0, len(members)))
    return edit_struct(fields, path, lambda members: (*members[:at], new, *members[at:]))


def _revive(draw: DrawFn, fields: Fields, past: Past) -> Fields:
    """Bring back a field of an earlier schema, with all that was inside it."""
    live = {field.id for _, field in every_field(fields)}
    dead = [
        field for schema in past.schemas for _, field in every_field(schema.fields) if field.id not in live
    ]
    if not dead:
        return fields
    return _insert(draw, fields, draw(st.sampled_from(dead)), past)


def _change_key(draw: DrawFn, fields: Fields, past: Past) -> Fields:
    maps = [path for path, type_, _ in every_slot(fields) if isinstance(type_, Map)]
    if not maps:
        return fields
    key = draw_type(draw, past.ids, 1, in_key=True)

    def edit(type_: Type, nullable: bool) -> tuple[Type, bool]:
        assert isinstance(type_, Map)
        if isinstance(type_.key, Struct) and draw(st.booleans()):
            renamed = replace(type_.key.fields[0], name="renamed")
            return Map(Struct((renamed, *type_.key.fields[1:])), type_.value, type_.value_nullable), nullable
        return Map(key, type_.value, type_.value_nullable), nullable

    return edit_slot(fields, draw(st.sampled_from(maps)), edit)


def _renumber(draw: DrawFn, fields: Fields, past: Past) -> Fields:
    """Give one field the id of another one, or swap them, or take a fresh one."""
    found = list(every_field(fields))
    (path, one), (other_path, other) = draw(st.sampled_from(found)), draw(st.sampled_from(found))

    def take(field_id: int) -> Callable[[Fields], Fields]:
        return lambda members: tuple(
            replace(member, id=field_id) if member.name == one.name else member for member in members
        )

    if draw(st.booleans()):
        return edit_struct(fields, path[:-1], take(past.ids.fresh()))
    if path[:-1] == other_path[:-1]:
        swapped = {one.id: other.id, other.id: one.id}
        return edit_struct(
            fields,
            path[:-1],
            lambda members: tuple(replace(m, id=swapped.get(m.id, m.id)) for m in members),
        )
    return edit_struct(fields, path[:-1], take(other.id))


def draw_mutation(draw: DrawFn, past: Past, most: int = 3) -> Schema:
    """Draw a schema near the latest one that may break any rule, alone or several at once."""
    schema = past.schemas[-1]
    for _ in range(draw(st.integers(1, most))):
        try:
            schema = Schema(_mutate(draw, schema.fields, past))
        except InvalidSchemaError:  # not a schema at all: the rules are never asked
            continue
    if draw(st.booleans()):
        schema = draw_legal(draw, schema, past.ids, most=2)
    return schema


@st.composite
def mutated_schemas(draw: DrawFn, past: Past) -> Schema:
    """Draw a schema that may or may not follow a history."""
    return draw_mutation(draw, past)


@st.composite
def mutations(draw: DrawFn, most: int = 4, depth: int = 2) -> tuple[tuple[Schema, ...], Schema]:
    """Draw a legal history, and a schema that may or may not follow it."""
    past = draw_past(draw, most, depth)
    return past.schemas, draw_mutation(draw, past)


@st.composite
def next_schemas(draw: DrawFn, most: int = 4, depth: int = 2) -> tuple[tuple[Schema, ...], Schema]:
    """Draw a legal history, and a schema that obeys the rules."""
    past = draw_past(draw, most, depth)
    return past.schemas, draw_legal(draw, past.schemas[-1], past.ids)


# --- readers --------------------------------------------------------------------------------------


def draw_projection(draw: DrawFn, fields: Fields) -> Fields:
    """Draw some of the fields, at least one, in any order, and of structs some of the members."""
    kept = draw(st.lists(st.sampled_from(fields), min_size=1, unique_by=lambda field: field.id))
    return tuple(replace(field, type=_project(draw, field.type)) for field in kept)


def _project(draw: DrawFn, type_: Type) -> Type:
    match type_:
        case Struct(fields=members):
            return Struct(draw_projection(draw, members))
        case List(element=element, element_nullable=nullable):
            return List(_project(draw, element), nullable)
        case Map(key=key, value=value, value_nullable=nullable):
            return Map(key, _project(draw, value), nullable)
    return type_


@st.composite
def projections(draw: DrawFn, schema: Schema) -> Schema:
    """Draw a projection of a schema, columns and members in any order."""
    return Schema(draw_projection(draw, schema.fields))


@st.composite
def readers(draw: DrawFn, most: int = 6) -> tuple[tuple[Schema, ...], int, Schema]:
    """Draw a history, the schema that a reader was opened at, and the reader's projection of it."""
    schemas = draw_past(draw, most).schemas
    at = draw(st.integers(0, len(schemas) - 1))
    whole = schemas[at]
    return schemas, at, whole if draw(st.booleans()) else Schema(draw_projection(draw, whole.fields))
