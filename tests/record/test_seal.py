"""Seals of folders: every changed, added, removed or moved byte, line and file is named, and nothing that is whole."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.base.errors import UsageError
from assay.record.seal import NAME, CheckedSeal, check_seal, seal_folder
from assay.record.seal_chain import PIECE_BYTES, read_chain
from assay.record.seal_keys import fingerprint, is_signed, public_key, signer
from contract_recordings import MINUTE, of, readings, record

pytest.importorskip("cryptography")

NOW_NS = 1_793_600_000 * 10**9


@pytest.fixture(scope="module")
def key(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An Ed25519 key in PEM, with its public key beside it."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

    folder, made = tmp_path_factory.mktemp("key"), Ed25519PrivateKey.generate()
    path = folder / "seal.key"
    path.write_bytes(made.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    public = made.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)
    path.with_suffix(".pub").write_bytes(public + b" somebody@host\n")
    return path


@pytest.fixture(scope="module")
def sealed(tmp_path_factory: pytest.TempPathFactory, key: Path) -> Path:
    """A folder with three files and a signed seal; only copied."""
    folder = tmp_path_factory.mktemp("sealed")
    (folder / "series").mkdir()
    source = random.Random(5)
    for name, size in (
        ("run.json", 90),
        ("points.jsonl", 3 * PIECE_BYTES + 7),
        ("series/p0001.arrow", 2 * PIECE_BYTES),
    ):
        (folder / name).write_bytes(source.randbytes(size))
    seal_folder(folder, now_ns=NOW_NS, sign=signer(key))
    return folder


@pytest.fixture
def folder(sealed: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(sealed, tmp_path / "run"))


def check(folder: Path, head: str = "") -> CheckedSeal:
    return check_seal(folder, verify=is_signed, head=head)


def test_what_was_not_touched_is_whole(folder: Path, key: Path) -> None:
    found = check(folder)
    assert (found.faults, sorted(found.intact)) == ([], ["points.jsonl", "run.json", "series/p0001.arrow"])
    assert found.last is not None
    assert found.last.key == public_key(key.with_suffix(".pub"))
    assert check(folder, found.chain.head).faults == []


@settings(deadline=None)
@given(st.data())
def test_every_changed_byte_is_named_by_its_file_and_place(sealed: Path, data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(["run.json", "points.jsonl", "series/p0001.arrow"]))
    before = (sealed / name).read_bytes()
    place = data.draw(st.integers(0, len(before) - 1))
    flipped = bytes([before[place] ^ data.draw(st.integers(1, 255))])
    try:
        (sealed / name).write_bytes(before[:place] + flipped + before[place + 1 :])
        (fault,) = check(sealed).faults
    finally:
        (sealed / name).write_bytes(before)
    first, last = fault.rpartition("bytes ")[2].replace(",", "").split(" to ")
    assert fault.startswith(f"{name}: was changed, within bytes ")
    assert int(first) <= place <= int(last)
    assert int(last) - int(first) < PIECE_BYTES


@settings(deadline=None)
@given(st.data())
def test_every_changed_byte_of_the_seal_is_noticed(sealed: Path, data: st.DataObject) -> None:
    before = (sealed / NAME).read_bytes()
    place = data.draw(st.integers(0, len(before) - 1))
    flipped = bytes([before[place] ^ data.draw(st.integers(1, 255))])
    try:
        (sealed / NAME).write_bytes(before[:place] + flipped + before[place + 1 :])
        assert check(sealed).faults
    finally:
        (sealed / NAME).write_bytes(before)


def test_files_that_came_went_grew_or_changed_places_are_named(folder: Path) -> None:
    (folder / "new.txt").write_text("new")
    (folder / "series/p0001.arrow").unlink()
    one, other = folder / "run.json", folder / "points.jsonl"
    text = one.read_bytes()
    one.write_bytes(other.read_bytes())
    other.write_bytes(text)
    faults = {fault.partition(":")[0]: fault for fault in check(folder).faults}
    assert set(faults) == {"new.txt", "series/p0001.arrow", "run.json", "points.jsonl"}
    assert "was added" in faults["new.txt"]
    assert "was removed" in faults["series/p0001.arrow"]
    assert "from 90 to 196,615 bytes" in faults["run.json"]


@pytest.mark.parametrize("kind", ["swapped", "doubled", "first gone", "middle gone", "last gone", "added", "cut short"])
def test_lines_that_are_moved_added_or_removed_break_the_chain(folder: Path, kind: str) -> None:
    path = folder / NAME
    lines = path.read_bytes().splitlines(keepends=True)
    head = check(folder).chain.head
    changed = {
        "swapped": [lines[1], lines[0], *lines[2:]],
        "doubled": [lines[0], *lines],
        "first gone": lines[1:],
        "middle gone": [lines[0], *lines[2:]],
        "last gone": lines[:-1],
        "added": [*lines, b'{"file":"x","gone":true,"chain":"' + head.encode() + b'"}\n'],
        "cut short": [*lines[:-1], lines[-1][:-9]],
    }[kind]
    path.write_bytes(b"".join(changed))
    # A seal that ends earlier is a seal: the chain that was kept elsewhere shows it.
    assert check(folder, head).faults


def test_a_seal_that_another_key_made_anew_is_not_that_of_the_first_key(folder: Path, key: Path) -> None:
    head = check(folder).chain.head
    (folder / "run.json").write_text("{}")
    (folder / NAME).unlink()
    seal_folder(folder, now_ns=NOW_NS)
    anew = check(folder)
    assert (anew.faults, anew.last is not None and anew.last.key) == ([], "")
    assert "cut off or made anew" in check(folder, head).faults[0]
    assert public_key(key.with_suffix(".pub")) != ""


def test_a_signature_of_another_key_is_no_signature(folder: Path) -> None:
    path = folder / NAME
    *lines, last = path.read_text().splitlines()
    chain = read_chain(("\n".join(lines) + "\n").encode())
    line = json.loads(last)
    del line["chain"]
    chain.add({**line, "key": "ab" * 32})
    path.write_text("\n".join(chain.text) + "\n")
    assert check(folder).faults == ["the signature of seal 1 is not of its key and chain"]


def test_a_later_seal_keeps_what_was_sealed_and_refuses_what_was_changed(folder: Path, key: Path) -> None:
    first = check(folder).chain.head
    (folder / "report.html").write_text("page")
    assert check(folder).faults == ["report.html: was added"]
    assert seal_folder(folder, now_ns=NOW_NS + 1, sign=signer(key)).faults == []
    assert check(folder, first).faults == []
    (folder / "run.json").write_text("{}")
    refused = seal_folder(folder, now_ns=NOW_NS, sign=signer(key))
    assert any(text.startswith("run.json: was changed") for text in refused.faults)


# A recording that goes on


def test_a_recording_is_sealed_while_it_goes_on_and_again_later(tmp_path: Path) -> None:
    folder = record(tmp_path, 30, lambda _: of(1000, 1))
    from assay.telemetry.flight.writer import FlightWriter

    with FlightWriter(folder, keep_bytes=64 << 20, host="db1") as writer:
        writer.begin({"host": "db1"})
        with pytest.raises(UsageError, match="holds no file to seal"):
            seal_folder(folder, now_ns=NOW_NS)
        for number in range(3 * 1440):
            if number % 120 == 0:
                t_ns = NOW_NS + number * MINUTE
                writer.add(readings(of(1000, 1)), t_ns=t_ns, interval_ns=MINUTE, tier="storage", source="block")
                writer.commit()
        sealed = seal_folder(folder, now_ns=NOW_NS)
        assert "recording-000001.sqlite" in sealed.intact
        assert check(folder).faults == []
        head = sealed.chain.head
        newest = max(folder.glob("recording-0*.sqlite"))
        assert newest.name in sealed.unsealed
    again = seal_folder(folder, now_ns=NOW_NS + 1)
    assert newest.name in again.intact
    assert check(folder, head).faults == []
    (folder / "recording-000001.sqlite").unlink()
    assert check(folder).faults == ["recording-000001.sqlite: was removed"]
    pruned = seal_folder(folder, now_ns=NOW_NS + 2)
    assert (pruned.faults, pruned.gone) == ([], ["recording-000001.sqlite"])
    assert (check(folder).faults, check(folder).gone) == ([], ["recording-000001.sqlite"])


def test_reading_a_recording_does_not_break_its_seal(tmp_path: Path) -> None:
    from assay.record.flight import read_recording

    folder = record(tmp_path, 30, lambda _: of(1000, 1))
    seal_folder(folder, now_ns=NOW_NS)
    assert len(read_recording(folder))
    assert check(folder).faults == []


# Foreign input


@pytest.mark.parametrize(
    "text",
    [
        b"", b"\n", b"{}\n", b"[]\n", b"no json\n", b'{"chain": 5, "file": "x"}\n', b"\xff\n", b'{"a":' * 500 + b"\n",
        b'{"file":"../../etc/passwd","bytes":-1,"sha256":"","pieces":"","chain":""}\n',
    ],
)  # fmt: skip
def test_a_seal_of_another_form_is_broken_or_none(folder: Path, text: bytes) -> None:
    (folder / NAME).write_bytes(text)
    if not text:
        with pytest.raises(UsageError, match="has no seal"):
            check(folder)
    else:
        assert check(folder).faults


def test_links_and_pipes_are_not_sealed(folder: Path) -> None:
    (folder / "link").symlink_to("/etc/passwd")
    with pytest.raises(UsageError, match="is no regular file"):
        seal_folder(folder, now_ns=NOW_NS)
    (folder / "link").unlink()
    (folder / NAME).unlink()
    (folder / NAME).symlink_to("/etc/passwd")
    with pytest.raises(UsageError, match=r"is a link|no regular file"):
        check(folder)


def test_keys_of_other_kinds_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "key"
    path.write_text("no key")
    with pytest.raises(UsageError, match="holds no private key"):
        signer(path)
    with pytest.raises(UsageError, match="holds no public key"):
        public_key(path)
    with pytest.raises(UsageError, match="cannot be read"):
        signer(tmp_path / "missing")
    path.write_bytes(b"x" * 70_000)
    with pytest.raises(UsageError, match="too large for a key"):
        signer(path)


@pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="needs ssh-keygen")
def test_keys_of_openssh_sign_and_are_named_as_it_names_them(tmp_path: Path, folder: Path) -> None:
    for name, words in (("plain", ["-t", "ed25519", "-N", ""]), ("shut", ["-t", "ed25519", "-N", "secret"]),
                        ("rsa", ["-t", "rsa", "-b", "2048", "-N", ""])):  # fmt: skip
        subprocess.run(["ssh-keygen", "-q", *words, "-f", str(tmp_path / name)], check=True)
    seal_folder(folder, now_ns=NOW_NS + 1, sign=signer(tmp_path / "plain"))
    found = check(folder)
    assert (found.faults, len(found.chain.seals)) == ([], 2)
    shown = subprocess.run(
        ["ssh-keygen", "-lf", str(tmp_path / "plain.pub")], capture_output=True, text=True, check=True
    )
    assert found.last is not None
    assert fingerprint(found.last.key) in shown.stdout
    with pytest.raises(UsageError, match="has a passphrase"):
        signer(tmp_path / "shut")
    with pytest.raises(UsageError, match="is no Ed25519 key"):
        signer(tmp_path / "rsa")
    with pytest.raises(UsageError, match="is no Ed25519 key"):
        public_key(tmp_path / "rsa.pub")
