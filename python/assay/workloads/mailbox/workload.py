"""The registration of mailboxes: what the pipeline knows of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from assay.base.errors import UsageError
from assay.base.paths import printable
from assay.base.tables import Record
from assay.base.units import format_bytes, format_duration, format_iops
from assay.record.shapes.point import Point
from assay.workloads.capabilities import Foreseen, OverHosts, Reporting, Telling
from assay.workloads.mailbox.core_plan import cache_bytes
from assay.workloads.mailbox.figures import FIGURES, LATENCIES, achieved_words
from assay.workloads.mailbox.job import MailboxJob
from assay.workloads.mailbox.layout import check_layout, layout_meant, place, seats_of_volumes, sizes_needed
from assay.workloads.mailbox.plan import MailboxPlan, with_own_limits
from assay.workloads.mailbox.result import profile, ratios
from assay.workloads.mailbox.shapes import SHAPES
from assay.workloads.mailbox.verdict import mailbox_lines
from assay.workloads.plan import Part
from assay.workloads.spread import Share
from assay.workloads.steps import points_of_search
from assay.workloads.workload import Conclusion, Needs, Workload

if TYPE_CHECKING:
    from assay.document.elements import Section
    from assay.record.source import RunFacts
    from assay.targets.files.spec import VolumeSpec


class MailboxWorkload(Workload[MailboxPlan], Telling, Foreseen[MailboxPlan], OverHosts[MailboxPlan], Reporting):
    """Mailboxes on databases of checksummed pages."""

    kind = "mailbox"
    preset_default = "exchange-2010"
    figures = FIGURES
    shapes = SHAPES
    plan_type = MailboxPlan
    job = MailboxJob
    title = "Mailboxes"
    document_key = "mailbox"
    apart = ("filling the databases", "verifying every page")

    def load_plan(self, data: Record, *, source: str) -> MailboxPlan:
        """A plan from its TOML or JSON form, with the limits that follow from it."""
        return with_own_limits(super().load_plan(data, source=source))

    def estimate_s(self, plan: MailboxPlan) -> tuple[float, float]:
        """Shortest and longest time its loads take."""
        each = plan.timing.warmup_s + plan.measured_s
        fewest, most = (1, 1) if plan.search.axis == "none" else points_of_search(plan.search.repeats)
        return fewest * each, most * each

    def points_least(self, plan: MailboxPlan) -> int | None:
        """One."""
        return 1

    def expected_points(self, plan: MailboxPlan) -> Iterable[tuple[Record, Record]]:
        """A load."""
        yield (
            {"kind": self.kind, "name": plan.title, "test": plan.test},
            {"kind": self.kind, "rate": plan.target_iops, "arrivals": "poisson"},
        )

    def lines(self, part: Part[MailboxPlan], target: Any) -> list[str]:
        """The part in words, with its databases."""
        plan = part.plan
        placed = place(plan, seats_of_volumes(target.volumes))
        limits = ", ".join(plan.limits) or "none"
        asked = (
            f"{plan.mailboxes:,} mailboxes of {format_bytes(plan.mailbox_size_bytes)} at {plan.iops_per_mailbox:g} I/Os"
            f" per second, {plan.target_iops:,.0f} together"
        )
        lines = [
            f"part {part.name}: {part.title}; type {plan.test}, {format_duration(plan.measured_s)}; limits: {limits}",
            f"  {asked}",
            f"  layout {layout_meant(plan, placed)}, {plan.copies} copies; page cache"
            f" {format_bytes(cache_bytes(plan, placed))}",
        ]
        for one in placed:
            names = [target.volumes[extent.volume].name for extent in (one.data, one.log)]
            lines.append(
                f"  {one.name}: {format_bytes(one.data.size_bytes)} on {names[0]} from"
                f" {format_bytes(one.data.start_bytes)}, log of {format_bytes(one.log.size_bytes)} on {names[1]} from"
                f" {format_bytes(one.log.start_bytes)}"
            )
        if target.array is None:
            lines.append(f"  filling writes {format_bytes(sum(one.data.size_bytes for one in placed))}")
        return lines

    def document(self, part: Part[MailboxPlan], target: Any) -> dict[str, Any]:
        """The profile that is asked for, and where databases lie."""
        placed = place(part.plan, seats_of_volumes(target.volumes))
        names = [volume.name for volume in target.volumes]
        return {
            "profile": profile(part.plan, placed, cache_bytes(part.plan, placed)),
            "databases": [
                {
                    "name": one.name,
                    **{
                        what: {
                            "volume": names[extent.volume],
                            "start_bytes": extent.start_bytes,
                            "size_bytes": extent.size_bytes,
                        }
                        for what, extent in (("data", one.data), ("log", one.log))
                    },
                }
                for one in placed
            ],
        }

    def writes(self, part: Part[MailboxPlan], target: Any) -> str:
        """Databases, filled before the load; a model holds no bytes."""
        if target.array is not None:
            return ""
        placed = place(part.plan, seats_of_volumes(target.volumes))
        total = sum(one.data.size_bytes for one in placed)
        names = dict.fromkeys(printable(volume.spec.path) for volume in target.volumes if volume.spec.path is not None)
        return f"filling writes up to {format_bytes(total)} to {', '.join(names)}"

    # Targets

    def needs(self, plan: MailboxPlan) -> Needs:
        """Files as large as the databases and logs on them."""

        def sizes(specs: Sequence[VolumeSpec]) -> dict[str, int]:
            return sizes_needed(plan, specs)

        return Needs(sizes=sizes)

    def check(self, part: Part[MailboxPlan], target: Any) -> None:
        """Refuse volumes without bytes, and a layout that does not fit them."""
        if any(volume.spec.kind == "null" for volume in target.volumes):
            raise UsageError("target null: holds no databases; give files, devices or model:NAME")
        check_layout(part.plan, target.volumes, place(part.plan, seats_of_volumes(target.volumes)))

    # Several hosts

    adds = frozenset(
        {
            *("mailboxes", "mailboxes_held", "target_iops", "achieved_iops", "operations"),
            *("pages", "pages_verified", "bad_pages", "log_files", "log_files_per_s"),
        }
    )

    def share(self, plan: MailboxPlan, share: Share) -> MailboxPlan:
        """Mailboxes are spread over the hosts, with their I/Os.

        Raises
        ------
        UsageError
            There are fewer mailboxes than databases, or hosts are to share a target.
        """
        super().share(plan, share)
        data = plan.model_dump(mode="json") | {"mailboxes": share.whole(plan.mailboxes, "--mailboxes")}
        for key in ("start", "end"):
            if (load := data["search"][key]) is not None:
                data["search"][key] = share.rate(load)
        return self.load_plan(data, source="the plan's share of a host")

    def of_host(self, told: Record, host: str) -> Record:
        """Databases and servers by the names of their hosts: those of two hosts are not the same."""
        named = {
            key: [one | {"name": f"{host}:{one['name']}"} for one in told[key]]
            for key in ("databases", "servers")
            if told.get(key)
        }
        return {**told, **named}

    def merged(self, points: Sequence[Record]) -> dict[str, Any]:
        """Figures of one point; ratios are those of all databases together."""
        found = super().merged(points)
        return found | {self.kind: _with_ratios(found[self.kind])} if found.get(self.kind) else found

    def merged_told(self, told: Sequence[Record], points: Sequence[Record]) -> dict[str, Any]:
        """What a run tells as a whole."""
        return _with_ratios(super().merged_told(told, points))

    # A run

    def point_words(self, point: Point) -> list[str]:
        """Transactional I/Os, those of all kinds, and the latencies that the test judges."""
        own = achieved_words(point)
        if own is None or not point["total"]:
            return super().point_words(point)
        every = f"{format_iops(point['total']['iops'])} IOPS with logs, maintenance and copies;"
        means = [(figure, figure.value(point)) for figure in LATENCIES]
        return [f"{own};", every, *(f"{one.noun} {one.words(value)};" for one, value in means if value is not None)]

    def is_asked(self, point: Point) -> bool:
        """By the profile of the mailboxes, always."""
        return True

    def conclude(self, points: Sequence[Point], manifest: Record) -> Conclusion:
        """What was achieved, and whether every page was right."""
        told = manifest.get("mailbox")
        return Conclusion(first=list(mailbox_lines(told)) if told else [])

    def failures(self, told: Record) -> str | None:
        """Pages that were not what was written."""
        bad = told.get("bad_pages")
        return f"mailbox databases: {bad} bad pages" if bad else None

    # Report

    def sections(self, facts: RunFacts) -> Sequence[Section]:
        """Result, configuration and tables of the test, then figures and curves of its searches."""
        from assay.document.figure_sections import figure_sections
        from assay.workloads.mailbox.report import mailbox_section

        own = mailbox_section(facts)
        made = figure_sections(facts, self.kind, self.report_title, self.figures)
        figures = [replace(one, name="mailbox-loads", title="Loads") for one in made]
        return [own, *figures] if own else figures

    def label(self, workload: Record) -> str:
        """The name of a test."""
        return f"{workload.get('name') or self.kind}, {workload.get('test') or 'performance'}"


def _with_ratios(told: dict[str, Any]) -> dict[str, Any]:
    """Figures of several hosts' databases, with the ratios of all of them."""
    return told | {"ratios": ratios(told["databases"])} if told.get("ratios") else told
