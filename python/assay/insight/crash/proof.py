"""Whether power cuts under `assay verify` prove what a drive claims of atomic writes.

A cut counts if the drive itself counted a loss of power, pages were outstanding, and all of them were read afterwards.
None torn in N cuts says, with 95 % confidence, that a cut tears a page with a probability of at most 1 - 0.05^(1/N),
about 3/N: the rule of three (Hanley and Lippman-Hand, "If nothing goes wrong, is everything all right?", JAMA 249,
1983). The cut is the unit, as pages of one cut are not independent.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from assay.base.errors import AssayError, UsageError
from assay.base.paths import printable
from assay.base.units import count_of, format_bytes, format_share
from assay.insight.crash.drive import DriveClaim
from assay.record.power_cut import DriveCut
from assay.record.repeats import is_run, runs_in
from assay.record.run_folder import RunFolder
from assay.workloads.capabilities import Verifying
from assay.workloads.registry import workloads

CONFIDENCE = 0.95
CUTS_MIN = 59
"""Cuts from which on a claim is called proven: the bound is below 5 %."""
RUNS_MAX = 20_000
"""Runs that are read of a folder."""

Verdict = Literal["proven", "not proven", "broken", "not claimed"]


def most_torn_share(cuts: int) -> float:
    """The largest probability of a torn page in a cut that none in so many cuts leaves, with 95 % confidence.

    Examples
    --------
    >>> round(most_torn_share(100), 4), round(most_torn_share(59), 4), most_torn_share(0)
    (0.0295, 0.0495, 1.0)
    """
    return float(1 - (1 - CONFIDENCE) ** (1 / cuts)) if cuts else 1.0


@dataclass(frozen=True, kw_only=True)
class AtomicProof:
    """What is known of a drive's atomic writes of one size.

    Attributes
    ----------
    covers_parts
        Whether enough of the cuts hit runs whose writes were larger than a page, as those of a file system may be.
    """

    verdict: Verdict
    words: str
    cuts: int = 0
    torn_share_max: float | None = None
    covers_parts: bool = False


def read_cuts(folders: Iterable[Path]) -> tuple[DriveCut, ...]:
    """The power cuts of run folders, and of folders of these, each once.

    Raises
    ------
    UsageError
        A folder has no check of a crash, or one that cannot be read.
    """
    known = [one for one in workloads() if isinstance(one, Verifying)]
    found: dict[tuple[str, str, str], DriveCut] = {}
    for folder in folders:
        paths = [folder] if is_run(folder) else runs_in(folder)
        if len(paths) > RUNS_MAX:
            raise UsageError(
                f"--proof: {printable(folder)} holds {len(paths):,} runs; name one with {RUNS_MAX:,} at most"
            )
        checks = 0
        for path in paths:
            try:
                manifest = RunFolder.open(path).manifest
            except (AssayError, OSError) as error:
                raise UsageError(f"--proof: {printable(path)} cannot be read: {error}") from None
            if not (manifest.get("request") or {}).get("after_crash"):
                continue
            checks += 1
            for one in known:
                for cut in one.power_cuts(manifest):
                    # A second check of the same crash proves nothing more.
                    found.setdefault((cut.run, cut.after.serial or "", cut.after.wwn or ""), cut)
        if not checks:
            raise UsageError(
                f"--proof: {printable(folder)} holds no check of a crash; name runs of assay verify --after-crash"
            )
    return tuple(found.values())


def atomic_proof(drive: DriveClaim, cuts: Sequence[DriveCut], size_bytes: int) -> AtomicProof:
    """Judge a drive's atomic writes of a size."""
    own = [cut for cut in cuts if cut.after.is_same(drive.identity)]
    why_not = Counter(["of another drive, model or firmware"] * (len(cuts) - len(own)))
    counted = []
    for cut in own:
        reason = _why_not(cut, size_bytes)
        if reason is None:
            counted.append(cut)
        else:
            why_not[reason] += 1
    left_out = "".join(f"; {count_of(count, 'cut')} left out, {reason}" for reason, count in why_not.items())
    size, number = format_bytes(size_bytes), len(counted)
    claim = drive.words(size_bytes)
    broken = [cut for cut in counted if cut.torn_pages or cut.other_findings]
    if broken:
        return AtomicProof(verdict="broken", words=_broken_words(drive, broken, size, number) + left_out, cuts=number)
    bound = most_torn_share(number)
    if not counted:
        nothing = ", which is not proven: no power cut proves anything" if cuts else ", which is not proven"
        verdict: Verdict = "not proven" if drive.claims(size_bytes) else "not claimed"
        words = claim + (nothing if verdict == "not proven" else "") + left_out
        return AtomicProof(verdict=verdict, words=words)
    seen = (
        f"{_pages(counted)} outstanding in each of {count_of(number, 'power cut')} that the drive counted, none torn:"
        f" at most {format_share(bound, 1)} of such cuts tear one, with {format_share(CONFIDENCE)} confidence"
        f" (rule of three); {_written(counted)}"
    )
    if not drive.claims(size_bytes):
        return AtomicProof(verdict="not claimed", words=f"{claim}; {seen}{left_out}", cuts=number, torn_share_max=bound)
    if number < CUTS_MIN:
        words = f"{claim}, which is not proven yet: {seen}; {CUTS_MIN} cuts are needed{left_out}"
        return AtomicProof(verdict="not proven", words=words, cuts=number, torn_share_max=bound)
    return AtomicProof(
        verdict="proven",
        words=f"{claim}, which is proven: {seen}{left_out}",
        cuts=number,
        torn_share_max=bound,
        covers_parts=sum(cut.write_bytes_max > cut.page_bytes for cut in counted) >= CUTS_MIN,
    )


