"""The rows of TPC-H: made by `tpchgen-cli`, or a few made up for a place where that is not installed."""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

__all__ = ["SCHEMAS", "find_generator", "generate", "make_up"]

_KEY: Final = pa.int64()
_TEXT: Final = pa.string()
_MONEY: Final = pa.decimal128(15, 2)


def _schema(**columns: pa.DataType) -> pa.Schema:
    return pa.schema([pa.field(name, type_, nullable=False) for name, type_ in columns.items()])


SCHEMAS: Final = {
    "region": _schema(r_regionkey=_KEY, r_name=_TEXT, r_comment=_TEXT),
    "nation": _schema(n_nationkey=_KEY, n_name=_TEXT, n_regionkey=_KEY, n_comment=_TEXT),
    "supplier": _schema(
        s_suppkey=_KEY,
        s_name=_TEXT,
        s_address=_TEXT,
        s_nationkey=_KEY,
        s_phone=_TEXT,
        s_acctbal=_MONEY,
        s_comment=_TEXT,
    ),
    "part": _schema(
        p_partkey=_KEY,
        p_name=_TEXT,
        p_mfgr=_TEXT,
        p_brand=_TEXT,
        p_type=_TEXT,
        p_size=pa.int32(),
        p_container=_TEXT,
        p_retailprice=_MONEY,
        p_comment=_TEXT,
    ),
    "partsupp": _schema(
        ps_partkey=_KEY, ps_suppkey=_KEY, ps_availqty=pa.int32(), ps_supplycost=_MONEY, ps_comment=_TEXT
    ),
    "customer": _schema(
        c_custkey=_KEY,
        c_name=_TEXT,
        c_address=_TEXT,
        c_nationkey=_KEY,
        c_phone=_TEXT,
        c_acctbal=_MONEY,
        c_mktsegment=_TEXT,
        c_comment=_TEXT,
    ),
    "orders": _schema(
        o_orderkey=_KEY,
        o_custkey=_KEY,
        o_orderstatus=_TEXT,
        o_totalprice=_MONEY,
        o_orderdate=pa.date32(),
        o_orderpriority=_TEXT,
        o_clerk=_TEXT,
        o_shippriority=pa.int32(),
        o_comment=_TEXT,
    ),
    "lineitem": _schema(
        l_orderkey=_KEY,
        l_partkey=_KEY,
        l_suppkey=_KEY,
        l_linenumber=pa.int32(),
        l_quantity=_MONEY,
        l_extendedprice=_MONEY,
        l_discount=_MONEY,
        l_tax=_MONEY,
        l_returnflag=_TEXT,
        l_linestatus=_TEXT,
        l_shipdate=pa.date32(),
        l_commitdate=pa.date32(),
        l_receiptdate=pa.date32(),
        l_shipinstruct=_TEXT,
        l_shipmode=_TEXT,
        l_comment=_TEXT,
    ),
}


def find_generator() -> str | None:
    """Return the path of `tpchgen-cli`, if it is installed here."""
    beside = Path(sys.executable).with_name("tpchgen-cli")
    return str(beside) if beside.exists() else shutil.which("tpchgen-cli")


def generate(generator: str, scale: float, folder: Path) -> dict[str, pa.Table]:
    """Let the generator make all tables at a scale factor, and return their rows."""
    subprocess.run(
        [generator, "parquet", "--scale-factor", str(scale), "--output-dir", str(folder)],
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    return {name: pq.read_table(folder / f"{name}.parquet").cast(schema) for name, schema in SCHEMAS.items()}


_NATIONS: Final = ("FRANCE", "GERMANY", "BRAZIL", "CANADA", "SAUDI ARABIA", "CHINA", "JAPAN")
_REGIONS: Final = ("AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST")
_START: Final = date(1992, 1, 1)
_CHOICES: Final[dict[str, tuple[Any, ...]]] = {
    "r_name": _REGIONS,
    "n_name": _NATIONS,
    "p_name": ("forest green", "lace blue", "forest rose"),
    "p_brand": ("Brand#12", "Brand#23", "Brand#34"),
    "p_type": ("PROMO BRASS", "ECONOMY ANODIZED STEEL", "STANDARD PLATED TIN"),
    "p_container": ("SM CASE", "MED BOX", "LG BOX"),
    "p_size": (3, 9, 15),
    "c_mktsegment": ("BUILDING", "MACHINERY"),
    "c_phone": ("13-1", "31-2", "23-3", "44-4"),
    "c_acctbal": (Decimal("711.56"), Decimal("-12.00"), Decimal("9000.10")),
    "s_comment": ("final", "Customer slow Complaints"),
    "o_orderstatus": ("F", "O", "P"),
    "o_orderpriority": ("1-URGENT", "2-HIGH", "5-LOW"),
    "o_comment": ("special pending requests", "carefully final"),
    "l_quantity": tuple(Decimal(f"{number}.00") for number in (1, 5, 15, 20, 50)),
    "l_discount": tuple(Decimal(number).scaleb(-2) for number in range(11)),
    "l_tax": (Decimal("0.02"), Decimal("0.08")),
    "l_returnflag": ("A", "N", "R"),
    "l_linestatus": ("F", "O"),
    "l_shipinstruct": ("DELIVER IN PERSON", "NONE"),
    "l_shipmode": ("AIR", "MAIL", "SHIP"),
}
_SIZES: Final = {
    "region": len(_REGIONS),
    "nation": len(_NATIONS),
    "supplier": 10,
    "part": 60,
    "partsupp": 240,
    "customer": 50,
    "orders": 600,
    "lineitem": 2400,
}
_OWNERS: Final = {
    "regionkey": "region",
    "nationkey": "nation",
    "suppkey": "supplier",
    "partkey": "part",
    "custkey": "customer",
    "orderkey": "orders",
}


def make_up(seed: int = 7) -> dict[str, pa.Table]:
    """Make up rows that most queries have an answer for."""
    draw = random.Random(seed)
    return {
        name: pa.Table.from_pylist([_row(draw, name, at) for at in range(size)], schema=SCHEMAS[name])
        for name, size in _SIZES.items()
    }


def _row(draw: random.Random, table: str, at: int) -> dict[str, Any]:
    return {field.name: _value(draw, table, at, field) for field in SCHEMAS[table]}


def _value(draw: random.Random, table: str, at: int, field: pa.Field) -> object:
    if field.name in {"r_name", "n_name"}:
        return _CHOICES[field.name][at]
    if field.name in _CHOICES:
        return draw.choice(_CHOICES[field.name])
    owner = _OWNERS.get(field.name.partition("_")[2])
    if owner is not None:
        return at if owner == table else draw.randrange(_SIZES[owner])
    if field.type == pa.date32():
        return _START + timedelta(days=draw.randrange(2500))
    if field.type == _MONEY:
        return Decimal(draw.randrange(100, 10_000_000)).scaleb(-2)
    return draw.randrange(1, 10_000) if field.type == pa.int32() else f"{field.name} {at}"
