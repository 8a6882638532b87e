"""Verbs that measure nothing, from Python."""

from __future__ import annotations

from typing import Any

from assay.apps.api.calling import PathLike, Texts, VerbAnswer, answer_of_verb, load, run_of
from assay.record.load import Run

__all__ = ["check", "compare", "contract_judge", "diagnose", "history", "import_", "load", "size"]


def compare(*runs: PathLike, smallest: float = 5, paired: bool = False) -> VerbAnswer:
    """Match the points of runs and say what changed, with confidence intervals, as `assay compare` does.

    Parameters
    ----------
    *runs
        Run folders, or folders of repeats, the reference first.
    smallest
        Smallest difference worth noticing, in percent.
    paired
        Whether the runs were made in turns, A B A B.

    Returns
    -------
    VerbAnswer
        What changed: a sentence, and `document["points"]`.

    Examples
    --------
    >>> import assay, tempfile
    >>> plan = {"activity": [{"queue_depth": 1}]}
    >>> before, after = (
    ...     assay.profile(f"model:ps6100xv?raid={raid}", plan=plan, output=tempfile.mkdtemp()) for raid in (10, 50)
    ... )
    >>> assay.compare(before.path, after.path).document["verb"]
    'compare'
    """
    return answer_of_verb(["compare"], runs, {"smallest": smallest, "paired": paired})


def contract_judge(contract: PathLike, recording: PathLike, *, output: Texts = ()) -> VerbAnswer:
    """Judge a contract over a recording, as `assay contract judge` does.

    Parameters
    ----------
    contract
        A contract in TOML.
    recording
        A folder of `assay record`.
    output
        Pages to write: `["vendor.html"]`.

    Returns
    -------
    VerbAnswer
        Its `document["met"]`, and `document["clauses"]` with their minutes.
    """
    return answer_of_verb(["contract", "judge"], [contract, recording], {"output": output})


def history(*folders: PathLike, target: str | None = None) -> VerbAnswer:
    """Show each load on each target over time, as `assay history` does.

    Parameters
    ----------
    *folders
        Folders that hold runs; `assay-results` without any.
    target
        Only targets that have this text in their title.

    Returns
    -------
    VerbAnswer
        Its `document["targets"]`: series, levels, changes and events of every load.
    """
    return answer_of_verb(["history"], folders, {"target": target})


def check(
    *targets: PathLike,
    volume: Texts = (),
    profile: PathLike | None = None,
    site: PathLike | None = None,
    only: str | None = None,
    skip: str | None = None,
) -> VerbAnswer:
    """Compare settings with best practice, as `assay check` does.

    Parameters
    ----------
    *targets
        `"host"`, folders and devices, files of settings, URLs of databases, `model:NAME`, run folders; the host without
        any.
    volume
        Roles of paths: `"log=/mnt/log"`.
    profile
        A run of `assay profile`, for rules that compare with measured figures.
    site
        A site.toml with facts that cannot be read.
    only, skip
        Rules or families, parted by commas.

    Returns
    -------
    VerbAnswer
        Its `document["findings"]`, and how many rules passed or were not checked.

    Examples
    --------
    >>> import assay
    >>> found = assay.check("model:ps6100xv?raid=50&fill=0.9")
    >>> [one["rule"] for one in found.document["findings"]][:1]
    ['array-fill']
    """
    options = {"volume": volume, "profile": profile, "site": site, "only": only, "skip": skip, "fail_on": "never"}
    return answer_of_verb(["check"], targets, options)


def diagnose(
    *inputs: PathLike,
    since: str | None = None,
    live: str | None = None,
    database: Texts = (),
    tier: Texts = (),
    volume: Texts = (),
    **options: Any,
) -> VerbAnswer:
    """Say which tier and resource is the bottleneck and what causes it, as `assay diagnose` does.

    Parameters
    ----------
    *inputs
        Run folders, recordings, or files that `assay import` reads; this machine's recording without any.
    since
        How much of the end to examine: `"2h"`.
    live
        Record this machine for this time, then answer: `"60s"`.
    database
        With `live`, URLs of servers whose waits are recorded.
    tier
        Hosts of a tier: `"database=sql1"`.
    volume
        Roles of devices in imported files: `"data=D:"`.
    **options
        Other options of the command, with underscores.

    Returns
    -------
    VerbAnswer
        Its `document["verdict"]` and `document["causes"]`.
    """
    named: dict[str, object] = {"since": since, "live": live, "database": database, "tier": tier, "volume": volume}
    return answer_of_verb(["diagnose"], inputs, named | options)


def size(
    need: PathLike | None = None,
    *,
    set: Texts = (),
    from_: PathLike | None = None,
    output: PathLike = "assay-results",
    report: bool = False,
    **options: Any,
) -> Run:
    """Say what to buy for a need, as `assay size` does.

    Parameters
    ----------
    need
        A need in TOML.
    set
        What if: `"growth=40%"`.
    from_
        Take the load from this recording or run.
    output
        Where the run folder is made.
    report
        Whether to write report.html and report.pdf.
    **options
        Other options of the command, with underscores.

    Returns
    -------
    Run
        Its `manifest["sizing"]` holds the answer.
    """
    named: dict[str, object] = {"set": set, "from": from_, "output": output, "report": report}
    return run_of(["size"], [] if need is None else [need], named | options)


def import_(
    *files: PathLike,
    volume: Texts = (),
    host: str | None = None,
    zone: str | None = None,
    output: PathLike = "assay-results",
    **options: Any,
) -> Run:
    """Read telemetry and results of other tools into a run folder, as `assay import` does.

    Parameters
    ----------
    *files
        What other tools wrote, known by content.
    volume
        Roles of devices: `"data=D:"`.
    host
        Host name for files that name none.
    zone
        UTC offset to assume for files without a time zone: `"+02:00"`.
    output
        Where the run folder is made.
    **options
        Other options of the command, with underscores.

    Returns
    -------
    Run
        A recording, whose `series` has the values, or the points that another program measured.
    """
    named: dict[str, object] = {"volume": volume, "host": host, "zone": zone, "output": output}
    return run_of(["import"], files, named | options)
