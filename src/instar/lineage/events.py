"""OpenLineage events: what a request body says, checked and read into values before anything is stored.

A producer may send any facet. Those that the service reads itself (schema, symlinks, parent and column
lineage) must have the form that the specification gives them; all others are kept as they are.
"""

from __future__ import annotations

from datetime import UTC, datetime
from enum import Enum
from typing import Annotated, Any, Final, TypeVar
from uuid import UUID

import msgspec
from msgspec import Meta, Struct

from instar.errors import InvalidEventError
from instar.lineage.ids import content_id
from instar.lineage.schema_content import SchemaContent

__all__ = [
    "EventDataset",
    "EventJob",
    "EventKind",
    "InputField",
    "OpenLineageEvent",
    "RunState",
    "Symlink",
    "decode_event",
    "parse_time",
]

MAX_NAME: Final = 2048
MAX_FACET_NAME: Final = 512
MAX_DATASETS: Final = 5000  # of one event: all others wait until it is stored
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
# A day less than dates can say, so that a moment before or after, or in another zone, is a date too.
_FIRST: Final = datetime(1, 1, 2, tzinfo=UTC) - _EPOCH
_LAST: Final = datetime(9999, 12, 31, tzinfo=UTC) - _EPOCH
_STAMP_OFFSET: Final = 1 << 62

Name = Annotated[str, Meta(min_length=1, max_length=MAX_NAME)]
T = TypeVar("T", bound=Struct)
Facets = dict[str, dict[str, Any] | None]


class EventKind(Enum):
    """What an event is about."""

    RUN = "run"
    DATASET = "dataset"
    JOB = "job"


class RunState(Enum):
    """The state of a run, and the event type that brings it about."""

    NEW = None
    RUNNING = "START"
    COMPLETED = "COMPLETE"
    FAILED = "FAIL"
    ABORTED = "ABORT"

    @property
    def terminal(self) -> bool:
        """Whether nothing more is expected."""
        return self in {RunState.COMPLETED, RunState.FAILED, RunState.ABORTED}


_STATES: Final = {
    "START": RunState.RUNNING,
    "RUNNING": RunState.RUNNING,
    "COMPLETE": RunState.COMPLETED,
    "FAIL": RunState.FAILED,
    "ABORT": RunState.ABORTED,
    "OTHER": None,
}
_RANKS: Final = {"START": 1, "RUNNING": 2}
_LAST_RANK: Final = 3
_KINDS: Final = {"RunEvent": EventKind.RUN, "DatasetEvent": EventKind.DATASET, "JobEvent": EventKind.JOB}


class Symlink(Struct, frozen=True):
    """Another name of a dataset."""

    namespace: Name
    name: Name
    type: str | None = None


class InputField(Struct, frozen=True, rename="camel"):
    """A column that another column is made from."""

    namespace: Name
    name: Name
    field: Name
    transformations: list[dict[str, Any]] | None = None


class _OutputField(Struct, frozen=True, rename="camel"):
    input_fields: list[InputField] | None = None
    transformation_type: str | None = None
    transformation_description: str | None = None


class _ColumnLineage(Struct, frozen=True):
    fields: dict[Name, _OutputField] | None = None


class _SchemaField(Struct, frozen=True):
    name: Name
    type: str | None = None
    fields: list[_SchemaField] | None = None


class _Schema(Struct, frozen=True):
    fields: list[_SchemaField] | None = None


class _Symlinks(Struct, frozen=True):
    identifiers: list[Symlink] | None = None


class EventJob(Struct, frozen=True):
    """A job as an event names it."""

    namespace: Name
    name: Name
    facets: Facets | None = None


class _Parent(Struct, frozen=True):
    job: EventJob | None = None


