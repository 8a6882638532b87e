"""Plans and layouts of `assay mailbox`: what is accepted, what follows, what is refused."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from assay.base.errors import UsageError
from assay.targets.files.spec import parse_targets
from assay.workloads.mailbox.layout import Seat, layout_meant, layout_of, place, sizes_needed
from assay.workloads.mailbox.plan import MailboxPlan
from assay.workloads.mailbox.workload import MailboxWorkload

WORKLOAD = MailboxWorkload()


def plan(**data: Any) -> MailboxPlan:
    return WORKLOAD.load_plan(data, source="plan")


def seat(name: str, *roles: str, places: tuple[str, ...] = ()) -> Seat:
    return Seat(name=name, roles=roles or ("data",), places=places)


class TestPlan:
    def test_the_default_is_a_server_of_8000_mailboxes(self) -> None:
        chosen = WORKLOAD.preset("exchange-2010")
        assert (chosen.mailboxes, chosen.target_iops, chosen.databases, chosen.copies) == (8000, 800.0, 5, 2)
        assert chosen.database_bytes == 1600 * (2 << 30)
        assert chosen.mix.seek == pytest.approx(0.35)
        assert chosen.depth_bytes == 100 << 20

    def test_a_database_of_one_copy_writes_earlier(self) -> None:
        assert plan(copies=1, layout="separate").depth_bytes == 20 << 20

    def test_the_preset_of_2007_is_what_its_tool_printed(self) -> None:
        chosen = WORKLOAD.preset("exchange-2007")
        mix = chosen.mix
        assert (mix.insert, mix.replace, mix.delete, mix.lazy) == (0.17, 0.68, 0.05, 0.9)
        assert (chosen.page_bytes, chosen.copies) == (8192, 1)
        assert "log_write.peak<=50ms" in chosen.limits

    def test_limits_follow_from_test_and_duration(self) -> None:
        assert plan().limits == (
            "data.read.mean<=20ms", "data.write.mean<=20ms", "log.write.mean<=10ms", "database_read.peak<=100ms",
            "log_write.peak<=100ms",
        )  # fmt: skip
        for longer in (plan(test="stress"), plan(timing={"duration_s": "7h"})):
            assert "database_read.peak<=200ms" in longer.limits
        assert plan(test="backup").limits == ()
        assert plan(limits=["data.read.mean<=5ms"]).limits == ("data.read.mean<=5ms",)

    @pytest.mark.parametrize(
        ("data", "complaint"),
        [
            ({"mailboxes": 0}, "mailboxes: Input should be greater than or equal to 1"),
            ({"mailboxes": 4}, "4 mailboxes are fewer than the 5 databases"),
            ({"mailboxes": 24_000}, "24,000 mailboxes on a server; one holds 10,000 active ones.*--servers 3"),
            ({"mailboxes": 30_001, "servers": 3}, "10,001 mailboxes on a server.*--servers 4"),
            ({"copies": 1, "layout": "together"}, "1 copy, but layout together needs 2.*lost together"),
            ({"copies": 2, "layout": "jbod"}, "2 copies, but layout jbod needs 3"),
            ({"copies": 1, "passive": 1}, "a database of one copy has no passive ones"),
            ({"cache_bytes": "512M"}, "512 MiB is above 256 MiB: a larger cache would hide the storage"),
            ({"mix": {"insert": 0.6, "replace": 0.6}}, "add up to 140%"),
            ({"mix": {"insert": 0, "replace": 0, "delete": 0}}, "no operation changes anything"),
            ({"mailbox": 5}, "unknown key 'mailbox'; did you mean 'mailboxes'"),
            ({"mix": {"inserts": 0.5}}, "unknown key 'inserts'; did you mean 'insert'"),
            ({"test": "backup", "search": {"axis": "rate"}}, "a test of type backup has no rate to search"),
            ({"log_file_bytes": 1000}, "is not a multiple of 64 KiB"),
        ],
    )
    def test_what_cannot_be_is_refused(self, data: dict[str, Any], complaint: str) -> None:
        with pytest.raises(UsageError, match=complaint):
            plan(**data)


class TestLayout:
    def test_databases_are_dealt_out_to_the_volumes_of_their_role(self) -> None:
        placed = place(plan(mailboxes=100, mailbox_size_bytes="1M"), [seat("a"), seat("b"), seat("l", "log")])
        assert [one.data.volume for one in placed] == [0, 1, 0, 1, 0]
        assert {one.log.volume for one in placed} == {2}
        assert layout_of(placed) == "separate"

    def test_volumes_of_their_own_are_plain_disks_only_where_they_are_called_so(self) -> None:
        seats = [seat(name) for name in "abcde"]
        asked = {"mailboxes": 100, "mailbox_size_bytes": "1M", "copies": 3}
        for layout, meant in (("auto", "together"), ("jbod", "jbod")):
            chosen = plan(**asked, layout=layout)
            assert layout_meant(chosen, place(chosen, seats)) == meant

    def test_nothing_overlaps_and_nothing_is_left_between(self) -> None:
        placed = place(plan(mailboxes=100, mailbox_size_bytes="1M", servers=2, passive=1), [seat("a", "data", "log")])
        extents = sorted((extent.start_bytes, extent.end_bytes) for one in placed for extent in (one.data, one.log))
        assert len(extents) == 2 * 2 * 6
        assert all(before[1] == after[0] for before, after in itertools.pairwise(extents))
        assert layout_of(placed) == "together"
        assert [one.name for one in placed][:7:5] == ["server1 db1", "server1 passive1"]

    def test_volumes_are_named_for_databases(self) -> None:
        seats = [seat("one", places=("data2",)), seat("two", "log", "data", places=("data1", "log1", "log2"))]
        placed = place(plan(mailboxes=10, databases=2, mailbox_size_bytes="1M"), seats)
        assert [(one.data.volume, one.log.volume) for one in placed] == [(1, 1), (0, 1)]

    def test_every_database_is_named_or_none(self) -> None:
        with pytest.raises(UsageError, match="db2 has no volume; name one for every db"):
            place(plan(mailboxes=10, databases=2), [seat("one", places=("data1",))])

    def test_files_are_as_large_as_what_lies_on_them(self) -> None:
        chosen = plan(mailboxes=10, databases=2, mailbox_size_bytes="8M", log_size_bytes="16M")
        specs = parse_targets(
            [], volumes=["db1=/srv/none/a,log1=/srv/none/a", "db2=/srv/none/b,log2=/srv/none/c"], numbered=True
        )
        assert [spec.place for spec in specs] == ["data1", "log1", "data2", "log2"]
        assert sizes_needed(chosen, specs) == {
            "a": 56 << 20, "a-log": 56 << 20, "b": 40 << 20, "c": 16 << 20
        }  # fmt: skip

    def test_numbers_are_for_databases_alone(self) -> None:
        with pytest.raises(UsageError, match="unknown role 'db1'"):
            parse_targets([], volumes=["db1=/srv/none/a"])
