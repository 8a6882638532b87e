"""Programs of other packages that Assay starts: the package of each, and the line that says so if one is missing.

What comes with Python's packages, PostgreSQL's server among it, is in no list here.
"""

from __future__ import annotations

import os
import platform
import shutil
from collections.abc import Iterable
from dataclasses import dataclass

from assay.base.errors import NotSupported

SYSTEM_FOLDERS = ("/usr/local/sbin", "/usr/sbin", "/sbin")
"""Programs of administrators, which are not in the PATH of every account."""


@dataclass(frozen=True, kw_only=True)
class HostProgram:
    """A program that Assay starts.

    Attributes
    ----------
    debian, rpm
        The package that brings it, on Debian and its relatives, and on Fedora, RHEL and SUSE.
    opens
        What is not to be had without it, in words.
    root_can
        Whether root does without it.
    """

    name: str
    debian: str
    rpm: str
    opens: str
    root_can: bool = False


PROGRAMS = {
    program.name: program
    for program in (
        HostProgram(
            name="fusermount3", debian="fuse3", rpm="fuse3",
            opens="`array serve`, and runs on array:NAME and embedded+array:NAME", root_can=True,
        ),
        HostProgram(
            name="mkfs.ext4", debian="e2fsprogs", rpm="e2fsprogs",
            opens="`array serve --mkfs ext4`, and runs on embedded+array:NAME",
        ),
        HostProgram(
            name="debugfs", debian="e2fsprogs", rpm="e2fsprogs",
            opens="`crash run` names lost writes of ext4's journal",
        ),
        HostProgram(
            name="mkfs.xfs", debian="xfsprogs", rpm="xfsprogs",
            opens="`crash run --fs xfs`",
        ),
        HostProgram(
            name="mariadbd", debian="mariadb-server", rpm="mariadb-server",
            opens="`crash run mariadb`",
        ),
        HostProgram(
            name="ssh", debian="openssh-client", rpm="openssh-clients",
            opens="--hosts with other hosts",
        ),
        HostProgram(
            name="java", debian="default-jre-headless", rpm="java-21-openjdk-headless",
            opens="runs on spark-local:DIR and spark://",
        ),
        HostProgram(
            name="dmsetup", debian="dmsetup", rpm="device-mapper",
            opens="how multipath devices choose their paths",
        ),
        HostProgram(
            name="nvme", debian="nvme-cli", rpm="nvme-cli",
            opens="the health of NVMe drives",
        ),
        HostProgram(
            name="smartctl", debian="smartmontools", rpm="smartmontools",
            opens="the health of SATA and SAS drives",
        ),
    )
}  # fmt: skip


def find_program(name: str) -> str | None:
    """Path of a program, looked for in PATH and where administrators' programs are; None if it is missing."""
    path = os.pathsep.join((os.environ.get("PATH", os.defpath), *SYSTEM_FOLDERS))
    return shutil.which(name, path=path)


def require_program(what: str, name: str, *, otherwise: str = "") -> str:
    """Path of a program.

    Parameters
    ----------
    what
        What needs it, as the user named it: a verb, an option or a target.
    name
        One of `PROGRAMS`.
    otherwise
        What else would do, such as `or run as root`.

    Raises
    ------
    NotSupported
        It is missing; the line has the command that installs it.
    """
    found = find_program(name)
    if found is None:
        hint = f", {otherwise}" if otherwise else ""
        raise NotSupported(f"{what}: {name} is missing; {install_command([PROGRAMS[name]])}{hint}")
    return found


def install_command(programs: Iterable[HostProgram]) -> str:
    """The command that installs the packages of programs on this distribution.

    Examples
    --------
    >>> command_on("debian", [PROGRAMS["ssh"]]), command_on("fedora", [PROGRAMS["ssh"]])
    ('apt-get install openssh-client', 'dnf install openssh-clients')
    """
    try:
        system = platform.freedesktop_os_release()
    except OSError:
        system = {}
    command = command_on(f"{system.get('ID', '')} {system.get('ID_LIKE', '')}", programs)
    return command if os.geteuid() == 0 or not command.startswith(_INSTALLERS) else f"sudo {command}"


_INSTALLERS = ("apt-get", "dnf", "zypper")


def command_on(system: str, programs: Iterable[HostProgram]) -> str:
    """The same on a distribution, by `ID` and `ID_LIKE` of os-release(5)."""
    chosen = list(programs)
    known = system.split()
    debian = " ".join(dict.fromkeys(program.debian for program in chosen))
    rpm = " ".join(dict.fromkeys(program.rpm for program in chosen))
    if "debian" in known or "ubuntu" in known:
        return f"apt-get install {debian}"
    if "suse" in known or "opensuse" in known:
        return f"zypper install {rpm}"
    if {"fedora", "rhel", "centos"} & {*known}:
        return f"dnf install {rpm}"
    return f"install the package {debian} (Debian) or {rpm} (RPM)"
