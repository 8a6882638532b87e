"""Lost writes are named by the file, the journal or the metadata that they belong to, whatever the file system."""

from __future__ import annotations

import mmap
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from assay.insight.crash.file_systems import FILE_SYSTEMS
from assay.insight.crash.places import JOURNAL, METADATA, places_of
from assay.insight.crash.requests import LostWrite
from mounting import needs_loops

CONTENT = os.urandom(4096)


class MountedImage:
    """A file system in an image, mounted by a loop device as a stage mounts its volume."""

    def __init__(self, kind: str, folder: Path) -> None:
        self.file_system, self.folder = kind, folder / "mounted"
        self.device = str(folder / "image")
        self.folder.mkdir()

    def mount(self) -> None:
        subprocess.run(["mount", "-o", "loop", self.device, self.folder], check=True)

    def unmount(self) -> None:
        subprocess.run(["umount", self.folder], check=True)


def lost(offset_bytes: int) -> LostWrite:
    return LostWrite(request=0, at_ns=0, offset_bytes=offset_bytes, length_bytes=512, lost_bytes=512)


def first_of(content: bytes, device: str) -> int:
    """Where some bytes are first on a device."""
    with open(device, "rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as mapped:
        return mapped.find(content)


@needs_loops
@pytest.mark.parametrize(("kind", "more"), [("ext4", ()), ("ext4", ("-b", "1024")), ("xfs", ())])
def test_a_lost_write_is_named_by_its_file(kind: str, more: tuple[str, ...], tmp_path: Path) -> None:
    file_system = FILE_SYSTEMS[kind]
    if shutil.which(file_system.make[0]) is None:
        pytest.skip(f"needs {file_system.make[0]}")
    image = MountedImage(kind, tmp_path)
    with open(image.device, "wb") as file:
        file.truncate(file_system.size_bytes)
    subprocess.run([*file_system.make, *more, image.device], check=True)
    image.mount()
    (image.folder / "base").mkdir()
    (image.folder / "base/16384").write_bytes(bytes(8192) + CONTENT)
    image.unmount()
    place = first_of(CONTENT, image.device)

    found = [one.place for one in places_of([lost(place), lost(place + 512), lost(0)], image)]  # type: ignore[arg-type]

    assert found == ["/base/16384", "/base/16384", METADATA]
    magic = {"ext4": bytes.fromhex("c03b3998"), "xfs": bytes.fromhex("feedbabe")}[kind]
    assert places_of([lost(first_of(magic, image.device))], image)[0].place == JOURNAL  # type: ignore[arg-type]
