#!/bin/sh
# Installs Assay @VERSION@ from the wheels beside this script; no package index, no network, no root.
set -eu

PYTHON_WANTED=@PYTHON@
ARCH_WANTED=@ARCH@
GLIBC_LEAST=@GLIBC@

fail() {
    printf 'install.sh: %s\n' "$*" >&2
    exit 1
}

usage() {
    cat <<END
usage: sh install.sh [--python PROGRAM] [FOLDER]

Makes a virtual environment in FOLDER (./assay-venv) and installs Assay @VERSION@ there from the wheels in this bundle.
Needs Python @PYTHON@ with its venv module, $ARCH_WANTED, glibc $GLIBC_LEAST or newer.
END
}

folder=
python=
while [ $# -gt 0 ]; do
    case $1 in
    -h | --help)
        usage
        exit 0
        ;;
    --python)
        [ $# -ge 2 ] || fail "--python: give the program, such as --python /usr/bin/python$PYTHON_WANTED"
        python=$2
        shift
        ;;
    -*) fail "unknown option $1; sh install.sh --help lists what is accepted" ;;
    *)
        [ -z "$folder" ] || fail "give one folder, not both $folder and $1"
        folder=$1
        ;;
    esac
    shift
done
folder=${folder:-./assay-venv}
here=$(cd "$(dirname "$0")" && pwd)

version_of() { # PROGRAM; prints nothing if it does not run
    "$1" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null || true
}

if [ -z "$python" ]; then
    python=python3
    # The one with the wanted version in its name may stand beside another python3.
    [ "$(version_of "python$PYTHON_WANTED")" != "$PYTHON_WANTED" ] || python=python$PYTHON_WANTED
fi
found=$(version_of "$python")
if [ -z "$found" ]; then
    fail "$python is missing or does not run; install Python $PYTHON_WANTED (apt-get install python3 python3-venv), or name it with --python"
fi
if [ "$found" != "$PYTHON_WANTED" ]; then
    fail "$python is Python $found, but the wheels of this bundle are for Python $PYTHON_WANTED; name that one with --python, or make a bundle with Python $found (make bundle)"
fi
[ "$(uname -m)" = "$ARCH_WANTED" ] || fail "this machine is $(uname -m), but the bundle is for $ARCH_WANTED"
"$python" - "$GLIBC_LEAST" <<'END' || fail "this system has no glibc $GLIBC_LEAST or newer, which the wheels need"
import platform
import sys

name, version = platform.libc_ver()
as_numbers = [[int(part) for part in text.split(".")[:2]] for text in (version or "0.0", sys.argv[1])]
sys.exit(name != "glibc" or as_numbers[0] < as_numbers[1])
END
"$python" -c 'import ensurepip, venv' 2>/dev/null ||
    fail "$python has no venv module; install it (apt-get install python$PYTHON_WANTED-venv), or name another Python with --python"
if [ -e "$folder" ] && [ ! -e "$folder/pyvenv.cfg" ]; then
    [ -d "$folder" ] && [ -z "$(ls -A "$folder")" ] ||
        fail "$folder exists and is no virtual environment; name another folder"
fi

if [ -e "$folder/pyvenv.cfg" ]; then
    made=
else
    made=yes
    echo "making $folder with Python $found"
    "$python" -m venv "$folder" || { rm -rf "$folder"; fail "$folder cannot be made; the reason is above"; }
fi
echo "installing Assay @VERSION@ from $here/wheels"
if ! "$folder/bin/python" -m pip install --quiet --disable-pip-version-check --no-index \
    --find-links "$here/wheels" "assay-storage[all]==@VERSION@"; then
    # What was there before stays.
    [ -z "$made" ] || rm -rf "$folder"
    fail "pip could not install the wheels; the reason is above"
fi
echo "done: $folder/bin/assay"
