"""Refusals of work that would drop or roll back objects of others: one line lists them and says what to do."""

from __future__ import annotations

from collections.abc import Sequence

from assay.base.errors import NotSupported, RefusedTarget

SHOWN_COUNT = 3
"""Names that a message lists."""


def listed(names: Sequence[str]) -> str:
    """The first few names, and how many there are where that is not all.

    Examples
    --------
    >>> listed(["a", "b"]), listed(["a", "b", "c", "d", "e"])
    ('a, b', 'a, b, c, … 5 in all')
    """
    shown = ", ".join(names[:SHOWN_COUNT])
    return shown if len(names) <= SHOWN_COUNT else f"{shown}, … {len(names)} in all"


def refuse_foreign(display: str, tables: Sequence[str]) -> None:
    """Refuse a database with tables of the workload's names that do not carry Assay's mark.

    Raises
    ------
    RefusedTarget
        Always.
    """
    raise RefusedTarget(
        f"{display}: holds tables that Assay did not make ({', '.join(tables)}); name an empty database"
    )


def refuse_others(display: str, others: Sequence[str]) -> None:
    """Refuse to save or restore a whole database that holds data which are not Assay's.

    Raises
    ------
    NotSupported
        There are some.
    """
    if others:
        raise NotSupported(
            f"{display}: holds what is not Assay's ({listed(others)}), which saving and restoring would roll back; "
            "give it a database of its own"
        )


def refuse_losses(display: str, losses: Sequence[str]) -> None:
    """Refuse to restore where that would lose what came since the state was saved.

    Raises
    ------
    NotSupported
        Something did.
    """
    if losses:
        raise NotSupported(
            f"{display}: restoring would lose what came since the state was saved ({listed(losses)}); save again to "
            "keep it, or drop it yourself"
        )


def refuse_hanging(display: str, others: Sequence[str]) -> None:
    """Refuse to drop tables on which something hangs that is not Assay's.

    Raises
    ------
    RefusedTarget
        Something does.
    """
    if others:
        raise RefusedTarget(
            f"{display}: what is not Assay's hangs on its tables ({listed(others)}) and would be lost with them, or "
            "keeps them; drop that yourself first"
        )
