"""Records of protobuf become columns as docs/compatibility.md says."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

import pytest
from google.protobuf import descriptor_pb2

from instar.compat.protobuf.decode import Decoder
from instar.compat.protobuf.model import Encoding
from tests.protos import compile_files, message_class, with_imports

if TYPE_CHECKING:
    from google.protobuf.message import Message

TEXT = """
syntax = "proto3";
package t;
import "google/protobuf/any.proto";
import "google/protobuf/duration.proto";
import "google/protobuf/empty.proto";
import "google/protobuf/field_mask.proto";
import "google/protobuf/struct.proto";
import "google/protobuf/timestamp.proto";
import "google/protobuf/wrappers.proto";
message Known {
  google.protobuf.Timestamp at = 1;
  google.protobuf.Duration took = 2;
  google.protobuf.Int32Value count = 3;
  google.protobuf.Struct free = 4;
  google.protobuf.Empty nothing = 5;
  google.protobuf.Any any = 6;
  google.protobuf.FieldMask mask = 7;
  repeated google.protobuf.Timestamp times = 8;
  google.protobuf.UInt64Value big = 9;
}
message Node { int32 id = 1; Node next = 2; map<string, Node> named = 3; }
enum Colour { NONE = 0; RED = 1; }
message Old { Colour colour = 1; }
message Blank {}
"""


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, type[Message]], dict[str, Decoder]]:
    """Return the classes of the messages, and their decoders."""
    files = compile_files(tmp_path_factory.mktemp("decode") / "src", {"t.proto": TEXT})
    found = descriptor_pb2.FileDescriptorSet(file=with_imports(files, "t.proto")).SerializeToString()
    names = ("Known", "Node", "Old", "Blank")
    classes = {name: message_class(files, "t.proto", name) for name in names}
    return classes, {name: Decoder(Encoding(found, f"t.{name}")) for name in names}


Known = tuple[dict[str, type["Message"]], dict[str, Decoder]]


def test_well_known_types_have_columns_of_their_own(known: Known) -> None:
    """Times, durations, wrappers and free-form values get the types that queries want."""
    record = known[0]["Known"]()
    record.at.FromDatetime(dt.datetime(2026, 11, 15, 12, 0, 0, 123456, tzinfo=dt.UTC))
    record.took.FromTimedelta(dt.timedelta(seconds=-1.5))
    record.count.value = 0
    record.free.update({"b": [1, None], "a": "é"})
    record.nothing.SetInParent()
    record.mask.paths.append("a.b")
    record.any.type_url = "x/y"
    record.times.add(seconds=1)
    record.big.value = 2**64 - 1
    [row] = known[1]["Known"].decode([record.SerializeToString()]).rows.to_pylist()
    assert row == {
        "at": dt.datetime(2026, 11, 15, 12, 0, 0, 123456, tzinfo=dt.UTC),
        "took": dt.timedelta(seconds=-1.5),
        "count": 0,
        "free": '{"a": "é", "b": [1.0, null]}',
        "nothing": {"_present": True},
        "any": {"type_url": "x/y", "value": b""},
        "mask": {"paths": ["a.b"]},
        "times": [dt.datetime(1970, 1, 1, 0, 0, 1, tzinfo=dt.UTC)],
        "big": 2**64 - 1,
    }
    [empty] = known[1]["Known"].decode([b""]).rows.to_pylist()
    assert {name for name, value in empty.items() if value is not None} == {"times"}


def test_a_message_inside_itself_ends_in_its_bytes(known: Known) -> None:
    """A recursion would have no end as columns: what repeats is kept as serialised bytes."""
    record = known[0]["Node"](id=1)
    record.next.id = 2
    record.next.next.id = 3
    record.named["k"].id = 4
    decoder = known[1]["Node"]
    assert str(decoder.schema) == "id int, next binary, named map<string, binary not null>"
    [row] = decoder.decode([record.SerializeToString()]).rows.to_pylist()
    again = known[0]["Node"].FromString(row["next"])
    assert (again.id, again.next.id) == (2, 3)
    assert known[0]["Node"].FromString(dict(row["named"])["k"]).id == 4


def test_numbers_that_an_enum_does_not_list_are_kept(known: Known) -> None:
    """A number from the future is stored as its digits."""
    records = [known[0]["Old"](colour=number).SerializeToString() for number in (0, 1, 7)]
    assert known[1]["Old"].decode(records).rows["colour"].to_pylist() == ["NONE", "RED", "7"]


def test_a_message_without_fields_has_one_column(known: Known) -> None:
    """A table needs a column, and fields may come later."""
    decoded = known[1]["Blank"].decode([b"", b"\x08\x01"])
    assert decoded.rows.to_pylist() == [{"_present": True}, {"_present": True}]
    assert decoded.unknown == {1}


def test_a_value_out_of_range_rejects_its_record_alone(known: Known) -> None:
    """One bad value among many is found, and the others are rows."""
    kind = known[0]["Known"]
    records = [kind(at={"seconds": at}) for at in range(20)]
    records[13].at.seconds = 2**60
    records[17].at.nanos = -(2**31)
    decoded = known[1]["Known"].decode([record.SerializeToString() for record in records])
    assert decoded.rows.num_rows == 18
    assert list(decoded.rejected) == [13, 17]
    assert decoded.rejected[13].startswith("`at` is out of range: 1152921504606846976 seconds")
    assert list(decoded.positions) == [at for at in range(20) if at not in {13, 17}]
