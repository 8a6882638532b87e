"""Evidence of findings: images, differences and history on disk."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest

from assay.base.errors import IoFailed
from assay.workloads.integrity.evidence import difference_lines, headline, write_evidence


def finding(**fields: Any) -> dict[str, Any]:
    return {"id": "F0007", "kind": "corrupt", "also": [], "persistent": True, "file": "f", "page": 2,
            "offset_bytes": 16384, "explanation": "Two bits differ.", "units": [], "expected": None,
            **fields}  # fmt: skip


def raw(expected: bytes | None, received: bytes | None, *others: bytes) -> dict[str, Any]:
    def text(image: bytes | None) -> str | None:
        return None if image is None else base64.b64encode(image).decode()

    return {"expected_image": text(expected), "received_image": text(received),
            "other_images": [text(other) for other in others], "history": []}  # fmt: skip


def test_every_image_has_a_file(tmp_path: Path) -> None:
    where = write_evidence(tmp_path, finding(), raw(b"a" * 32, b"b" * 32, b"c" * 32))

    folder = tmp_path / "evidence/F0007"
    assert where == "evidence/F0007"
    assert {path.name: path.read_bytes()[:1] for path in folder.glob("*.bin")} == {
        "expected.bin": b"a", "received.bin": b"b", "received-1.bin": b"c"
    }  # fmt: skip


def test_without_images_it_says_so(tmp_path: Path) -> None:
    write_evidence(tmp_path, finding(kind="io_error"), raw(None, None))

    folder = tmp_path / "evidence/F0007"
    assert sorted(path.name for path in folder.iterdir()) == ["differences.txt", "history.txt"]
    assert (folder / "differences.txt").read_text().endswith("no images were kept\n")


def test_it_is_replaced_when_more_is_known(tmp_path: Path) -> None:
    write_evidence(tmp_path, finding(kind="lost"), raw(b"a", b"b"))
    write_evidence(tmp_path, finding(kind="misdirected_write"), raw(b"a", b"b"))

    text = (tmp_path / "evidence/F0007/differences.txt").read_text()
    assert text.startswith("misdirected_write (persistent) in f, page 2")


def test_only_lines_that_differ_are_shown() -> None:
    expected = bytes(64)
    received = bytearray(expected)
    received[20] = received[63] = 0xFF

    lines = list(difference_lines(finding(), expected, bytes(received)))

    table = lines[lines.index("") + 2 :]
    assert table == [
        "...",
        f"000010  {bytes(16).hex(' ')}  00 00 00 00 ff 00 00 00 00 00 00 00 00 00 00 00",
        "...",
        f"000030  {bytes(16).hex(' ')}  00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 ff",
    ]


def test_a_short_image_is_shown_as_far_as_it_goes() -> None:
    assert list(difference_lines(finding(), bytes(16), bytes(8)))[-1] == (
        f"000000  {bytes(16).hex(' ')}  {bytes(8).hex(' ')}"
    )


def test_the_headline_names_what_cannot_be_told_apart() -> None:
    lost = finding(kind="lost", also=["misdirected_write"], persistent=True)

    assert headline(lost) == "lost, or misdirected_write (persistent) in f, page 2, offset 16384"


def test_names_cannot_break_lines(tmp_path: Path) -> None:
    write_evidence(tmp_path, finding(file="a\nb\u202e"), raw(b"a", b"b"))

    assert "in a\\nb\\u202e, page 2" in (tmp_path / "evidence/F0007/history.txt").read_text()


def test_a_folder_that_cannot_be_made_is_an_error_of_the_environment(tmp_path: Path) -> None:
    (tmp_path / "evidence").write_text("a file")

    with pytest.raises(IoFailed, match="cannot write"):
        write_evidence(tmp_path, finding(), raw(b"a", b"b"))
