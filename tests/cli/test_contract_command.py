"""`assay contract`: what is printed, written and answered; exit codes 0, 1, 2 and 5."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from assay_command import Bench
from contract_recordings import Minute, of, record

CONTRACT = """
title = "Orders"
vendor = "Example"
[[latency]]
name = "reads"
most = "{most}"
"""


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four hours over midnight, one of them slow."""
    minute: Callable[[int], Minute] = lambda number: of(30_000, 3000 if 60 <= number < 120 else 30)  # noqa: E731
    return record(tmp_path_factory.mktemp("orders"), 240, minute)


def contract(bench: Bench, text: str) -> Path:
    path = bench.folder / "contract.toml"
    path.write_text(text)
    return path


def reads(bench: Bench, most: str) -> Path:
    return contract(bench, CONTRACT.format(most=most))


def test_the_template_is_a_contract(bench: Bench, recording: Path) -> None:
    path = contract(bench, bench.assay("contract", "template").stdout)
    judged = bench.assay("contract", "judge", path, recording, "--json")
    assert judged.code in (1, 5), judged.stderr
    kinds = {one["kind"] for one in judged.document["clauses"]}
    assert kinds == {"latency", "iops", "throughput", "capacity", "rebuild", "availability", "power", "loss"}


def test_every_line_of_the_template_is_understood(bench: Bench, recording: Path) -> None:
    lines = bench.assay("contract", "template").stdout.splitlines()
    whole = [line[1:] if line.startswith("#") and not line.startswith("# ") else line for line in lines]
    # Of keys that exclude each other one is left out.
    text = "\n".join(whole).replace('role = "data"\n', "", 1).replace("nvme0n1", "sda")
    text = "\n".join(line for line in text.splitlines() if not line.startswith("role = "))
    judged = bench.assay("contract", "judge", contract(bench, text), recording, "--json")
    assert judged.code in (1, 5), judged.stderr


@pytest.mark.parametrize(("most", "code", "state"), [("10ms", 0, "met"), ("2ms", 1, "breached"), ("6ms", 5, "unknown")])
def test_the_exit_code_is_the_verdict(bench: Bench, recording: Path, most: str, code: int, state: str) -> None:
    found = bench.assay("contract", "judge", reads(bench, most), recording)
    assert found.code == code, found.stderr
    assert state in found.stdout
    assert ("cannot be judged" in found.stdout) is (code == 5)


def test_json_and_pages_hold_the_evidence(bench: Bench, recording: Path) -> None:
    pages = [bench.folder / "vendor.html", bench.folder / "vendor.md"]
    given = [word for page in pages for word in ("-o", page)]

    found = bench.assay("contract", "judge", reads(bench, "2ms"), recording, "--json", *given)

    document = found.document
    latency = document["clauses"][0]["latency"]
    assert (found.code, document["verb"], document["met"]) == (1, "contract judge", False)
    assert latency["minutes"]["breached"] == pytest.approx(60)
    assert latency["worst_hours"][0]["breached_minutes"] == pytest.approx(60)
    for page in pages:
        text = page.read_text()
        assert "2026-11-02 01:00" in text.replace("\\", "")
        assert "breached" in text


def test_a_program_gets_markdown(bench: Bench, recording: Path) -> None:
    found = bench.assay("contract", "judge", reads(bench, "2ms"), recording, "--agent")
    assert "| reads | " in found.stdout
    assert "| breached |" in found.stdout


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["judge", "missing.toml", "{recording}"], "missing.toml: cannot be read"),
        (["judge", "{contract}", "{folder}"], "is no recording; give a folder of assay record"),
        (["judge", "{contract}", "{recording}", "-o", "page.doc"], "has no suffix of a page"),
        (["judge", "{recording}", "{contract}"], "cannot be read"),
    ],
)
def test_bad_input_is_one_line(bench: Bench, recording: Path, words: list[str], reason: str) -> None:
    names = {"recording": recording, "contract": reads(bench, "2ms"), "folder": bench.folder}
    found = bench.assay("contract", *(word.format(**names) for word in words))
    assert found.code == 2
    assert reason in found.complaint


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('[[latency]]\nname = "a"\nmost = 2ms\n', "line 3"),
        ('[[latency]]\nname = "a"\nmost = "2"\n', "latency 1.most"),
        ("[loss]\nnone = true\n[[latency]]\n", "latency 1.name"),
    ],
)
def test_a_wrong_contract_names_its_line_or_key(bench: Bench, recording: Path, text: str, words: str) -> None:
    found = bench.assay("contract", "judge", contract(bench, text), recording)
    assert (found.code, words in found.complaint) == (2, True), found.stderr


