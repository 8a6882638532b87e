"""Facts of arrays: of models, as their target and description file say."""

from __future__ import annotations

from collections import Counter
from typing import Any

from assay.insight.rules.rule import Subject
from assay.targets.arrays.model.configuration import Configuration, configure
from assay.targets.arrays.model.options import parse_model_target


def _modelled(text: str) -> tuple[str, Configuration]:
    """Name and configuration of a target `model:NAME?...`.

    Raises
    ------
    UsageError
        The target is wrong.
    """
    name, options = parse_model_target(text)
    return name, configure(name, options)


def array_subjects(text: str) -> list[Subject]:
    """The array of a target `model:NAME?...`, each pool of its own, and the volumes of each role.

    Raises
    ------
    UsageError
        The target is wrong.
    """
    name, whole = _modelled(text)
    found = []
    for place, pool in enumerate(whole.pools):
        label = text if len(whole.pools) == 1 else f"{text}, pool {place + 1}"
        found.append(_array(pool, whole, Subject("array", label, anchor=name)))
        for role in dict.fromkeys(role for role in pool.roles if role):
            volume = Subject("volume", f"{label}, {role}", anchor=name)
            volume.know("role", role, text)
            volume.know("raid", pool.raid, text)
            found.append(volume)
    return found


def topology_subjects(text: str) -> list[Subject]:
    """Layout and network as the topology of a model says: what a site says of its own.

    Raises
    ------
    UsageError
        The target is wrong.
    """
    name, whole = _modelled(text)
    layout = Subject("layout", text, anchor=name, otherwise="the model does not say it")
    volumes: dict[str, list[str]] = {}
    for place, pool in enumerate(whole.pools):
        for role, count in Counter(role or "data" for role in pool.roles).items():
            volumes[role] = [f"{role}{number + 1:02d} of pool {place + 1}" for number in range(count)]
            if role in ("data", "log"):
                layout.know(f"{role}_raid", pool.raid, text)
            if role == "log":
                layout.know("log_disk_rpm", _rpm(pool), name)
    for role in ("data", "log", "tempdb"):
        layout.know(f"{role}_devices", volumes.get(role), text)
        layout.lack(f"{role}_devices", f"the model has no volume for {role} (volumes=data:4,log:1)")
    for fact in ("log_raid", "log_disk_rpm"):
        layout.lack(fact, layout.missing.get("log_devices", ""))
    network = Subject("network", text, anchor=name, otherwise="a model has no switches")
    network.know("storage_network_apart", True, "the model: its links carry nothing but I/O")
    return [layout, network]


def _rpm(pool: Configuration) -> int:
    try:
        revolution = pool.value("disk.revolution")
    except KeyError:
        return 0
    return round(60e9 / revolution) if revolution else 0


def _array(pool: Configuration, whole: Configuration, array: Subject) -> Subject:
    target, file = "the target's options", array.anchor

    def value(dotted: str) -> Any:
        try:
            return pool.value(dotted)
        except KeyError:
            return None

    array.know("raid", pool.raid, target)
    array.know("state", whole.option("state", "healthy") or "healthy", target)
    array.know("fill", pool.fill, target)
    array.know("members", pool.members, target)
    array.know("pool_bytes", pool.usable_bytes, file)
    array.know("free_bytes", max(pool.usable_bytes - pool.used_bytes, 0), file)
    array.know("spares", value("disks.spares"), file)
    array.know("disk_bytes", value("disk.capacity"), file)
    array.know("disk_rpm", _rpm(pool), file)
    array.know("write_anywhere", value("layout.write_run") is not None, file)
    array.know("read_realloc", value("layout.read_realloc"), target)
    array.know("write_run", value("layout.write_run"), target)
    array.know("paths", pool.host_ports, file)
    array.know(
        "path_policy",
        str(whole.option("path_policy", None) or value("links.path_policy") or "").replace("_", "-") or None,
        file,
    )
    array.know("initiator_limit", str(whole.option("initiator_limit", None) or "none"), target)
    array.know("write_back", value("cache.write_back"), file)
    transfer = whole.option("max_transfer", None) or value("links.max_transfer")
    array.know("max_transfer_bytes", transfer if isinstance(transfer, int) and transfer else None, file)
    array.lack(
        "max_transfer_bytes", "the initiator splits nothing" if not transfer else "its largest transfer is not known"
    )
    return array