def _why_not(cut: DriveCut, size_bytes: int) -> str | None:
    """Why a cut says nothing of atomic writes of a size; None: it does say something."""
    if not cut.is_cut:
        return "whose run had ended, was read in part, or went through a cache of the host"
    if cut.page_bytes < size_bytes:
        return f"with pages of {format_bytes(cut.page_bytes)} only"
    if cut.torn_pages and cut.page_bytes > size_bytes:
        return f"which tore a page of {format_bytes(cut.page_bytes)}, maybe between two parts of this size"
    if cut.power_losses is None:
        return "of which the drive told no count of power losses: install nvme-cli or smartmontools before the cuts"
    if cut.power_losses < 1:
        return "in which the drive counted no loss of power"
    if not cut.outstanding_pages:
        return "with no page outstanding"
    return None


def _pages(cuts: Sequence[DriveCut]) -> str:
    pages, sizes = [cut.outstanding_pages for cut in cuts], sorted({cut.page_bytes for cut in cuts})
    spread = f"{min(pages):,}" if min(pages) == max(pages) else f"{min(pages):,} to {max(pages):,}"
    return f"{spread} pages of {' or '.join(map(format_bytes, sizes))}"


def _written(cuts: Sequence[DriveCut]) -> str:
    largest = max(cut.write_bytes_max for cut in cuts)
    if all(cut.write_bytes_max == cut.page_bytes for cut in cuts):
        return "each was a write of its own, so that nothing is proven of pages that are parts of larger writes"
    return f"they were parts of writes of up to {format_bytes(largest)}"


def _broken_words(drive: DriveClaim, broken: Sequence[DriveCut], size: str, number: int) -> str:
    """What was torn or lost. A drive promises nothing of parts of a write that is larger than its atomic size."""
    others = sum(cut.other_findings for cut in broken)
    torn = [cut for cut in broken if cut.torn_pages]
    if not torn:
        return f"{drive.name} lost or changed {count_of(others, 'page')} in {len(broken):,} of {number:,} power cuts"
    words = f"{drive.name} tore a page of {size} in {len(torn):,} of {count_of(number, 'power cut')}"
    alone = [cut for cut in torn if cut.write_bytes_max == cut.page_bytes]
    if alone:
        return f"{words}, {len(alone):,} of them where each page was a write of its own"
    largest = max(cut.write_bytes_max for cut in torn)
    return f"{words}, of writes of up to {format_bytes(largest)}, of whose parts a drive may promise nothing"