def test_a_pages_place_is_not_a_file_of_others(bench: Bench, recording: Path) -> None:
    page = bench.folder / "mine.html"
    page.write_text("<p>mine</p>")
    found = bench.assay("contract", "judge", reads(bench, "2ms"), recording, "-o", page)
    assert (found.code, page.read_text()) == (2, "<p>mine</p>")


def test_a_broken_seal_ends_with_4_and_names_the_file(bench: Bench, recording: Path) -> None:
    shutil.copytree(recording, bench.folder / "rec")
    made = bench.assay("contract", "seal", "rec", "--json")
    whole = bench.assay("contract", "check-seal", "rec", "--head", made.document["chain"])
    (bench.folder / "rec" / "recording-minutes-000001.sqlite").unlink()
    broken = bench.assay("contract", "check-seal", "rec", "--json")

    assert (made.code, whole.code, broken.code) == (0, 0, 4)
    assert "not signed" in whole.stdout
    assert broken.document["faults"] == ["recording-minutes-000001.sqlite: was removed"]
    assert (broken.document["intact"], broken.document["key"]) == (False, None)


def test_bad_input_of_seals_is_one_line(bench: Bench) -> None:
    (bench.folder / "empty").mkdir()
    for words, code, reason in (
        (["seal", "empty"], 2, "holds no file to seal"),
        (["check-seal", "empty"], 2, "has no seal"),
        (["check-seal", "empty", "--head", "12"], 2, "is no chain"),
        (["seal", "missing"], 2, "cannot be read"),
        (["seal", "empty", "--sign", "missing"], 2, "cannot be read"),
    ):
        found = bench.assay("contract", *words)
        assert (found.code, reason in found.complaint) == (code, True)


# The acceptance test

ACCEPTANCE = """
title = "Orders"
[[latency]]
name = "reads"
statistic = "mean"
most = "{most}"
iops = 100
[loss]
none = true
"""
ON_MODEL = ("model:ps6100xv?raid=50&volumes=1", "--warmup", "0.2s", "--duration", "2s", "--no-report")


@pytest.mark.parametrize(("most", "code", "met"), [("500ms", 5, True), ("1ms", 1, False)])
def test_a_model_is_tested_with_all_disks_and_with_one_lost(bench: Bench, most: str, code: int, met: bool) -> None:
    path = contract(bench, ACCEPTANCE.format(most=most))
    ended = bench.assay("contract", "test", path, *ON_MODEL, "--json", "-o", bench.results)
    assert ended.code == code, ended.stderr
    reads, loss = ended.document["contract"]["clauses"]
    assert (reads["met"], loss["met"]) == (met, None)
    assert [one["state"] for one in reads["evidence"]] == ["whole", "degraded"]
    again = bench.assay("contract", "test", "--resume", bench.run)
    assert again.code == code
    assert "cannot be judged: loss: this target holds no bytes" in again.stdout


def test_a_file_that_is_not_assays_is_left_alone(bench: Bench) -> None:
    victim = bench.folder / "victim.dat"
    victim.write_bytes(b"precious" * 100_000)
    ended = bench.assay("contract", "test", contract(bench, ACCEPTANCE.format(most="1s")), victim)
    assert (ended.code, victim.read_bytes()) == (2, b"precious" * 100_000)
    assert "--overwrite" in ended.stderr
    assert not bench.runs


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "give the contract"),
        (("{contract}",), "give the target"),
        (("/nowhere.toml", "null:"), "cannot be read"),
        (("{contract}", "embedded:x"), "database"),
    ],
)
def test_a_test_without_contract_or_target_is_refused(bench: Bench, arguments: tuple[str, ...], said: str) -> None:
    path = contract(bench, ACCEPTANCE.format(most="1s"))
    ended = bench.assay("contract", "test", *(one.format(contract=path) for one in arguments))
    assert ended.code == 2
    assert said in ended.stderr
    assert ended.stderr.count("\n") == 1
