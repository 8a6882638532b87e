"""`assay model`, and models as targets of the other verbs: what is printed, and what is refused in one line."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from assay_command import Bench

CATALOGUE = (
    "black-box", "datrium-dvx", "fas2040", "fas3070", "nvme-mirror", "ps3800xv", "ps6100xv", "ps6110x", "sata-jbod"
)  # fmt: skip

REFUSED: dict[str, tuple[list[str], list[str]]] = {
    "unknown array": (["profile", "model:ps6100x"], ["'ps6100x'", "did you mean 'ps6100xv'?"]),
    "unknown parameter": (["profile", "model:ps6100xv?disk.seek_avg=3ms"], ["'disk.seek_avg'", "'disk.seek_average'"]),
    "unknown RAID policy": (["profile", "model:ps6100xv?raid=7"], ["RAID policy '7'", "known: 0, 1, 10"]),
    "RAID policy not offered": (["profile", "model:ps6100xv?raid=dp"], ["does not offer RAID dp", "10, 50, 6, 5"]),
    "RAID 6 of three disks": (["profile", "model:ps6100xv?raid=6&disks.count=5"], ["RAID 6 of 3 disks", "at least 4"]),
    "fill beyond the capacity": (["profile", "model:ps6100xv?fill=0.99"], ["may hold", "stay free"]),
    "volumes beyond the capacity": (["profile", "model:ps6100xv?volumes=14"], ["14 volumes of 100 GB", "may hold"]),
    "more members than the group": (["profile", "model:ps6100xv?members=17"], ["members=17", "16"]),
    "more paths than ports": (["profile", "model:ps6100xv?paths=5"], ["paths=5", "4 ports"]),
    "buffered": (["profile", "model:ps6100xv", "--buffered"], ["--buffered"]),
    "backend": (["profile", "model:ps6100xv", "--backend", "threads"], ["--backend threads"]),
    "size": (["profile", "model:ps6100xv", "--size", "1G"], ["--size", "volume_size"]),
    "cache size": (["profile", "model:ps6100xv", "--cache-size", "1G"], ["--cache-size", "cache=4G"]),
    "overwrite": (["profile", "model:ps6100xv", "--overwrite", "f"], ["--overwrite"]),
    "two models": (["profile", "model:ps6100xv", "model:fas3070"], ["give it alone"]),
    "a model and a file": (["profile", "model:ps6100xv", "f"], ["give it alone"]),
    "verify": (["verify", "model:ps6100xv"], ["holds no bytes"]),
    "assess": (["assess", "model:ps6100xv"], ["holds no bytes"]),
    "show of an unknown array": (["model", "show", "ps61"], ["unknown array 'ps61'"]),
    "show of a file that is not there": (["model", "show", "./none.toml"], ["no such file"]),
    "no hosts": (["profile", "model:datrium-dvx?hosts=0"], ["'hosts'", "from 1 to 128"]),
    "too many hosts": (["profile", "model:datrium-dvx?hosts=129"], ["'hosts'", "from 1 to 128"]),
    "too many nodes": (["profile", "model:datrium-dvx?nodes=11"], ["'nodes'", "from 1 to 10"]),
    "no flash": (["profile", "model:datrium-dvx?flash=0"], ["'flash'"]),
    "no compression": (["profile", "model:datrium-dvx?compression=0.9"], ["'compression'", "0.9", "outside 1 to 100"]),
    "no deduplication": (["profile", "model:datrium-dvx?deduplication=0"], ["'deduplication'", "outside 1 to 100"]),
    "nothing to reclaim": (["profile", "model:datrium-dvx?fill=0.73&flash=16TB"], ["may be live", "more nodes"]),
    "snapshots that fill it": (
        ["profile", "model:datrium-dvx?fill=0.5&flash=16TB&reclamation=yes&snapshots=90"],
        ["snapshots=90", "may be live", "fewer snapshots"],
    ),
    "a change without snapshots": (["profile", "model:datrium-dvx?snapshot_change=2%"], ["snapshots=N"]),
    "RAID of containers": (
        ["profile", "model:datrium-dvx?raid=10"],
        ["has no option 'raid'", "accepted: hosts, nodes"],
    ),
    "members of hosts": (["profile", "model:datrium-dvx?members=2"], ["has no option 'members'"]),
    "a parameter of members": (["profile", "model:datrium-dvx?cache.size=1GiB"], ["'cache.size'", "another structure"]),
    "a parameter of hosts": (["profile", "model:ps6100xv?host.flash=1TB"], ["'host.flash'", "another structure"]),
    "hosts' option of a group": (["profile", "model:ps6100xv?nodes=2"], ["has no option 'nodes'"]),
    "reliability of containers": (["model", "reliability", "datrium-dvx"], ["not members with RAID"]),
    "calibrating hosts": (["model", "calibrate", "datrium-dvx", "--from", "published"], ["not members with RAID"]),
    "snapshots in place": (["profile", "model:ps6100xv?snapshots=3"], ["'snapshots'", "write-anywhere only"]),
    "reclamation in place": (["profile", "model:ps6100xv?reclamation=yes"], ["'reclamation'", "write-anywhere only"]),
    "a filer full of snapshots": (
        ["profile", "model:fas3070?reclamation=yes&snapshots=400"],
        ["reclamation is impossible", "fewer snapshots"],
    ),
    "toml with options": (["model", "show", "ps6100xv?raid=50", "--toml"], ["--toml"]),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused_with_one_line_and_nothing_made(bench: Bench, case: str) -> None:
    arguments, words = REFUSED[case]
    before = sorted(bench.folder.rglob("*"))

    outcome = bench.assay(*arguments)

    assert outcome.code == 2
    assert outcome.stdout == ""
    for word in words:
        assert word in outcome.complaint
    assert sorted(bench.folder.rglob("*")) == before


def test_list_names_every_array_with_its_policies(bench: Bench) -> None:
    shown = bench.assay("model", "list")
    listed = bench.assay("model", "list", "--json").document["models"]

    assert shown.code == 0
    for name in CATALOGUE:
        assert name in shown.stdout
    assert {model["name"] for model in listed} > {*CATALOGUE}
    array = next(model for model in listed if model["name"] == "ps6100xv")
    assert (array["disks"], array["spares"], array["policies"]) == (24, 2, ["10", "50", "6", "5"])


def test_volumes_of_clouds_are_listed_with_their_date_and_region(bench: Bench) -> None:
    listed = bench.assay("model", "list", "--class", "cloud", "--json").document["models"]
    shown = bench.assay("model", "list", "--class", "cloud").stdout

    assert {model["class"] for model in listed} == {"cloud"}
    assert all(model["as_of"] and model["region"] for model in listed)
    assert "aws-gp3" in shown
    assert "ps6100xv" not in shown
    assert bench.assay("model", "list", "--class", "clouds").code == 2


def test_show_says_of_every_parameter_where_it_comes_from(bench: Bench) -> None:
    shown = bench.assay("model", "show", "ps6100xv?raid=50&volumes=12&disk.command_overhead=0.5ms")

    assert shown.code == 0
    assert "RAID 50, 1 member: 12 volumes of 100 GB, 46% of the usable capacity" in shown.stdout
    for words in ("15,000 revolutions per minute", "data sheet", "assumed", "disk.command_overhead=0.5ms", "160 MB/s"):
        assert words in shown.stdout


def test_show_as_json_has_the_plan_of_the_model(bench: Bench) -> None:
    document = bench.assay("model", "show", "ps6100xv?raid=50", "--json").document

    assert document["array"]["target"] == "model:ps6100xv?raid=50"
    assert document["plan"]["pools"][0]["member"]["raid"]["policy"] == "50"
    assert set(document["usable_bytes"]) == {"10", "50", "6", "5"}
    assert document["array"]["parameters"].keys() == document["meanings"].keys()


def test_a_file_made_of_one_of_the_catalogue_is_valid_and_a_target(bench: Bench) -> None:
    text = bench.assay("model", "show", "fas2040", "--toml").stdout
    (bench.folder / "mine.toml").write_text(text.replace('name = "fas2040"', 'name = "mine"'))

    valid = bench.assay("model", "validate", "mine.toml")
    planned = bench.profile("model:mine.toml?volumes=2", "--block", "8K", "--dry-run", "--json")

    assert (valid.code, valid.stderr) == (0, "")
    assert valid.stdout.startswith("mine.toml: mine is valid: ")
    assert [volume["name"] for volume in planned.document["volumes"]] == ["v01", "v02"]
    assert planned.document["estimate"]["layout_bytes"] == 0


def test_validate_says_of_each_file_what_is_wrong(bench: Bench) -> None:
    text = bench.assay("model", "show", "ps6100xv", "--toml").stdout
    wrong = {
        "unit.toml": (text.replace('value = 4, unit = "ms"', 'value = 4, unit = "MB"'), "disk.revolution is a time"),
        "origin.toml": (text.replace('from = "data sheet", ', "", 1), "disks.count has no provenance: give `from`"),
        "disks.toml": (text.replace('set_disks = { value = 11', 'set_disks = { value = 9'), "no multiple of sets of 9"),
    }  # fmt: skip
    for name, (content, _) in wrong.items():
        (bench.folder / name).write_text(content)
    (bench.folder / "good.toml").write_text(text)

    outcome = bench.assay("model", "validate", *wrong, "good.toml", "none.toml")
    document = bench.assay("model", "validate", *wrong, "good.toml", "--json").document

    assert outcome.code == 2
    lines = outcome.stderr.splitlines()
    assert len(lines) == 4
    for line, (name, (_, words)) in zip(lines, wrong.items(), strict=False):
        assert line.startswith("assay: ")
        assert name in line
        assert words in line
    assert "none.toml: there is no such file" in lines[3]
    assert outcome.stdout.startswith("good.toml: ps6100xv is valid")
    assert [file["error"] is None for file in document["files"]] == [False, False, False, True]
