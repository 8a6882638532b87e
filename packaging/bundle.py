"""Writes dist/assay-VERSION-ARCH.tar.gz: Assay and all it needs, to be installed where there is no package index.

Assay's wheel is linked by zig against the glibc of `GLIBC`, and of the dependencies only wheels are taken that run
there, so that the bundle installs on systems older than the one it was made on. They are those of the Python that runs
this file, or of `--python-version`.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PARTS = Path(__file__).resolve().parent / "bundle"
"""Files that go into the archive with `@NAMES@` filled in."""

GLIBC = (2, 28)
"""Oldest glibc the bundle runs on: that of RHEL 8, Debian 10 and everything newer; NumPy and Arrow ask no less."""

ENTRY_TIME_S = 1_767_225_600
"""Every file of the archive carries this time (2026-01-01), so that the same wheels give the same archive."""


def main() -> None:
    """Build the archive and print its path."""
    parser = argparse.ArgumentParser(description="Write dist/assay-VERSION-ARCH.tar.gz.")
    parser.add_argument(
        "--python-version", default="{}.{}".format(*sys.version_info), help="Python it is for (this one)"
    )
    parser.add_argument("--output", type=Path, default=ROOT / "dist", help="folder of the archive")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="assay-bundle-") as work:
        archive = make_bundle(Path(work), arguments.python_version, arguments.output.resolve())
    print(f"bundle: {archive} ({archive.stat().st_size / 2**20:.0f} MiB)")


def make_bundle(work: Path, python_version: str, output: Path, wheel: Path | None = None) -> Path:
    """Build the wheel, unless it is given, download the others into `work`, archive into `output`."""
    wheels = work / "wheels"
    if wheel is None:
        wheel = build_wheel(wheels)
    else:
        wheels.mkdir()
        wheel = Path(shutil.copy(wheel, wheels))
    version = wheel.name.split("-")[1]
    print(f"bundle: downloading its dependencies for Python {python_version}", flush=True)
    download_dependencies(wheel, wheels, python_version)
    name = f"assay-{version}-{platform.machine()}"
    folder = work / name
    folder.mkdir()
    wheels.rename(folder / "wheels")
    fill_in(folder, {"VERSION": version, "ARCH": platform.machine(), "PYTHON": python_version, "GLIBC": dotted(GLIBC)})
    shutil.copy(ROOT / "LICENSE", folder)
    output.mkdir(parents=True, exist_ok=True)
    return write_archive(folder, output / f"{name}.tar.gz")


def dotted(version: tuple[int, int]) -> str:
    """A version as people write it."""
    return f"{version[0]}.{version[1]}"


def build_wheel(wheels: Path, machine: str = platform.machine()) -> Path:
    """Assay's own abi3 wheel for x86_64 or aarch64, linked against `GLIBC`."""
    policy = "manylinux_{}_{}".format(*GLIBC)
    print(f"building the wheel for {machine}, {policy}", flush=True)
    command = ["maturin", "build", "--release", "--locked", "--zig", "--compatibility", policy, "--out", str(wheels)]
    if machine != platform.machine():
        command += ["--target", add_standard_library(f"{machine}-unknown-linux-gnu")]
    # maturin asks the first python3 of PATH for zig.
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    run([*command, "--quiet"], environment={**os.environ, "PATH": path})
    (wheel,) = wheels.glob(f"assay_storage-*_{machine}.whl")
    return wheel


def add_standard_library(target: str) -> str:
    """The target, once rustc has its standard library; rustup brings it."""
    asked = ["rustc", "--print", "target-libdir", "--target", target]
    folder = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()
    if not folder or not Path(folder).is_dir():
        if shutil.which("rustup") is None:
            sys.exit(f"bundle: rustc has no standard library for {target}; install Rust by rustup, which adds it")
        run(["rustup", "target", "add", target])
    return target


def download_dependencies(wheel: Path, wheels: Path, python_version: str) -> None:
    """Wheels of everything `wheel` and its extra `all` need that run on `GLIBC` and `python_version`."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
    run([*command, *platform_options(python_version), "--dest", str(wheels), f"{wheel}[all]"])


def platform_options(python_version: str) -> list[str]:
    """Options of pip that take only wheels which run on `GLIBC` and `python_version`."""
    machine = platform.machine()
    tags = [f"manylinux_{GLIBC[0]}_{minor}_{machine}" for minor in range(GLIBC[1], 4, -1)]
    tags += [f"manylinux2014_{machine}", f"linux_{machine}"]
    options = ["--only-binary", ":all:", "--python-version", python_version, "--implementation", "cp"]
    return options + [option for tag in tags for option in ("--platform", tag)]


def fill_in(folder: Path, values: dict[str, str], parts: Path = PARTS) -> None:
    """Put the files of `parts` into the folder, with `@NAME@` replaced by its value."""
    for source in sorted(parts.iterdir()):
        text = source.read_text(encoding="utf-8")
        for name, value in values.items():
            text = text.replace(f"@{name}@", value)
        target = folder / source.name
        target.write_text(text, encoding="utf-8")
        target.chmod(source.stat().st_mode & 0o777)


def write_archive(folder: Path, archive: Path) -> Path:
    """One archive of the folder, owned by nobody in particular; complete or not there at all."""

    def plain(entry: tarfile.TarInfo) -> tarfile.TarInfo:
        entry.uid = entry.gid = 0
        entry.uname = entry.gname = "root"
        entry.mtime = ENTRY_TIME_S
        return entry

    part = archive.with_name(archive.name + ".part")
    # Wheels are compressed already: the lowest level is as small and ten times as fast.
    with tarfile.open(part, "w:gz", compresslevel=1) as tar:
        tar.add(folder, arcname=folder.name, filter=plain)
    part.replace(archive)
    return archive


def run(command: list[str], environment: dict[str, str] | None = None) -> None:
    """Run a command in the repository; one line when it fails."""
    try:
        subprocess.run(command, cwd=ROOT, env=environment, check=True)
    except FileNotFoundError:
        sys.exit(f"bundle: {command[0]} is missing; make set-up installs it")
    except subprocess.CalledProcessError as error:
        sys.exit(f"bundle: {' '.join(command[:4])} failed with exit code {error.returncode}; its message is above")


if __name__ == "__main__":
    main()
