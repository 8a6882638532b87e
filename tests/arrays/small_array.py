"""An array of six disks, quick to simulate, of which little is uncertain; a variant of ps6100xv."""

from __future__ import annotations

from typing import Any

import tomlkit

from assay.targets.arrays.model.configuration import Configuration
from assay.targets.arrays.model.model_file import load_model, read_model

UNCERTAIN = {"disk.command_overhead": 0.5, "disk.seek_full": 0.2, "cache.dirty_low": 0.1}
"""Parameters that may be off, and by how much; of all others the file is sure."""
STRUCTURE = (("disks", "count", 6), ("disks", "spares", 0), ("disk", "capacity", 600))


def small_text(uncertain: dict[str, float] = UNCERTAIN, **values: Any) -> str:
    """The model file; `values` are by dotted name with `__` for the dot, in the file's units."""
    document: Any = tomlkit.parse(load_model("ps6100xv").text)
    document["name"] = "small"
    del document["calibration"]
    changed = [*STRUCTURE, *((*dotted.split("__"), value) for dotted, value in values.items())]
    for section, key, value in changed:
        document[section][key]["value"] = value
    for policy, key, value in (("50", "set_disks", 3), ("6", "set_disks", 6), ("5", "spares", 0)):
        document["raid"]["policy"][policy][key]["value"] = value
    for section, keys in document.items():
        for key, parameter in keys.items() if isinstance(keys, dict) else ():
            if "unit" in parameter:
                parameter["plus_minus"] = uncertain.get(f"{section}.{key}", 0)
    return tomlkit.dumps(document)


def small(**options: str) -> Configuration:
    """The array with options; two volumes unless `volumes` says otherwise."""
    model = read_model(small_text().encode(), origin="small.toml")
    return Configuration(model=model, options={"volumes": "2", **options})
