"""From options to an execution and its output: what verbs that measure share."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from assay.cli.console import Console, Signals, leave_at_once, print_verdict
from assay.cli.options import EXPORTS_KNOWN
from assay.errors import ExitCode, NotAnswering, RunFolderError, UsageError
from assay.results.run_folder import RunFolder
from assay.study.execute import Execution, Part, estimate_s, new_folder, print_json
from assay.study.plan import load_plan
from assay.targets.layout import SIZE_MOST_DEFAULT_BYTES, Target, choose_target
from assay.targets.spec import parse_targets
from assay.units import format_bytes, format_duration, parse_bytes


@dataclass(kw_only=True)
class Request:
    """What the user asked of the target, as far as a resumed run needs it again. Holds no secrets."""

    paths: list[str]
    volumes: list[str] = field(default_factory=list)
    size: str | None = None
    cache_size: str | None = None
    overwrite: list[str] = field(default_factory=list)
    yes_destroy: list[str] = field(default_factory=list)
    size_most_bytes: int = SIZE_MOST_DEFAULT_BYTES

    def choose(
        self, parts: Sequence[Part], sizes: dict[str, int] | None = None, by_path: dict[str, int] | None = None
    ) -> Target:
        """Examine the target. `sizes`, by volume, are those a resumed run had; `by_path` are those of single files."""
        specs = parse_targets(self.paths, volumes=self.volumes, sizes=self.size)
        paths = {os.path.abspath(path): size for path, size in (by_path or {}).items()}
        specs = [replace(spec, size_bytes=paths.get(str(spec.path), spec.size_bytes)) for spec in specs]
        target = choose_target(
            specs,
            overwrite=self.overwrite,
            yes_destroy=self.yes_destroy,
            writes=any(workload.writes for part in parts for workload in part.plan.workloads()),
            cache_bytes=parse_bytes(self.cache_size, what="--cache-size") if self.cache_size else None,
            size_most_bytes=self.size_most_bytes,
        )
        target.sizes |= {name: size for name, size in (sizes or {}).items() if name in target.sizes}
        return target


@dataclass(kw_only=True)
class OutputOptions:
    """What is shown and written."""

    output: Path
    json: bool = False
    dry_run: bool = False
    report: bool = True
    export: list[str] = field(default_factory=list)
    quiet: bool = False
    notices: list[str] = field(default_factory=list)
    """What the verb has to say about the run itself."""

    def validate(self) -> None:
        """Refuse unknown exports before anything is measured."""
        for name in self.export:
            if name not in EXPORTS_KNOWN:
                raise UsageError(f"--export: unknown format {name!r}; accepted: {', '.join(EXPORTS_KNOWN)}")


def start(verb: str, request: Request, parts: Sequence[Part], options: OutputOptions) -> None:
    """Run new work to its end and exit."""
    options.validate()
    target = request.choose(parts)
    target.notices += options.notices
    parts = [_with_spans(part, target) for part in parts]
    if options.dry_run:
        _show_plan(verb, target, parts, options)
        return
    folder = new_folder(options.output, verb, sys.argv[1:], _as_dict(request), parts)
    _run(verb, folder, target, parts, options)


def _with_spans(part: Part, target: Target) -> Part:
    """The latency-against-span part with the spans of the target's smallest volume."""
    from assay.analysis.cache_span import PART, cache_span_plan

    if part.name != PART:
        return part
    plan = cache_span_plan(min(target.sizes.values()))
    seconds = min((part.planned_s or 10.0) / len(plan.workloads()) * 0.8, 5.0)
    plan = cache_span_plan(min(target.sizes.values()), seconds=max(seconds, 0.5))
    return replace(part, plan=plan)


