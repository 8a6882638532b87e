"""A modelled array as it is asked for: a model file and options, read as the structure of the array needs it.

A new structure is a module beside `group.py` and a line of `CONFIGURATIONS`.
"""

from __future__ import annotations

from collections.abc import Mapping

from assay.targets.arrays.model.cloud import Cloud
from assay.targets.arrays.model.group import DISKS_MAX, FAILOVER_NS, FILL_USUAL, VOLUMES_USUAL, Configuration, size_text
from assay.targets.arrays.model.host_flash import HostFlash
from assay.targets.arrays.model.model_file import ModelFile, load_model

__all__ = [
    "DISKS_MAX",
    "FAILOVER_NS",
    "FILL_USUAL",
    "VOLUMES_USUAL",
    "Configuration",
    "configuration_of",
    "configure",
    "size_text",
]

CONFIGURATIONS: dict[str, type[Configuration]] = {"group": Configuration, "host-flash": HostFlash, "cloud": Cloud}
"""By the structure that a model file names."""


def configure(name_or_path: str, options: Mapping[str, str] | None = None) -> Configuration:
    """An array of the catalogue or of a file with options of a `model:` target.

    Raises
    ------
    UsageError
        The array, an option or a value is unknown, or they do not go together.

    Examples
    --------
    >>> array = configure("ps6100xv", {"raid": "50", "volumes": "12"})
    >>> array.target_text, len(array.volumes)
    ('model:ps6100xv?raid=50&volumes=12', 12)
    """
    return configuration_of(load_model(name_or_path), options or {})


def configuration_of(model: ModelFile, options: Mapping[str, str]) -> Configuration:
    """A model with options, as its structure reads them.

    Raises
    ------
    UsageError
        As `configure`.
    """
    return CONFIGURATIONS[model.structure](model=model, options=dict(options))
