"""Two versions of an enum: bytes go by number, and columns hold names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from instar.compat.columns import goes_on
from instar.compat.judgement import Difference, conditional, safe, unsafe
from instar.compat.protobuf.reserved import covers, reservations

if TYPE_CHECKING:
    from collections.abc import Iterator

    from instar.compat.protobuf.model import ProtobufEnum

__all__ = ["compare_enums"]


def compare_enums(old: ProtobufEnum, new: ProtobufEnum) -> Iterator[Difference]:
    """Name every difference between two versions of an enum."""
    numbers = {name: number for number, name in new.values}
    names: dict[int, list[str]] = {}
    for number, name in new.values:
        names.setdefault(number, []).append(name)
    before = {name: number for number, name in old.values}
    for number, name in old.values:
        path = f"{new.name}.{name}"
        if name in numbers and numbers[name] != number:
            what = f"value renumbered: {number} → {numbers[name]}"
            query = conditional(
                "columns hold names: right only if each record is decoded by the version that wrote it"
            )
            yield Difference(
                path, what, wire=unsafe(f"records hold {number}, which is not {name} any more"), query=query
            )
        elif name not in numbers and number not in names:
            yield _deleted(number, name, new, path)
    # Of several names for one number, columns hold the first.
    for number, name in dict(reversed(old.values)).items():
        after = names[number][0] if number in names else name
        moved = numbers.get(name, number) != number or before.get(after, number) != number
        if after != name and not moved:
            yield _renamed(name, after, f"{new.name}.{after}")
    for number, name in new.values:
        known = {it for it, _ in old.values}
        if number not in known and name not in before:
            wire = safe("old records do not hold it")
            if covers(old.reserved, number):
                wire = unsafe(f"number {number} was reserved: records of a deleted value may still hold it")
            what = f"value added: {name} = {number}"
            yield Difference(
                f"{new.name}.{name}", what, wire=wire, query=safe("a column of names takes any name")
            )
    if new.closed and not old.closed:
        why = "numbers that the enum does not list were kept, and are lost now"
        yield Difference(new.name, "enum closed", wire=conditional(why))
    if old.closed and not new.closed:
        yield Difference(
            new.name, "enum opened", wire=safe("numbers that the enum does not list are kept now")
        )
    yield from reservations(old, new, new.name, set(names))


def _renamed(before: str, after: str, path: str) -> Difference:
    return Difference(
        path,
        f"value renamed: {before} → {after}",
        wire=safe("names are not in the bytes"),
        query=unsafe(f"columns hold names: old rows say {before}, and a query for {after} misses them"),
        semantic=goes_on(before, after),
    )


def _deleted(number: int, name: str, new: ProtobufEnum, path: str) -> Difference:
    if new.closed:
        wire = unsafe("the enum is closed: records with this value read as if the field was not set")
    elif covers(new.reserved, number):
        wire = safe(f"number {number} is reserved: old records keep the bare number")
    else:
        wire = conditional(f"right until a new value takes number {number}: add `reserved {number};`")
    query = safe("old rows keep the name that they were stored with")
    return Difference(path, f"value deleted: {name} = {number}", wire=wire, query=query)
