"""The state as a pure value: what commands allow, what windows remember, and what bytes decode to."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from instar.errors import CorruptTableError, InstarError, PartsGoneError, TableExistsError, UsageError
from instar.schema import Schema, as_schema
from instar.schema.schema import number_fields
from instar.state import (
    Appended,
    Checkpointed,
    CommitRecord,
    Compacted,
    Configured,
    Created,
    Dropped,
    Evolved,
    NewBatch,
    Part,
    Place,
    SinceAdvanced,
    Start,
    Step,
    TableState,
    apply,
    decode_commit,
    decode_rollup,
    encode_commit,
    encode_rollup,
)
from instar.state.commands import append, column_ids, compact, configure, create, evolve
from instar.state.table_state import REMOVAL_WINDOW, TOKEN_WINDOW, rebase
from instar.stats import FieldStats

NAME = "t"


def schema_of(ddl: str) -> Schema:
    """Return a schema with the ids that a new table gives."""
    return Schema(number_fields(as_schema(ddl).fields))


def commit_of(*steps: Step, start: Start | None = None) -> CommitRecord:
    """Wrap steps as a committer would."""
    return CommitRecord("id", 0, "me", "table", start or Start(0, rollup=False), steps, "id")


def created(ddl: str = "a int, b string", **more: Any) -> TableState:  # noqa: ANN401 - arguments of Created
    """Return a new table."""
    return apply(None, NAME, 0, commit_of(Created("table", schema_of(ddl), **more)))


def then(state: TableState, *steps: Step) -> TableState:
    """Return the state after one more commit."""
    return apply(state, NAME, state.seqno + 1, commit_of(*steps))


def batch(state: TableState, count: int = 1) -> NewBatch:
    """Return a batch of parts at the end of a table."""
    parts = tuple(Part(f"p{state.seqno}-{number}", 2, 10) for number in range(count))
    return NewBatch(state.upper, state.upper + 1, 0, parts)


# --- windows --------------------------------------------------------------------------------------------


def test_a_token_is_remembered_for_a_thousand_others() -> None:
    """Then it is forgotten, and the same call would append again: the window is bounded, and this long."""
    state = then(created(), Appended(batch(created()), "first"))
    for number in range(TOKEN_WINDOW - 1):
        state = then(state, Appended(batch(state, 0), f"token-{number}"))
    record = state.find_token("first")
    assert record is not None
    assert (record.seqno, record.ts, record.schema_id, record.rows) == (1, 0, 0, 2)
    assert append(state, Appended(batch(state), "first")) == ()
    state = then(state, Appended(batch(state, 0), "one more"))
    assert state.find_token("first") is None
    assert len(state.tokens) == TOKEN_WINDOW
    assert append(state, Appended(batch(state), "first")) != ()


def test_appends_without_a_token_forget_none() -> None:
    """Only other tokens push a token out."""
    state = then(created(), Appended(batch(created()), "kept"))
    for _ in range(50):
        state = then(state, Appended(batch(state)))
    assert state.find_token("kept") is not None


def folded(state: TableState) -> TableState:
    """Return a state as if a rollup had just been read: all removals are in its chunks."""
    return rebase(state, as_rolled(state, state.seqno))


def as_rolled(state: TableState, seqno: int) -> TableState:
    """Return what a rollup at a seqno would be, without its chunks."""
    return replace(state, chunks=(), tail=(), folded=seqno)


def test_a_plan_is_good_until_a_hundred_compactions_have_followed() -> None:
    """Older plans are refused, because nobody remembers any more which parts they could have lost."""
    state = then(created(), Appended(batch(created(), 300)))
    planned = state.seqno
    for number in range(REMOVAL_WINDOW):
        state = folded(then(state, Compacted((Place(1, number),), 2, 10)))
    assert compact(state, planned, Compacted((Place(1, 299),), 2, 10))
    with pytest.raises(PartsGoneError):
        compact(state, planned, Compacted((Place(1, 0),), 2, 10))
    state = folded(then(state, Compacted((Place(1, REMOVAL_WINDOW),), 2, 10)))
    assert len(state.removals) == REMOVAL_WINDOW
    with pytest.raises(PartsGoneError) as caught:
        compact(state, planned, Compacted((Place(1, 299),), 2, 10))
    assert "too many" in str(caught.value)
    assert compact(state, planned + 1, Compacted((Place(1, 299),), 2, 10))


def test_removals_that_no_rollup_has_seen_are_all_remembered() -> None:
    """However many there are: without them, parts would come back."""
    state = then(created(), Appended(batch(created(), 300)))
    for number in range(REMOVAL_WINDOW + 50):
        state = then(state, Compacted((Place(1, number),), 2, 10))
    assert len(state.unfolded()) == REMOVAL_WINDOW + 50
    assert state.totals == (300 - REMOVAL_WINDOW - 50, 2 * (150 - 0), 10 * 150, 0)
    assert compact(state, 1, Compacted((Place(1, 299),), 2, 10))


def test_a_compaction_conflicts_with_one_that_replaced_the_same_part() -> None:
    """Of two plans for one part, the second is refused, whenever it was planned before the first landed."""
    state = then(created(), Appended(batch(created(), 3)))
    after = then(state, Compacted((Place(1, 0), Place(1, 1)), 4, 20))
    with pytest.raises(PartsGoneError):
        compact(after, state.seqno, Compacted((Place(1, 1), Place(1, 2)), 4, 20))
    assert compact(after, state.seqno, Compacted((Place(1, 2),), 2, 10))
    assert compact(after, after.seqno, Compacted((Place(1, 2),), 2, 10))


def test_since_and_upper_never_go_back() -> None:
    """Whatever a commit says, the state takes the greater."""
    state = then(created(), Appended(NewBatch(0, 10, 0)), SinceAdvanced(7))
    state = then(state, SinceAdvanced(3), Appended(NewBatch(10, 5, 0)))
    assert (state.since, state.upper) == (7, 10)


# --- commands --------------------------------------------------------------------------------------------


def test_a_name_is_free_again_after_a_drop() -> None:
    """The new table has nothing of the old one."""
    state = then(created(), Appended(batch(created()), "token"), Configured({"skipping": "on"}))
    with pytest.raises(TableExistsError):
        create(state, NAME, Created("other", schema_of("c date")))
    state = then(state, Dropped())
    assert create(state, NAME, Created("other", schema_of("c date")))
    state = then(state, Created("other", schema_of("c date")))
    assert (state.table_id, state.dropped, state.upper, state.totals.parts) == ("other", False, 0, 0)
    assert (state.tokens, state.options, state.tail) == ((), {}, ())
    assert state.start == Start(state.seqno, rollup=False)


def test_options_without_a_value_are_not_set() -> None:
    """What is created with None has the default, and its commit can be read again."""
    [step] = create(None, NAME, Created("table", schema_of("a int"), config={"skipping": None}))  # type: ignore[dict-item]
    assert step == Created("table", schema_of("a int"))
    data = encode_commit(commit_of(step))
    assert decode_commit(data, what="it").steps == (step,)


def test_setting_what_is_set_is_no_step() -> None:
    """Nor is taking back what was never set."""
    state = then(created(), Configured({"skipping": "on"}))
    assert configure(state, {"skipping": "on"}) == ()
    assert configure(created(), {"skipping": None}) == ()
    assert configure(state, {"skipping": None}) == (Configured({"skipping": None}),)
    with pytest.raises(UsageError):
        configure(state, {"skipping": "perhaps"})
    with pytest.raises(UsageError):
        configure(state, {"skiping": "on"})


def test_a_table_is_not_ordered_by_what_has_no_order() -> None:
    """Nor twice by the same column."""
    schema = schema_of("a int, m map<string,int>")
    assert column_ids(schema, ["a"]) == (1,)
    for columns in (["m"], ["a", "a"], ["A", "a"], ["nope"]):
        with pytest.raises(InstarError):
            column_ids(schema, columns)


def test_a_column_of_the_key_stays() -> None:
    """A table that is identified by a column cannot lose it."""
    state = created("a int, b string", key=(1,))
    with pytest.raises(UsageError):
        evolve(state, 0, Schema(state.history.latest.fields[1:]))
    assert evolve(state, 0, Schema(state.history.latest.fields[:1]))


# --- bytes -----------------------------------------------------------------------------------------------

STEPS: list[Step] = [
    Created(
        "table", schema_of("a int, s struct<x: array<int>, y: decimal(9,2)>"), (1,), (1,), {"skipping": "on"}
    ),
    Evolved(1, schema_of("a bigint")),
    Appended(
        NewBatch(
            0,
            5,
            0,
            (
                Part("k", 1, 2, 3, False, 4, 5, -1, 7, b"\x00", b"\xff", {1: FieldStats(1, 0, "a", b"b")}),
                Part("l", 0, 0, stats={2: FieldStats(None, None, 1.5, True)}),
            ),
        ),
        "token",
    ),
    Appended(NewBatch(5, 9, 0), restored=4),
    Compacted((Place(1, 2), Place(3, 4)), 5, 6, NewBatch(0, 9, 1)),
    Compacted((), 0, 0),
    SinceAdvanced(2**62),
    Configured({"skipping": None, "other": 1.5}),
    Checkpointed(),
    Dropped(),
]


@pytest.mark.parametrize("step", STEPS, ids=lambda step: type(step).__name__)
def test_every_step_survives_its_bytes(step: Step) -> None:
    """Decoded, a commit is what it was, to the type of every bound."""
    commit = commit_of(step, start=Start(3, rollup=True))
    again = decode_commit(encode_commit(commit), what="it")
    assert again == commit
    assert repr(again) == repr(commit)


@pytest.mark.parametrize("known", [4, 5, 6])
def test_a_step_with_fewer_or_more_fields_is_read(known: int) -> None:
    """A writer may know fewer fields of it than the reader, or more."""
    commit = commit_of(Appended(NewBatch(0, 5, 0), "token", restored=4))
    bare = msgspec.msgpack.decode(encode_commit(commit))
    step = bare[5][0]
    step[1:] = [*step[1:], "of a later writer"][:known]
    (read,) = decode_commit(msgspec.msgpack.encode(bare), what="it").steps
    assert read == Appended(NewBatch(0, 5, 0), "token", restored=4 if known >= 5 else None)


def test_a_state_survives_its_rollup() -> None:
    """All of it, except where its parts are laid out."""
    state = created("a int, b string", order_by=(2,), key=(1,), config={"skipping": "audit"})
    state = then(state, Evolved(1, schema_of("a int")), SinceAdvanced(0), Appended(batch(state, 0), "token"))
    state = then(state, Compacted((Place(1, 0),), 0, 0))
    rolled = as_rolled(state, state.seqno)
    again = decode_rollup(encode_rollup(rolled), what="it")
    assert again == started(rolled)
    assert again.history.migration_type == state.history.migration_type


def started(state: TableState) -> TableState:
    """Return a state that starts at its own rollup."""
    return replace(state, start=Start(state.seqno, rollup=True))


def test_a_state_with_a_tail_has_no_rollup() -> None:
    """Its parts must be in chunks first."""
    state = then(created(), Appended(batch(created())))
    with pytest.raises(ValueError, match="tail"):
        encode_rollup(state)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x00",
        b"\xc1",
        msgspec.msgpack.encode({}),
        msgspec.msgpack.encode(["id", 0, "me", "t", [0, False]]),
    ],
)
def test_bytes_that_do_not_decode_are_corrupt(data: bytes) -> None:
    """The error says which object it was."""
    for decode in (decode_commit, decode_rollup):
        with pytest.raises(CorruptTableError, match="commit 7"):
            decode(data, what="commit 7")


def test_what_could_not_be_read_again_is_not_committed() -> None:
    """A slip of the caller, such as a number for a token, is refused before it is in the log forever."""
    step = Appended(NewBatch(0, 1, 0), 5)  # type: ignore[arg-type]
    with pytest.raises(UsageError):
        encode_commit(commit_of(step))


def test_a_commit_before_the_creation_is_not_applied() -> None:
    """A log begins with a table, or it is not one."""
    with pytest.raises(ValueError, match="never created"):
        apply(None, NAME, 0, commit_of(Checkpointed()))


def test_the_start_of_a_state_is_the_newest_that_a_commit_told_of() -> None:
    """A commit by somebody who is behind does not take it back."""
    state = apply(created(), NAME, 1, commit_of(Checkpointed(), start=Start(1, rollup=True)))
    state = apply(state, NAME, 2, commit_of(Checkpointed(), start=Start(0, rollup=False)))
    assert state.start == Start(1, rollup=True)
    assert state.base == Start(1, rollup=True)
    assert rebase(state, as_rolled(state, 2)).base == Start(2, rollup=True)
    assert rebase(rebase(state, as_rolled(state, 2)), state) != state
