"""`packaging/set-up.sh` names everything that is missing, one line each, with the command that gets it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

NEEDED_BY_THE_SCRIPT = ("bash", "env", "sed", "sort", "head", "cut", "dirname")


class Machine:
    """A checkout, and programs that stand for what is installed."""

    def __init__(self, folder: Path, root: Path, execute) -> None:
        self.checkout = folder / "checkout"
        self.programs = folder / "programs"
        self.execute = execute
        (self.checkout / "packaging").mkdir(parents=True)
        self.programs.mkdir()
        for name in ("pyproject.toml", "Cargo.toml", "packaging/set-up.sh"):
            shutil.copy(root / name, self.checkout / name)
        for name in NEEDED_BY_THE_SCRIPT:
            found = shutil.which(name)
            assert found is not None
            (self.programs / name).symlink_to(found)
        self.install("id", "echo 1000")

    def install(self, name: str, script: str) -> None:
        path = self.programs / name
        path.write_text(f"#!/bin/bash\n{script}\n")
        path.chmod(0o755)

    def with_python(self, version: str, *, has_venv: bool = True) -> Machine:
        self.install(
            "python3",
            f"""case "$2" in
            *platform*) echo {version} ;;
            *ensurepip*) exit {0 if has_venv else 1} ;;
            *version_info*) echo {version.rpartition(".")[0]} ;;
            *) echo "called: $@"; exit 7 ;;
            esac""",
        )
        return self

    def with_rust(self, version: str) -> Machine:
        for name in ("rustc", "cargo"):
            self.install(name, f"echo '{name} {version} (0123456789 2026-01-01)'")
        return self

    def with_linker(self) -> Machine:
        self.install("cc", "exit 0")
        return self

    def with_root(self, *, apt_get: str) -> Machine:
        self.install("id", "echo 0")
        self.install("apt-get", f'echo "$@" >> {self.checkout}/apt-get.log; {apt_get}')
        return self

    def set_up(self, *arguments: str):
        environment = {"PATH": str(self.programs), "HOME": str(self.checkout)}
        script = self.checkout / "packaging" / "set-up.sh"
        return self.execute([self.programs / "bash", script, *arguments], folder=self.checkout, environment=environment)


@pytest.fixture
def machine(tmp_path: Path, root: Path, execute) -> Machine:
    return Machine(tmp_path, root, execute)


def test_everything_missing_is_named_at_once(machine: Machine) -> None:
    done = machine.set_up()
    assert done.returncode == 1
    lines = done.stderr.splitlines()
    assert len(lines) == 3
    assert "Python 3.11 or newer is missing" in lines[0]
    assert "apt-get install python3" in lines[0]
    assert "Rust (cargo and rustc) 1.88 or newer is missing" in lines[1]
    assert "https://rustup.rs" in lines[1]
    assert "sudo apt-get install gcc libc6-dev" in lines[2]


def test_an_old_python_is_named_with_its_version(machine: Machine) -> None:
    done = machine.with_python("3.10.13").with_rust("1.90.0").with_linker().set_up()
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert "Python 3.11 or newer is missing (python3 is 3.10.13)" in line


def test_a_python_without_venv_needs_its_debian_package(machine: Machine) -> None:
    done = machine.with_python("3.12.3", has_venv=False).with_rust("1.90.0").with_linker().set_up()
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.endswith("sudo apt-get install python3.12-venv")


def test_an_old_rust_is_named_with_its_version(machine: Machine) -> None:
    done = machine.with_python("3.11.2").with_rust("1.63.0").with_linker().set_up()
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert "rustc 1.63.0 is too old, 1.88 or newer is needed: rustup update stable" in line


def test_rustup_without_a_toolchain_counts_as_missing(machine: Machine) -> None:
    machine.with_python("3.11.2").with_linker()
    for name in ("rustc", "cargo"):
        machine.install(name, "echo 'error: no default toolchain' >&2; exit 1")
    done = machine.set_up()
    assert done.returncode == 1
    assert "rustup default stable" in done.stderr


def test_versions_compare_as_numbers(machine: Machine) -> None:
    done = machine.with_python("3.100.0").with_rust("1.100.0").with_linker().set_up()
    assert "set-up: Python 3.100.0" in done.stdout
    assert "Rust 1.100.0" in done.stdout


def test_root_installs_debian_packages_and_says_so(machine: Machine) -> None:
    machine.with_python("3.11.2", has_venv=False).with_rust("1.90.0").with_root(apt_get="exit 0")
    done = machine.set_up()
    assert "set-up: installing Debian packages: python3.11-venv gcc libc6-dev" in done.stdout
    (call,) = (machine.checkout / "apt-get.log").read_text().splitlines()
    assert call.startswith("install --yes")
    assert call.endswith("python3.11-venv gcc libc6-dev")


def test_root_without_network_is_told_the_command(machine: Machine) -> None:
    machine.with_python("3.11.2").with_rust("1.90.0").with_root(apt_get="exit 100")
    done = machine.set_up()
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].endswith("Debian packages are missing: sudo apt-get install gcc libc6-dev")
    calls = (machine.checkout / "apt-get.log").read_text().split()
    assert "update" in calls


def test_packages_that_only_tests_use_do_not_stop_the_set_up(machine: Machine) -> None:
    machine.with_python("3.11.2").with_rust("1.90.0").with_linker()
    # The administrator's folders are looked into as well, so only fio can be relied on to be missing.
    for name in ("fusermount3", "mkfs.ext4", "parted"):
        machine.install(name, "exit 0")
    done = machine.set_up("dev")
    assert "set-up: tests that need them will be skipped; to run all: sudo apt-get install fio" in done.stdout
    assert "set-up: creating .venv" in done.stdout


def test_a_failure_to_make_the_environment_ends_the_set_up(machine: Machine) -> None:
    done = machine.with_python("3.11.2").with_rust("1.90.0").with_linker().set_up()
    assert "called: -m venv --clear .venv" in done.stdout
    assert done.returncode == 7
