"""A star schema of the shape of TPC-DS: sales day by day, and days, items, stores and customers around them.

The rows are made up by Spark. Every query restricts dimensions, and sales only through them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from bench.measure import say
from bench.tpch.tables import Tables, copy_plain

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from instar import Store

__all__ = ["QUERIES", "store_star"]

_DAYS: Final = 1800
_ITEMS: Final = 10_000
_STORES: Final = 60
_CUSTOMERS: Final = 40_000

_SALES: Final = (
    "int(id * {days} div {rows}) day_key",
    "int(pmod(hash(id, 1), {items})) item_key",
    "int(pmod(hash(id, 2), {stores})) store_key",
    "int(pmod(hash(id, 3), {customers})) customer_key",
    "int(pmod(hash(id, 4), 20)) + 1 quantity",
    "cast(pmod(hash(id, 5), 20000) / 100 as decimal(9,2)) price",
    "cast(pmod(hash(id, 6), 9000) / 100 - 20 as decimal(9,2)) profit",
)
_DIMENSIONS: Final = {
    "days": (
        _DAYS,
        (
            "int(id) day_key",
            "date_add('2022-01-01', int(id)) day",
            "year(date_add('2022-01-01', int(id))) year",
            "month(date_add('2022-01-01', int(id))) month",
            "dayofweek(date_add('2022-01-01', int(id))) weekday",
        ),
    ),
    "items": (
        _ITEMS,
        (
            "int(id) item_key",
            "concat('brand', id % 300) brand",
            "concat('category', id % 10) category",
            "int(id % 100) manager",
        ),
    ),
    "stores": (
        _STORES,
        ("int(id) store_key", "concat('store', id) store", "concat('state', id % 8) state"),
    ),
    "customers": (
        _CUSTOMERS,
        ("int(id) customer_key", "concat('city', id % 200) city", "int(1930 + id % 80) born"),
    ),
}
_JOINED: Final = "sales JOIN days USING (day_key)"

QUERIES: Final = {
    "brands of a month": f"""
        SELECT brand, sum(price) FROM {_JOINED} JOIN items USING (item_key)
        WHERE year = 2024 AND month = 11 AND manager = 28 GROUP BY brand ORDER BY 2 DESC, 1 LIMIT 100""",
    "categories of a month": f"""
        SELECT category, sum(price) FROM {_JOINED} JOIN items USING (item_key)
        WHERE year = 2023 AND month = 12 GROUP BY category ORDER BY 1""",
    "weekdays by store": f"""
        SELECT store, weekday, sum(price) FROM {_JOINED} JOIN stores USING (store_key)
        WHERE year = 2025 AND state = 'state3' GROUP BY store, weekday ORDER BY 1, 2""",
    "cities of a holiday": f"""
        SELECT city, sum(profit), sum(quantity) FROM {_JOINED} JOIN customers USING (customer_key)
        WHERE day BETWEEN '2024-12-20' AND '2024-12-27' GROUP BY city ORDER BY 2 DESC, 1 LIMIT 50""",
    "states, quarter by quarter": f"""
        SELECT state, month, avg(quantity), avg(price) FROM {_JOINED} JOIN stores USING (store_key)
        WHERE year = 2022 AND month <= 3 GROUP BY state, month ORDER BY 1, 2""",
    "young buyers": f"""
        SELECT brand, count(*) FROM {_JOINED} JOIN items USING (item_key) JOIN customers USING (customer_key)
        WHERE born >= 2000 AND year = 2024 AND month IN (6, 7) AND category = 'category4'
        GROUP BY brand ORDER BY 2 DESC, 1 LIMIT 20""",
    "this month beside last year's": f"""
        SELECT category, sum(CASE WHEN year = 2025 THEN price END), sum(CASE WHEN year = 2024 THEN price END)
        FROM {_JOINED} JOIN items USING (item_key) WHERE month = 5 AND year IN (2024, 2025)
        GROUP BY category ORDER BY 1""",
    "sales since the last day of a year": """
        SELECT count(*), sum(profit) FROM sales
        WHERE day_key > (SELECT max(day_key) FROM days WHERE year = 2025)""",
    "days without losses": f"""
        SELECT day, min(profit) FROM {_JOINED} JOIN stores USING (store_key)
        WHERE year = 2023 AND month = 2 AND store IN ('store7', 'store8') GROUP BY day ORDER BY 1""",
    "everything, by year": f"SELECT year, sum(price) FROM {_JOINED} GROUP BY year ORDER BY 1",
}


def store_star(spark: SparkSession, store: Store, folder: Path, parts: int, rows: int) -> Tables:
    """Store the tables twice: sales in so many parts of so many rows, in the order of days."""
    say(f"making a star schema: {parts:,} parts of {rows:,} sales")
    numbers = {"days": _DAYS, "items": _ITEMS, "stores": _STORES, "customers": _CUSTOMERS}
    columns = [text.format(rows=parts * rows, **numbers) for text in _SALES]
    frames = {"sales": spark.range(parts * rows, numPartitions=parts).selectExpr(*columns)}
    for name, (size, texts) in _DIMENSIONS.items():
        frames[name] = spark.range(size, numPartitions=1).selectExpr(*texts)
    tables = {}
    for name, frame in frames.items():
        tables[name] = store.create_table(name, frame.schema)
        tables[name].append(frame)
    return copy_plain(spark, tables, folder)
