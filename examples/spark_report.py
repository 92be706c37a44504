"""Report over a table whose schema changed while it was being written, with Spark.

    python examples/spark_report.py

Half the rows were written before the column `country` existed and while `amount` was an int.
"""

from __future__ import annotations

import tempfile

import instar
from instar.spark.session import local_session


def main() -> None:
    """Write under two schemas and aggregate over both."""
    spark = local_session("report")
    with tempfile.TemporaryDirectory() as folder, instar.open(f"{folder}/lake") as store:
        sales = store.create_table("sales", "day date not null, amount int", order_by=["day"])
        early = spark.range(1000).selectExpr(
            "date_add(date'2026-01-01', cast(id % 31 as int)) day", "cast(id as int) amount"
        )
        sales.append(early)

        sales.evolve().add_column("country", "string").widen_column("amount", "bigint").commit()
        late = spark.range(1000).selectExpr(
            "date_add(date'2026-02-01', cast(id % 28 as int)) day",
            "id * 1000000000 amount",
            "if(id % 2 = 0, 'IT', 'DE') country",
        )
        sales.append(late)

        report = sales.read(spark).groupBy("country").sum("amount").orderBy("country")
        for row in report.collect():
            print(row["country"], row["sum(amount)"])


if __name__ == "__main__":
    main()