def resume(verb: str, path: Path, options: OutputOptions) -> None:
    """Go on with a run folder and exit.

    Raises
    ------
    RunFolderError
        It is not a run of this verb.
    """
    options.validate()
    folder = RunFolder.open(path)
    folder.lock()
    manifest = folder.manifest
    if manifest.get("verb") != verb or "request" not in manifest:
        raise RunFolderError(
            f"--resume {path}: is a run of {manifest.get('verb')!r}, which `assay {verb}` cannot go on with"
        )
    parts = [
        Part(
            name=part["name"],
            title=part["title"],
            plan=load_plan(part["plan"], source=f"--resume {path}"),
            planned_s=part["planned_s"],
        )
        for part in manifest["parts"]
    ]
    request = Request(**manifest["request"])
    sizes = {volume["name"]: volume["size_bytes"] for volume in manifest["target"]["volumes"]}
    _run(verb, folder, request.choose(parts, sizes), parts, options)


def _as_dict(request: Request) -> dict[str, Any]:
    return dict(vars(request))


def _run(
    verb: str,
    folder: RunFolder,
    target: Target,
    parts: Sequence[Part],
    options: OutputOptions,
) -> None:
    signals = Signals()
    with Console(quiet=options.quiet) as console:
        execution = Execution(
            verb=verb,
            folder=folder,
            target=target,
            parts=parts,
            display=console,
            interrupt=signals.interrupt,
            with_report=options.report,
            uninterruptible=signals,
        )
        code = execution.run()
        console.phase("done")
    for name in options.export if execution.points else []:
        _export(name, folder)
    _print_outcome(execution, options)
    if isinstance(execution.error, NotAnswering):
        leave_at_once(code)
    sys.exit(int(code))


def _export(name: str, folder: RunFolder) -> None:
    from assay.results.exports import EXPORTS

    for path in EXPORTS[name](folder.manifest, folder.points(), folder.path):
        print(f"exported {path}", file=sys.stderr)


def _print_outcome(execution: Execution, options: OutputOptions) -> None:
    folder = execution.folder
    if options.json:
        print(print_json(execution.document()), flush=True)
    else:
        print_verdict(folder.manifest["verdict"], folder.manifest["notices"])
        for name in ("report.html", "report.pdf"):
            if (folder.path / name).exists():
                print(f"{name.removeprefix('report.').upper()} report: {folder.path / name}")
        print(f"run folder: {folder.path}", flush=True)
    if execution.error is not None:
        print(f"assay: {execution.error}", file=sys.stderr)
        if execution.error.exit_code is ExitCode.INTERRUPTED:
            print(f"assay: go on with: assay {execution.verb} --resume {folder.path}", file=sys.stderr)


def _show_plan(verb: str, target: Target, parts: Sequence[Part], options: OutputOptions) -> None:
    shortest, longest = estimate_s(parts)
    estimate = {"shortest_s": shortest, "longest_s": longest, "layout_bytes": target.layout_bytes}
    volumes = [
        {
            "name": volume.name,
            "path": str(volume.spec.path),
            "roles": list(volume.roles),
            "size_bytes": volume.size_bytes,
        }
        for volume in target.volumes
    ]
    if options.json:
        document: dict[str, Any] = {"schema_version": 1, "verb": verb, "estimate": estimate, "volumes": volumes}
        plans = [part.plan.model_dump(mode="json") for part in parts]
        document |= (
            {"plan": plans[0]}
            if len(plans) == 1
            else {"parts": [{"name": part.name, "plan": plan} for part, plan in zip(parts, plans, strict=True)]}
        )
        print(print_json(document))
        return
    for volume in target.volumes:
        laid_out = " (to be laid out)" if volume.name in {new.spec.name for new in target.to_lay_out} else ""
        print(
            f"volume {volume.name}: {volume.spec.path or 'no medium'}, {format_bytes(volume.size_bytes)}, {'+'.join(volume.roles)}{laid_out}"
        )
    for part in parts:
        print(
            f"part {part.name}: {part.title}; limits: {', '.join(part.plan.limits) or 'none'}; search: {part.plan.search.axis}"
        )
        for workload in part.plan.workloads():
            print(f"  {workload.title}")
    print(
        f"writes {format_bytes(target.layout_bytes)} of layout; takes {format_duration(shortest)} to {format_duration(longest)} and the layout"
    )
