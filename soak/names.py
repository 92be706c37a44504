"""Tables renamed, cloned, dropped, brought back and vacuumed, each in the middle of another step.

No row and no file is lost, and a name means one table.

One machine's step runs between two requests to the store of another machine's step. So every order of two
steps is tried, without threads. What is there afterwards must be what one of the two orders makes.
"""

from __future__ import annotations

import functools
from collections import Counter
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa

from instar.api.store import Store
from instar.errors import (
    CommitOutcomeUnknownError,
    ConflictError,
    InstarError,
    TableExistsError,
    TableNotFoundError,
)
from instar.storage import BlobConsensus
from instar.storage.objects import ObjectBlob
from instar.table import Services, wall_clock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path
    from random import Random

    from soak.turns import Turn

__all__ = ["run_names"]

_STEPS: Final = 12
_NAMES: Final = ("a", "b", "c")
_HOUR: Final = 60 * 60 * 1000
_KINDS: Final = ("append", "delete", "upsert", "compact", "rename", "clone", "drop", "undrop", "vacuum")
_WEIGHTS: Final = (3, 2, 2, 2, 2, 3, 2, 2, 3)


Rows = tuple[tuple[int, int], ...]


class Step(NamedTuple):
    """What a machine is about to do."""

    kind: str
    name: str
    other: str
    value: int

    def run(self, store: Store) -> None:
        """Do it."""
        match self.kind:
            case "create":
                store.create_table(self.name, "id int, v int", key=["id"])
            case "append":
                store.table(self.name).append(_row(self.value, 0))
            case "upsert":
                store.table(self.name).upsert(_row(self.value % 5, self.value))
            case "delete":
                store.table(self.name).delete(f"id % 3 = {self.value % 3}")
            case "compact":
                store.table(self.name).compact(full=True)
            case "rename":
                store.rename_table(self.name, self.other)
            case "clone":
                store.table(self.name).clone(self.other)
            case "drop":
                store.drop_table(self.name)
            case "undrop":
                store.undrop_table(self.name)
            case _:
                store.vacuum(grace_ms=0)

    def change(self, rows: Rows) -> Rows:
        """Return what rows should become."""
        key = self.value % 5
        match self.kind:
            case "append":
                return (*rows, (self.value, 0))
            case "upsert":
                return (*(row for row in rows if row[0] != key), (key, self.value))
            case "delete":
                return tuple(row for row in rows if row[0] % 3 != self.value % 3)
        return rows


def _row(key: int, value: int) -> pa.Table:
    return pa.table({"id": pa.array([key], pa.int32()), "v": pa.array([value], pa.int32())})


class Model(NamedTuple):
    """What there should be: the rows of each table by name, and of tables that may be brought back."""

    live: dict[str, Rows]
    dropped: dict[str, Rows]
    unsure: frozenset[str] = frozenset()
    """Names of which nobody can say whether a dropped table can still be had by them."""

    def after(self, step: Step) -> Model | type[InstarError]:
        """Return what a step makes of it, or the error that it should end with."""
        name, other = step.name, step.other
        taken = {"create": name, "undrop": name, "rename": other, "clone": other}.get(step.kind)
        needed = {"create": None, "vacuum": None}.get(step.kind, name)
        there = self.dropped if step.kind == "undrop" else self.live
        if needed is not None and needed not in there:
            return TableExistsError if step.kind == "undrop" and name in self.live else TableNotFoundError
        if taken is not None and taken in self.live:
            return TableExistsError
        live, dropped = dict(self.live), dict(self.dropped)
        match step.kind:
            case "vacuum":
                return Model(live, {})
            case "create":
                live[name] = ()
                return Model(live, dropped, self.unsure).without(name)
            case "undrop":
                live[name] = dropped.pop(name)
            case "rename":
                live[other] = live.pop(name)
                return Model(live, dropped, self.unsure | {name}).without(other)
            case "clone":
                live[other] = live[name]
                return Model(live, dropped, self.unsure).without(other)
            case "drop":
                dropped[name] = live.pop(name)
                return Model(live, dropped, self.unsure - {name})
            case _:
                live[name] = step.change(live[name])
        return Model(live, dropped, self.unsure)

    def without(self, name: str) -> Model:
        """Return the same where a name has been used again: what had it before may or may not come back."""
        dropped = {other: rows for other, rows in self.dropped.items() if other != name}
        return Model(self.live, dropped, self.unsure | {name})


class Between:
    """A service that lets something else happen between two of its calls."""

    def __init__(self, service: Any, machine: Machine) -> None:  # noqa: ANN401 -- a blob or a consensus
        self._service = service
        self._machine = machine

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 -- whatever the service has
        found = getattr(self._service, name)
        if not callable(found):
            return found

        @functools.wraps(found)
        def call(*args: object, **kwargs: object) -> object:
            self._machine.pass_by()
            return found(*args, **kwargs)

        return call


class Machine:
    """A machine that uses the store, and can be stopped between two requests to let another one act."""

    def __init__(self, blob: ObjectBlob, clock: Callable[[], int]) -> None:
        self._left = -1
        self._then: Callable[[], None] = lambda: None
        self.calls = 0
        self.services = Services(
            Between(blob, self),
            Between(BlobConsensus(blob), self),
            clock=clock,
            most_ahead_ms=None,
            patience=2.0,
        )
        self.store = Store("memory", self.services)

    def pass_by(self) -> None:
        """Count a request, and let another machine act before it if it is the one."""
        self.calls += 1
        self._left -= 1
        if self._left == 0:
            self._then()

    def interrupt(self, after: int, then: Callable[[], None]) -> None:
        """Let something happen before the request that comes after so many others."""
        self._left, self._then = after, then


