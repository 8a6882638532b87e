"""The bundle's install.sh installs without any index, and says clearly why it cannot."""

from __future__ import annotations

import base64
import hashlib
import importlib.util
import os
import platform
import sys
import tarfile
import zipfile
from pathlib import Path
from types import ModuleType

import pytest

VERSION = "0.1.0"
RUNNING = "{}.{}".format(*sys.version_info)


@pytest.fixture(scope="session")
def builder(root: Path) -> ModuleType:
    """packaging/bundle.py as a module."""
    spec = importlib.util.spec_from_file_location("assay_bundle_builder", root / "packaging" / "bundle.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def write_wheel(folder: Path) -> None:
    """A wheel named like Assay's whose `assay` prints a line: pip neither knows nor cares."""
    facts = f"assay_storage-{VERSION}.dist-info"
    records = {
        "assay_stand_in.py": "def main() -> None:\n    print('assay 0.1.0 stands in')\n",
        f"{facts}/METADATA": f"Metadata-Version: 2.1\nName: assay-storage\nVersion: {VERSION}\n",
        f"{facts}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{facts}/entry_points.txt": "[console_scripts]\nassay = assay_stand_in:main\n",
    }
    lines = []
    with zipfile.ZipFile(folder / f"assay_storage-{VERSION}-py3-none-any.whl", "w") as wheel:
        for name, text in records.items():
            wheel.writestr(name, text)
            digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).decode().rstrip("=")
            lines.append(f"{name},sha256={digest},{len(text.encode())}")
        record = f"{facts}/RECORD"
        wheel.writestr(record, "\n".join([*lines, f"{record},,"]) + "\n")


@pytest.fixture
def bundle(builder: ModuleType, tmp_path: Path):
    """A function that unpacks a bundle made for the given Python, machine and glibc."""

    def unpack(python: str = RUNNING, arch: str = platform.machine(), glibc: str = "2.5") -> Path:
        folder = tmp_path / "bundle"
        (folder / "wheels").mkdir(parents=True)
        write_wheel(folder / "wheels")
        builder.fill_in(folder, {"VERSION": VERSION, "ARCH": arch, "PYTHON": python, "GLIBC": glibc})
        return folder

    return unpack


@pytest.fixture
def install(execute, tmp_path: Path):
    """A function that runs install.sh in an empty folder where pip may ask no index."""
    here = tmp_path / "here"
    here.mkdir()
    environment = {name: value for name, value in os.environ.items() if not name.upper().startswith("PIP_")}
    environment |= {"PIP_NO_INDEX": "1", "PIP_CONFIG_FILE": os.devnull}

    def call(folder: Path, *arguments: str):
        return execute(["sh", folder / "install.sh", *arguments], folder=here, environment=environment)

    return call


@pytest.mark.slow(reason="make test-packaging installs the bundle")
def test_installs_into_assay_venv_and_again(bundle, install, execute, tmp_path: Path) -> None:
    folder = bundle()
    for _ in range(2):
        done = install(folder, "--python", sys.executable)
        assert done.returncode == 0, done.stderr
        assert done.stdout.splitlines()[-1] == "done: ./assay-venv/bin/assay"
    shown = execute([tmp_path / "here" / "assay-venv" / "bin" / "assay"], folder=tmp_path)
    assert shown.stdout == "assay 0.1.0 stands in\n"


@pytest.mark.slow(reason="make test-packaging installs the bundle")
def test_a_failed_installation_leaves_nothing_behind(bundle, install, tmp_path: Path) -> None:
    folder = bundle()
    for wheel in (folder / "wheels").iterdir():
        wheel.unlink()
    done = install(folder, "--python", sys.executable, "chosen")
    assert done.returncode == 1
    assert "pip could not install the wheels" in done.stderr
    assert not (tmp_path / "here" / "chosen").exists()


def test_a_folder_that_holds_something_else_is_refused(bundle, install, tmp_path: Path) -> None:
    chosen = tmp_path / "here" / "chosen"
    chosen.mkdir()
    (chosen / "letters.txt").write_text("dear")
    done = install(bundle(), "--python", sys.executable, "chosen")
    assert done.returncode == 1
    assert "chosen exists and is no virtual environment; name another folder" in done.stderr
    assert [entry.name for entry in chosen.iterdir()] == ["letters.txt"]


def test_a_missing_python_is_named(bundle, install) -> None:
    done = install(bundle(), "--python", "/no/such/python3")
    assert done.returncode == 1
    assert f"/no/such/python3 is missing or does not run; install Python {RUNNING}" in done.stderr


@pytest.mark.parametrize("wanted", ["3.9", "3.99"])
def test_another_python_than_the_wheels_are_for_is_refused(bundle, install, wanted: str) -> None:
    done = install(bundle(python=wanted), "--python", sys.executable)
    assert done.returncode == 1
    assert f"is Python {RUNNING}, but the wheels of this bundle are for Python {wanted}" in done.stderr


def test_another_machine_is_refused(bundle, install) -> None:
    done = install(bundle(arch="s390x"), "--python", sys.executable)
    assert done.returncode == 1
    assert f"this machine is {platform.machine()}, but the bundle is for s390x" in done.stderr


def test_an_older_glibc_is_refused(bundle, install) -> None:
    done = install(bundle(glibc="2.999"), "--python", sys.executable)
    assert done.returncode == 1
    assert "this system has no glibc 2.999 or newer" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--force"], "unknown option --force"),
        (["--python"], "--python: give the program"),
        (["one", "two"], "give one folder, not both one and two"),
    ],
)
def test_wrong_arguments_are_named(bundle, install, arguments: list[str], message: str) -> None:
    done = install(bundle(), *arguments)
    assert done.returncode == 1
    assert message in done.stderr


def test_nothing_is_left_to_fill_in(bundle) -> None:
    folder = bundle()
    for name in ("install.sh", "README.md"):
        assert "@" not in (folder / name).read_text().replace('"$@"', "")
    assert os.access(folder / "install.sh", os.X_OK)


def test_equal_folders_give_equal_archives(builder: ModuleType, bundle, tmp_path: Path) -> None:
    folder = bundle()
    archives = [builder.write_archive(folder, tmp_path / name) for name in ("one.tar.gz", "two.tar.gz")]
    with tarfile.open(archives[0]) as one, tarfile.open(archives[1]) as two:
        assert [entry.get_info() for entry in one] == [entry.get_info() for entry in two]
        assert {(entry.uname, entry.mtime) for entry in one} == {("root", builder.ENTRY_TIME_S)}
    assert not list(tmp_path.glob("*.part"))
