"""Options of the source and sink `instar`: text, as Spark hands it on, and the table that it names."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, NamedTuple

from instar.errors import UsageError
from instar.state.commands import check_token
from instar.table import TableLog, open_services
from instar.table.log.tables import open_log

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from instar.table import Services

__all__ = ["TableOptions", "parse_options"]

_CLOUDS: Final = ("aws_", "azure_", "google_")
_FLAGS: Final = {"true": True, "false": False}
_KNOWN: Final = (
    "store",
    "table",
    "consensus",
    "columns",
    "where",
    "as_of",
    "schema",
    "since",
    "changes",
    "evolve",
    "apply",
    "token",
)
_OF_SPARK: Final = ("checkpointlocation", "path", "queryname", "truncate")


class TableOptions(NamedTuple):
    """What a caller has said. `storage` goes to the object store."""

    store: str
    table: str
    storage: dict[str, str]
    consensus: str | None = None
    columns: tuple[str, ...] | None = None
    where: str | None = None
    as_of: int | None = None
    schema: int | None = None
    since: int | None = None
    changes: bool = False
    evolve: bool = False
    apply: bool = False
    token: str | None = None

    @contextmanager
    def open(self) -> Iterator[tuple[Services, TableLog]]:
        """Open the table, for as long as it is needed: the store must be there."""
        services, _ = open_services(self.store, consensus=self.consensus, options=self.storage)
        try:
            check_token(self.token)
            yield services, open_log(services, self.table)
        finally:
            services.close()


def parse_options(given: Mapping[str, str]) -> TableOptions:
    """Read options; their names are the same in any case."""
    options = {name.lower(): text for name, text in given.items()}
    for name in options:
        if name not in (*_KNOWN, *_OF_SPARK) and not name.startswith(_CLOUDS):
            raise UsageError(f"there is no option {name!r}: the options are {', '.join(_KNOWN)}")
    columns = options.get("columns")
    if "where" in options and _flag(options, "changes"):
        raise UsageError("the option 'where' chooses rows, not changes: filter the changes with .where(…)")
    return TableOptions(
        store=_required(options, "store"),
        table=_required(options, "table"),
        storage={name: text for name, text in options.items() if name.startswith(_CLOUDS)},
        consensus=options.get("consensus"),
        columns=None if columns is None else tuple(column.strip() for column in columns.split(",")),
        where=options.get("where"),
        as_of=_number(options, "as_of"),
        schema=_number(options, "schema"),
        since=_number(options, "since"),
        changes=_flag(options, "changes"),
        evolve=_flag(options, "evolve"),
        apply=_flag(options, "apply"),
        token=options.get("token"),
    )


def _required(options: Mapping[str, str], name: str) -> str:
    if not options.get(name):
        raise UsageError(f"the format 'instar' needs .option({name!r}, …)")
    return options[name]


def _number(options: Mapping[str, str], name: str) -> int | None:
    text = options.get(name)
    if text is None:
        return None
    try:
        return int(text)
    except ValueError:
        raise UsageError(f"option {name!r} is {text!r}, and must be a number") from None


def _flag(options: Mapping[str, str], name: str) -> bool:
    text = options.get(name, "false").lower()
    if text not in _FLAGS:
        raise UsageError(f"option {name!r} is {text!r}, and must be true or false")
    return _FLAGS[text]
