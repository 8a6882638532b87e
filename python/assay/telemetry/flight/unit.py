"""The systemd unit of the flight recorder: a user of its own, and no right that it does not need.

Source: systemd.exec(5), systemd.resource-control(5).
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from assay.base.errors import UsageError
from assay.base.paths import printable
from assay.base.secrets import holds_placeholder
from assay.base.systemd import program_words, service_head

STATE = Path("/var/lib")

CAPABILITIES = "CAP_SYS_PTRACE CAP_DAC_READ_SEARCH"
"""What the I/O of other users' programs takes, and nothing else that is recorded."""

SECRETS = (
    "/etc/gshadow", "/etc/gshadow-", "/etc/krb5.keytab", "/etc/pki/tls/private", "/etc/shadow", "/etc/shadow-",
    "/etc/ssh", "/etc/ssl/private", "/etc/sudoers", "/etc/sudoers.d", "/root", "/var/spool/cron",
)  # fmt: skip
"""Files that CAP_DAC_READ_SEARCH would open to the service, and that nothing recorded lies in."""

_UNIT = """\
Restart=on-failure
RestartSec=30
KillSignal=SIGTERM
TimeoutStopSec=30

DynamicUser=yes
StateDirectory={state}
StateDirectoryMode=0700
WorkingDirectory=/
UMask=0077
Nice=5
CPUQuota=10%
MemoryMax=256M
TasksMax=32

CapabilityBoundingSet={capabilities}
AmbientCapabilities={capabilities}
NoNewPrivileges=yes
ProtectSystem=strict
ProtectHome=read-only
PrivateTmp=yes
PrivateMounts=yes
ProtectKernelTunables=yes
ProtectKernelModules=yes
ProtectKernelLogs=yes
ProtectControlGroups=yes
ProtectClock=yes
ProtectHostname=yes
ProtectProc={others}
DevicePolicy=closed
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
LockPersonality=yes
MemoryDenyWriteExecute=yes
RestrictAddressFamilies=AF_UNIX AF_NETLINK AF_INET AF_INET6
SystemCallArchitectures=native
SystemCallFilter=@system-service
SystemCallFilter=~@keyring @memlock @setuid kcmp process_madvise process_vm_readv process_vm_writev
SystemCallErrorNumber=EPERM
{secrets}{network}
[Install]
WantedBy=multi-user.target
"""


def unit_text(directory: Path, arguments: Sequence[str], *, processes: bool, databases: Sequence[str]) -> str:
    """The unit.

    Parameters
    ----------
    directory
        Folder of the recording, below /var/lib.
    arguments
        Of `assay record`, without the folder.
    processes
        Whether other users' programs are looked at: the one thing that takes rights, which the unit has for it alone.
        The kernel lets /proc/PID/io of another user be opened with CAP_DAC_READ_SEARCH alone, because the file's mode
        is 0400, and be read with CAP_SYS_PTRACE alone (proc(5), ptrace(2)): each without the other is of no use.
    databases
        What is recorded over the network.

    Raises
    ------
    UsageError
        The folder lies elsewhere, or a URL holds a password.
    """
    if any(holds_placeholder(text) for text in databases):
        raise UsageError(
            "--database: the unit is readable by all users; leave the password out and see the unit's first lines"
        )
    folder = Path(os.path.abspath(directory))
    if STATE not in folder.parents:
        raise UsageError(
            f"{printable(folder)}: lies outside {STATE}, to which the unit may not write; give a folder there"
        )
    words = [*program_words(), "record", "start", str(folder), *arguments]
    network = "IPAddressDeny=any\nIPAddressAllow=localhost\n" if not databases else ""
    head = service_head(
        words, author="assay record install", description="Assay flight recorder", kind="exec",
        environment="/etc/assay/record.env", reader="root",
    )  # fmt: skip
    return head + _UNIT.format(
        state=folder.relative_to(STATE),
        capabilities=CAPABILITIES if processes else "",
        others="default" if processes else "invisible",
        secrets=f"InaccessiblePaths={' '.join(_kept_from(words[0]))}\n" if processes else "",
        network=network,
    )


def _kept_from(program: str) -> list[str]:
    """Secrets that the service never sees, each where there is one; the program itself stays where it is."""
    return [f"-{path}" for path in SECRETS if Path(path) not in Path(program).parents]
