"""Which skipped parts are checked: the same ones for everybody, as many as the budget allows."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from instar.errors import UsageError
from instar.state.chunk import FILES, FIXED_GROUPS, PLACES
from instar.table.log.part_set import PartSet
from instar.table.read.audit import Audits, Policy, Skipping, resolve_policy

MEGABYTE = 1 << 20


def parts(count: int, size: int = 100) -> PartSet:
    """Return parts that were skipped."""
    places = [range(count), [0] * count, [0] * count, [True] * count]
    files = [[f"p{number}" for number in range(count)], [1] * count, [size] * count]
    groups = {
        name: pa.RecordBatch.from_arrays(
            [pa.array(column, field.type) for column, field in zip(columns, FIXED_GROUPS[name], strict=True)],
            schema=FIXED_GROUPS[name],
        )
        for name, columns in ((PLACES, places), (FILES, files))
    }
    return PartSet(groups, groups[FILES].column("rows"), np.ones(count, dtype=bool))


def test_the_sample_depends_on_parts_alone() -> None:
    """Two processes draw the same parts, about as many as they should, and other ones in another table."""
    policy = Policy(sample=5, budget=1 << 60)
    drawn = Audits().choose(policy, parts(10_000), "table", "x = 1")
    assert drawn == Audits().choose(policy, parts(10_000), "table", "y = 2")
    assert drawn != Audits().choose(policy, parts(10_000), "other", "x = 1")
    assert 400 < len(drawn) < 600


def test_the_extremes_draw_none_and_all() -> None:
    """No percent is nothing, a hundred is everything; the modes `off` and `audit` do not draw."""
    some = parts(50)
    assert Audits().choose(Policy(sample=0, budget=1 << 60), some, "t", "c") == []
    everything = list(range(50))
    assert Audits().choose(Policy(sample=100, budget=1 << 60), some, "t", "c") == everything
    assert Audits().choose(Policy(Skipping.OFF, 100, 1 << 60), some, "t", "c") == []
    assert Audits().choose(Policy(Skipping.AUDIT, 0, 0), some, "t", "c") == everything


def test_checks_stay_within_their_budget() -> None:
    """What is read for checks is the budget and a hundredth of what queries read; small parts cost more."""
    audits = Audits()
    policy = Policy(sample=100, budget=100 * MEGABYTE)
    assert len(audits.choose(policy, parts(50, 40 * MEGABYTE), "t", "c")) == 2
    assert audits.choose(policy, parts(50, 40 * MEGABYTE), "t", "d") == []
    audits.note_read(2000 * MEGABYTE)
    assert len(audits.choose(policy, parts(50, 40 * MEGABYTE), "t", "d")) == 1
    assert len(Audits().choose(policy, parts(50, 1), "t", "c")) == 6


def test_the_same_check_is_made_once() -> None:
    """A query that comes again checks what it has not checked yet."""
    audits = Audits()
    policy = Policy(sample=100, budget=64 * MEGABYTE)
    assert audits.choose(policy, parts(3), "t", "c") == [0, 1, 2]
    assert audits.choose(policy, parts(4), "t", "c") == [3]
    assert audits.choose(policy, parts(4), "t", "c") == []


def test_the_nearest_choice_counts() -> None:
    """A query is before a session, a session before a table, a table before a store."""
    policy = resolve_policy(
        {"skipping": None}, {"skipping": "audit"}, {"skipping": "off", "skipping_sample": 7}
    )
    assert policy == Policy(Skipping.AUDIT, 7.0)
    assert resolve_policy({}, {}) == Policy()
    for option, value in (
        ("skipping", "maybe"),
        ("skipping_sample", 101),
        ("skipping_budget", 0.5),
        ("x", 1),
    ):
        with pytest.raises(UsageError, match=option):
            resolve_policy({option: value})
