"""Render docs/api.md: what users hold, from signatures and docstrings, and options of tables and of Spark.

The prose around it is in `api_template.md`. What no docstring says stands here, and is checked against the
code: a field or option that nobody has described is an error, and so is a description of what is not there.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import instar
from instar.api import CommitInfo, open_store
from instar.schema import Field, SchemaUpdate
from instar.schema.rules import Change
from instar.skipping import Conjunct
from instar.spark.source.table_options import TableOptions
from instar.state.options import OPTIONS
from instar.table import VacuumReport
from instar.table.housekeeping.retention import RETENTION
from instar.table.read.audit import Policy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

__all__ = ["render_reference", "table_row"]

TEMPLATE: Final = Path(__file__).with_name("api_template.md")

FUNCTIONS: Final[dict[str, Callable[..., object]]] = {
    "instar.open": open_store,
    "instar.register": instar.register,
    "instar.scan_reports": instar.scan_reports,
}
HANDLES: Final = (
    instar.Store,
    instar.Table,
    SchemaUpdate,
    instar.Snapshot,
    instar.Listen,
    instar.Stream,
    instar.StreamSnapshot,
    instar.Evolver,
)
VALUES: Final = (
    instar.Commit,
    instar.Changes,
    CommitInfo,
    instar.StreamCommit,
    instar.StreamTable,
    instar.PassReport,
    VacuumReport,
    instar.ScanReport,
    Conjunct,
    instar.PartReport,
    instar.Schema,
    Field,
    Change,
)

MEANINGS: Final = {
    "VacuumReport.objects": "Objects that were deleted, or with `dry_run` would be.",
    "VacuumReport.bytes": "Their size.",
    "VacuumReport.log_entries": "Commits that were cut off the beginning of the log.",
    "VacuumReport.kept_objects": "Objects that stay.",
    "VacuumReport.kept_bytes": "Their size.",
    "ScanReport.table": "The table's name.",
    "ScanReport.seqno": "The version of the table that is read.",
    "ScanReport.read": "Parts that are read: if skipping is `on`, those that the filter needs.",
    "ScanReport.bytes_total": "The size of all these parts.",
    "ScanReport.bytes_read": "The size of the parts that are read.",
    "ScanReport.chunks": "Manifest chunks that were considered.",
    "ScanReport.parts": "A verdict for each part, if requested.",
    "Conjunct.text": "The condition, as it was understood.",
    "Conjunct.excludes": "How many parts it excludes alone.",
    "PartReport.key": "The part's object in the store.",
    "PartReport.rows": "Its rows.",
    "PartReport.size": "Its bytes.",
    "PartReport.read": "Whether it is opened.",
    "PartReport.why": "The bounds that decided it, in words.",
    "Schema.fields": "The columns, in order.",
    "Field.id": "Permanent, and unique in the table.",
    "Field.name": "Its current name.",
    "Field.type": "Its type; `str(schema)` prints types as DDL.",
    "Field.nullable": "Whether it may be null.",
    "Change.kind": "What happened, such as `ADDED`.",
    "Change.path": "The column or member.",
    "Change.ids": "Field ids from the top-level column down.",
    "Change.old": "Its type or name before, as text.",
    "Change.new": "Its type or name after, as text.",
}

TABLE_OPTIONS: Final = {
    "skipping": "whether parts are skipped, and checked ([modes](skipping.md#modes))",
    "skipping_sample": "percent of the skipped parts that are checked in mode `on`",
    "skipping_budget": "bytes that such checks may read beyond one percent of what queries read",
    "cluster_by": "the columns that compaction lays rows out by ([clustering](maintenance.md#clustering))",
    "compact": "whether writers merge small parts in the background "
    "([auto compaction](maintenance.md#automatic-compaction))",
    "stats": "columns that always have statistics, like those of `order_by`, `key` and `cluster_by`; in very "
    "wide tables, the last columns have none otherwise",
    "cluster_at": "whether each append lays out its own rows too",
    "queries": "whether the last conditions of queries are recorded in the store, for `instar optimize`",
    "retention": "how much history `Table.retain` keeps ([retention](maintenance.md#retention))",
}
_DEFAULTS: Final = {"skipping": "mode", "skipping_sample": "sample", "skipping_budget": "budget"}


class Option(NamedTuple):
    """An option of the format `instar`: who takes it, and what it means."""

    users: str
    meaning: str


_ALL: Final = "all"
_READING: Final = "`read`, `readStream`"
_WRITING: Final = "`write`, `writeStream`"
SOURCE_OPTIONS: Final = {
    "store": Option(_ALL, "the location of the store, which must exist; required"),
    "table": Option(_ALL, "the table's name; required"),
    "consensus": Option(_ALL, "where the logs are, if not in the store itself: `postgresql://…`"),
    "storage": Option(_ALL, "settings of the object store, by names that begin with these"),
    "columns": Option(_READING, "names of top-level columns with commas between them; by default all"),
    "where": Option("`read`", "a condition for the frame as a whole; parts that it rules out are not opened"),
    "as_of": Option("`read`", "a time; by default the last complete one when the frame is loaded"),
    "schema": Option(_READING, "the id of the schema to read under; by default the latest"),
    "since": Option(_READING, "changes begin after this time; by default with the earliest that are kept"),
    "changes": Option("`read`", "`true`: updates, with `_ts` and `_diff`; a stream has them anyway"),
    "evolve": Option(_WRITING, "`true`: missing columns are added, as by `Table.append`"),
    "apply": Option(_WRITING, "`true`: `_diff` adds and retracts, as for `Table.apply`; `_ts` is ignored"),
    "token": Option("`write`", "writing again with the same token does nothing; 1 to 256 bytes"),
}
_SPELT: Final = {"storage": "`AWS_…`, `GOOGLE_…`, `AZURE_…`"}


def render_reference(notice: str) -> str:
    """Return the page: the template, with what the code says in the place of each mark."""
    page = TEMPLATE.read_text(encoding="utf-8")
    blocks = {
        "notice": [notice],
        "functions": _functions(),
        "handles": _handles(),
        "values": _values(),
        "table options": [_table(("option", "value", "default", "meaning"), _table_options())],
        "source options": [_table(("option", "for", "meaning"), _source_options())],
    }
    for mark, found in blocks.items():
        page = page.replace(f"{{{mark}}}", "\n\n".join(found))
    return page


def _functions() -> Iterator[str]:
    for name, function in FUNCTIONS.items():
        yield f"### {name}"
        yield _code(name, function)
        yield _prose(function)


def _handles() -> Iterator[str]:
    for kind in HANDLES:
        yield f"## {kind.__name__}"
        yield _prose(kind)
        yield from _members(kind)


def _values() -> Iterator[str]:
    existing = (f"{kind.__name__}.{name}" for kind in VALUES for name in inspect.get_annotations(kind))
    strangers = set(MEANINGS).difference(existing)
    if strangers:
        raise ValueError(f"there are no fields {sorted(strangers)}")
    for kind in VALUES:
        yield f"### {kind.__name__}"
        yield _prose(kind)
        yield _table(("field", "type", "meaning"), _fields(kind))
        yield from _members(kind, level="####")


def _table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    return "\n".join(table_row(*cells) for cells in (header, ["---"] * len(header), *rows))


def table_row(*cells: object) -> str:
    """Return a row of a table in Markdown."""
    return "| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |"


def _members(kind: type, level: str = "###") -> Iterator[str]:
    """Yield what a class offers, in the order in which it is written, and then what it has from others."""
    owner = kind.__name__
    members: dict[str, object] = {}
    for each in kind.__mro__:
        if each.__module__.startswith("instar."):
            members = members | vars(each) | members  # what comes first counts, and stays first
    for name, member in members.items():
        if name.startswith("_"):
            continue
        if isinstance(member, property):
            returned = inspect.signature(member.fget).return_annotation if member.fget else ""
            yield f"{level} {owner}.{name}"
            yield f"```python\n{name}: {returned}\n```"
            yield _prose(member)
        elif inspect.isfunction(member):
            yield f"{level} {owner}.{name}"
            yield _code(name, member)
            yield _prose(member)


def _code(name: str, function: Callable[..., object]) -> str:
    """Return a signature as it is called: on one line if it fits, or with an argument on each."""
    signature = inspect.signature(function)
    arguments = list(_spelt(signature))
    line = f"{name}({', '.join(arguments)}) -> {signature.return_annotation}"
    if len(line) > 100:  # noqa: PLR2004 -- what a page shows without scrolling
        listed = "".join(f"    {argument},\n" for argument in arguments)
        line = f"{name}(\n{listed}) -> {signature.return_annotation}"
    return f"```python\n{line}\n```"


def _spelt(signature: inspect.Signature) -> Iterator[str]:
    """Yield parameters as they are written, and the star before those that are given by name."""
    starred = False
    for name, parameter in signature.parameters.items():
        if name == "self":
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and not starred:
            starred = True
            yield "*"
        stars = "**" if parameter.kind is parameter.VAR_KEYWORD else ""
        default = parameter.default
        shown = f'"{default}"' if isinstance(default, str) else repr(default)
        yield f"{stars}{name}: {parameter.annotation}" + ("" if default is parameter.empty else f" = {shown}")


def _prose(documented: object) -> str:
    text = inspect.getdoc(documented)
    if not text:
        raise ValueError(f"{documented} has no docstring")
    return text


def _fields(kind: type) -> Iterator[tuple[str, str, str]]:
    """Yield the fields of a value with their types and what is written below them, or here."""
    (tree,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    body = tree.body if isinstance(tree, ast.ClassDef) else []
    for node, following in zip(body, [*body[1:], None], strict=True):
        if not (isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)):
            continue
        name = f"{kind.__name__}.{node.target.id}"
        own = _string(following)
        if (own is None) == (name not in MEANINGS):
            raise ValueError(f"{name} needs one description: below it in the code, or in MEANINGS")
        yield f"`{node.target.id}`", f"`{ast.unparse(node.annotation)}`", own or MEANINGS[name]


def _string(node: ast.stmt | None) -> str | None:
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return " ".join(str(node.value.value).split())
    return None


def _table_options() -> Iterator[tuple[Any, ...]]:
    _check_same(TABLE_OPTIONS, OPTIONS)
    for name, meaning in TABLE_OPTIONS.items():
        yield f"`{name}`", OPTIONS[name], f"`{_default(name)}`", meaning


def _default(name: str) -> object:
    own = {
        "retention": RETENTION,
        "cluster_by": "none",
        "stats": "none",
        "cluster_at": "compaction",
        "compact": "off",
        "queries": "on",
    }
    return own[name] if name in own else getattr(Policy(), _DEFAULTS[name])


def _source_options() -> Iterator[tuple[str, str, str]]:
    _check_same(SOURCE_OPTIONS, TableOptions._fields)
    for name, option in SOURCE_OPTIONS.items():
        yield _SPELT.get(name, f"`{name}`"), option.users, option.meaning


def _check_same(described: Any, existing: Any) -> None:  # noqa: ANN401 -- anything that has names
    if set(described) != set(existing):
        raise ValueError(f"described {sorted(described)}, and there are {sorted(existing)}")
