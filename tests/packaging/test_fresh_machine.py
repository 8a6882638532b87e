"""From nothing to the report: a root of Debian that debootstrap makes, `git clone`, `make assess`.

The root is what a container gives: root's home is closed to others, and there is no right to mount. It is made once
below `target/fresh` and stays; all that a test does to it lies in an overlay, which is removed.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

pytestmark = [pytest.mark.packaging, pytest.mark.timeout(3600)]

MIRROR = "http://deb.debian.org"
CARRIED = re.compile(r"(?i)(PIP|CARGO|SSL|CURL|GIT_SSL|REQUESTS)_\w*(CERT|CAINFO|BUNDLE|INDEX|TIMEOUT)\w*|\w+_PROXY")
"""Variables by which a machine reaches its package registries: certificates, proxies, indexes."""

INSIDE = """
set -e
mount -t overlay overlay -o lowerdir="$1",upperdir="$2/upper",workdir="$2/work" "$2/root"
mount --rbind /dev "$2/root/dev"
mount -t proc proc "$2/root/proc"
mount --rbind /sys "$2/root/sys"
mkdir -p "$2/root/repository.git"
mount --bind -o ro "$3" "$2/root/repository.git"
exec setpriv --bounding-set=-sys_admin chroot "$2/root" bash -ec "$4"
"""


def run(*command: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*map(str, command)], env=os.environ | environment, capture_output=True, text=True, check=False
    )


def debian(root: Path, suite: str) -> Path:
    """A root of Debian as its images are: the least there is, with git and make, and no lists of packages."""
    made = root / "target" / "fresh" / suite
    if made.is_dir():
        return made
    made.parent.mkdir(parents=True, exist_ok=True)
    partial = made.with_suffix(".partial")
    shutil.rmtree(partial, ignore_errors=True)
    bootstrap = ("debootstrap", "--variant=minbase", "--include=ca-certificates,git,make", suite, partial)
    done = run(*bootstrap, f"{MIRROR}/debian")
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr
    (partial / "etc/apt/sources.list").write_text(
        "".join(
            f"deb {MIRROR}/{place} main\n"
            for place in (f"debian {suite}", f"debian {suite}-updates", f"debian-security {suite}-security")
        )
    )
    shutil.rmtree(partial / "var/lib/apt/lists")
    # How this machine reaches its registries: settings of apt, certificates of its own.
    settings = [
        line for line in run("apt-config", "dump").stdout.splitlines() if re.match(r"Acquire::(Check|http|Ret)", line)
    ]
    (partial / "etc/apt/apt.conf.d/90machine").write_text("\n".join([*settings, ""]))
    own = Path("/usr/local/share/ca-certificates")
    if own.is_dir():
        shutil.copytree(own, partial / "usr/local/share/ca-certificates", dirs_exist_ok=True)
        assert run("chroot", partial, "update-ca-certificates").returncode == 0
    return partial.rename(made)


@pytest.fixture
def typed(root: Path) -> Iterator[Callable[..., tuple[str, Path, float]]]:
    """A function that types commands in a fresh root; gives what they print, where root's home is, and the seconds."""
    if os.geteuid() != 0 or shutil.which("debootstrap") is None:
        pytest.skip("needs root and debootstrap: apt-get install debootstrap")
    layer = root / "target" / "fresh" / "layer"

    def type_in(suite: str, commands: str) -> tuple[str, Path, float]:
        lower = debian(root, suite)
        shutil.rmtree(layer, ignore_errors=True)
        for name in ("upper", "work", "root"):
            (layer / name).mkdir(parents=True)
        repository = layer / "repository.git"
        assert (
            run("git", "clone", "--quiet", "--bare", "--no-local", "--depth=1", f"file://{root}", repository).returncode
            == 0
        )
        carried = [f"{name}={value}" for name, value in os.environ.items() if CARRIED.fullmatch(name)]
        shutil.copy("/etc/resolv.conf", lower / "etc/resolv.conf")
        began = time.monotonic()
        done = subprocess.run(
            ["env", "-i", "HOME=/root", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", *carried, "unshare", "--mount", "--pid",
             "--fork", "--kill-child", "--propagation", "private", "bash", "-c", INSIDE, "bash",
             lower, layer, repository, f"cd /root; {commands}"],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout[-5000:]
        return done.stdout, layer / "upper/root", time.monotonic() - began

    yield type_in
    shutil.rmtree(layer, ignore_errors=True)


CLONE = "git clone --quiet /repository.git assay; cd assay"


def test_a_bare_debian_12_comes_from_the_clone_to_the_report(
    typed: Callable[..., tuple[str, Path, float]], record_property: Callable[[str, object], None]
) -> None:
    said, home, seconds = typed("bookworm", f"{CLONE}; make assess")

    assert re.search(r"set-up: installing packages: python3 python3-venv gcc libc6-dev rustc-web cargo-web\n", said)
    (run_file,) = (home / "assay/assay-results").glob("*/run.json")
    manifest = json.loads(run_file.read_text())
    assert run_file.with_name("report.html").is_file()
    assert said.rstrip().splitlines()[-1].endswith("report.html")
    assert not [notice for notice in manifest["notices"] if "left out" in notice]
    assert [database["runs_as"] for database in manifest["target"]["databases"] if "runs_as" in database] == ["number"]
    measured = sum(part["spent_s"] for part in manifest["parts"])
    record_property("seconds", {"from the clone to the report": round(seconds), "of them measuring": round(measured)})
    print(f"from the clone to the report: {seconds:.0f} s, of them measuring: {measured:.0f} s")


def test_a_bare_debian_13_is_set_up(typed: Callable[..., tuple[str, Path, float]]) -> None:
    said, home, _ = typed("trixie", f"{CLONE}; packaging/set-up.sh")

    assert re.search(r"set-up: installing packages: python3 python3-venv gcc libc6-dev rustc-web cargo-web\n", said)
    assert re.search(r"set-up: Python 3\.13\S* \(/usr/bin/python3\), Rust 1\.", said)
    assert (home / "assay/.venv/bin/maturin").exists()
