"""`assay mailbox` on real files: the load, its verdict, pages that are wrong, backup, recovery, and how it ends."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from assay_command import ANSWERED, Bench, Outcome

SMALL = ("--mailboxes", "10", "--mailbox-size", "3M", "--databases", "2", "--checkpoint-depth", "256K", "--quiet")
LOADED = (*SMALL, "--iops-per-mailbox", "20", "--warmup", "1s")


def run(bench: Bench, *arguments: str | Path) -> Outcome:
    return bench.assay("mailbox", *arguments, "--json", "--no-report", "-o", bench.results)


def beginning(file: Path) -> bytes:
    with file.open("rb") as opened:
        return opened.read(4096)


def told(outcome: Outcome) -> dict[str, Any]:
    found: dict[str, Any] = outcome.document["mailbox"]
    return found


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    bench = Bench(tmp_path_factory.mktemp("mailbox"))
    return run(bench, bench.target.parent, *LOADED, "--duration", "4s")


class TestPerformance:
    def test_every_page_is_verified_and_right(self, outcome: Outcome) -> None:
        found = told(outcome)
        assert outcome.code == {True: 0, False: 1, None: 5}[found["passed"]], outcome.stderr
        assert (found["bad_pages"], found["verified"], found["pages"]) == (0, True, 960)
        assert found["pages_verified"] > found["pages"]

    def test_the_rate_is_that_of_the_mailboxes(self, outcome: Outcome) -> None:
        found = told(outcome)
        assert (found["mailboxes"], found["target_iops"]) == (10, 200.0)
        of_databases = sum(one["transactional_iops"] for one in found["databases"])
        of_servers = sum(one["transactional_iops"] for one in found["servers"])
        assert found["achieved_iops"] == pytest.approx(of_databases) == pytest.approx(of_servers)
        assert {one["name"] for one in found["databases"]} == {"db1", "db2"}

    def test_each_kind_of_io_is_counted_by_itself(self, outcome: Outcome) -> None:
        (point,) = outcome.document["points"]
        for one in told(outcome)["databases"]:
            assert one["database_read"]["bytes_mean"] == one["database_write"]["bytes_mean"] == 32768
            assert one["maintenance_read"]["bytes_mean"] == pytest.approx(262144, rel=0.05)
            assert 4096 <= one["log_write"]["bytes_mean"] <= 1 << 20
        data = point["roles"]["data"]
        assert data["total"]["iops"] == pytest.approx(told(outcome)["achieved_iops"])
        assert point["batches"]["total"]["iops"]

    def test_the_ratios_stand_beside_what_is_expected(self, outcome: Outcome) -> None:
        ratios = told(outcome)["ratios"]
        assert {name: one["expected"] for name, one in ratios.items()} == {
            "read_write": [1.5, 2.0], "database_log": [8.0, 12.0], "log_write_bytes": [6144.0, 8192.0]
        }  # fmt: skip
        assert all(one["value"] > 0 for one in ratios.values())

    def test_the_verdict_begins_with_what_was_achieved(self, outcome: Outcome) -> None:
        questions = [line["question"] for line in outcome.document["verdict"]]
        assert questions[:3] == ["achieved transactional I/O per second", "bad pages", "overall test result"]


def test_a_page_that_another_program_changed_is_found(bench: Bench) -> None:
    target = bench.target.parent / "assay.dat"
    with bench.started(
        "mailbox", bench.target.parent, *LOADED, "--duration", "6s", "--maintenance", "0", "--json", "--no-report",
        "-o", bench.results,
    ) as running:  # fmt: skip
        # Laid out in full, and the load has begun: its log is no longer empty.
        log = bench.target.parent / "assay-log.dat"
        running.wait_until(lambda: log.exists() and any(beginning(log)))
        with target.open("r+b") as file:
            # Free pages at the end of the second database: nothing writes over them.
            for page in (957, 958):
                os.pwrite(file.fileno(), b"\xff" * 512, page * 32768 + 1024)
        outcome = running.end(120)
    assert outcome.code == 4, outcome.stderr
    found = told(outcome)
    assert (found["bad_pages"], found["passed"]) == (2, False)
    assert [(one["database"], one["page"]) for one in found["bad"]] == [("db2", 477), ("db2", 478)]
    assert all(one["what"].startswith("checksum is") for one in found["bad"])
    (line,) = [line for line in outcome.document["verdict"] if line["question"] == "bad pages"]
    assert line["met"] is False


def test_a_backup_reads_and_verifies_every_page(bench: Bench) -> None:
    outcome = run(bench, bench.target.parent, *SMALL, "--type", "backup", "--duration", "60s")
    assert outcome.code in ANSWERED, outcome.stderr
    backup = told(outcome)["backup"]
    assert (backup["complete"], backup["bytes"]) == (True, 960 * 32768)
    assert told(outcome)["pages_verified"] == 960
    assert backup["bytes_per_s"] == pytest.approx(backup["bytes"] / backup["seconds"])


def test_a_recovery_replays_the_log(bench: Bench) -> None:
    outcome = run(bench, bench.target.parent, *SMALL, "--type", "recovery", "--log-files", "5", "--log-file", "256K")
    assert outcome.code in ANSWERED, outcome.stderr
    found = told(outcome)
    assert found["recovery"]["log_files"] >= 10
    assert found["recovery"]["log_files_per_s"] > 0
    assert (found["bad_pages"], found["verified"]) == (0, True)


@pytest.mark.slow(reason="crates/mailbox tests replays")
def test_passive_copies_replay_and_servers_stand_apart(bench: Bench) -> None:
    outcome = run(
        bench, bench.target.parent, *LOADED, "--duration", "6s", "--servers", "2", "--passive", "1", "--log-file", "64K"
    )
    assert outcome.code in ANSWERED, outcome.stderr
    found = told(outcome)
    assert [one["name"] for one in found["servers"]] == ["server1", "server2"]
    assert [one["mailboxes"] for one in found["servers"]] == [5, 5]
    passive = [one for one in found["databases"] if one["passive"]]
    assert len(passive) == 2
    assert all(one["replay_read"]["per_s"] > 0 for one in passive)
    assert all(one["transactional_iops"] == 0 for one in passive)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_the_run(bench: Bench, number: signal.Signals) -> None:
    with bench.started(
        "mailbox", bench.target.parent, *LOADED, "--duration", "10m", "--no-report", "-o", bench.results
    ) as running:
        log = bench.target.parent / "assay-log.dat"
        running.wait_until(lambda: log.exists() and any(beginning(log)))
        running.process.send_signal(number)
        outcome = running.end(60)
    assert outcome.code == 130
    assert "interrupted" in outcome.stderr
    manifest = bench.manifest()
    assert manifest["status"] == "interrupted"
    assert manifest["mailbox"]["passed"] is None


class TestRefusals:
    @pytest.mark.parametrize(
        ("arguments", "complaint"),
        [
            (("--mailboxes", "0"), "--mailboxes: Input should be greater than or equal to 1 (given '0')"),
            (("--mailboxes", "20000"), "--servers 2"),
            (("--copies", "1"), "--copies 1 copy, but layout together needs 2"),
            (("--layout", "jbod", "--copies", "2"), "layout jbod needs 3"),
            (("--layout", "separate",), "--layout separate: the volumes make it together"),
            (("--page", "7K"), "--page"),
        ],
    )  # fmt: skip
    def test_what_cannot_be_is_refused_before_anything_is_written(
        self, bench: Bench, arguments: tuple[str, ...], complaint: str
    ) -> None:
        one = bench.target.parent / "one.dat"
        outcome = run(bench, one, *(() if "--mailboxes" in arguments else SMALL), *arguments)
        assert outcome.code == 2
        assert complaint in outcome.complaint
        assert bench.made() == []

    def test_a_database_larger_than_its_volume(self, bench: Bench) -> None:
        with bench.target.open("wb") as file:
            file.truncate(8 << 20)
        outcome = run(bench, "model:fas2040?volumes=2&volume_size=50GB", "--mailboxes", "500")
        assert outcome.code == 2
        assert "database db1 of 200 GiB is larger than its volume v01" in outcome.complaint

    def test_a_target_without_bytes(self, bench: Bench) -> None:
        assert "target null: holds no databases" in run(bench, "null:", *SMALL).complaint

    def test_a_profile_with_unknown_keys(self, bench: Bench) -> None:
        profile = bench.folder / "profile.toml"
        profile.write_text("mailboxes = 10\nusers = 4\n")
        outcome = run(bench, bench.target.parent, "--plan", profile)
        assert outcome.code == 2
        assert f"--plan {profile}: unknown key 'users'" in outcome.complaint
