"""A study whose load is a trace's: `assay study run NAME --trace orders.trace` replays it at every level."""

from __future__ import annotations

from collections.abc import Sequence

from assay.base.errors import UsageError
from assay.base.tables import TableValue
from assay.insight.studies.plan_settings import inner_table
from assay.insight.studies.study import StudyPlan, load_study
from assay.workloads.capabilities import OfServers, OfTraces
from assay.workloads.registry import DEFAULT_KIND, workload_named, workloads

VARIED = ("target", "load")
"""What levels may change of a study whose load is a trace's: the target, and how many such loads there are."""


def takes_traces(study: StudyPlan) -> bool:
    """Whether a trace may stand in place of the study's load: its levels change the target, and not what is asked."""
    plain = not (study.published or study.precondition or study.beside)
    kind = workload_named(str(study.plan.get("kind", DEFAULT_KIND)), source=f"study {study.name}")
    cases = all(
        not (case.activity or case.search or case.timing or case.plan or case.follows or case.continues)
        for case in study.case
    )
    varied = all(factor.of in VARIED for factor in study.factor)
    return plain and cases and varied and study.comparison is not None and isinstance(kind, OfServers)


def with_traces(study: StudyPlan, traces: Sequence[str], names: Sequence[str] = ()) -> StudyPlan:
    """The study with traces as its load: `PATH`, or `PATH@30s` for one that begins later than the first.

    Where the study searches within limits, the speed is searched for; else the traces run at their own.

    Parameters
    ----------
    names
        Studies that take traces, for the error.

    Raises
    ------
    UsageError
        The study varies what is asked, or a trace cannot be read.
    """
    if not takes_traces(study):
        raise UsageError(
            f"--trace: study {study.name} varies what is asked, which a trace fixes; studies that take one:"
            f" {', '.join(names)}"
        )
    kind = next(one for one in workloads() if isinstance(one, OfTraces))
    searches = bool(study.plan.get("limits")) and inner_table(study.plan, "search").get("axis", "none") != "none"
    plan: dict[str, TableValue] = kind.of_traces(traces, searches=searches)
    if "limits" in study.plan:
        plan["limits"] = study.plan["limits"]
    figure, *also = kind.compared(traces, searches=searches)
    data = study.model_dump(mode="json", exclude_unset=True)
    data["comparison"] = {**data["comparison"], "figure": figure, "also": also}
    if not searches:
        # Its sentence is about the figure that it compares by itself.
        data["comparison"] |= {"answer": "", "verb": ""}
    return load_study(data | {"plan": plan}, source="--trace")
