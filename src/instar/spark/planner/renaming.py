"""Filters on columns as people call them, as filters on columns as files have them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from instar.spark.planner.columns import Columns
    from instar.spark.planner.interfaces import Interfaces

__all__ = ["renamed"]


def renamed(interfaces: Interfaces, columns: Columns, sequence: Any) -> Any:  # noqa: ANN401 -- Scala sequences
    """Return expressions whose attributes have the names, types and ids that files have."""
    if columns.is_physical:
        return sequence
    gateway = interfaces.gateway
    stored = gateway.schema(columns.stored_json)
    fields = {own["name"]: stored.fields()[at] for at, own in enumerate(columns.shown)}
    return gateway.seq([_renamed(interfaces, fields, sequence.apply(at)) for at in range(sequence.size())])


def _renamed(interfaces: Interfaces, fields: Mapping[str, Any], expression: Any) -> Any:  # noqa: ANN401
    kind = expression.getClass().getSimpleName()
    if kind == "AttributeReference":
        field = fields[expression.name()]
        return interfaces.attribute(
            field.name(),
            field.dataType(),
            field.nullable(),
            field.metadata(),
            expression.exprId(),
            expression.qualifier(),
        )
    children = expression.children()
    if expression.references().isEmpty() or not children.size():
        return expression
    made = [_renamed(interfaces, fields, children.apply(at)) for at in range(children.size())]
    if kind == "GetStructField":  # the member may have another name in files, at the same place
        return interfaces.member(made[0], expression.ordinal(), interfaces.gateway.none())
    return expression.withNewChildren(interfaces.gateway.seq(made))
