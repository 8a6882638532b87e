"""Reading targets that serve an array for a run: `array:NAME?...`, and `embedded+array:NAME?...` for databases."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from assay.base.errors import UsageError
from assay.base.reading import nearest
from assay.base.units import parse_bytes
from assay.targets.arrays.live.request import DURABILITIES, Durability, ServeRequest
from assay.targets.arrays.model.options import CLOUD_OPTIONS, HOST_FLASH_OPTIONS, OPTIONS, parse_model_target

SCHEME = "array"

OWN_OPTIONS: Mapping[str, str] = {
    "at": "folder that shows the volumes, such as at=/tmp/group; assay-arrays/NAME below this folder without it",
    "size": "size of all volumes together, such as size=20G; 1 GiB each without it",
    "durability": f"what survives a power cut: {', '.join(DURABILITIES)} (about flushes)",
    "sums": "yes or no: whether blocks have sums; without it as the layout has them",
    "room": "most that the store may take, such as room=10G",
    "realtime": "yes or no: whether answers wait with SCHED_FIFO",
}
"""Options of a served array beside those of the model."""

ROOT = "assay-arrays"
"""Where arrays are kept that have no place of their own."""
NAME_MAX = 80


@dataclass(frozen=True, kw_only=True)
class ServedSpec:
    """An array that a run serves, as asked; nothing is there yet.

    Attributes
    ----------
    name, options
        The model, and its options as written.
    folder
        Where its volumes are shown; absolute.
    own
        Options of the service, as written.
    """

    name: str
    options: Mapping[str, str] = field(default_factory=dict)
    folder: Path
    own: Mapping[str, str] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The array as it means the same from every folder."""
        written = {**self.options, **self.own, "at": str(self.folder)}
        return f"{self.name}?" + "&".join(f"{key}={value}" for key, value in written.items())

    @property
    def store(self) -> Path:
        """Where the disks' files lie."""
        return self.folder.parent / f"{self.folder.name}.store"

    @property
    def mounts(self) -> Path:
        """Where file systems on the volumes are mounted."""
        return self.folder.parent / f"{self.folder.name}.mnt"

    def request(self) -> ServeRequest:
        """The request that the service is started with.

        Raises
        ------
        UsageError
            The model or an option is refused.
        """
        own = self.own
        found: list[Durability] = [one for one in DURABILITIES if one == own.get("durability", "battery")]
        if not found:
            raise UsageError(
                f"array: option 'durability': {own['durability']!r} is unknown; accepted: {', '.join(DURABILITIES)}"
            )
        request = ServeRequest(
            target=f"array:{self.name}" + _query(self.options),
            folder=self.folder,
            store=self.store,
            size_bytes=parse_bytes(own["size"], what="array: option 'size'") if "size" in own else None,
            durability=found[0],
            sums=_yes_or_no("sums", own["sums"]) if "sums" in own else None,
            realtime=_yes_or_no("realtime", own.get("realtime", "no")),
            room_bytes=parse_bytes(own["room"], what="array: option 'room'") if "room" in own else None,
        )
        request.configuration()
        return request

    def volumes(self) -> list[tuple[str, str, int]]:
        """Name, role and bytes of each volume.

        Raises
        ------
        UsageError
            As `request`.
        """
        array = self.request().configuration()
        return [(name, role or "data", size) for (name, size), role in zip(array.volumes, array.roles, strict=True)]


def parse_served(text: str, *, scheme: str = SCHEME, volume_size: str | None = None) -> ServedSpec:
    """The array of `array:NAME?...`; options that are none of the service are the model's.

    Parameters
    ----------
    volume_size
        Of each volume where the target says nothing.

    Raises
    ------
    UsageError
        There is no name, or an option is not understood.

    Examples
    --------
    >>> spec = parse_served("array:ps6100xv?raid=10&size=4G&at=/srv/group")
    >>> spec.name, dict(spec.options), dict(spec.own), str(spec.folder)
    ('ps6100xv', {'raid': '10'}, {'size': '4G'}, '/srv/group')
    """
    rest = text.partition(":")[2] if text.lower().startswith(f"{scheme}:") else text
    if not rest.partition("?")[0]:
        raise UsageError(f"{scheme}: has no name; write {scheme}:ps6100xv, see `assay model list`")
    name, options = parse_model_target(rest)
    # Those of the array's structure are looked at once the array is read.
    known = list(dict.fromkeys([*OWN_OPTIONS, *OPTIONS, *HOST_FLASH_OPTIONS, *CLOUD_OPTIONS]))
    for key in options:
        if key not in known and "." not in key:
            close = nearest(key, known)
            hint = f"did you mean {close!r}? " if close else ""
            raise UsageError(f"{scheme}: has no option {key!r}; {hint}accepted: {', '.join(known)}")
    own = {key: options.pop(key) for key in list(options) if key in OWN_OPTIONS}
    at = own.pop("at", None)
    spec = ServedSpec(name=name, options=options, folder=Path(), own=own)
    folder = Path(at).expanduser().absolute() if at is not None else Path(ROOT).absolute() / _folder_name(spec)
    if volume_size is not None and not {"size", "volume_size", "fill"} & {*own, *options}:
        spec = replace(spec, options={**options, "volume_size": volume_size})
    return replace(spec, folder=folder)


def _folder_name(spec: ServedSpec) -> str:
    """The same folder for the same array and volumes, so that what is loaded is there again for the next run."""
    shaping = {**spec.options, **{key: spec.own[key] for key in ("size", "sums") if key in spec.own}}
    words = [Path(spec.name).stem, *(f"{key}={value}" for key, value in shaping.items())]
    name = re.sub(r"[^A-Za-z0-9.=]+", "-", ",".join(words)).strip("-.")
    if len(name) <= NAME_MAX:
        return name
    return f"{name[: NAME_MAX - 9]}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def _query(options: Mapping[str, str]) -> str:
    return "?" + "&".join(f"{key}={value}" for key, value in options.items()) if options else ""


def _yes_or_no(key: str, text: str) -> bool:
    if text not in ("yes", "no"):
        raise UsageError(f"array: option {key!r}: {text!r} is neither yes nor no")
    return text == "yes"


def is_served_array(text: str) -> bool:
    """Whether a target is storage on an array that the run serves.

    Examples
    --------
    >>> is_served_array("array:ps6100xv"), is_served_array("model:ps6100xv")
    (True, False)
    """
    return text.lower().startswith(f"{SCHEME}:")
