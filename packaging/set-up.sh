#!/usr/bin/env bash
# Makes .venv with what building Assay needs; with the argument `dev` also what testing, linting and bundling need.
# Safe to run again: it installs only what is missing. `make` runs it when pyproject.toml has changed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

say() { printf 'set-up: %s\n' "$*"; }

# Both versions are written down once, where pip and cargo read them.
python_least=$(sed -n 's/^requires-python = ">=\([0-9.]*\)"/\1/p' pyproject.toml)
rust_least=$(sed -n 's/^rust-version = "\([0-9.]*\)"/\1/p' Cargo.toml)

is_at_least() { # VERSION LEAST
    [ "$(printf '%s\n%s\n' "$2" "$1" | sort --version-sort | head --lines=1)" = "$2" ]
}

python_version() { # PROGRAM; prints nothing if it does not run
    "$1" -c 'import platform; print(platform.python_version())' 2>/dev/null || true
}

find_python() { # the first that is new enough: $PYTHON, python3, then the newest that has a number in its name
    local candidate version
    for candidate in ${PYTHON:-} python3 python3.14 python3.13 python3.12 python3.11; do
        version=$(python_version "$candidate")
        if [ -n "$version" ] && is_at_least "$version" "$python_least"; then
            command -v "$candidate"
            return
        fi
    done
}

missing=()          # one clear line each
packages=()         # Debian packages without which nothing works
wanted_packages=()  # Debian packages that some tests and the benchmarks use
service_packages=() # the same, but the package starts a service where there is an init system

python=$(find_python)
if [ -z "$python" ]; then
    found=$(python_version python3)
    missing+=("Python $python_least or newer is missing${found:+ (python3 is $found)}: apt-get install python3 on Debian 12, Ubuntu 24.04 or newer; or name one with PYTHON=/path/to/python3")
elif ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
    packages+=("python$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')-venv")
fi

# rustup's stand-ins are there even when no toolchain is, so the compiler is asked rather than looked for.
rust=$(rustc --version 2>/dev/null | cut -d ' ' -f 2 || true)
if [ -z "$rust" ] || ! cargo --version >/dev/null 2>&1; then
    missing+=("Rust (cargo and rustc) $rust_least or newer is missing: install rustup from https://rustup.rs, then: rustup default stable")
elif ! is_at_least "${rust%%-*}" "$rust_least"; then
    missing+=("rustc $rust is too old, $rust_least or newer is needed: rustup update stable (Debian's own rustc may be older)")
fi

command -v cc >/dev/null || packages+=(gcc libc6-dev)

if [ "${1:-}" = dev ]; then
    for pair in fio:fio fusermount3:fuse3 mkfs.ext4:e2fsprogs parted:parted \
        mariadbd:mariadb-server-core my_print_defaults:mariadb-client-core; do
        # Not every account has the administrator's folders in its PATH.
        PATH="$PATH:/usr/sbin:/sbin" command -v "${pair%%:*}" >/dev/null || wanted_packages+=("${pair##*:}")
    done
    # Tests start servers of their own, so only the programs are needed. MariaDB's come without a service. PostgreSQL's
    # package makes a cluster and starts it, which a container without an init system does not do.
    if [ -z "$(compgen -G '/usr/lib/postgresql/*/bin/postgres')" ]; then
        if [ -d /run/systemd/system ]; then
            service_packages+=(postgresql)
        else
            wanted_packages+=(postgresql)
        fi
    fi
fi

install_packages() { # says what it does; fails if apt-get does
    say "installing Debian packages: $*"
    export DEBIAN_FRONTEND=noninteractive
    # A fresh container has no package lists; lists that are there are not fetched again without need.
    apt-get install --yes --quiet=2 --no-install-recommends "$@" </dev/null >/dev/null 2>&1 ||
        { apt-get update --quiet=2 </dev/null &&
            apt-get install --yes --quiet=2 --no-install-recommends "$@" </dev/null >/dev/null; }
}

may_install() { [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; }

if [ ${#packages[@]} -gt 0 ]; then
    if ! may_install || ! install_packages "${packages[@]}"; then
        missing+=("Debian packages are missing: sudo apt-get install ${packages[*]}")
    fi
fi
if [ ${#missing[@]} -gt 0 ]; then
    printf 'set-up: %s\n' "${missing[@]}" >&2
    exit 1
fi
if [ ${#wanted_packages[@]} -gt 0 ]; then
    if ! may_install || ! install_packages "${wanted_packages[@]}"; then
        say "tests that need them will be skipped; to run all: sudo apt-get install ${wanted_packages[*]}"
    fi
fi
if [ ${#service_packages[@]} -gt 0 ]; then
    say "not installed, as it starts a service; tests that need it will be skipped; to run all: sudo apt-get install ${service_packages[*]}"
fi
say "Python $(python_version "$python") ($python), Rust $rust, linker $(command -v cc)"

if [ -z "$(python_version .venv/bin/python)" ]; then
    say "creating .venv"
    "$python" -m venv --clear .venv
fi
pip=(.venv/bin/python -m pip --disable-pip-version-check --quiet)
# Dependency groups came with pip 25.1; a fresh environment has the older pip of its Python.
is_at_least "$(.venv/bin/python -c 'import pip; print(pip.__version__)')" 25.1 || {
    say "updating pip in .venv"
    "${pip[@]}" install --upgrade 'pip>=25.1'
}
if [ "${1:-}" = dev ]; then
    say "installing tools for building, testing, linting and bundling into .venv"
    "${pip[@]}" install --group build --group test --group lint --group bundle
else
    say "installing the build tool into .venv"
    "${pip[@]}" install --group build
fi
