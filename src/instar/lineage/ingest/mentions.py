"""What an event names: its datasets with their roles, and the ids of the versions and reads that it makes."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from instar.lineage.events import EventDataset, EventKind, OpenLineageEvent
from instar.lineage.ids import dataset_id, job_id, run_uuid, stable_id

if TYPE_CHECKING:
    from uuid import UUID

    from instar.lineage.schema_content import SchemaContent

__all__ = ["Mention", "Mentions"]


class Mention(NamedTuple):
    """A dataset that an event names in one role; `made` is the id of the version or read that it makes."""

    uuid: UUID
    dataset: EventDataset
    is_input: bool
    made: UUID | None
    schema: SchemaContent | None


class Mentions:
    """Everything that an event names, each once."""

    def __init__(self, event: OpenLineageEvent) -> None:
        self.event = event
        self.job_uuid = job_id(event.job.namespace, event.job.name) if event.job else None
        self.run_uuid = run_uuid(event.run_id) if event.run_id is not None else None
        parent = event.parent
        self.parent_uuid = job_id(parent.namespace, parent.name) if parent else None
        outputs = [*event.outputs, *([event.dataset] if event.dataset else [])]
        self.inputs = [self._mention(dataset, is_input=True) for dataset in _merged(event.inputs)]
        self.outputs = [self._mention(dataset, is_input=False) for dataset in _merged(outputs)]
        self.names = self._names()

    @property
    def datasets(self) -> list[Mention]:
        """The inputs and the outputs."""
        return [*self.inputs, *self.outputs]

    def _mention(self, dataset: EventDataset, *, is_input: bool) -> Mention:
        uuid, schema = dataset_id(dataset.namespace, dataset.name), dataset.schema()
        return Mention(uuid, dataset, is_input, self._made(uuid, is_input, schema is not None), schema)

    def _made(self, uuid: UUID, is_input: bool, has_schema: bool) -> UUID | None:  # noqa: FBT001 -- private
        """Return the id of what a mention makes: a run makes one of each, other events one for each time."""
        kind = "read" if is_input else "version"
        if self.run_uuid is not None:
            return stable_id(kind, self.run_uuid, uuid)
        if self.event.kind is EventKind.DATASET or has_schema:
            return stable_id(kind, self.job_uuid, uuid, self.event.at)
        return None  # a job that only says what it reads and writes has edges, and nothing else

    def _names(self) -> dict[UUID, tuple[str, str]]:
        """Return every name of a dataset, also those in facets."""
        names = [(mention.dataset.namespace, mention.dataset.name) for mention in self.datasets]
        for mention in self.datasets:
            names += [(link.namespace, link.name) for link in mention.dataset.symlinks()]
        for mention in self.outputs:
            for made in mention.dataset.columns().values():
                names += [(field.namespace, field.name) for field in made.input_fields or []]
        return {dataset_id(namespace, name): (namespace, name) for namespace, name in names}

    def symlinks(self) -> list[tuple[UUID, UUID, str | None]]:
        """Return the pairs of names that mean the same dataset."""
        return [
            (mention.uuid, alias, link.type)
            for mention in self.datasets
            for link in mention.dataset.symlinks()
            if (alias := dataset_id(link.namespace, link.name)) != mention.uuid
        ]


def _merged(datasets: list[EventDataset] | tuple[EventDataset, ...]) -> list[EventDataset]:
    """Let an event name a dataset twice: later facets replace earlier ones."""
    found: dict[tuple[str, str], EventDataset] = {}
    for dataset in datasets:
        key = dataset.namespace, dataset.name
        if key in found:
            first = found[key]
            found[key] = msgspec.structs.replace(
                first,
                facets={**(first.facets or {}), **(dataset.facets or {})},
                input_facets={**(first.input_facets or {}), **(dataset.input_facets or {})},
                output_facets={**(first.output_facets or {}), **(dataset.output_facets or {})},
            )
        else:
            found[key] = dataset
    return list(found.values())
