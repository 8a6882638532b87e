"""Database servers in a lab machine: loaded on this host, put on a disk, started and killed there."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lab.disks import Disk
from lab.machine import Done, Machine, Running

UID = 61000
"""The servers' user in the guest, who has a name there."""

UNMOUNT_TRIES = 1500
"""Five a second."""

DATABASE = "bench"
LOST = "the server lost some that it had acknowledged"
"""What a run says of acknowledged transactions that are not there."""
POSTGRESQL = {
    "listen_addresses": "127.0.0.1", "unix_socket_directories": "/tmp", "shared_buffers": "32MB",
    "max_wal_size": "128MB",
}  # fmt: skip
MARIADB = {
    "bind-address": "127.0.0.1", "innodb-buffer-pool-size": "64M", "innodb-log-file-size": "64M", "tmpdir": "/tmp",
    "innodb-flush-log-at-trx-commit": "1", "innodb-flush-method": "fsync", "skip-name-resolve": "ON",
}  # fmt: skip


@dataclass(frozen=True)
class Loaded:
    """A file system's files with a database of one warehouse.

    Attributes
    ----------
    command
        Starts the server in the guest; `{data}` and `{port}` are filled in.
    ready
        What the server says when it takes connections.
    """

    files: Path
    command: tuple[str, ...]
    ready: str
    url: str

    def put_on(self, image: Path, *, within: Sequence[str] = ()) -> None:
        """Make a file system of them in a disk's image; `within` begins the command line."""
        subprocess.run([*within, "mkfs.ext4", "-qF", "-d", self.files, image], check=True)


def loaded_postgresql(folder: Path) -> Loaded:
    """Load a warehouse into a new PostgreSQL on this host."""
    from assay.targets.databases.embedded.programs import shipped_programs
    from servers.fixtures import DEBIAN_POSTGRESQL
    from servers.postgresql import PostgresqlServer
    from servers.process import PASSWORD, USER

    found = sorted(DEBIAN_POSTGRESQL.glob("*/bin/postgres"))
    programs = found[-1].parent if found else shipped_programs()
    _load(server := PostgresqlServer(_folder_in(folder), programs))
    settings = [f"--{name}={value}" for name, value in POSTGRESQL.items()]
    return Loaded(
        files=_data_of(server.data, folder),
        command=(f"{programs}/postgres", "-D", "{data}", "--port={port}", *settings),
        ready="ready to accept connections",
        url=f"postgresql://{USER}:{PASSWORD}@127.0.0.1:{{port}}/{DATABASE}",
    )


def loaded_mariadb(folder: Path) -> Loaded:
    """Load a warehouse into a new MariaDB on this host."""
    from servers.mariadb import MariadbServer
    from servers.process import PASSWORD, USER

    program = MariadbServer.program()
    assert program is not None
    _load(server := MariadbServer(_folder_in(folder)))
    settings = [f"--{name}={value}" for name, value in MARIADB.items()]
    own = ("--datadir={data}", "--port={port}", "--socket=/tmp/{port}.sock", "--pid-file=/tmp/{port}.pid")
    return Loaded(
        files=_data_of(server.data, folder),
        command=(str(program), "--no-defaults", *own, *settings),
        ready="ready for connections",
        url=f"mariadb://{USER}:{PASSWORD}@127.0.0.1:{{port}}/{DATABASE}",
    )


def _folder_in(folder: Path) -> Path:
    """A folder that a server's user reaches."""
    folder.chmod(0o755)
    made = folder / "server"
    made.mkdir()
    return made


def _load(server: object) -> None:
    from servers.process import ServerProcess, load_warehouse

    assert isinstance(server, ServerProcess)
    try:
        server.start()
        server.execute(f"CREATE DATABASE {DATABASE}")
        load_warehouse(server.url_of(DATABASE))
    finally:
        server.stop()
        if server.programs.copy is not None:
            server.programs.copy.remove()


def _data_of(data: Path, folder: Path) -> Path:
    """Its data alone, as the server's user in the guest has them."""
    files = folder / "files"
    files.mkdir(mode=0o755)
    shutil.move(data, files / "data")
    for place, folders, names in os.walk(files / "data"):
        for name in (".", *folders, *names):
            os.chown(Path(place) / name, UID, UID, follow_symlinks=False)
    return files


class Server:
    """A server in a machine, on a disk of its own, or on a device that lies on it."""

    def __init__(self, lab: Machine, disk: Disk, loaded: Loaded, port: int, *, device: str = "") -> None:
        self.lab, self.disk, self.port = lab, disk, port
        self.url = loaded.url.format(port=port)
        self.place = f"/run/{disk.name}"
        self._ready = loaded.ready
        words = {"data": f"{self.place}/data", "port": port}
        self._command = [word.format(**words) for word in loaded.command]
        self._device = device or lab.device(disk.name)
        self.process: Running | None = None

    def start(self) -> bool:
        """Mount its disk and start it; gives whether it takes connections, for it may find its files damaged."""
        self.lab.shell(
            f"grep -q ^lab: /etc/passwd || echo lab:x:{UID}:{UID}::/tmp:/bin/sh >>/etc/passwd;"
            f" mkdir -p {self.place}; mount -t ext4 {self._device} {self.place}"
        )
        user = ("setpriv", f"--reuid={UID}", f"--regid={UID}", "--clear-groups")
        process = self.process = self.lab.start(*user, *self._command)
        self.lab.wait_until(lambda: self._ready in process.stderr or process.ended)
        return not process.ended

    def lose_power(self) -> None:
        """Cut the power of its disk and kill it; the disk has power again afterwards."""
        assert self.process is not None
        self.lab.cut_disk(self.disk.name)
        self.lab.kill(self.process)
        self._unmount()
        self._device = self.lab.plug_again(self.disk.name)

    def stop(self) -> None:
        """Kill it."""
        if self.process is not None and not self.process.ended:
            self.lab.kill(self.process)
        self._unmount()

    def _unmount(self) -> None:
        """Kill what is left of it, and unmount its disk; what keeps the disk in use too long is told."""
        self.lab.shell(
            f"""
            left={UNMOUNT_TRIES}
            until umount {self.place} 2>/dev/null || ! mountpoint -q {self.place}; do
                for process in /proc/[0-9]*; do
                    case "$(readlink $process/cwd)" in {self.place}*) kill -9 ${{process#/proc/}} || :;; esac
                done
                left=$((left - 1))
                if [ $left -eq 0 ]; then
                    echo "{self.place} stays in use" >&2
                    for process in /proc/[0-9]*; do
                        echo "$(cat $process/comm) $(readlink $process/cwd) $(cat $process/wchan)" >&2
                    done
                    exit 1
                fi
                sleep 0.2
            done
            """
        )


def missing_server(kind: str) -> str:
    """Return why a kind of server cannot be loaded here, empty if it can."""
    if os.geteuid() != 0:
        return "files of a server's user in the guest are made by root only"
    if kind == "MariaDB":
        from servers.mariadb import MariadbServer

        return "" if MariadbServer.program() is not None else "MariaDB is not installed"
    return ""


def loaded(kind: str, folder: Path) -> Loaded:
    """Load a server's database in a folder."""
    return (loaded_mariadb if kind == "MariaDB" else loaded_postgresql)(folder)


def transactions(done: Done) -> int:
    """How many transactions a run of `assay oltp` committed."""
    return sum(one["count"] for one in done.document["oltp"]["by_transaction"].values())
