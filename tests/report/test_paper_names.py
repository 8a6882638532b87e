"""Names that a paper leaves out: the same ones everywhere, also in figures and in what the files say of themselves."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from sample import Sample, io, write_run
from sample_paper import made, measured_run
from sample_study import study_run

from assay.record.source import RunFacts
from assay.report.facts import load_facts
from assay.report.html import html_report
from assay.report.markdown import markdown_report
from assay.report.paper.assemble import mapped
from assay.report.paper.names import Names
from assay.report.paper.words import Words
from assay.report.paper.write import PaperOptions, write_paper
from assay.report.pdf import pdf_report
from assay.report.render import render_figures
from series_rows import series_of

SECRETS = ("db07", "example", "/srv/db", "assay.data", "ledger-7", "jdoe", "payroll9", "finance.internal", "acme",
           "Wolfram")  # fmt: skip

REMOTE = {
    "databases": [{"name": "payroll9", "kind": "postgresql", "version": "18", "is_local": False, "settings": {}}],
    "volumes": [
        {"name": "payroll9-data", "path": "/srv/db/ledger-7/base", "kind": "database", "role": "data",
         "size_bytes": 1 << 30, "device_stack": ["vda"], "device": "vda"},
        {"name": "ledger-7.mdf", "path": "/srv/db/ledger-7.mdf", "kind": "file", "role": "log", "size_bytes": 1 << 30,
         "device_stack": ["vda"], "device": "vda"},
    ],
}  # fmt: skip


def remote_run(folder: Path) -> Path:
    sample = Sample(3)
    sample.search("oltp", io(8192, 0.7, "orders on ledger-7.mdf"))
    return write_run(
        folder, sample, cache_span=None, target=REMOTE,
        command=["oltp", "tpcc", "postgresql://jdoe@finance.internal:5432/payroll9", "-o", "acme", "/srv/db/ledger-7",
                 "--title", "Wolfram's renewal"],
        title="Wolfram's renewal",
        request={"paths": ["postgresql://jdoe@finance.internal:5432/payroll9"]},
        notices=["ledger-7.mdf lies on /srv/db/ledger-7.mdf of db07.example, by jdoe"],
    )  # fmt: skip


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> str:
    """HTML, Markdown and the drawings of a paper without names."""
    run = remote_run(tmp_path_factory.mktemp("remote"))
    names = Names(hidden=True)
    names.learn([load_facts(run).manifest])
    document = made([run], hidden=True, words=Words(title="Storage of db07.example", authors=["jdoe"]))
    document = mapped(document, names.text)
    drawings = render_figures(document)
    html = html_report(document, drawings).replace("<wbr>", "")
    return html + markdown_report(document, "f") + pdf_titles(pdf_report(document, drawings))


def pdf_titles(pdf: bytes) -> str:
    """What the file says of itself, and everything else in it that is not compressed."""
    return pdf.decode("latin-1")


def test_no_name_is_left_anywhere(texts: str) -> None:
    assert [name for name in SECRETS if name in texts] == []


def test_each_name_has_one_other_everywhere(texts: str) -> None:
    assert "Storage of host-1" in texts
    assert "postgresql://user-1@host-2:5432/database-1" in texts
    assert "database-1-data" in texts
    assert "volume-1 lies on /path" in texts
    assert "of host-1, by user-1" in texts


def test_words_that_are_no_names_stay() -> None:
    names = Names(hidden=True)
    names.learn([{"target": {"databases": [{"name": "orders"}], "volumes": []}, "host": {"hostname": "storage"}}])

    # "orders" and "storage" are words of every paper; as names alone they are replaced.
    assert names.text("new orders a minute on this storage") == "new orders a minute on this storage"
    told = names.value({"target": {"databases": [{"name": "orders"}]}, "host": {"hostname": "storage"}})
    assert told == {"target": {"databases": [{"name": "database-1"}]}, "host": {"hostname": "host-1"}}


def test_places_that_every_linux_has_stay() -> None:
    names = Names(hidden=True)
    assert names.text("/dev/sdb in /proc/mounts, https://example.org/x, 8 KiB/s and 70/30") == (
        "/dev/sdb in /proc/mounts, https://example.org/x, 8 KiB/s and 70/30"
    )
    assert names.text("embedded:data/pg?set.x=1 and model:ps6100xv?raid=10") == (
        "embedded:path-1/path-2?set.x=1 and model:ps6100xv?raid=10"
    )


def test_paths_of_commands_are_found_by_where_they_stand() -> None:
    names = Names(hidden=True)
    names.learn([{"request": {"paths": ["/srv/acme/orders.dat"]}}])
    command = [
        "profile",
        "orders.dat",
        "--volume",
        "data=acme/a,log=/srv/acme/b",
        "--plan",
        "evening.toml",
        "-o",
        "out",
    ]
    assert names.command(command) == [
        "profile", "path-1", "--volume", "data=path-2/path-3,log=/path-4/path-2/path-5", "--plan", "path-6", "-o",
        "path-7",
    ]  # fmt: skip


def test_databases_of_a_sizing_have_other_names_whatever_words_they_are() -> None:
    names = Names(hidden=True)
    answer = {
        "named": ["orders", "mail", "ledger-7"],
        "demand": {"phases": [[{"name": "orders log"}, {"name": "ledger-7, orders"}, {"name": "mail"}]]},
        "assumptions": [{"assumption": "orders: growth a year"}],
        "chosen": {"cheapest": {"targets": ["model:/home/jdoe/mine.toml?raid=10", "model:ps6100xv?raid=6"]}},
    }
    names.learn([{"sizing": answer}])
    told = names.value({"sizing": answer})["sizing"]
    assert told["demand"]["phases"] == [
        [{"name": "database-1 log"}, {"name": "database-2, database-1"}, {"name": "mail"}]
    ]
    assert told["assumptions"] == [{"assumption": "database-1: growth a year"}]
    assert told["chosen"]["cheapest"]["targets"] == ["model:/path-1/path-2/path-3?raid=10", "model:ps6100xv?raid=6"]


NO_PATH = r"1/2 and/or LogicalDisk(C:)\Disk, model:ps6100xv?raid=10"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("on ../acme/data and ./acme", "on ../path-1/path-2 and ./path-1"),
        (r"C:\acme\orders.mdf of \\nas01\acme", r"C:\path-1\path-2 of \\host-1\path-1"),
        ("nfs01:/export/acme on /dev/vda", "host-1:/path-1/path-2 on /dev/vda"),
        ("model:/home/acme/own.toml?raid=10", "model:/path-1/path-2/path-3?raid=10"),
        (NO_PATH, NO_PATH),
    ],
)
def test_paths_of_every_kind_are_found(text: str, shown: str) -> None:
    names = Names(hidden=True)
    assert names.text(text) == shown
    assert names.text(shown) == shown


def test_hosts_of_a_run_over_several_have_other_names() -> None:
    names = Names(hidden=True)
    manifest = {"host": {"hostname": "here"}, "hosts": [{"name": "client", "host": {"hostname": "db1.example"}}]}
    names.learn([manifest])
    told = names.value(manifest)
    assert told == {"host": {"hostname": "host-1"}, "hosts": [{"name": "host-2", "host": {"hostname": "host-3"}}]}
    assert names.value({"hosts": ["client", "db1"]}) == {"hosts": ["host-2", "host-3"]}


def test_a_name_that_looks_like_another_one_stays_apart() -> None:
    names = Names(hidden=True)
    names.learn([{"host": {"hostname": "host-2"}}, {"host": {"hostname": "db1"}}, {"host": {"hostname": "db2"}}])
    once = names.text("host-2 db1 db2")
    assert once == "host-1 host-3 host-4"
    assert names.text(once) == once


def test_scopes_of_limits_name_no_volume() -> None:
    names = Names(hidden=True)
    target = {"volumes": [{"name": "ledger.mdf", "path": "/srv/ledger.mdf", "kind": "file"}]}
    names.learn([{"target": target}])
    assert names.text("missed: data/ledger.mdf read.mean") == "missed: data/volume-1 read.mean"


def test_hosts_of_series_have_other_names() -> None:
    names = Names(hidden=True)
    names.learn([{"host": {"hostname": "db07.example"}}])
    of_both = {"t_ns": 1, "source": "block", "metric": "ios_count", "value": 1.0}
    series = series_of({**of_both, "host": host, "entity": entity}
                       for host, entity in (("db07.example", "vda"), ("db07", "/srv/x")))  # fmt: skip
    made_of = names.facts(RunFacts({}, [], series)).series
    assert made_of is not None
    assert made_of.texts["host"].column() == ["host-1", "host-1"]
    assert made_of.texts["entity"].column() == ["vda", "/path-1/path-2"]


def test_two_runs_of_one_host_have_one_name(tmp_path: Path) -> None:
    document = made([study_run(tmp_path / "a", "raid-policy"), measured_run(tmp_path / "b")], hidden=True)
    headings = [block.text for one in document.sections for block in one.blocks if block.kind == "heading"]
    assert [text for text in headings if text.startswith("Host ")] == ["Host host-1"]


def test_without_it_every_name_stays(tmp_path: Path) -> None:
    facts = load_facts(remote_run(tmp_path))
    names = Names(hidden=False)
    names.learn([facts.manifest])
    assert names.facts(facts) is facts
    assert names.text("db07.example") == "db07.example"


@pytest.mark.slow(reason="the parts of a paper are tested without their names one by one")
def test_files_of_a_paper_have_no_names(tmp_path: Path) -> None:
    run = remote_run(tmp_path / "run")
    folder = tmp_path / "paper"
    write_paper(
        PaperOptions(runs=[run], folder=folder, anonymised=True, command=["assay", "report", "--paper", str(run)])
    )
    for path in folder.rglob("*"):
        if path.is_file() and path.name != "paper.toml":
            text = path.read_bytes().decode("latin-1")
            assert [name for name in SECRETS if name in text] == [], path
    assert json.loads((run / "run.json").read_text())["host"]["hostname"] == "db07.example"
