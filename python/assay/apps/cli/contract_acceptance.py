"""`assay contract test`: a contract as an acceptance test of a target, clause by clause."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from assay.apps.cli import options as opt
from assay.apps.cli.assess import PRECONDITIONING, preconditioned_once
from assay.apps.cli.commands import usual
from assay.apps.cli.running import start
from assay.apps.cli.verb import Given, measuring
from assay.base.errors import NotAnswering, UsageError
from assay.targets.answering import ANSWER_TIMEOUT_S, answer_within
from assay.workloads.options import TIME
from assay.workloads.registry import DEFAULT_KIND, workload_named

if TYPE_CHECKING:
    from assay.record.shapes.acceptance import AcceptanceMount

EXAMPLES = """
Examples:

`assay contract test contract.toml /data/new --size 100G`

`assay contract test contract.toml "model:ps6100xv?raid=50&members=2"`

`assay contract test contract.toml /dev/sdb --overwrite /dev/sdb --precondition full`

`assay contract test contract.toml "array:ps6100xv?raid=6&size=4G" --quick`
"""


@usual("--size", "--overwrite", "--quick", "--duration", "--precondition", "--dry-run", "--json")
@measuring(
    "contract",
    workload_named(DEFAULT_KIND).plan_type,
    on={**opt.ON_STORAGE, **opt.WRITES_MUCH},
    only=(
        "--warmup",
        "--min-time",
        "--max-time",
        "--duration",
        "--io-timeout",
        "--backend",
        "--seed",
        *PRECONDITIONING,
    ),
)
def acceptance(
    given: Given,
    contract: Annotated[
        Path | None,
        typer.Argument(
            metavar="CONTRACT", help="A contract in TOML; assay contract template prints one.", show_default=False
        ),
    ] = None,
    target: Annotated[
        list[str] | None,
        typer.Argument(metavar="TARGET", help="File, folder, device, model:NAME, or array:NAME.", show_default=False),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Short points: a first look, no acceptance.", rich_help_panel=TIME)
    ] = False,
) -> None:
    """Test a target against a contract: its loads, also with a disk lost where that can be, and its data."""
    from assay.insight.contracts.acceptance import begun, read_terms
    from assay.insight.contracts.asked_loads import QUICK, AskedTiming, asked_loads

    if contract is None:
        raise UsageError("contract test: give the contract; assay contract template prints one")
    terms, promised = read_terms(contract)
    volumes = given.target.get("volumes") or []
    if not target and not volumes:
        raise UsageError("contract test: give the target: a file, folder, device, model:NAME or array:NAME")
    wanted = given.take("precondition")
    asked = asked_loads(promised, (target or volumes)[0], QUICK if quick else AskedTiming(), _given(given))
    mounts = promised.capacity.mounts if promised.capacity is not None else ()
    parts = preconditioned_once(asked.parts, wanted)
    start(
        "contract", given.request(target), parts, given.shown,
        told=lambda: {"contract": begun(str(contract), terms, promised, asked, [*map(_mount, mounts)])},
    )  # fmt: skip


def _given(given: Given) -> dict[str, object]:
    """Fields of plans that options set, in tables."""
    found: dict[str, object] = {}
    for path, value in given.values.items():
        if len(path) == 1:
            found[path[0]] = value
        else:
            table = found.setdefault(path[0], {})
            assert isinstance(table, dict)
            table[path[1]] = value
    return found


def _mount(path: str) -> AcceptanceMount:
    """The size of a file system that is mounted here; None where there is none, or it does not answer."""

    def size() -> int | None:
        if not os.path.ismount(path):
            return None
        found = os.statvfs(path)
        return found.f_blocks * found.f_frsize

    try:
        return {"path": path, "size_bytes": answer_within(ANSWER_TIMEOUT_S, size, what=path)}
    except (OSError, ValueError, NotAnswering):
        return {"path": path, "size_bytes": None}
