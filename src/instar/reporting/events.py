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
from instar.schema import Field, Schema, Struct
from instar.schema.algebra import member_fields
from instar.schema.text import format_type

if TYPE_CHECKING:
    from instar.reporting.run import Notice, RunInput, RunOutput

__all__ = ["as_event"]

_STEPS: Final = ("IDENTITY", "TRANSFORMATION", "AGGREGATION")

_PRODUCER: Final = f"urn:x-instar:{__version__}"


def as_event(notice: Notice) -> RunEvent:
    """Return the event that says what a notice says."""
    run: dict[str, RunFacet] = {}
    if notice.problem is not None:
        run["errorMessage"] = error_message_run.ErrorMessageRunFacet(notice.problem, "PYTHON")
    job: dict[str, JobFacet] = {
        "jobType": job_type_job.JobTypeJobFacet("BATCH", "INSTAR", jobType=notice.work)
    }
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
        columns = _columns(output.schema, inputs)
        if columns is not None:
            facets["columnLineage"] = columns
    if output.version is not None:
        facets["version"] = dataset_version_dataset.DatasetVersionDatasetFacet(output.version)
    if (output.rows, output.parts, output.size) != (None, None, None):
        statistics["outputStatistics"] = output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet(
            rowCount=output.rows, size=output.size, fileCount=output.parts
        )
    return OutputDataset(output.namespace, output.name, facets=facets, outputFacets=statistics)


def _columns(schema: Schema, inputs: tuple[RunInput, ...]) -> Any:  # noqa: ANN401 -- a facet
    """Say what each column is made from, as far as it is known; None if nothing is."""
    made = column_lineage_dataset
    names = {field.name.lower(): field.name for field in schema.fields}
    found: dict[str, dict[tuple[str, str, str], list[str]]] = {}
    for one in inputs:
        same = [(name, name, "IDENTITY") for name in names.values()] if one.same_columns else []
        for column, source, how in (*same, *one.columns):
            if column.lower() in names:
                sources = found.setdefault(names[column.lower()], {})
                sources.setdefault((one.namespace, one.name, source), []).append(how)
    if not found:
        return None
    return made.ColumnLineageDatasetFacet(
        fields={
            column: made.Fields(
                [
                    made.InputField(
                        *source, [made.Transformation(type="DIRECT", subtype=how) for how in hows]
                    )
                    for source, hows in sources.items()
                ]
            )
            for column, sources in found.items()
        }
    )


def _field(field: Field, position: int) -> schema_dataset.SchemaDatasetFacetFields:
    members = member_fields(field.type, keys=False)
    return schema_dataset.SchemaDatasetFacetFields(
        field.name,
        "struct" if isinstance(field.type, Struct) else format_type(field.type),
        ordinal_position=position,
        fields=[_field(member, at + 1) for at, member in enumerate(members)],
    )
