"""Assay examines storage the way a database will use it.

The command line is `assay`; from a notebook each verb is a function that returns its run or its answer, and
`assay.load` reads runs as polars frames (docs/python.md).
"""

from __future__ import annotations

TYPE_CHECKING = False  # of `typing`, which takes longer to import than a password may stay in the process list
if TYPE_CHECKING:
    from typing import Any

    from assay.apps.api import (
        Run,
        VerbAnswer,
        assess,
        check,
        compare,
        contract_judge,
        contract_test,
        diagnose,
        dss,
        history,
        import_,
        load,
        mailbox,
        oltp,
        profile,
        replay,
        size,
        study,
        verify,
    )

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


def __getattr__(name: str) -> Any:
    """Import on first use, so that the command line stays light."""
    if name in __all__:
        from assay.apps import api

        return getattr(api, name)
    raise AttributeError(f"module 'assay' has no attribute {name!r}")


def __dir__() -> list[str]:
    """What is for users, for completion."""
    return __all__
