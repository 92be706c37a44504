"""Jobs of a stream on Spark that die at any of their moments, and are started again."""

from __future__ import annotations

import importlib
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from soak.job_workers import COPYING, DROPPING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import SparkSession

    from instar import Store, Stream

FIRST = datetime(2024, 1, 30, tzinfo=UTC)
END = FIRST + timedelta(days=3)
KINDS = {"regular": "1d", "repartitioned": "1d", "archive": "1M"}


class KilledError(BaseException):
    """What ends a job here; nothing catches it."""


def die_at(moment: str, patch: pytest.MonkeyPatch) -> None:
    """Have whoever comes to a moment die: the second time, if there is one, so that something was done."""
    module, name = (COPYING | DROPPING)[moment]
    function = getattr(importlib.import_module(module), name)
    left = [2 if moment in {"tables", "drop", "dropped"} else 1]

    def dying(*given: Any, **named: Any) -> Any:  # noqa: ANN401 -- whatever the function takes
        left[0] -= 1
        if left[0] == 0:
            raise KilledError(moment)
        return function(*given, **named)

    patch.setattr(f"{module}.{name}", dying)


def write(stream: Stream, name: str) -> list[str]:
    """Write a row for each of three days, billed a day later, and return their names."""
    users = [f"{name}-{day}" for day in range(3)]
    times = [FIRST + timedelta(days=day, hours=7) for day in range(3)]
    moment = pa.timestamp("us", "UTC")
    billed = pa.array([time + timedelta(days=1) for time in times], moment)
    rows = {"user": pa.array(users), "at": pa.array(times, moment), "billed": billed}
    stream.write(pa.table(rows), version="v0.0.1")
    return users


def users(stream: Stream, *kinds: str) -> Counter[str]:
    """Return who is in tables of some kinds, and how often."""
    return Counter(user for kind in kinds for user in stream.snapshot(kind).to_arrow()["user"].to_pylist())


@pytest.mark.parametrize(
    ("job", "moments"), [("repartition", COPYING), ("archive", ("tasks", "moved", "tables", *DROPPING))]
)
def test_jobs_may_die_at_every_moment(
    spark: SparkSession, store: Store, job: str, moments: Iterable[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Started again, a job copies what is missing and drops what is left: no row is lost or doubled."""
    schema = "user string, at timestamp, billed timestamp"
    stream = store.create_stream("s", schema, version="v0.0.1", time="at", kinds=KINDS)
    written: list[str] = []

    def run() -> None:
        if job == "repartition":
            stream.repartition(spark, by="billed")
        else:
            stream.archive(spark, before=END, drop=True)

    for moment in moments:
        written += write(stream, moment)
        if moment in DROPPING:
            stream.repartition(by="billed")
        with monkeypatch.context() as patch:
            die_at(moment, patch)
            with pytest.raises(KilledError, match=moment):
                run()
        run()
        kind = "repartitioned" if job == "repartition" else "archive"
        assert users(stream, kind) == Counter(written), moment
        if moment in DROPPING:
            assert stream.tables("regular") == []
        else:
            assert set(users(stream, "regular", "archive")) == set(written), moment
