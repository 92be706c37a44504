"""`instar check`: judge a new version of a schema, for people at a terminal and for CI."""

from __future__ import annotations

import os
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer
from rich.text import Text

from instar.amounts import format_count
from instar.cli.annotations import annotate
from instar.cli.options import ConsensusOption, open_store
from instar.cli.output import JsonOption, console, print_json, print_table, working
from instar.cli.revisions import at_revision
from instar.errors import StoreNotFoundError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from instar import Store
    from instar.compat import Difference, Judgement, Ruling, Version

__all__ = ["check"]

_COLOURS = {"safe": "green", "conditional": "yellow", "unsafe": "bold red"}
_PAIR = 2


class Checked(NamedTuple):
    """One judgement, and what it was about."""

    old: str
    new: str
    includes: tuple[Path, ...]
    version: Version
    judgement: Judgement

    def compatible(self, *, strict: bool) -> bool:
        """Whether the wire and queries are safe, and with --strict also the meaning."""
        judged = self.judgement
        return judged.wire_safe and judged.query_compatible and (judged.keeps_meaning or not strict)


def check(  # noqa: PLR0913 -- one option for each way to compare
    schemas: Annotated[
        list[str],
        typer.Argument(
            metavar="OLD NEW",
            help="Two versions: .proto, .avsc, JSON Schema or .sql files, descriptors, or DDL text. "
            "With --since, one or more files; with --against, one version.",
            show_default=False,
        ),
    ],
    *,
    since: Annotated[
        str | None,
        typer.Option(metavar="REVISION", help="Compare each file with itself at a revision of git."),
    ] = None,
    against: Annotated[
        str | None,
        typer.Option(
            metavar="STORE/STREAM", help="Compare with every version that tables of a stream really hold."
        ),
    ] = None,
    include: Annotated[
        list[Path] | None,
        typer.Option("--include", "-I", help="A folder that .proto files import from. Repeatable."),
    ] = None,
    message: Annotated[
        str | None, typer.Option(help="The message whose records are kept; by default all of the file.")
    ] = None,
    format_: Annotated[
        str | None,
        typer.Option("--format", help="protobuf, avro, json-schema or ddl; by default the file decides."),
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Also fail for a change of meaning, such as a rename.")
    ] = False,
    github: Annotated[
        bool,
        typer.Option("--github", help="Annotate the lines of a pull request; on by default in GitHub's CI."),
    ] = False,
    consensus: ConsensusOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say whether a new version of a schema is safe for records, for queries, and for the meaning of names.

    *wire*: every record written under OLD is read under NEW with the same values. *query*: one Spark query
    runs over tables of both. *meaning*: names and values still mean the same; otherwise it only warns, unless
    --strict is given.

    Each change is safe, unsafe, or conditional: it depends on something that schemas do not say. Exits with 0
    if wire and query are safe, and with 1 if not, or if that is not certain.

    Examples:

        instar check old.proto new.proto

        instar check "user string, n int" "user string, n bigint" --json

        instar check --since origin/main -I protos protos/events.proto

        instar check new.proto --against lake/billing/events

    """
    if since is not None and against is not None:
        raise UsageError("--since and --against exclude each other: compare with one of them")
    options = {"format_": format_, "message": message}
    with ExitStack() as stack:
        if since is not None:
            checks = [*_checks_since(stack, since, schemas, tuple(include or ()), options)]
        elif against is not None and len(schemas) == 1:
            checks = [*_checks_against(against, consensus, schemas[0], tuple(include or ()), options)]
        elif against is None and len(schemas) == _PAIR:
            checks = [_check(schemas[0], schemas[1], tuple(include or ()), options)]
        else:
            wanted = "two versions, OLD and NEW" if against is None else "one version, NEW, with --against"
            raise UsageError(f"expected {wanted}, and found {len(schemas)}; --since takes any number")
    _answer(checks, strict=strict, github=github or bool(os.environ.get("GITHUB_ACTIONS")), as_json=as_json)


def _check(old: str, new: str, includes: tuple[Path, ...], options: dict[str, str | None]) -> Checked:
    from instar.compat import judge, load_version  # noqa: PLC0415 -- commands that need it not stay quick

    before = load_version(old, includes=_holding(old, includes), **options)
    after = load_version(new, includes=_holding(new, includes), **options)
    return Checked(old, new, _holding(new, includes), after, judge(before, after))


def _holding(given: str, includes: tuple[Path, ...]) -> tuple[Path, ...]:
    """Return the folders for imports, with the file's own folder if none of them holds it."""
    path = Path(given)
    inside = any(path.resolve().is_relative_to(it.resolve()) for it in includes)
    return includes if inside or not includes else (path.parent, *includes)


def _checks_since(
    stack: ExitStack, since: str, files: list[str], includes: tuple[Path, ...], options: dict[str, str | None]
) -> Iterator[Checked]:
    from instar.compat import judge, load_version  # noqa: PLC0415 -- see above

    for file in files:
        folders = includes or (Path(file).parent,)
        before = stack.enter_context(at_revision(since, Path(file), folders))
        new = load_version(file, includes=includes, **options)
        if before is not None:
            path, moved = before
            old = load_version(str(path), includes=moved if includes else (), **options)
            yield Checked(f"{since}:{file}", file, includes, new, judge(old, new))


def _checks_against(
    against: str,
    consensus: str | None,
    new: str,
    includes: tuple[Path, ...],
    options: dict[str, str | None],
) -> Iterator[Checked]:
    from instar.compat import load_version  # noqa: PLC0415 -- see above

    message, format_ = options["message"], options["format_"]
    version = load_version(new, includes=includes, message=message, format_=format_)
    store, name = _find_store(against, consensus)
    with store, working(f"reading the tables of {name}"):
        judged = store.stream(name).check(new, includes=includes, message=message, format=format_)
    for old, judgement in judged.items():
        yield Checked(f"{name} {old}", new, includes, version, judgement)


def _find_store(against: str, consensus: str | None) -> tuple[Store, str]:
    """Split STORE/STREAM, which may both contain slashes, at the folder that is a store."""
    steps = against.rstrip("/").split("/")
    for at in range(len(steps) - 1, 0, -1):
        location, name = "/".join(steps[:at]), "/".join(steps[at:])
        if location.endswith((":", "/")) or not (location and name):
            continue
        try:
            return open_store(location, consensus), name
        except StoreNotFoundError:
            continue
    raise UsageError(
        f"--against {against}: there is no store in any folder of this path. "
        "Write STORE/STREAM, such as lake/events"
    )


def _answer(checks: list[Checked], *, strict: bool, github: bool, as_json: bool) -> None:
    good = all(it.compatible(strict=strict) for it in checks)
    if as_json:
        print_json({"compatible": good, "checks": [_json(it, strict=strict) for it in checks]})
    else:
        for it in checks:
            _print(it, strict=strict)
        if not checks:
            console().print("Nothing to compare: the files are new.")
        if github:
            told = (line for it in checks for line in annotate(it.new, it.includes, it.version, it.judgement))
            for line in dict.fromkeys(told):  # several files may import one
                console().print(line, soft_wrap=True)
    if not good:
        raise typer.Exit(1)


def _json(checked: Checked, *, strict: bool) -> dict[str, Any]:
    judged = checked.judgement
    wire = judged.wire
    return {
        "old": checked.old,
        "new": checked.new,
        "compatible": checked.compatible(strict=strict),
        "wire": None if wire is None else wire.value,
        "query": judged.query.value,
        "semantic": judged.semantic.value,
        "rules": judged.rules,
        "fingerprints": {"old": judged.old, "new": judged.new},
        "differences": [_difference_json(it) for it in judged.differences],
    }


def _difference_json(difference: Difference) -> dict[str, Any]:
    def ruling(given: Ruling | None) -> dict[str, str] | None:
        return None if given is None else {"level": given.level.value, "reason": given.reason}

    return {
        "path": difference.path,
        "what": difference.what,
        "wire": ruling(difference.wire),
        "query": ruling(difference.query),
        "semantic": ruling(difference.semantic),
    }


def _print(checked: Checked, *, strict: bool) -> None:
    judged = checked.judgement
    if not judged.differences:
        console().print(f"{checked.new}: nothing changes.")
        return
    rows = [
        (it.path, it.what, _level(it.wire), _level(it.query), _level(it.semantic), _why(it))
        for it in judged.differences
    ]
    title = f"{checked.old} → {checked.new}"
    print_table(("where", "change", "wire", "query", "meaning", "why"), rows, title=title)
    console().print(_summary(checked, strict=strict))


def _level(ruling: Ruling | None) -> Text:
    return Text("-") if ruling is None else Text(ruling.level.value, _COLOURS[ruling.level.value])


def _why(difference: Difference) -> str:
    """Return the reasons of what is not safe; if all is safe, one reason why."""
    rulings = [it for it in (difference.wire, difference.query, difference.semantic) if it is not None]
    wanted = [it.reason for it in rulings if it.level.value != "safe"] or [
        rulings[0].reason if rulings else ""
    ]
    return "; ".join(dict.fromkeys(wanted))


def _summary(checked: Checked, *, strict: bool) -> str:
    judged = checked.judgement
    wire = "not judged" if judged.wire is None else judged.wire.value
    said = f"wire {wire}, query {judged.query.value}, meaning {judged.semantic.value}"
    count = format_count(len(judged.differences), "change")
    return f"{'Compatible' if checked.compatible(strict=strict) else 'Not compatible'}: {count}; {said}."
