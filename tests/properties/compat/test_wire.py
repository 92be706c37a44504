"""Reading many records at once gives what protobuf's own library gives, whatever the bytes."""

from __future__ import annotations

import pyarrow as pa
import pytest
from google.protobuf import descriptor_pb2
from hypothesis import given
from hypothesis import strategies as st

from instar.compat.protobuf.decode import Decoder
from instar.compat.protobuf.model import Encoding
from instar.compat.protobuf.reader import RecordReader
from tests.protos import compile_files, with_imports

TEXT = """
syntax = "proto3";
package t;
import "google/protobuf/duration.proto";
import "google/protobuf/timestamp.proto";
import "google/protobuf/wrappers.proto";
message Inner {
  int32 a = 1;
  optional string b = 2;
  repeated sint64 c = 3;
}
message Numbers {
  bool a = 1; int32 b = 2; int64 c = 3; uint32 d = 4; uint64 e = 5; sint32 f = 6; sint64 g = 7;
  fixed32 h = 8; sfixed32 i = 9; float j = 10; fixed64 k = 11; sfixed64 l = 12; double m = 13;
}
message Lists {
  repeated bool a = 1; repeated int32 b = 2; repeated uint64 c = 3 [packed = false]; repeated fixed32 d = 4;
  repeated double e = 5; repeated string f = 6; repeated Inner g = 7; repeated Colour h = 8;
  enum Colour { NONE = 0; RED = 1; ROSE = -1; }
}
message Spans {
  string a = 1; bytes b = 2; Inner c = 3; optional int32 d = 4;
  oneof choice { string e = 5; Inner f = 6; Colour g = 7; }
  enum Colour { NONE = 0; RED = 1; }
  Nothing h = 8;
}
message Nothing {}
message Others {
  map<string, int32> a = 1; map<int32, Inner> b = 2; map<bool, string> c = 3;
  google.protobuf.Timestamp d = 4; google.protobuf.Duration e = 5; google.protobuf.Int32Value f = 6;
  google.protobuf.StringValue g = 7; repeated google.protobuf.Timestamp h = 8;
  map<string, google.protobuf.Timestamp> i = 9;
}
"""
MESSAGES = ("Inner", "Numbers", "Lists", "Spans", "Nothing", "Others")


@pytest.fixture(scope="module")
def decoders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Decoder, Decoder]]:
    """Return what decodes each message: as always, and only by the library."""
    files = compile_files(tmp_path_factory.mktemp("wire") / "src", {"t.proto": TEXT})
    found = descriptor_pb2.FileDescriptorSet(file=with_imports(files, "t.proto")).SerializeToString()
    pairs = {}
    for name in MESSAGES:
        encoding = Encoding(found, f"t.{name}")
        pairs[name] = Decoder(encoding), Decoder(encoding)
        assert isinstance(pairs[name][0]._reader, RecordReader)
        pairs[name][1]._reader = None
    return pairs


def varint(value: int) -> bytes:
    """Return a number as the wire has it."""
    value &= 2**64 - 1
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*found, value])


NUMBERS = st.sampled_from([0, 1, 2, 127, 128, 300, 2**31 - 1, 2**31, 2**32 + 5, 2**63, -1, -2]).map(varint)
ODD_NUMBERS = st.sampled_from(
    [b"\x80\x00", b"\x81\x80\x80\x80\x80\x80\x00", b"\xff" * 9 + b"\x02", b"\xff" * 11]
)
FIXED = {1: st.binary(min_size=8, max_size=8), 5: st.binary(min_size=4, max_size=4)}


def spans(inner: st.SearchStrategy[bytes]) -> st.SearchStrategy[bytes]:
    """Draw text, bytes, packed numbers or messages."""
    texts = st.sampled_from([b"", b"a", "é".encode(), b"\xff", b"k"])
    packed = st.lists(NUMBERS, max_size=4).map(b"".join)
    return (texts | packed | inner | st.binary(max_size=9)).map(lambda value: varint(len(value)) + value)


def fields(inner: st.SearchStrategy[bytes]) -> st.SearchStrategy[bytes]:
    """Draw fields one after another, of any number and kind."""

    def field(drawn: tuple[int, int]) -> st.SearchStrategy[bytes]:
        number, wire = drawn
        tag = varint(number << 3 | wire)
        values = {0: NUMBERS | NUMBERS | ODD_NUMBERS, 2: spans(inner), **FIXED}
        return values.get(wire, st.just(b"")).map(lambda value: tag + value)

    kinds = st.sampled_from([0, 0, 0, 2, 2, 2, 2, 1, 5, 0, 2, 3, 7])
    numbers = st.integers(1, 9) | st.sampled_from([1, 2, 3, 10, 13, 40, 2**28])
    return st.lists(st.tuples(numbers, kinds).flatmap(field), max_size=5).map(b"".join)


BYTES = st.recursive(st.just(b""), fields, max_leaves=6) | st.binary(max_size=12) | st.none()


def test_many_records_are_read_in_pieces(
    decoders: dict[str, tuple[Decoder, Decoder]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is read at once is bounded, and each record is where it was, odd ones and chunks or not."""
    monkeypatch.setattr("instar.compat.protobuf.decode._AT_ONCE", 3)
    records = [b"\x08" + bytes([at]) for at in range(10)]
    records[2], records[6], records[7] = b"\xff", records[6] * 2, records[7] + b"\x98\x06\x01"
    chunks = pa.chunked_array([records[:4], [], records[4:]], pa.large_binary())
    for given_records in (records, pa.array(records), pa.array(records, pa.large_binary())[0:], chunks):
        found = decoders["Inner"][0].decode(given_records)
        assert found.rows["a"].to_pylist() == [0, 1, 3, 4, 5, 6, 7, 8, 9]
        assert list(found.positions) == [0, 1, *range(3, 10)]
        assert (list(found.rejected), list(found.unknown)) == ([2], [7])
    assert decoders["Inner"][0].decode([]).rows.num_rows == 0


@given(message=st.sampled_from(MESSAGES), records=st.lists(BYTES, max_size=8))
def test_many_records_are_read_as_the_library_reads_each(
    decoders: dict[str, tuple[Decoder, Decoder]], message: str, records: list[bytes | None]
) -> None:
    """Rows, reasons and unknown fields are the same, for sound, unusual and broken records in one batch."""
    at_once, one_by_one = (decoder.decode(records) for decoder in decoders[message])
    assert at_once.rows.equals(one_by_one.rows) or str(at_once.rows.to_pylist()) == str(
        one_by_one.rows.to_pylist()  # NaN is not equal to itself
    )
    assert list(at_once.positions) == list(one_by_one.positions)
    assert at_once[2:] == one_by_one[2:]
    at_once.rows.validate(full=True)
