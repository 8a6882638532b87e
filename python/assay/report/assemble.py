"""Makes the document from the facts of a run: the sections in the order in which a reader decides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from assay.base.units import count_of, format_bytes, format_duration
from assay.document.elements import Document, Place, Section
from assay.document.remarks import Remarks
from assay.document.text import DASH, joined, moment, server_text, shorten
from assay.record.shapes.manifest import Manifest, Volume
from assay.record.source import RunFacts
from assay.report.facts import remarks_of, sections_of, workloads_of
from assay.report.head import headed
from assay.report.sections.acceptance import acceptance_section
from assay.report.sections.array import parameters_section
from assay.report.sections.best_practice import best_practice_section
from assay.report.sections.diagnosis import diagnosis_of, diagnosis_section
from assay.report.sections.imported import imported_section
from assay.report.sections.method import method_section
from assay.report.sections.points import points_section
from assay.report.sections.recording import recording_document
from assay.report.sections.reliability import reliability_document
from assay.report.sections.series import series_section
from assay.report.sections.served_array import served_array_section
from assay.report.sections.sizing import sizing_document
from assay.report.sections.study import study_of, study_section, with_levels
from assay.report.sections.summary import summary_section
from assay.report.sections.verdict import verdict_section
from assay.workloads.capabilities import OnDatabases, Verifying
from assay.workloads.workload import Workload

if TYPE_CHECKING:
    from assay.insight.diagnosis.diagnose import Diagnosis


@dataclass(frozen=True)
class ReportInputs:
    """What a report is made from, besides the facts of the run.

    Attributes
    ----------
    facts
        The run; of a study every workload carries its levels in its name.
    remarks, own
        Remarks and sections of each workload.
    hurts
        The diagnosis, of runs that have one.
    """

    facts: RunFacts
    remarks: Mapping[Workload[Any], Remarks]
    own: Mapping[Workload[Any], Sequence[Section]]
    hurts: Diagnosis | None


def examined(facts: RunFacts) -> ReportInputs:
    """Ask every workload of a run what it has to say."""
    facts = with_levels(facts) if study_of(facts) is not None else facts
    asked = workloads_of(facts)
    remarks = {workload: remarks_of(workload, facts) for workload in asked}
    own = {workload: sections_of(workload, facts) for workload in asked}
    return ReportInputs(facts, remarks, own, diagnosis_of(facts) if _is_diagnosed(facts) else None)


def assemble(facts: RunFacts) -> Document:
    """Build the document of a run; sections without matter are left out."""
    if "reliability" in facts.manifest:
        return reliability_document(facts.manifest)
    if "sizing" in facts.manifest:
        return sizing_document(facts.manifest)
    imported = facts.manifest.get("imported")
    if "recording" in facts.manifest and imported is None:
        return recording_document(facts)
    made = examined(facts)
    facts, remarks, own, hurts = made.facts, made.remarks, made.own, made.hurts
    told, tested = list(remarks.values()), acceptance_section(facts)
    sections = [
        study_section(facts, told),
        tested,
        summary_section(facts, remarks, hurts),
        verdict_section(facts) if tested is None else None,
        imported_section(imported) if imported is not None else None,
        *placed(own, "answer"),
        served_array_section(facts),
        method_section(facts, remarks),
        *placed(own, "detail"),
        *placed(own, "appendix"),
        diagnosis_section(hurts) if hurts is not None else None,
        best_practice_section(facts),
        series_section(facts),
        points_section(facts, told),
        parameters_section(facts.manifest.get("target") or {}),
    ]
    shown = [section for section in sections if section is not None]
    figures = [figure for workload in own for figure in workload.figures]
    return headed(_facts_words(facts), shown, facts.manifest, figures)


def _is_diagnosed(facts: RunFacts) -> bool:
    """Whether a report says where it hurts: of an examination, and of databases, which have tiers."""
    databases = (facts.manifest.get("target") or {}).get("databases")
    return study_of(facts) is None and (facts.manifest.get("verb") == "assess" or bool(databases))


def placed(own: Mapping[Workload[Any], Sequence[Section]], place: Place) -> list[Section]:
    """The sections of all workloads that stand in a place.

    Where storage was measured by itself as well, what a database makes of it follows the details.
    """
    with_storage = any(sections and not isinstance(one, (Verifying, OnDatabases)) for one, sections in own.items())
    found = []
    for workload, sections in own.items():
        is_later = with_storage and isinstance(workload, OnDatabases)
        found += [one for one in sections if ("detail" if is_later and one.place == "answer" else one.place) == place]
    return found


def target_names(facts: RunFacts) -> str:
    """What a run is of, in words."""
    target = facts.manifest.get("target") or {}
    volumes, databases = target.get("volumes") or [], target.get("databases") or []
    if volumes and volumes[0].get("kind") == "model":
        return str(volumes[0].get("model") or "a modelled array")
    volumes = [volume for volume in volumes if volume.get("kind") != "database"]
    if databases and not volumes:
        labels = [shorten(str(database.get("name") or DASH), 30) for database in databases]
        others = [f"{len(labels) - 2} more"] if len(labels) > 3 else labels[2:]
        servers = dict.fromkeys(server_text(database) for database in databases)
        return f"{joined([*labels[:2], *others])} on {joined(servers)}"
    names = list(dict.fromkeys(_volume_name(volume) for volume in volumes))
    if not names:
        return "a target the run does not name"
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    return shorten(names[0], 58) + more


def _volume_name(volume: Volume) -> str:
    """A device by its model, a file by its file system and the device beneath, anything else by its name."""
    own = str(volume.get("name") or DASH)
    model, device, system = volume.get("model"), volume.get("device"), volume.get("file_system")
    disk = f"{model} ({device or own})" if model else str(device or own)
    return f"{str(system).split(' ', 1)[0]} on {disk}" if system else disk


def _took(run: Manifest, started: int | None, ended: int | None) -> str:
    """How long it took, else its status; of what another program measured, who that was."""
    if run.get("imported") is not None:
        return f"measured by {joined(str(name) for name in run['imported'].get('programs') or [])}"
    return f"took {format_duration((ended - started) / 1e9)}" if started and ended else str(run.get("status") or "")


def _host_words(run: Manifest) -> list[str]:
    """The host, or the hosts that the load came from."""
    if hosts := run.get("hosts"):
        return [f"load from {count_of(len(hosts), 'host')}"]
    name = (run.get("host") or {}).get("hostname")
    return [f"host {shorten(str(name), 40)}"] if name else []


def _facts_words(facts: RunFacts) -> list[str]:
    run = facts.manifest
    volumes = (run.get("target") or {}).get("volumes") or []
    size = sum(volume.get("size_bytes") or 0 for volume in volumes)
    paths = [volume["path"] for volume in volumes if volume.get("path") and volume.get("kind") != "database"]
    started, ended = run.get("started_utc_ns"), run.get("ended_utc_ns")
    return [
        f"assay {run.get('verb') or ''}".strip(),
        moment(started),
        _took(run, started, ended),
        *_host_words(run),
        shorten(str(paths[0]), 58) + (f" and {len(paths) - 1} more" if len(paths) > 1 else "") if paths else "",
        format_bytes(size) if size else "",
        count_of(len(facts.points), "point"),
    ]
