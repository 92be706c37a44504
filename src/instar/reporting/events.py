"""Notices as events of OpenLineage, with the client's own classes."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Final

from openlineage.client.event_v2 import InputDataset, Job, OutputDataset, Run, RunEvent, RunState
from openlineage.client.facet_v2 import (
    JobFacet,
    RunFacet,
    column_lineage_dataset,
    dataset_version_dataset,
    error_message_run,
    job_type_job,
    output_statistics_output_dataset,
    schema_dataset,
)

from instar import __version__
from instar.schema import Field, List, Map, Schema, Struct, Type
from instar.schema.text import format_type

if TYPE_CHECKING:
    from instar.reporting.run import Notice, RunInput, RunOutput

__all__ = ["as_event"]

_PRODUCER: Final = f"urn:x-instar:{__version__}"


def as_event(notice: Notice) -> RunEvent:
    """Return the event that says what a notice says."""
    run: dict[str, RunFacet] = {}
    if notice.problem is not None:
        run["errorMessage"] = error_message_run.ErrorMessageRunFacet(notice.problem, "PYTHON")
    job: dict[str, JobFacet] = {"jobType": job_type_job.JobTypeJobFacet("BATCH", "INSTAR", jobType="COMMIT")}
    return RunEvent(
        eventTime=notice.at,
        producer=_PRODUCER,
        eventType=RunState[notice.kind],
        run=Run(notice.run_id, run),
        job=Job(os.environ.get("OPENLINEAGE_NAMESPACE") or "instar", notice.job, job),
        inputs=[InputDataset(one.namespace, one.name) for one in notice.inputs],
        outputs=[_output(one, notice.inputs) for one in notice.outputs],
    )


def _output(output: RunOutput, inputs: tuple[RunInput, ...]) -> OutputDataset:
    facets: dict[str, Any] = {}
    statistics: dict[str, Any] = {}
    if output.schema is not None:
        facets["schema"] = schema_dataset.SchemaDatasetFacet(
            fields=[_field(field, at + 1) for at, field in enumerate(output.schema.fields)]
        )
        columns = _columns(output.schema, [one for one in inputs if one.same_columns])
        if columns is not None:
            facets["columnLineage"] = columns
    if output.version is not None:
        facets["version"] = dataset_version_dataset.DatasetVersionDatasetFacet(output.version)
    if output.rows is not None:
        statistics["outputStatistics"] = output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet(
            rowCount=output.rows
        )
    return OutputDataset(output.namespace, output.name, facets=facets, outputFacets=statistics)


def _columns(schema: Schema, inputs: list[RunInput]) -> Any:  # noqa: ANN401 -- a facet
    if not inputs:
        return None
    made = column_lineage_dataset
    identity = [made.Transformation(type="DIRECT", subtype="IDENTITY")]
    return made.ColumnLineageDatasetFacet(
        fields={
            field.name: made.Fields(
                [made.InputField(one.namespace, one.name, field.name, identity) for one in inputs]
            )
            for field in schema.fields
        }
    )


def _field(field: Field, position: int) -> schema_dataset.SchemaDatasetFacetFields:
    members = _members(field.type)
    return schema_dataset.SchemaDatasetFacetFields(
        field.name,
        "struct" if isinstance(field.type, Struct) else format_type(field.type),
        ordinal_position=position,
        fields=[_field(member, at + 1) for at, member in enumerate(members)],
    )


def _members(type_: Type) -> tuple[Field, ...]:
    match type_:
        case Struct(fields=fields):
            return fields
        case List(element=element):
            return _members(element)
        case Map(value=value):
            return _members(value)
    return ()