def run_names(_: Path, turns: Iterable[Turn]) -> Counter[str]:
    """Run turns, and return how often each step ended how."""
    done: Counter[str] = Counter()
    for turn in turns:
        with ExitStack() as stack:
            done.update(_Play(turn, stack).run())
    return done


class _Play:
    """One turn: a store in memory, two machines, and the model."""

    def __init__(self, turn: Turn, stack: ExitStack) -> None:
        self._turn = turn
        self._ahead = 0
        blob = ObjectBlob.in_memory()
        self._machines = [Machine(blob, self._clock) for _ in range(3)]
        for machine in self._machines:
            stack.callback(machine.services.close)
        self._model = Model({}, {})
        self._told: list[str] = []
        self._done: Counter[str] = Counter()
        self._value = 0

    def _clock(self) -> int:
        return wall_clock() + self._ahead

    def run(self) -> Counter[str]:
        draw = self._turn.random
        self._alone(Step("create", "a", "", 0))
        for value in range(2):
            self._alone(Step("append", "a", "", value))
        for _ in range(_STEPS):
            if draw.random() < 0.2:
                self._ahead += _HOUR
                for machine in self._machines:
                    machine.services.leases.renew()
            if draw.random() < 0.3:
                self._alone(self._step(draw))
            else:
                outer, inner = self._step(draw), self._step(draw)
                if outer[:3] != inner[:3]:  # two renames to the same name are one
                    self._both(outer, inner, draw)
            self._check()
        return self._done

    def _step(self, draw: Random) -> Step:
        self._value += 1
        kind = draw.choices(_KINDS, _WEIGHTS)[0]
        if kind == "undrop" and self._model.unsure and not self._model.dropped:
            kind = "append"
        names = sorted(self._model.dropped if kind == "undrop" else self._model.live) or _NAMES
        name = draw.choice(names)
        other = draw.choice([other for other in _NAMES if other != name])
        if not self._model.live and draw.random() < 0.5:
            return Step("create", name, "", 0)
        return Step(kind, name, other, self._value)

    def _alone(self, step: Step) -> None:
        self._told.append(f"{step.kind} {step.name} {step.other} {step.value}")
        expected = self._model.after(step)
        error = _try(step, self._machines[0].store)
        if isinstance(expected, Model):
            assert error is None, f"{self._where()}: {error!r}"
            self._model = expected
        else:
            assert isinstance(error, expected), f"{self._where()}: {error!r}, not {expected}"
        self._done[step.kind] += 1

    def _both(self, outer: Step, inner: Step, draw: Random) -> None:
        first, second = self._machines[:2]
        at = min(int(draw.expovariate(1 / 12)) + 1, 120)
        self._told.append(f"({outer} with {inner} before request {at})")
        ended: list[InstarError | None] = []
        before = first.calls
        first.interrupt(at, lambda: ended.append(_try(inner, second.store)))
        error = _try(outer, first.store)
        self._told.append(f"requests {first.calls - before}: {error!r}, {ended!r}")
        first.interrupt(-1, lambda: None)
        if not ended:
            self._settle([(outer, error)])
            return
        self._settle([(inner, ended[0]), (outer, error)], [(outer, error), (inner, ended[0])])
        self._done[f"{outer.kind} around {inner.kind}"] += 1

    def _settle(self, *orders: list[tuple[Step, InstarError | None]]) -> None:
        """Find the orders that explain what was answered and what is there."""
        there = self._there()
        found: list[Model] = []
        for order in orders:
            model = self._model
            for step, error in order:
                after = model.after(step)
                if isinstance(error, ConflictError) or (
                    isinstance(error, TableExistsError | TableNotFoundError) and len(order) > 1
                ):
                    continue
                if isinstance(after, Model) and error is None:
                    model = after
                elif isinstance(after, Model) or not isinstance(error, after):
                    break
            else:
                if {name: sorted(rows) for name, rows in model.live.items()} == there:
                    found.append(model)
        assert found, f"{self._where()}: there is {there}; it was {self._model}"
        first, last = found[0], found[-1]
        for name in first.dropped.keys() ^ last.dropped.keys():
            first = first.without(name)
        self._model = first

    def _there(self) -> dict[str, list[tuple[int, int]]]:
        store = self._machines[2].store
        found = {}
        try:
            for name in store.tables():
                rows = store.table(name).snapshot().to_arrow()
                found[name] = sorted(zip(rows["id"].to_pylist(), rows["v"].to_pylist(), strict=True))
        except InstarError as error:
            raise AssertionError(f"{self._where()}: {error!r}") from error
        return found

    def _check(self) -> None:
        there = self._there()
        expected = {name: sorted(rows) for name, rows in self._model.live.items()}
        assert there == expected, f"{self._where()}: there is {there}, not {expected}"

    def _where(self) -> str:
        return f"turn {self._turn.name}:\n  " + "\n  ".join(self._told) + "\n"


def _try(step: Step, store: Store) -> InstarError | None:
    try:
        step.run(store)
    except CommitOutcomeUnknownError:
        raise
    except InstarError as error:
        return error
    return None
