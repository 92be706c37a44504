"""Whether bytes written for one type of field are read rightly as another: protobuf's encodings."""

from __future__ import annotations

from typing import Final

from instar.compat.judgement import Ruling, conditional, safe, unsafe

__all__ = ["read_scalar"]

_RANGES: Final = {
    "bool": (0, 1),
    "enum": (-(2**31), 2**31 - 1),
    "int32": (-(2**31), 2**31 - 1),
    "uint32": (0, 2**32 - 1),
    "int64": (-(2**63), 2**63 - 1),
    "uint64": (0, 2**64 - 1),
}
"""Types that share the plain variable-length encoding, and the values that each can hold."""

_ENCODINGS: Final = {
    **dict.fromkeys(_RANGES, "variable-length"),
    **dict.fromkeys(("sint32", "sint64"), "zigzag"),
    **dict.fromkeys(("fixed32", "sfixed32"), "4 bytes"),
    **dict.fromkeys(("fixed64", "sfixed64"), "8 bytes"),
    "float": "4 bytes of floating point",
    "double": "8 bytes of floating point",
    **dict.fromkeys(("string", "bytes", "message"), "length-prefixed"),
    "group": "delimited",
}

_LENGTH_PREFIXED: Final = {
    ("string", "bytes"): safe("the bytes are the same"),
    ("bytes", "string"): conditional(
        "only bytes that are UTF-8 can be read as a string; a record with others fails"
    ),
    ("message", "bytes"): safe("the bytes are those of the message"),
    ("message", "string"): conditional(
        "only messages whose bytes happen to be UTF-8 can be read as a string"
    ),
    ("bytes", "message"): conditional(
        "only bytes that are such a message can be read; a record with others fails"
    ),
    ("string", "message"): unsafe("the bytes of a string are not a message"),
}


def read_scalar(old: str, new: str, *, closed_enum: bool = False) -> Ruling:
    """Say whether values of one type are read rightly as another type of field."""
    if old == new:
        return safe("the encoding stays the same")
    encodings = _ENCODINGS[old], _ENCODINGS[new]
    if encodings[0] != encodings[1]:
        if set(encodings) == {"variable-length", "zigzag"}:
            return unsafe(f"{old} and {new} encode numbers differently: 7 is read as -4, or as 14")
        return unsafe(
            f"{old} is encoded as {encodings[0]}, {new} as {encodings[1]}: values are lost or wrong"
        )
    match encodings[0]:
        case "variable-length":
            return _read_number(old, new, closed_enum=closed_enum)
        case "length-prefixed":
            return _LENGTH_PREFIXED[old, new]
        case "zigzag":
            if new == "sint64":
                return safe(f"{new} holds every {old}, in the same encoding")
            return conditional("values beyond 32 bits are cut off")
    return conditional(
        f"the bits are the same, but values beyond half of the range change sign from {old} to {new}"
    )


def _read_number(old: str, new: str, *, closed_enum: bool) -> Ruling:
    if new == "enum" and closed_enum:
        return conditional("numbers that the enum does not list are lost")
    (low, high), (least, most) = _RANGES[old], _RANGES[new]
    if least <= low and high <= most:
        return safe(f"{new} holds every {old}, in the same encoding")
    if new == "bool":
        return conditional("every number but 0 is read as true")
    if low < 0 <= least and high <= most:
        return conditional("negative values are read as large positive ones")
    if high > most and low >= 0 > least and high.bit_length() <= (most - least).bit_length():
        return conditional("large values are read as negative ones")
    return conditional(f"values that {new} cannot hold are cut off")
