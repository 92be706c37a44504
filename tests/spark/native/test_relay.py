"""Errors that cross the JVM: as themselves, of nobody else, and without what they were raised among."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException

import instar
from instar.errors import CountOverflowError, InstarError, NegativeCountError, ReaderFencedError
from instar.spark.native import relay
from tests.tables import list_leases

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from instar import Store, Table

FENCED = "select v, count(*) from t group by v"


@pytest.fixture
def fenced(spark: SparkSession, store: Store) -> Table:
    """Return a table whose view asks for a column that is gone."""
    table = store.create_table("t", "k int, v string")
    table.append(pa.table({"k": pa.array([1], pa.int32()), "v": ["a"]}))
    instar.register(spark, store)
    table.evolve().drop_column("v").commit()
    return table


def fence(spark: SparkSession, sql: str = FENCED) -> ReaderFencedError:
    """Run a query that is fenced."""
    with pytest.raises(ReaderFencedError) as caught:
        spark.sql(sql).collect()
    return caught.value


def test_a_fenced_query_holds_nothing(spark: SparkSession, fenced: Table) -> None:
    """A query that raised has given its lease back, even while its error is kept."""
    kept: list[Any] = [fence(spark) for _ in range(5)]
    for columns in (["v"], ["nothing"]):
        with pytest.raises(InstarError) as caught:
            fenced.snapshot(schema=0, columns=columns)
        kept.append(caught)
    assert list(list_leases(fenced._services, fenced.state.table_id)) == []
    assert len(kept) == 7


def test_a_kept_error_has_no_frames(spark: SparkSession, fenced: Table) -> None:
    """What the relay keeps holds no frame, before and after it was raised, and says all that it said."""
    raised = fence(spark)
    kept = next(reversed(relay._errors.values()))
    assert str(kept) == str(raised)
    assert vars(kept) == vars(raised)
    assert kept is not raised
    assert (kept.__traceback__, kept.__cause__, kept.__context__) == (None, None, None)


def test_the_same_frame_raises_the_same_again(spark: SparkSession, fenced: Table) -> None:
    """Asking a frame twice gives the error twice."""
    frame = spark.sql(FENCED)
    for _ in range(2):
        with pytest.raises(ReaderFencedError):
            frame.collect()


def test_the_words_of_a_query_are_not_taken_for_an_error_of_ours(spark: SparkSession, fenced: Table) -> None:
    """Whatever text a query raises, it comes out as Spark's error."""
    fence(spark)
    words = ["instar-error-1", "instar-error-0000000000000001", f"instar-error-{'0' * 32}"]
    words += [f"instar-{kind.code} " for kind in (NegativeCountError, CountOverflowError)]
    for said in words:
        with pytest.raises(PySparkException, match=said):
            spark.sql(f"""select raise_error('{said}{{"row": "none", "count": -1}}')""").collect()
