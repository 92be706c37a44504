"""Text with types: what a column is taken for, and what its values then are."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal as PythonDecimal
from typing import Any

import pyarrow as pa
import pytest

from instar.errors import DataMismatchError
from instar.files.text import Guess, parse_text
from instar.schema import Decimal, List, Primitive


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["1", "-2", None], "bigint"),
        (["1", "2.5", "1e3", "NaN"], "double"),
        (["true", "FALSE"], "boolean"),
        (["2026-11-15"], "date"),
        (["2026-11-15", "2026-11-15 12:00"], "timestamp"),
        (["2026-11-15T12:00:00.5Z", "2026-11-15 12:00:00+02:00"], "timestamp"),
        (["1", "x"], "string"),
        (["007"], "string"),
        (["2026-02-30"], "string"),
        (["12345678901234567890"], "string"),
        (["12:30"], "string"),
        ([None, None], "string"),
        ([""], "string"),
        (["39.1", "NA", "n/a"], "double"),
        (["NULL", "2026-11-15"], "date"),
        (["NA", "DE"], "string"),
        (["NA", "NA"], "string"),
    ],
)
def test_a_type_is_taken_only_if_every_value_has_it(values: list[str | None], expected: str) -> None:
    """Nothing is lost by it: codes with leading zeros and numbers that are too long stay text."""
    guess = Guess()
    for value in values:
        guess.look(pa.array([value], pa.string()))
    assert guess.type == Primitive(expected)


@pytest.mark.parametrize(
    ("type_", "text", "value"),
    [
        ("timestamp", "2026-11-15T12:00:00+02", datetime(2026, 11, 15, 10, tzinfo=UTC)),
        ("timestamp", "2026-11-15", datetime(2026, 11, 15, tzinfo=UTC)),
        ("timestamp_ntz", "2026-11-15 12:00:00.000001000", datetime(2026, 11, 15, 12, 0, 0, 1)),  # noqa: DTZ001
        ("date", "2026-11-15", date(2026, 11, 15)),
        ("boolean", "Yes", True),
        ("int", " +7", 7),
        ("double", "-Infinity", float("-inf")),
        ("binary", "ab", b"ab"),
    ],
)
def test_text_says_what_it_says(type_: str, text: str, value: Any) -> None:  # noqa: ANN401 -- of any type
    """Of a known type, in the ways that people write it; without a zone, times are in UTC."""
    assert parse_text(pa.array([text, None]), Primitive(type_), "c", "f.csv").to_pylist() == [value, None]


def test_a_value_that_says_nothing_is_refused_by_its_row() -> None:
    """With the column, the value, its type and the file."""
    with pytest.raises(DataMismatchError, match=r"'x' is not of its type int, in f.csv. Row 12,") as info:
        parse_text(pa.array(["1", "2", "x", "y"]), Primitive("int"), "c", "f.csv", 10)
    assert (info.value.column, info.value.row) == ("c", 12)
    cents = Decimal(5, 2)
    assert parse_text(pa.array(["1.2"]), cents, "c", "f").to_pylist() == [PythonDecimal("1.20")]
    for type_, text in ((cents, "1.234"), (Primitive("timestamp_ntz"), "2026-11-15T12:00Z")):
        with pytest.raises(DataMismatchError):
            parse_text(pa.array([text]), type_, "c", "f")
    with pytest.raises(DataMismatchError, match="text cannot be array<int>"):
        parse_text(pa.array(["1"]), List(Primitive("int")), "c", "f")
