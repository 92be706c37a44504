"""What columns are set to, in process: names are told from literals, and numbers are cast."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from instar.errors import DataMismatchError, UsageError

if TYPE_CHECKING:
    from instar import Store


@pytest.mark.parametrize(
    ("text", "value"),
    [("1", 1), ("`1`", 7), ("null", None), ("`null`", 9), ("2", 2), ("`2`", 5), ("`a.b`", 3), (" X ", 0)],
)
def test_a_literal_is_no_column_whatever_columns_are_called(
    store: Store, text: str, value: int | None
) -> None:
    """Columns named by numbers and `null` are meant only in backticks."""
    table = store.create_table("t", "`1` int, `2` int, `null` int, `a.b` int, x int")
    table.append(pa.table({"1": [7], "2": [5], "null": [9], "a.b": [3], "x": [0]}))
    table.update({"x": text})
    assert table.to_arrow()["x"].to_pylist() == [value]


def test_numbers_go_into_columns_of_other_numbers(store: Store) -> None:
    """Prices are decimals, and people write 0, 0.5 and `price * 2`."""
    table = store.create_table("t", "price decimal(10,2), rate double, weight float, pieces int")
    row = {"price": Decimal("1.25"), "rate": 1.0, "weight": 2.0, "pieces": 3}
    layout = pa.schema(
        [
            ("price", pa.decimal128(10, 2)),
            ("rate", pa.float64()),
            ("weight", pa.float32()),
            ("pieces", pa.int32()),
        ]
    )
    table.append(pa.Table.from_pylist([row], schema=layout))
    table.update({"price": "price * 2", "rate": "0.5", "weight": "1", "pieces": "price + 0.5"})
    found = {"price": Decimal("2.50"), "rate": 0.5, "weight": 1.0, "pieces": 1}
    assert table.to_arrow().to_pylist() == [found]
    table.update({"price": "price * 1.005"})
    assert table.to_arrow()["price"].to_pylist() == [Decimal("2.51")]
    seqno = table.state.seqno
    with pytest.raises(UsageError):
        table.update({"price": "price * 1e9"})
    with pytest.raises(DataMismatchError):
        table.update({"pieces": "pieces + 2147483647L"})
    with pytest.raises(DataMismatchError):
        table.update({"price": "'1'"})
    assert table.state.seqno == seqno
