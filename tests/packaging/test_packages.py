"""What users install works in an empty environment: a wheel, the checkout, the bundle; and the README's commands."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

pytestmark = [pytest.mark.packaging, pytest.mark.timeout(1800)]

PROFILE = ("profile", "null:?latency=200us", "--queue-depth", "1", "--duration", "1s", "--json")

Make = Callable[[str], Path]


def without_index() -> dict[str, str]:
    """An environment in which pip may ask nobody."""
    kept = {name: value for name, value in os.environ.items() if not re.match("(?i)pip_|.*_proxy$", name)}
    return kept | {"PIP_NO_INDEX": "1", "PIP_CONFIG_FILE": os.devnull}


def assert_works(assay: Path, execute, folder: Path) -> None:
    """The installed program names its version and measures."""
    shown = execute([assay, "--version"], folder=folder)
    assert shown.returncode == 0, shown.stderr
    assert re.match(r"assay \d+\.\d+\.\d+ \(.*, release, rustc ", shown.stdout)
    measured = execute([assay, *PROFILE], folder=folder)
    assert measured.returncode == 0, measured.stderr
    (point,) = json.loads(measured.stdout)["points"]
    # One I/O of 200 us after the other: never more than 5,000 a second, whatever the machine.
    assert 0 < point["total"]["iops"] <= 5_050
    assert point["total"]["latency_ns"]["p50"] >= 199_000


@pytest.fixture(scope="module")
def wheel(root: Path, execute, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    maturin = shutil.which("maturin", path=str(Path(sys.executable).parent))
    assert maturin is not None, "make set-up installs maturin"
    built = execute([maturin, "build", "--release", "--locked", "--out", folder], folder=root)
    assert built.returncode == 0, built.stderr
    (path,) = folder.glob("*.whl")
    return path


def test_the_wheel_holds_all_of_the_package_and_nothing_else(root: Path, wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if name.startswith("assay/")}
    sources = root / "python" / "assay"
    skipped = {"__pycache__", ".so", ".pyc"}
    wanted = {
        f"assay/{path.relative_to(sources)}"
        for path in sources.rglob("*")
        if path.is_file() and not skipped & {path.suffix, *path.parts}
    }
    assert names == wanted | {"assay/_core.abi3.so"}
    assert "-abi3-manylinux" in wheel.name


@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13", "3.14"])
def test_one_wheel_works_with_each_python(wheel: Path, execute, tmp_path: Path, version: str) -> None:
    python = f"python{version}"
    found = execute(["sh", "-c", f"{python} -c 'import ensurepip, sys; print(sys.executable)'"], folder=tmp_path)
    if found.returncode != 0:
        pytest.skip(f"{python} with its venv module is not installed here")
    programs = tmp_path / "venv" / "bin"
    for command in (
        [found.stdout.strip(), "-m", "venv", tmp_path / "venv"],
        [programs / "python", "-m", "pip", "install", "--quiet", "--only-binary", ":all:", wheel],
    ):
        done = execute(command, folder=tmp_path)
        assert done.returncode == 0, done.stderr
    assert_works(programs / "assay", execute, tmp_path)


def test_the_wheel_for_aarch64_is_linked_here(root: Path, execute, tmp_path: Path) -> None:
    if shutil.which("rustup") is None:
        pytest.skip("needs rustup, which brings Rust's library for aarch64")
    made = execute(
        [sys.executable, root / "packaging/release.py", "wheel", "--arch", "aarch64", "--output", tmp_path], folder=root
    )
    assert made.returncode == 0, made.stderr
    (wheel,) = tmp_path.glob("*-cp311-abi3-manylinux_2_28_aarch64.whl")
    with zipfile.ZipFile(wheel) as archive:
        head = archive.read("assay/_core.abi3.so")[:20]
    # e_machine of elf(5): EM_AARCH64. That no symbol is newer than glibc 2.28 is maturin's own check.
    assert int.from_bytes(head[18:20], "little") == 183


def test_the_checkout_can_be_installed(root: Path, make_environment: Make, execute, tmp_path: Path) -> None:
    programs = make_environment("from-checkout")
    installed = execute([programs / "python", "-m", "pip", "install", "--quiet", "."], folder=root)
    assert installed.returncode == 0, installed.stderr
    assert_works(programs / "assay", execute, tmp_path)


def test_the_bundle_installs_without_any_index(root: Path, execute, tmp_path: Path) -> None:
    made = execute([sys.executable, root / "packaging" / "bundle.py", "--output", tmp_path], folder=root)
    assert made.returncode == 0, made.stderr
    (archive,) = tmp_path.iterdir()
    assert re.fullmatch(r"assay-\d+\.\d+\.\d+-\w+\.tar\.gz", archive.name)
    with tarfile.open(archive) as tar:
        tar.extractall(tmp_path, filter="data")
    folder = tmp_path / archive.name.removesuffix(".tar.gz")
    (own,) = (folder / "wheels").glob("assay_storage-*.whl")
    assert "abi3-manylinux_2_28" in own.name
    command = ["sh", folder / "install.sh", "--python", sys.executable]
    installed = execute(command, folder=tmp_path, environment=without_index())
    assert installed.returncode == 0, installed.stderr
    assert_works(tmp_path / "assay-venv" / "bin" / "assay", execute, tmp_path)


def test_the_commands_of_readme_and_tour_work_in_order(root: Path, execute, tmp_path: Path) -> None:
    text = (root / "README.md").read_text() + (root / "docs/tour.md").read_text()
    shell = re.findall(r"^```(sh|python)\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)
    # Whether this machine's storage meets a limit is no matter of the README's: 1 and 5 are answers, too.
    script = 'set -eu\nassay() { command assay "$@" || case $? in 1|5) ;; *) return 3 ;; esac; }\n'
    for language, block in shell:
        script += block if language == "sh" else f"python - <<'PYTHON'\n{block}PYTHON\n"
    programs = str(Path(sys.executable).parent)
    environment = os.environ | {"PATH": os.pathsep.join([programs, os.environ["PATH"]])}
    done = execute(["bash", "-c", script], folder=tmp_path, environment=environment)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    for name in ("comparison.html", "evening.json"):
        assert (tmp_path / name).stat().st_size > 0
    (before,) = (tmp_path / "before").iterdir()
    assert {"report.html", "report.pdf", "points.csv", "fio.json"} <= {path.name for path in before.iterdir()}