class EventDataset(Struct, frozen=True, rename="camel"):
    """A dataset as an event names it, with the facets that the service reads itself."""

    namespace: Name
    name: Name
    facets: Facets | None = None
    input_facets: Facets | None = None
    output_facets: Facets | None = None

    def schema(self) -> SchemaContent | None:
        """Return the fields; None if the event does not say."""
        facet = self._facet("schema", _Schema)
        if facet is None or not facet.fields:
            return None
        return SchemaContent.from_facet(msgspec.to_builtins(facet.fields))

    def symlinks(self) -> list[Symlink]:
        """Return the other names."""
        facet = self._facet("symlinks", _Symlinks)
        return list(facet.identifiers or []) if facet is not None else []

    def columns(self) -> dict[str, _OutputField]:
        """Return what the columns are made from."""
        facet = self._facet("columnLineage", _ColumnLineage)
        return dict(facet.fields or {}) if facet is not None else {}

    def _facet(self, name: str, kind: type[T]) -> T | None:
        facet = (self.facets or {}).get(name)
        if not facet or facet.get("_deleted") is True:
            return None
        try:
            return msgspec.convert(facet, kind)
        except msgspec.ValidationError as error:
            raise InvalidEventError(f"the facet {name} of dataset {self.name!r}: {error}") from None


class _Run(Struct, frozen=True, rename="camel"):
    run_id: Name
    facets: Facets | None = None


class _Body(Struct, frozen=True, rename="camel"):
    """Whatever the three kinds of events have; which of it must be there depends on the kind."""

    event_time: str
    event_type: str | None = None
    schema_url: str | None = msgspec.field(default=None, name="schemaURL")
    run: _Run | None = None
    job: EventJob | None = None
    dataset: EventDataset | None = None
    inputs: list[EventDataset] | None = None
    outputs: list[EventDataset] | None = None


class OpenLineageEvent(Struct, frozen=True):
    """One event. `uuid` is its content; `at` is its time in microseconds since 1970."""

    uuid: UUID
    kind: EventKind
    at: int
    event_type: str | None
    run_id: str | None
    run_facets: Facets
    job: EventJob | None
    dataset: EventDataset | None
    inputs: tuple[EventDataset, ...]
    outputs: tuple[EventDataset, ...]
    payload: bytes

    @property
    def state(self) -> RunState | None:
        """The state that the event puts its run into, or None if it leaves it alone."""
        return _STATES[self.event_type] if self.event_type else None

    @property
    def stamp(self) -> str:
        """Text that sorts events by time, then by type, then by content: no two different ones are equal."""
        rank = _RANKS.get(self.event_type or "OTHER", 0 if self.state is None else _LAST_RANK)
        return f"{self.at + _STAMP_OFFSET:016x}{rank}{self.uuid.hex[:16]}"

    @property
    def state_stamp(self) -> str:
        """The same for the state of the run: what is terminal comes last, whatever its time."""
        return f"{int(self.state is not None and self.state.terminal)}{self.stamp}"

    @property
    def parent(self) -> EventJob | None:
        """The job whose run started this one."""
        facet = self.run_facets.get("parent") or self.run_facets.get("parentRun")
        if not facet:
            return None
        try:
            return msgspec.convert(facet, _Parent).job
        except msgspec.ValidationError as error:
            raise InvalidEventError(f"the facet parent of the run: {error}") from None

    @property
    def is_streaming(self) -> bool:
        """Whether the event says that its run never ends."""
        kind = ((self.job.facets if self.job else None) or {}).get("jobType") or {}
        return str(kind.get("processingType")).upper() == "STREAMING"


def parse_time(text: str) -> int:
    """Read a time in ISO 8601 as microseconds since 1970; without a zone, it is UTC."""
    try:
        moment = datetime.fromisoformat(text if "T" in text else "")  # a date alone is no time
        moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
        delta = moment - _EPOCH
    except (ValueError, OverflowError, TypeError):
        raise InvalidEventError(f"{text!r} is not a time: write it as in 2026-11-15T12:00:00Z") from None
    if not _FIRST < delta < _LAST:
        raise InvalidEventError(f"{text!r} is too early or too late for a time")
    return (delta.days * 86_400 + delta.seconds) * 1_000_000 + delta.microseconds


