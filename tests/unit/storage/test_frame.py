"""The envelope of stored objects notices every damage, and says which object it is in."""

from __future__ import annotations

import struct
from hashlib import blake2b

import hypothesis.strategies as st
import pytest
from hypothesis import given

from instar.errors import CorruptTableError, FormatTooNewError
from instar.storage.frame import FORMAT_VERSION, decode_frame, encode_frame

WHAT = "log/orders/7"


def framed(version: int, rest: bytes) -> bytes:
    """Build a frame by hand, after the documentation, with a digest that is right."""
    body = b"INSTAR" + struct.pack("<H", version) + rest
    return body + blake2b(body, digest_size=16).digest()


@given(
    st.text("abc-", max_size=20),
    st.text(max_size=20),
    st.binary(),
)
def test_a_payload_comes_back(kind: str, identity: str, payload: bytes) -> None:
    """Whatever it holds, and whatever it is called."""
    frame = encode_frame(kind, identity, payload)
    assert decode_frame(frame, kind, identity, what=WHAT) == payload
    assert decode_frame(memoryview(bytearray(frame)), kind, identity, what=WHAT) == payload


def test_the_bytes_are_the_documented_ones() -> None:
    """A change here is a change of the format."""
    expected = framed(5, b"\x04diff" + b"\x03\x00t/7" + struct.pack("<Q", 2) + b"hi")
    assert encode_frame("diff", "t/7", b"hi") == expected
    assert expected[:8].hex() == "494e535441520500"


def test_every_flipped_bit_is_noticed() -> None:
    """Anywhere: even a flip in the version is damage, not a newer version."""
    frame = encode_frame("diff", "table/7", b"some payload")
    for position in range(len(frame) * 8):
        damaged = bytearray(frame)
        damaged[position // 8] ^= 1 << position % 8
        with pytest.raises(CorruptTableError, match=WHAT):
            decode_frame(damaged, "diff", "table/7", what=WHAT)


def test_every_truncation_and_extension_is_noticed() -> None:
    """From nothing at all to a single byte too many."""
    frame = encode_frame("diff", "table/7", b"some payload")
    for damaged in [*(frame[:length] for length in range(len(frame))), frame + b"\x00", frame + frame]:
        with pytest.raises(CorruptTableError, match=WHAT):
            decode_frame(damaged, "diff", "table/7", what=WHAT)


@pytest.mark.parametrize(
    ("kind", "identity"),
    [("diff", "table/8"), ("rollup", "table/7"), ("dif", "ftable/7"), ("diff", "table/77")],
)
def test_another_object_in_its_place_is_noticed(kind: str, identity: str) -> None:
    """It is intact, but not the one that was asked for; where kind and identity meet is unambiguous."""
    with pytest.raises(CorruptTableError, match="not the diff table/7"):
        decode_frame(encode_frame(kind, identity, b""), "diff", "table/7", what=WHAT)


@pytest.mark.parametrize("rest", [b"", b"\xff\xff\xff", bytes(100)])
def test_a_newer_version_is_refused_whatever_follows(rest: bytes) -> None:
    """Only the magic, the version and the digest are promised for it."""
    with pytest.raises(FormatTooNewError, match=f"{WHAT} is written in format {FORMAT_VERSION + 1}"):
        decode_frame(framed(FORMAT_VERSION + 1, rest), "diff", "table/7", what=WHAT)


@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_an_older_version_is_read(version: int) -> None:
    """What older versions have written stays readable."""
    old = framed(version, b"\x04diff" + b"\x03\x00t/7" + struct.pack("<Q", 2) + b"hi")
    assert decode_frame(old, "diff", "t/7", what=WHAT) == b"hi"


def test_version_zero_was_never_written() -> None:
    """So it is damage that happens to have a matching digest."""
    with pytest.raises(CorruptTableError):
        decode_frame(framed(0, b"\x04diff\x07\x00table/7" + bytes(8)), "diff", "table/7", what=WHAT)


@pytest.mark.parametrize(
    "rest", [b"", b"\x05\x00\x00", struct.pack("<Q", 3) + b"hi", struct.pack("<Q", 1) + b"hi"]
)
def test_a_wrong_length_is_noticed_though_the_digest_is_right(rest: bytes) -> None:
    """As a careless writer of the format would produce it."""
    with pytest.raises(CorruptTableError, match="length"):
        decode_frame(framed(1, b"\x04diff\x07\x00table/7" + rest), "diff", "table/7", what=WHAT)
