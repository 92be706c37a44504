"""A write as a run: it starts, and it completes or fails. What is sent, and how, is the sender's business."""

from __future__ import annotations

import os
import uuid
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from instar.schema import Schema

__all__ = ["Notice", "Reported", "RunInput", "RunOutput", "is_configured", "reading_from", "reported"]


@dataclass(frozen=True)
class RunInput:
    """A dataset that a run reads. With `same_columns`, a column is made from the one of the same name.

    `columns` are others that are known: the column that is made, the one that it is made from, and how.
    """

    namespace: str
    name: str
    same_columns: bool = False
    columns: tuple[tuple[str, str, str], ...] = ()


@dataclass(frozen=True)
class RunOutput:
    """What a run has written: a table in a store, its version, and how many rows, parts and bytes."""

    namespace: str
    name: str
    schema: Schema | None = None
    version: str | None = None
    rows: int | None = None
    parts: int | None = None
    size: int | None = None


@dataclass(frozen=True)
class Notice:
    """What is known of a run at a moment."""

    kind: str
    at: str
    run_id: str
    job: str
    inputs: tuple[RunInput, ...] = ()
    outputs: tuple[RunOutput, ...] = ()
    problem: str | None = None
    work: str = "COMMIT"


@dataclass
class Reported:
    """A run under way: who writes fills in what was read and written."""

    outputs: list[RunOutput] = field(default_factory=list)
    inputs: list[RunInput] = field(default_factory=list)
    wanted: bool = False
    """Whether anybody will hear of it; if not, nothing needs to be found out."""


_INPUTS: Final[ContextVar[tuple[RunInput, ...]]] = ContextVar("instar_reporting_inputs", default=())


def is_configured() -> bool:
    """Say whether the OpenLineage client would find an endpoint, without importing it."""
    if os.environ.get("OPENLINEAGE_DISABLED", "").strip().lower() == "true":
        return False
    if any(name.startswith("OPENLINEAGE__TRANSPORT") for name in os.environ):
        return True
    if os.environ.get("OPENLINEAGE_URL"):
        return True
    named = os.environ.get("OPENLINEAGE_CONFIG")
    homes = [Path.cwd(), Path(os.path.expanduser("~")) / ".openlineage"]  # noqa: PTH111 -- never raises
    return any(path.is_file() for path in ([Path(named)] if named else []) + [home / _FILE for home in homes])


_FILE: Final = "openlineage.yml"


@contextmanager
def reading_from(inputs: Sequence[RunInput]) -> Iterator[None]:
    """Let writes inside the block say that they read these datasets."""
    before = _INPUTS.set((*_INPUTS.get(), *inputs))
    try:
        yield
    finally:
        _INPUTS.reset(before)


@contextmanager
def reported(
    operation: str, namespace: str, name: str, *, work: str = "COMMIT", writes: bool = True
) -> Iterator[Reported]:
    """Report what happens in the block as a run of a job; the block says what it has read and written.

    With `writes`, it is known from the start that the table of this name is written.
    """
    if not is_configured():
        yield Reported()
        return
    from instar.reporting.sender import send  # noqa: PLC0415 -- only who is configured loads it

    found = Reported(inputs=list(_INPUTS.get()), wanted=True)
    first = Notice(
        kind="START",
        at=_now(),
        run_id=str(uuid.uuid4()),
        job=f"{name}.{operation}",
        inputs=tuple(found.inputs),
        outputs=(RunOutput(namespace, name),) if writes else (),
        work=work,
    )
    send(first)
    try:
        yield found
    except BaseException as error:
        send(replace(first, kind="FAIL", at=_now(), problem=f"{type(error).__name__}: {error}"))
        raise
    send(
        replace(
            first,
            kind="COMPLETE",
            at=_now(),
            inputs=tuple(found.inputs),
            outputs=tuple(found.outputs) or first.outputs,
        )
    )


def _now() -> str:
    return datetime.now(tz=UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
