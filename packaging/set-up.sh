#!/usr/bin/env bash
# Makes .venv with what building Assay needs; with the argument `dev` also what testing, linting and bundling need.
# Safe to run again: it installs only what is missing. `make` runs it when pyproject.toml has changed.
#
# Packages of Debian and Ubuntu are installed as root, or with sudo. If no package of Rust is new enough, rustup's own
# installer is taken. It asks on a terminal before it uses sudo or rustup. Elsewhere `--yes`, ASSAY_YES=1 or CI=true
# agree; otherwise it says the command and ends. With ASSAY_YES=0 it installs nothing but .venv.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

wants_dev=false
for argument in "$@"; do
    case "$argument" in
        dev) wants_dev=true ;;
        --yes) ASSAY_YES=1 ;;
        *) printf 'set-up: unknown argument %s; accepted: dev, --yes\n' "$argument" >&2; exit 2 ;;
    esac
done

say() { printf 'set-up: %s\n' "$*"; }

# Both versions are written down once, where pip and cargo read them.
python_least=$(sed -n 's/^requires-python = ">=\([0-9.]*\)"/\1/p' pyproject.toml)
rust_least=$(sed -n 's/^rust-version = "\([0-9.]*\)"/\1/p' Cargo.toml)
rustup_command="curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh"

is_at_least() { # VERSION LEAST
    [ "$(printf '%s\n%s\n' "$2" "$1" | sort --version-sort | head --lines=1)" = "$2" ]
}

agrees() { # QUESTION
    case "${ASSAY_YES:-}" in
        1) return 0 ;;
        0) return 1 ;;
    esac
    if [ -t 0 ] && [ -t 2 ]; then
        local answer
        read -r -p "set-up: $1? [Y/n] " answer
        [[ ! "$answer" =~ ^[Nn] ]]
    else
        [ "${CI:-}" = true ]
    fi
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

rust_version() { # FOLDER, or nothing for the PATH; prints nothing if there is no compiler with its cargo
    # rustup's stand-ins are there even when no toolchain is, so the compiler is asked rather than looked for.
    local version
    version=$(PATH="${1:+$1:}$PATH" rustc --version 2>/dev/null | cut -d ' ' -f 2 || true)
    if [ -n "$version" ] && PATH="${1:+$1:}$PATH" cargo --version >/dev/null 2>&1; then
        echo "${version%%-*}"
    fi
}

find_rust() { # sets rust and rust_folder: the first that is new enough, in the PATH, of rustup, of a numbered package
    local folder version
    rust="" rust_folder="" rust_found=$(rust_version "")
    for folder in "" "${CARGO_HOME:-${HOME:-/nowhere}/.cargo}/bin" $(compgen -G '/usr/lib/rust-*/bin' | sort --version-sort --reverse); do
        version=$(rust_version "$folder")
        if [ -n "$version" ] && is_at_least "$version" "$rust_least"; then
            rust=$version rust_folder=$folder
            return
        fi
    done
}

candidate() { # PACKAGE; the version that apt would install, without the distribution's part of it
    apt-cache policy "$1" 2>/dev/null | sed -n 's/^ *Candidate: \([0-9]*:\)\{0,1\}\([0-9][0-9.]*\).*/\2/p' || true
}

rust_packages() { # the packages of a Rust that is new enough; nothing where the distribution has none
    local compiler
    for compiler in rustc rustc-web $(apt-cache pkgnames rustc-1. 2>/dev/null | sort --version-sort --reverse); do
        if is_at_least "$(candidate "$compiler")" "$rust_least" && [ -n "$(candidate "${compiler/rustc/cargo}")" ]; then
            echo "$compiler ${compiler/rustc/cargo}"
            return
        fi
    done
}

