"""Every way Assay can fail, and the exit code of each.

The tree mirrors the Rust error variants one to one (`crates/python/src/errors.rs` maps them). A message names what was
wrong, where, and what to do, in one line.
"""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """Exit status of the `assay` command, documented in docs/exit-codes.md."""

    DONE = 0
    """Everything asked was done."""
    LIMIT_MISSED = 1
    """A limit the user gave is missed, or a search found no load that meets the limits."""
    USAGE = 2
    """The command line or plan is wrong, or the target is refused."""
    TARGET_FAILED = 3
    """The target or the environment failed during the work."""
    INTEGRITY_FAILED = 4
    """Data came back wrong."""
    LIMIT_UNKNOWN = 5
    """Whether a limit the user gave, or a search's limits, can be met is unknown; none is missed."""
    WORSE = 6
    """A run is worse than its baseline allows."""
    INTERRUPTED = 130
    """Ended by Ctrl-C or SIGTERM; what was finished is kept."""


ANSWERS = (ExitCode.DONE, ExitCode.LIMIT_UNKNOWN, ExitCode.LIMIT_MISSED)
"""Codes of runs that measured all that was asked, the best first."""


class AssayError(Exception):
    """Base of all errors Assay raises on purpose."""

    exit_code: ExitCode = ExitCode.TARGET_FAILED


class UsageError(AssayError):
    """An option, plan key or value is wrong."""

    exit_code = ExitCode.USAGE


class RefusedTarget(AssayError):
    """Writing to the target could destroy something Assay did not make."""

    exit_code = ExitCode.USAGE


class RunFolderError(AssayError):
    """A folder given as a run is not one, or belongs to another plan."""

    exit_code = ExitCode.USAGE


class OpenFailed(AssayError):
    """A volume could not be opened."""


class OutOfSpace(AssayError):
    """The file system has no room for what was asked."""


class OutOfMemory(AssayError):
    """Less memory may be had than the work needs."""


class IoFailed(AssayError):
    """An I/O the work cannot go on without failed."""


class NotAnswering(AssayError):
    """The target stopped answering: I/Os stayed outstanding beyond the time-out."""


class NotSupported(AssayError):
    """The kernel, file system or device cannot do what was asked."""


class Interrupted(AssayError):
    """Ctrl-C or SIGTERM."""

    exit_code = ExitCode.INTERRUPTED


class NothingKept(Interrupted):
    """The run was interrupted while files were made for it, which are removed."""


def error_named(name: str) -> type[AssayError]:
    """Return the error that another process or the core names, `IoFailed` where Assay has none of this name.

    Examples
    --------
    >>> error_named("UsageError").__name__, error_named("ExitCode").__name__
    ('UsageError', 'IoFailed')
    """
    found = globals().get(name)
    return found if isinstance(found, type) and issubclass(found, AssayError) else IoFailed
