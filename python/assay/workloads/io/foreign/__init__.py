"""Files in which other load generators are told what to do, as plans."""

from __future__ import annotations

from assay.workloads.io.foreign.asked import AskedElsewhere


def asked_elsewhere(text: str, source: str, *, has_target: bool) -> AskedElsewhere | None:
    """What a file of another load generator asks for; None for any other text.

    Parameters
    ----------
    source
        Where the text comes from, for messages.
    has_target
        Whether a target is named beside it, which then takes the place of the file's own.

    Raises
    ------
    UsageError
        It is such a file, and asks for nothing that can be measured here.
    """
    # What reads them brings the importers of results along, which few plans need.
    from assay.workloads.io.foreign.fio_jobs import is_job_file, job_file
    from assay.workloads.io.foreign.icf import icf_plans, is_icf

    if is_icf(text):
        return icf_plans(text, source, has_target=has_target)
    return job_file(text, source, has_target=has_target) if is_job_file(text) else None
