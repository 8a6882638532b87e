"""Golden files: compared as they are, rewritten when ASSAY_UPDATE_GOLDEN=1."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "golden"


def check_golden(name: str, text: str) -> None:
    path = FOLDER / name
    if os.environ.get("ASSAY_UPDATE_GOLDEN") == "1":
        FOLDER.mkdir(exist_ok=True)
        path.write_text(text)
    assert path.exists(), f"no golden file {name}; set ASSAY_UPDATE_GOLDEN=1 to write it"
    assert text == path.read_text(), f"{name} changed; look at the report, then set ASSAY_UPDATE_GOLDEN=1"


def stable_html(page: str) -> str:
    """Page without its style, drawings and run id, one element a line."""
    page = re.sub(r"<style>.*?</style>", "<style/>", page, flags=re.S)
    page = re.sub(r"<svg .*?</svg>", "<svg/>", page, flags=re.S)
    page = re.sub(r"\d{8}-\d{6}-[a-z]+-[0-9a-f]{6}", "RUN-ID", page)
    return "\n".join(line.strip() for line in page.splitlines() if line.strip()) + "\n"


def stable_chart(specification: dict[str, Any]) -> str:
    """Specification without its data's values: marks, encodings, scales and the shape of the data."""

    # Data that several layers share stand at the top under a name made from their hash.
    datasets: dict[str, list[dict[str, Any]]] = specification.get("datasets", {})

    def stable(value: Any) -> Any:
        if isinstance(value, dict):
            rows = datasets.get(str(value.get("name")), value.get("values"))
            if isinstance(rows, list) and rows and isinstance(rows[0], dict):
                return {"columns": sorted(rows[0]), "rows": len(rows)}
            left_out = ("$schema", "config", "usermeta", "datasets")
            return {key: stable(item) for key, item in value.items() if key not in left_out}
        if isinstance(value, list):
            return [stable(item) for item in value]
        return float(f"{value:.4g}") if isinstance(value, float) else value

    return json.dumps(stable(specification), indent=1, sort_keys=True) + "\n"