install_packages() { # says what it does; fails if it may not, or apt-get does
    local apt=(env DEBIAN_FRONTEND=noninteractive apt-get)
    if [ "${ASSAY_YES:-}" = 0 ] || ! command -v apt-get >/dev/null; then
        return 1
    fi
    if [ "$(id -u)" -ne 0 ]; then
        command -v sudo >/dev/null && agrees "install $* with sudo apt-get" || return 1
        apt=(sudo "${apt[@]}")
    fi
    say "installing packages: $*"
    # Nothing of this machine is taken away for it. Lists that are there are not fetched again without need.
    "${apt[@]}" install --yes --quiet=2 --no-remove --no-install-recommends "$@" </dev/null >/dev/null 2>&1 ||
        { "${apt[@]}" update --quiet=2 </dev/null >/dev/null &&
            "${apt[@]}" install --yes --quiet=2 --no-remove --no-install-recommends "$@" </dev/null >/dev/null; }
}

lint_packages() { # rustfmt and clippy of the compiler, where they are packages and not there
    local cargo_path="${rust_folder:+$rust_folder:}$PATH" number=${rust_folder#/usr/lib/rust-}
    if command -v rustup >/dev/null || { PATH="$cargo_path" cargo fmt --version && PATH="$cargo_path" cargo clippy --version; } >/dev/null 2>&1; then
        return
    elif [[ "$rust_folder" == /usr/lib/rust-* ]]; then
        echo "rustfmt-${number%/bin} rust-${number%/bin}-clippy"
    elif [ -n "$(candidate rustc-web)" ] && dpkg-query --show rustc-web >/dev/null 2>&1; then
        echo "rustfmt-web rust-web-clippy"
    elif dpkg-query --show rustc >/dev/null 2>&1; then
        echo "rustfmt rust-clippy"
    fi
}

install_rustup() { # fails if it may not, or cannot be reached
    local script
    if command -v rustup >/dev/null; then
        agrees "install the newest stable Rust with rustup" && rustup default stable
        return
    fi
    agrees "install Rust into ${CARGO_HOME:-$HOME/.cargo} with rustup's installer (https://rustup.rs)" || return 1
    { command -v curl || command -v wget; } >/dev/null || install_packages curl ca-certificates || return 1
    script=$(mktemp)
    say "installing Rust with rustup's installer"
    if command -v curl >/dev/null; then
        curl --proto '=https' --tlsv1.2 --silent --show-error --fail --max-time 60 --output "$script" https://sh.rustup.rs
    else
        wget --https-only --quiet --timeout=60 --output-document="$script" https://sh.rustup.rs
    fi && sh "$script" -q -y --profile minimal --no-modify-path || { rm -f "$script"; return 1; }
    rm -f "$script"
}

python=$(find_python)
find_rust
# A fresh container has no lists of packages, or old ones, and only they tell which Rust the distribution has.
if [ "$(id -u)" -eq 0 ] && [ "${ASSAY_YES:-}" != 0 ] && command -v apt-get >/dev/null && {
    { [ -z "$python" ] && [ -z "$(candidate python3)" ]; } || { [ -z "$rust" ] && [ -z "$(rust_packages)" ]; }
}; then
    say "fetching the lists of packages"
    apt-get update --quiet=2 </dev/null >/dev/null || true
fi

missing=()  # one clear line each
packages=() # without which nothing works
if [ -z "$python" ] && is_at_least "$(candidate python3)" "$python_least"; then
    packages+=(python3 python3-venv)
elif [ -z "$python" ]; then
    found=$(python_version python3)
    missing+=("Python $python_least or newer is missing${found:+ (python3 is $found)}: apt-get install python3 on Debian 12, Ubuntu 24.04 or newer; or name one with PYTHON=/path/to/python3")
elif ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
    packages+=("python$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')-venv")
fi
command -v cc >/dev/null || packages+=(gcc libc6-dev)
rust_wanted=""
if [ -z "$rust" ] && ! command -v rustup >/dev/null; then
    rust_wanted=$(rust_packages)
    read -r -a wanted <<<"$rust_wanted"
    packages+=(${wanted[@]+"${wanted[@]}"})
fi

if [ ${#packages[@]} -gt 0 ] && ! install_packages "${packages[@]}"; then
    missing+=("Debian packages are missing: sudo apt-get install ${packages[*]}")
fi
[ -n "$python" ] || python=$(find_python)
[ -n "$rust" ] || find_rust
if [ -z "$rust" ] && [ -z "$rust_wanted" ] && install_rustup; then
    find_rust
fi
if [ -z "$rust" ] && [ -z "$rust_wanted" ]; then
    if [ -n "$rust_found" ]; then
        missing+=("rustc $rust_found is too old, $rust_least or newer is needed: rustup update stable (Debian's own rustc may be older)")
    else
        missing+=("Rust (cargo and rustc) $rust_least or newer is missing: $rustup_command; if rustup is there: rustup default stable")
    fi
elif [ -z "$rust" ] && [ ${#missing[@]} -eq 0 ]; then
    missing+=("$rust_wanted brought no Rust $rust_least or newer: $rustup_command")
fi
if [ ${#missing[@]} -gt 0 ]; then
    printf 'set-up: %s\n' "${missing[@]}" >&2
    exit 1
fi

if [ "$wants_dev" = true ]; then
    wanted_packages=()  # some tests and the benchmarks use them
    service_packages=() # the same, but the package starts a service where there is an init system
    for pair in fio:fio fusermount3:fuse3 mkfs.ext4:e2fsprogs parted:parted \
        mariadbd:mariadb-server-core my_print_defaults:mariadb-client-core; do
        # Not every account has the administrator's folders in its PATH.
        PATH="$PATH:/usr/sbin:/sbin" command -v "${pair%%:*}" >/dev/null || wanted_packages+=("${pair##*:}")
    done
    read -r -a wanted <<<"$(lint_packages)"
    wanted_packages+=(${wanted[@]+"${wanted[@]}"})
    # Tests start servers of their own, so only the programs are needed. MariaDB's come without a service. PostgreSQL's
    # package makes a cluster and starts it, which a container without an init system does not do.
    if [ -z "$(compgen -G '/usr/lib/postgresql/*/bin/postgres')" ]; then
        if [ -d /run/systemd/system ]; then
            service_packages+=(postgresql)
        else
            wanted_packages+=(postgresql)
        fi
    fi
    if [ ${#wanted_packages[@]} -gt 0 ] && ! install_packages "${wanted_packages[@]}"; then
        say "tests that need them will be skipped; to run all: sudo apt-get install ${wanted_packages[*]}"
    fi
    if [ ${#service_packages[@]} -gt 0 ]; then
        say "not installed, as it starts a service; tests that need it will be skipped; to run all: sudo apt-get install ${service_packages[*]}"
    fi
fi
say "Python $(python_version "$python") ($python), Rust $rust${rust_folder:+ ($rust_folder)}, linker $(command -v cc)"

if [ -z "$(python_version .venv/bin/python)" ]; then
    say "creating .venv"
    "$python" -m venv --clear .venv
fi
# The Makefile looks for cargo here first.
rm -f .venv/rust
[ -z "$rust_folder" ] || ln -s "$rust_folder" .venv/rust
pip=(.venv/bin/python -m pip --disable-pip-version-check --quiet)
# Dependency groups came with pip 25.1; a fresh environment has the older pip of its Python.
is_at_least "$(.venv/bin/python -c 'import pip; print(pip.__version__)')" 25.1 || {
    say "updating pip in .venv"
    "${pip[@]}" install --upgrade 'pip>=25.1'
}
if [ "$wants_dev" = true ]; then
    say "installing tools for building, testing, linting and bundling into .venv"
    "${pip[@]}" install --group build --group test --group lint --group bundle
else
    say "installing the build tool into .venv"
    "${pip[@]}" install --group build
fi
