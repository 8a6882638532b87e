"""`assay contract seal` and `check-seal`: a recording or a run is sealed, and every change is named."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from assay.apps.cli import options as opt
from assay.apps.cli.taken import answer, taken_now
from assay.base.errors import ExitCode, UsageError
from assay.base.units import count_of

if TYPE_CHECKING:
    from assay.document.elements import Block
    from assay.document.terminal import Details
    from assay.record.seal import CheckedSeal

SEAL_EXAMPLES = """
Examples:

`assay contract seal /var/lib/assay/recording`

`ssh-keygen -t ed25519 -N '' -f seal.key; assay contract seal recording --sign seal.key`
"""

CHECK_EXAMPLES = """
Examples:

`assay contract check-seal recording`

`assay contract check-seal recording --key seal.key.pub --head 5f3a...`
"""

FAULTS_SHOWN = 20
KEYLESS = "It is not signed: it shows accidents, and changes by others only to a holder of the chain."
OWN_KEY = "Compare the key with one that you know, or give it as --key: the seal names it itself."

Sealed = Annotated[Path, typer.Argument(metavar="FOLDER", help="A recording or a run folder.")]


def seal(
    folder: Sealed,
    sign: Annotated[
        Path | None, typer.Option("--sign", metavar="KEY", help="Sign with this Ed25519 key: OpenSSH's or PEM.")
    ] = None,
    json: opt.Json = False,
    debug: opt.Debug = False,
) -> None:
    """Seal the files of a recording or a run with a chain of hashes; a later seal makes it longer."""
    del debug
    from assay.record.seal import seal_folder
    from assay.record.seal_keys import signer

    found = seal_folder(folder, now_ns=time.time_ns(), sign=None if sign is None else signer(sign))
    _answer("contract seal", folder, found, "", json=json, did_seal=not found.faults)


def check_seal(
    folder: Sealed,
    key: Annotated[
        Path | None,
        typer.Option("--key", metavar="PUBLIC", help="Public key that the newest seal must be signed with."),
    ] = None,
    head: Annotated[str, typer.Option("--head", metavar="CHAIN", help="Chain of a seal that was kept elsewhere.")] = "",
    json: opt.Json = False,
    debug: opt.Debug = False,
) -> None:
    """Compare a recording or a run with its seal, and name every file and range of bytes that was changed."""
    del debug
    from assay.record import seal as seals
    from assay.record.seal_keys import is_signed, public_key

    if head and (len(head) != 64 or not set(head.lower()) <= set("0123456789abcdef")):
        raise UsageError(f"--head {head[:80]!r}: is no chain; give the 64 letters that assay contract seal printed")
    wanted = "" if key is None else public_key(key)
    found = seals.check_seal(folder, verify=is_signed, head=head.lower())
    last = found.last
    if wanted and (last is None or last.key != wanted):
        found.faults.append("the newest seal is not signed with the key of --key")
    _answer("contract check-seal", folder, found, wanted, json=json)


def _answer(
    verb: str, folder: Path, found: CheckedSeal, wanted: str, *, json: bool, did_seal: bool = False
) -> None:  # fmt: skip
    last = found.last
    answer(
        lambda: {
            "schema_version": 1, "verb": verb, "folder": str(folder), "intact": not found.faults,
            "faults": found.faults, "files": len(found.intact), "gone": found.gone, "unsealed": found.unsealed,
            "chain": found.chain.head, "sealed_utc_ns": [one.sealed_utc_ns for one in found.chain.seals],
            "key": last.key if last is not None and last.key else None, "key_known": bool(wanted),
        },
        lambda: _blocks(found, wanted, did_seal=did_seal),
        json=json,
    )  # fmt: skip
    if taken_now() is None and found.faults:
        raise typer.Exit(int(ExitCode.INTEGRITY_FAILED))


def _blocks(found: CheckedSeal, wanted: str, *, did_seal: bool) -> list[Block | Details]:
    from assay.document.elements import Paragraph
    from assay.document.text import moment
    from assay.record.seal_keys import fingerprint

    files, last = count_of(len(found.intact), "file"), found.last
    if found.faults:
        said = f"The seal is broken: {count_of(len(found.faults), 'fault')}; {files} as sealed."
    else:
        said = f"{files} sealed." if did_seal else f"The seal is whole: {files} as sealed."
    blocks: list[Block | Details] = [Paragraph(said, strong=True, tone="bad" if found.faults else "good")]
    blocks += [Paragraph(text, tone="bad") for text in found.faults[:FAULTS_SHOWN]]
    if more := len(found.faults) - FAULTS_SHOWN:
        blocks += [Paragraph(f"and {more} more; --json has all")] if more > 0 else []
    if found.gone:
        blocks.append(Paragraph(f"gone before a later seal: {', '.join(found.gone[:8])}"))
    if found.unsealed:
        blocks.append(Paragraph(f"not sealed, for it was written to: {', '.join(found.unsealed[:8])}"))
    if last is not None:
        blocks.append(Paragraph(f"sealed: {moment(last.sealed_utc_ns)}, by the clock of the host that sealed"))
        if last.key:
            blocks.append(Paragraph(f"signed: {fingerprint(last.key)}{'' if wanted or did_seal else f'. {OWN_KEY}'}"))
        else:
            blocks.append(Paragraph(KEYLESS))
    blocks.append(Paragraph(f"chain: {found.chain.head}"))
    return blocks
