"""Each recipe of docs/recipes.md, typed as it stands in a fresh root that has its folders, its device and its database.

The root is an overlay over this machine's, in name spaces of its own, with the only changes to it in a folder that is
removed. What takes half an hour is shortened by a function `assay`: `--quick` and short points where a recipe
measures, Ctrl-C after a while where it records a week. A function `systemctl` runs the recorder's unit for a while.
"""

from __future__ import annotations

import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs/recipes.md").read_text()
RECIPES = dict(re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", TEXT, flags=re.MULTILINE | re.DOTALL))
POSTGRES = glob.glob("/usr/lib/postgresql/*/bin/postgres")

INSIDE = r"""
set -e
root=$1/root
mkdir $1/upper $1/work $root
mount -t overlay overlay -o lowerdir=/,upperdir=$1/upper,workdir=$1/work $root
mount -t tmpfs none $root/dev
for name in null zero full random urandom tty; do cp -a /dev/$name $root/dev/; done
mkdir $root/dev/shm
mount -t tmpfs none $root/dev/shm
mount -t proc proc $root/proc
mount --rbind /sys $root/sys
ip link set lo up
echo '127.0.0.1 localhost db1' > $root/etc/hosts
mkdir -p $root/recipes
truncate -s 12G $1/storage
mkfs.ext4 -q $1/storage
mount -o loop $1/storage $root/recipes
truncate -s 256M $1/device
device=$(losetup --find --show $1/device)
trap 'losetup --detach $device' EXIT
cp -a $device $root/dev/sdb
for name in data other new mnt/a mnt/b mnt/volume; do
    mkdir -p $root/recipes/$name $root/$name
    mount --bind $root/recipes/$name $root/$name
done
mkdir $root/recipes/typed
chroot $root bash -c "$2"
"""
SERVER = r"""
set -e
cd /
as() { setpriv --reuid postgres --regid postgres --clear-groups "$@"; }
programs=$(dirname "$(ls /usr/lib/postgresql/*/bin/postgres | head -1)")
mkdir /db1
chown postgres /db1
as $programs/initdb --auth trust --pgdata /db1/data > /dev/null
as $programs/pg_ctl --wait --pgdata /db1/data --options "-k /db1" --log /db1/log start > /dev/null
trap 'as $programs/pg_ctl --mode immediate --pgdata /db1/data stop > /dev/null' EXIT
as psql -q -h db1 -d postgres -c 'CREATE ROLE monitor LOGIN' -c 'CREATE DATABASE shop OWNER monitor'
"""
TYPED = r"""
cd /recipes/typed
systemctl() {
    [ "$1" = enable ] || return 0
    local command=$(sed -n 's/^ExecStart=//p' "/etc/systemd/system/$3") code=0
    eval "timeout --signal INT 20 $command" || code=$?
    [ $code = 124 ]
}
assay() {
    local code=0 words=("${@/#30m/5s}")
    case "$1 $*" in
        assess*|profile*) words+=(--quick) ;;
        verify*--crash-journal*) words+=(--duration 5s) ;;
        record*'--for 7d'*) timeout --signal INT 20 assay "$@" || code=$?; [ $code = 124 ]; return ;;
    esac
    command assay "${words[@]}" || code=$?
    # Whether this machine meets a limit is no matter of a recipe's: 1 and 5 are answers, too.
    case $code in 0|1|5) ;; *) return 3 ;; esac
}
"""


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder on a file system that can lie beneath an overlay."""
    made = Path(tempfile.mkdtemp(prefix="assay-recipes-", dir="/var/tmp"))
    yield made
    shutil.rmtree(made)


def test_recipes_have_commands_and_show_what_they_print() -> None:
    assert len(RECIPES) == 10
    assert [name for name, text in RECIPES.items() if not re.search(r"^```sh\n", text, re.M)] == []
    assert [name for name, text in RECIPES.items() if not re.search(r"^```text\n", text, re.M)] == []


@pytest.mark.packaging
@pytest.mark.timeout(1800)
@pytest.mark.skipif(os.geteuid() != 0 or not POSTGRES, reason="needs root and PostgreSQL: apt-get install postgresql")
@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_works_as_it_stands(name: str, folder: Path) -> None:
    commands = "".join(re.findall(r"^```sh\n(.*?)^```$", RECIPES[name], flags=re.MULTILINE | re.DOTALL))
    server = SERVER if "@db1/" in commands else "set -e\n"
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"], "/usr/sbin", "/sbin"])
    spaces = ["--mount", "--net", "--pid", "--fork", "--kill-child", "--propagation", "private"]
    done = subprocess.run(
        ["unshare", *spaces, "bash", "-c", INSIDE, "bash", folder, f"{server}{TYPED}{commands}"],
        env=os.environ | {"PATH": path}, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    assert done.stdout.strip()
