"""`packaging/set-up.sh` names everything that is missing, one line each, with the command that gets it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

NEEDED_BY_THE_SCRIPT = ("bash", "env", "sed", "sort", "head", "cut", "dirname", "rm", "ln", "mktemp")


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

    def with_packages(self, **versions: str) -> Machine:
        """A distribution that has these packages, named with underscores: apt would install these versions."""
        named = {name.replace("_", "-"): version for name, version in versions.items()}
        cases = "\n".join(
            f"{name}) echo '{name}:'; echo '  Installed: (none)'; echo '  Candidate: {version}' ;;"
            for name, version in named.items()
        )
        names = " ".join(f"echo {name};" for name in named if name.startswith("rustc-1."))
        self.install(
            "apt-cache", f'case "$1" in\npkgnames) {names} exit 0 ;;\nesac\ncase "$2" in\n{cases}\n*) exit 0 ;;\nesac'
        )
        return self

    def set_up(self, *arguments: str, **variables: str):
        environment = {"PATH": str(self.programs), "HOME": str(self.checkout), **variables}
        script = self.checkout / "packaging" / "set-up.sh"
        return self.execute([self.programs / "bash", script, *arguments], folder=self.checkout, environment=environment)


@pytest.fixture
def machine(tmp_path: Path, root: Path, execute) -> Machine:
    return Machine(tmp_path, root, execute)


def test_everything_missing_is_named_at_once(machine: Machine) -> None:
    done = machine.set_up()
    assert done.returncode == 1
    python, packages, rust = done.stderr.splitlines()
    assert "Python 3.11 or newer is missing" in python
    assert "apt-get install python3" in python
    assert "Rust (cargo and rustc) 1.88 or newer is missing" in rust
    assert "https://sh.rustup.rs" in rust
    assert "sudo apt-get install gcc libc6-dev" in packages


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
    assert "set-up: installing packages: python3.11-venv gcc libc6-dev" in done.stdout
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


# Debian 12 and 13, Ubuntu 24.04, and a distribution whose own compiler is new enough
DISTRIBUTIONS = {
    "bookworm": (
        {"python3": "3.11.2-1+b1", "rustc": "1.63.0+dfsg1-2", "cargo": "0.66.0+ds1-1",
         "rustc_web": "1.96.0+dfsg1-1~deb12u2", "cargo_web": "1.96.0+dfsg1-1~deb12u2"},
        "python3 python3-venv gcc libc6-dev rustc-web cargo-web",
    ),
    "trixie": (
        {"python3": "3.13.5-1", "rustc": "1.85.1+dfsg1-1+deb13u1", "cargo": "1.85.1+dfsg1-1+deb13u1",
         "rustc_web": "1.96.0+dfsg1-1~deb13u1+b1", "cargo_web": "1.96.0+dfsg1-1~deb13u1+b1"},
        "python3 python3-venv gcc libc6-dev rustc-web cargo-web",
    ),
    "noble": (
        {"python3": "3.12.3-0ubuntu2", "rustc": "1.75.0+dfsg0ubuntu1-0ubuntu7", "cargo": "1.75.0+dfsg0ubuntu1-0ubuntu7",
         **{f"{name}_1.{number}": f"1.{number}.0+dfsg0ubuntu1~bpo0-0ubuntu0.24.04" for name in ("rustc", "cargo")
            for number in (80, 89, 9)}},
        "python3 python3-venv gcc libc6-dev rustc-1.89 cargo-1.89",
    ),
    "later": (
        {"python3": "2:3.15.1-1", "rustc": "1.99.0-1", "cargo": "1.99.0-1"},
        "python3 python3-venv gcc libc6-dev rustc cargo",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_root_installs_python_and_the_distributions_rust(machine: Machine, name: str) -> None:
    versions, wanted = DISTRIBUTIONS[name]
    machine.with_packages(**versions).with_root(apt_get="exit 100")
    done = machine.set_up()
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].endswith(f"Debian packages are missing: sudo apt-get install {wanted}")
    assert (
        (machine.checkout / "apt-get.log")
        .read_text()
        .splitlines()[0]
        .endswith(f"--no-remove --no-install-recommends {wanted}")
    )


def test_what_apt_brings_is_used(machine: Machine) -> None:
    machine.with_python("3.11.2").with_linker().with_packages(rustc_web="1.96.0+dfsg1", cargo_web="1.96.0+dfsg1")
    brings = "\n".join(
        f"printf '#!/bin/bash\\necho {name} 1.96.0' > {machine.programs}/{name}; chmod +x {machine.programs}/{name}"
        for name in ("rustc", "cargo")
    )
    (machine.programs / "chmod").symlink_to(shutil.which("chmod") or "/bin/chmod")
    done = machine.with_root(apt_get=brings).set_up()
    assert "set-up: installing packages: rustc-web cargo-web" in done.stdout
    assert "Rust 1.96.0, linker" in done.stdout


def test_a_machine_that_agrees_to_nothing_is_told_the_command(machine: Machine) -> None:
    machine.with_python("3.11.2").with_root(apt_get="exit 0").with_packages(rustc="1.99.0-1", cargo="1.99.0-1")
    done = machine.set_up(ASSAY_YES="0")
    assert done.returncode == 1
    assert done.stderr.endswith("sudo apt-get install gcc libc6-dev rustc cargo\n")
    assert not (machine.checkout / "apt-get.log").exists()


AGREED: list[tuple[list[str], dict[str, str]]] = [(["--yes"], {}), ([], {"ASSAY_YES": "1"}), ([], {"CI": "true"})]


@pytest.mark.parametrize(("arguments", "variables"), AGREED)
def test_sudo_is_used_where_that_was_agreed_to(
    machine: Machine, arguments: list[str], variables: dict[str, str]
) -> None:
    machine.with_python("3.11.2").with_rust("1.90.0").install("apt-get", "exit 1")
    machine.install("sudo", f'echo "$@" >> {machine.checkout}/sudo.log')
    machine.set_up()
    assert not (machine.checkout / "sudo.log").exists(), "nobody was there to be asked"
    machine.set_up(*arguments, **variables)
    said = (machine.checkout / "sudo.log").read_text()
    assert "apt-get install --yes" in said
    assert said.splitlines()[0].endswith("gcc libc6-dev")


def test_rustups_installer_is_taken_where_no_package_is_new_enough(machine: Machine) -> None:
    machine.with_python("3.11.2").with_linker().with_packages(rustc="1.63.0", cargo="0.66.0")
    folder = machine.checkout / ".cargo" / "bin"
    for name in ("cat", "chmod", "mkdir", "sh"):
        (machine.programs / name).symlink_to(shutil.which(name) or name)
    (machine.checkout / "installer").write_text(
        f"mkdir -p {folder}; for name in rustc cargo; do echo '#!/bin/sh' > {folder}/$name;"
        f" echo 'echo x 1.97.1' >> {folder}/$name; chmod +x {folder}/$name; done; echo arguments: $@"
    )
    copies = f'[ "$1" = --output ] && cat {machine.checkout}/installer > "$2"'
    machine.install("curl", f"while [ $# -gt 1 ]; do {copies}; shift; done")
    asked = machine.set_up()
    assert "curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh" in asked.stderr
    assert not folder.exists()

    done = machine.set_up("--yes")

    assert "arguments: -q -y --profile minimal --no-modify-path" in done.stdout
    assert f"Rust 1.97.1 ({folder})" in done.stdout


def test_an_installer_that_cannot_be_reached_leaves_the_command(machine: Machine) -> None:
    machine.with_python("3.11.2").with_linker().install("curl", "exit 6")
    done = machine.set_up("--yes")
    assert done.returncode == 1
    assert "https://sh.rustup.rs | sh" in done.stderr


def test_unknown_arguments_are_named(machine: Machine) -> None:
    assert machine.set_up("--no").stderr == "set-up: unknown argument --no; accepted: dev, --yes\n"


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