def decode_event(value: object) -> OpenLineageEvent:
    """Read one event from decoded JSON, or raise with the reason why it is none."""
    try:
        body = msgspec.convert(value, _Body)
        payload = msgspec.json.encode(value, order="sorted")
        event = _read(body, payload)
        _check_facets(event)
    except msgspec.ValidationError as error:
        raise InvalidEventError(str(error)) from None
    except RecursionError:
        raise InvalidEventError("it is nested too deeply") from None
    return event


def _read(body: _Body, payload: bytes) -> OpenLineageEvent:
    kind = _kind(body)
    needs: dict[EventKind, dict[str, object]] = {
        EventKind.RUN: {"run": body.run, "job": body.job},
        EventKind.DATASET: {"dataset": body.dataset},
        EventKind.JOB: {"job": body.job},
    }
    missing = [name for name, found in needs[kind].items() if found is None]
    if missing:
        raise InvalidEventError(f"a {kind.value} event needs {' and '.join(missing)}")
    is_run = kind is EventKind.RUN
    event_type = body.event_type.upper() if is_run and body.event_type is not None else None
    if event_type is not None and event_type not in _STATES:
        raise InvalidEventError(f"eventType {body.event_type!r} is none of {', '.join(_STATES)}")
    return OpenLineageEvent(
        uuid=content_id(payload),
        kind=kind,
        at=parse_time(body.event_time),
        event_type=event_type,
        run_id=body.run.run_id if is_run and body.run else None,
        run_facets=(body.run.facets or {}) if is_run and body.run else {},
        job=body.job if kind is not EventKind.DATASET else None,
        dataset=body.dataset if kind is EventKind.DATASET else None,
        inputs=tuple(body.inputs or ()) if kind is not EventKind.DATASET else (),
        outputs=tuple(body.outputs or ()) if kind is not EventKind.DATASET else (),
        payload=payload,
    )


def _kind(body: _Body) -> EventKind:
    """Take the word of the schema's URL; without one, see what there is."""
    last = (body.schema_url or "").rsplit("/", 1)[-1]
    if last in _KINDS:
        return _KINDS[last]
    if last.endswith("Event"):
        raise InvalidEventError(f"schemaURL names {last!r}, which is none of {', '.join(_KINDS)}")
    if body.run is None and body.dataset is not None:
        return EventKind.DATASET
    return EventKind.RUN if body.run is not None or body.job is None else EventKind.JOB


def _check_facets(event: OpenLineageEvent) -> None:
    """Read everything that will be read later, so that nothing is half stored when it turns out to be bad."""
    names = [event.run_id or ""]
    everything = [*event.inputs, *event.outputs, *([event.dataset] if event.dataset else [])]
    if len(everything) > MAX_DATASETS:
        raise InvalidEventError(f"it names {len(everything)} datasets, and may name {MAX_DATASETS}")
    groups = [event.run_facets, event.job.facets if event.job else None]
    for dataset in everything:
        schema = dataset.schema()
        names += [dataset.namespace, dataset.name]
        names += [field.encode() for field in schema.fields] if schema else []
        names += [
            text for link in dataset.symlinks() for text in (link.namespace, link.name, link.type or "")
        ]
        for column, made in dataset.columns().items():
            names.append(column)
            names += [made.transformation_type or "", made.transformation_description or ""]
            names += [
                text for one in made.input_fields or [] for text in (one.namespace, one.name, one.field)
            ]
        groups += [dataset.facets, dataset.input_facets, dataset.output_facets]
    for job in (event.job, event.parent):
        names += [job.namespace, job.name] if job else []
    for facets in groups:
        names += list(facets or {})
        too_long = next((name for name in facets or {} if len(name) > MAX_FACET_NAME), None)
        if too_long is not None:
            raise InvalidEventError(f"the name of a facet has more than {MAX_FACET_NAME} characters")
    bad = next((name for name in names if "\0" in name or "\\u0000" in name), None)
    if bad is not None:
        raise InvalidEventError(f"{bad!r} contains a zero character")
