"""JSON Schemas of results, made from the types that are checked on reading; `assay schema` prints them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from typing_extensions import TypedDict

from assay.record.shapes.acceptance import AcceptanceTest
from assay.record.shapes.document import Document
from assay.record.shapes.kinds import all_shapes
from assay.record.shapes.manifest import Manifest
from assay.record.shapes.point import Point
from assay.record.shapes.sizing import Sizing
from assay.record.shapes.study import Study

VERSION = 1
"""Version of the schemas, which their `$id` holds."""

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def schema_id(name: str) -> str:
    """The name of a schema that stays the same, whatever prints it.

    Examples
    --------
    >>> schema_id("point")
    'urn:assay:schema:point:1'
    """
    return f"urn:assay:schema:{name}:{VERSION}"


def manifest_schema() -> JsonSchemaValue:
    """Schema of `run.json`: the keys of every run, and those of each kind of workload that is registered."""
    return _joined("Manifest", [Manifest, *(shapes.manifest for shapes in all_shapes())])


def point_schema() -> JsonSchemaValue:
    """Schema of a line of `points.jsonl`: the keys of every point, and those of each kind of workload."""
    return _joined("Point", [Point, *(shapes.point for shapes in all_shapes())])


def study_schema() -> JsonSchemaValue:
    """Schema of a manifest's `study`."""
    return _joined("Study", [Study])


def sizing_schema() -> JsonSchemaValue:
    """Schema of the `sizing` of `assay size`."""
    return _joined("Sizing", [Sizing])


def contract_schema() -> JsonSchemaValue:
    """Schema of a manifest's `contract`, of `assay contract test`."""
    return _joined("Contract", [AcceptanceTest])


def document_schema() -> JsonSchemaValue:
    """Schema of the JSON document: as the manifest's, with the points."""
    of_points = [
        TypedDict(f"DocumentOf{shapes.point.__name__}", {"points": list[shapes.point]}, total=False)  # type: ignore
        for shapes in all_shapes()
        if shapes.point is not None
    ]
    return _joined("Document", [Document, *(shapes.manifest for shapes in all_shapes()), *of_points])


def event_schema() -> JsonSchemaValue:
    """Schema of a line of `--json-stream`."""
    point, document = {"$ref": schema_id("point")}, {"$ref": schema_id("document")}
    return {
        "$schema": DIALECT,
        "$id": schema_id("event"),
        "title": "Event",
        "oneOf": [
            _event("point", point=point),
            _event("end", document=document),
            _event("repeats", document={"type": "object"}),
        ],
    }


def _event(event: str, **what: object) -> JsonSchemaValue:
    properties = {"event": {"const": event}, **what}
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


class _Untitled(GenerateJsonSchema):
    """Leaves out titles that only repeat the name of their key."""

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002 - as pydantic calls it
        """Never."""
        return False


def _joined(title: str, shapes: Sequence[type | None]) -> JsonSchemaValue:
    """A schema that asks for all of several shapes of one value."""
    adapters = [(shape.__name__, TypeAdapter[Any](shape)) for shape in shapes if shape is not None]
    inputs = [(name, "validation", adapter) for name, adapter in adapters]
    found, rest = TypeAdapter.json_schemas(inputs, schema_generator=_Untitled)  # type: ignore[arg-type]
    schema = {
        "$schema": DIALECT,
        "$id": schema_id(title.lower()),
        "title": title,
        "allOf": [found[name, "validation"] for name, _ in adapters],
        **rest,
    }
    return dict(_with_ends(schema))


def _with_ends(value: Any) -> Any:
    """The schema with patterns as JSON Schema writes them, which has ^ and $ for the ends of a text."""
    if isinstance(value, dict):
        return {_with_ends(key): _with_ends(item) for key, item in value.items()}
    if isinstance(value, str) and value.startswith(r"\A"):
        return value.replace(r"\A", "^").replace(r"\z", "$")
    return [_with_ends(item) for item in value] if isinstance(value, list) else value


SCHEMAS: dict[str, Callable[[], JsonSchemaValue]] = {
    "document": document_schema,
    "manifest": manifest_schema,
    "point": point_schema,
    "event": event_schema,
    "study": study_schema,
    "sizing": sizing_schema,
    "contract": contract_schema,
}
"""The schemas by name."""
