"""Writes the JSON Schemas of results with the keys of every kind: `python -m assay.workloads.schemas docs/schemas`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from assay.record.schemas import document_schema, manifest_schema
from assay.workloads.registry import workloads

SCHEMAS = {"document.schema.json": document_schema, "manifest.schema.json": manifest_schema}


def schema_texts() -> dict[str, str]:
    """Content of each file by its name."""
    assert workloads(), "kinds join their shapes as they are registered"
    return {name: json.dumps(make(), indent=1) + "\n" for name, make in SCHEMAS.items()}


if __name__ == "__main__":
    for name, text in schema_texts().items():
        Path(sys.argv[1], name).write_text(text)
