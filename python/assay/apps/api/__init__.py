"""Assay from Python: a function for each verb, which does what the command does."""

from __future__ import annotations

from assay.apps.api.answering import check, compare, contract_judge, diagnose, history, import_, load, size
from assay.apps.api.calling import VerbAnswer
from assay.apps.api.measuring import assess, contract_test, dss, mailbox, oltp, profile, replay, study, verify
from assay.record.load import Run

__all__ = [
    "Run",
    "VerbAnswer",
    "assess",
    "check",
    "compare",
    "contract_judge",
    "contract_test",
    "diagnose",
    "dss",
    "history",
    "import_",
    "load",
    "mailbox",
    "oltp",
    "profile",
    "replay",
    "size",
    "study",
    "verify",
]
