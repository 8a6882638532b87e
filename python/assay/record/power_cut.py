"""A power cut under a run that verifies, as the check after it found the drive."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class DriveIdentity:
    """What tells one drive from another; None: it is not known."""

    model: str | None = None
    firmware: str | None = None
    serial: str | None = None
    wwn: str | None = None

    def is_same(self, other: DriveIdentity) -> bool:
        """Whether both are one drive with one firmware, by a serial number or WWN that both have.

        Examples
        --------
        >>> first = DriveIdentity(model="M", firmware="1", serial="S")
        >>> first.is_same(DriveIdentity(model="M", firmware="1", serial="S", wwn="W"))
        True
        >>> first.is_same(DriveIdentity(model="M", firmware="2", serial="S"))
        False
        >>> DriveIdentity(model="M").is_same(DriveIdentity(model="M"))
        False
        """
        known = any(own is not None and own == its for own, its in ((self.serial, other.serial), (self.wwn, other.wwn)))
        return known and self._agrees(other)

    def _agrees(self, other: DriveIdentity) -> bool:
        pairs = ((self.serial, other.serial), (self.wwn, other.wwn))
        return (self.model, self.firmware) == (other.model, other.firmware) and not any(
            own != its for own, its in pairs if None not in (own, its)
        )


@dataclass(frozen=True, kw_only=True)
class DriveCut:
    """A crash under `assay verify --crash-journal`, as `--after-crash` found one drive of it.

    Attributes
    ----------
    run
        Identity of the run that crashed.
    before, after
        The drive when the run began, and when it was checked.
    power_losses
        How often the drive lost its power without warning in between, by its own count; None: it does not say.
    is_cut
        Whether the run was ended by the crash, all pages were checked, and no cache of the host answered for the drive.
    page_bytes, write_bytes_max
        Pages of the run, and its largest write of them. Pages are aligned to their size on the drive.
    outstanding_pages
        Pages whose newest write was outstanding at the cut.
    torn_pages, other_findings
        Pages that were torn, and all that was wrong besides.
    """

    run: str
    before: DriveIdentity
    after: DriveIdentity
    power_losses: int | None
    is_cut: bool
    page_bytes: int
    write_bytes_max: int
    outstanding_pages: int
    torn_pages: int
    other_findings: int
