"""What is judged safe for the wire is safe: Buf agrees, and protobuf itself reads the same values."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

from google.protobuf.message import DecodeError
from hypothesis import given, note, settings
from hypothesis import strategies as st

from instar.compat import Level, judge
from tests.properties.compat.pairs import Shape, file_of, pairs
from tests.properties.compat.records import differing, records
from tests.protos import buf_breaking, message_class, version_of

EXCUSED = {
    "FIELD_SAME_ONEOF": r"oneof changed",
    "FIELD_WIRE_COMPATIBLE_CARDINALITY": r"type changed: .* → repeated|type changed: map<",
    "FIELD_WIRE_COMPATIBLE_TYPE": r"type changed: (repeated )?p\d+\.Event\.(Colour|Point) |type changed: map"
    r"|a map renamed",
}
"""Rules of Buf that ask more than the bytes do, and what we say where we do not follow them."""


@settings(max_examples=max(10, settings().max_examples // 8))
@given(st.lists(pairs(), min_size=1, max_size=15))
def test_what_buf_refuses_is_not_safe(drawn: list[tuple[Shape, Shape]]) -> None:
    """Whenever Buf refuses under WIRE, we do not say safe, but for what bytes are known to bear."""
    names = [f"p{at}.proto" for at in range(len(drawn))]
    old = {name: file_of(pair[0], name) for name, pair in zip(names, drawn, strict=True)}
    new = {name: file_of(pair[1], name) for name, pair in zip(names, drawn, strict=True)}
    with tempfile.TemporaryDirectory() as folder:
        broken = buf_breaking(Path(folder), old, new, "WIRE")
    for name, pair in zip(names, drawn, strict=True):
        judgement = judge(version_of(old, name), version_of(new, name))
        if judgement.wire is Level.SAFE:
            said = [it.what for it in judgement.differences] + maps_renamed(*pair)
            for rule in broken.get(name, ()):
                assert rule in EXCUSED, (rule, said)
                assert any(re.match(EXCUSED[rule], what) for what in said), (rule, said)


def maps_renamed(old: Shape, new: Shape) -> list[str]:
    """Return what is to be said of maps under another name: that of their entries follows, and Buf minds."""
    before = {it.number: it for it in old.members if it.type == "map"}
    after = [it for it in new.members if it.type == "map" and it.number in before]
    return ["a map renamed" for it in after if it.name != before[it.number].name]


@settings(max_examples=4 * settings().max_examples)
@given(pairs(), st.data())
def test_what_is_safe_reads_the_same(pair: tuple[Shape, Shape], data: st.DataObject) -> None:
    """A record of the old version, read under a new one that is safe for the wire, has the same values."""
    old, new = ({"p.proto": file_of(shape, "p.proto")} for shape in pair)
    judgement = judge(version_of(old, "p.proto"), version_of(new, "p.proto"))
    if judgement.wire is not Level.SAFE:
        return
    note(str(judgement.differences))
    record = data.draw(records(message_class(old, "p.proto", "Event")))
    read = message_class(new, "p.proto", "Event")()
    try:
        read.ParseFromString(record.SerializeToString())
    except DecodeError as error:
        raise AssertionError("a safe change made a record unreadable") from error
    assert differing(record, read) == []
