"""Job files of fio as plans: what can be asked for here is, and each option that cannot is named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from assay.base.errors import UsageError
from assay.workloads.io.foreign import asked_elsewhere
from assay.workloads.io.foreign.asked import AskedElsewhere
from assay.workloads.io.plan import IoPlan
from assay_command import Bench

GLOBAL = "[global]\nioengine=libaio\ndirect=1\nruntime=60\ntime_based\n"


def asked(text: str, *, has_target: bool = True) -> AskedElsewhere:
    found = asked_elsewhere(text, "--plan j.fio", has_target=has_target)
    assert found is not None
    return found


def activity(options: str, section: str = GLOBAL) -> dict[str, Any]:
    """The only activity of a job with these options, as a plan has it."""
    (plan,) = asked(f"{section}[j]\n{options}\n").plans
    (workload,) = plan.workloads()
    return workload.activities[0].model_dump(mode="json")


def lines(options: str) -> list[str]:
    return [line for line in asked(f"{GLOBAL}[j]\nrw=randread\n{options}\n").lines if "queue depth" not in line]


def test_a_job_is_an_activity() -> None:
    found = activity("rw=randrw\nrwmixread=70\nbs=8k\niodepth=16\nnumjobs=4\nrandom_distribution=zipf:1.1\nfdatasync=8")
    assert (found["read_share"], found["random_share"], found["block_bytes"]) == (0.7, 1.0, 8192)
    assert (found["queue_depth"], found["workers"], found["skew"]) == (16, 4, "zipf:1.1")
    assert (found["sync"], found["sync_every"], found["io_mode"]) == ("fdatasync", 8, "direct")
    (plan,) = asked(f"{GLOBAL}ramp_time=10\n[j]\nrw=read\nsize=2g\n").plans
    assert (plan.timing.warmup_s, plan.timing.duration_s, plan.size) == (10.0, 60.0, str(2 << 30))


@pytest.mark.parametrize(
    ("options", "key", "value"),
    [
        ("rw=read\nbs=64k", "random_share", 0.0),
        ("rw=randread\npercentage_random=30", "random_share", 0.3),
        ("rw=write\nbs=4k,16k", "block_bytes", 16384),
        ("rw=randwrite\nrwmixwrite=30\nrwmixread=60", "read_share", 0.0),
        ("rw=randrw\nrwmixwrite=30\nrwmixread=60", "read_share", 0.6),
        ("rw=randrw\nrwmixread=60\nrwmixwrite=30", "read_share", 0.7),
        ("rw=randread\nbssplit=2k/50:4k/:8k/", "block_bytes", {"2048": 50.0, "4096": 25.0, "8192": 25.0}),
        ("rw=randread\nbsrange=4k-12k", "block_bytes", {"4096": 1.0, "8192": 1.0, "12288": 1.0}),
        ("rw=randread\nblocksize_range=4k-4k", "block_bytes", 4096),
        # What fio does where nothing is said.
        ("rw=randread", "block_bytes", 4096),
        ("rw=randread\ndirect=0", "io_mode", "buffered"),
        ("rw=randread\niodepth=32\nioengine=psync", "queue_depth", 1),
        ("rw=write\nsync=1", "sync", "dsync"),
        ("rw=write\nzero_buffers", "compressible_share", 1.0),
        ("rw=randread\nrate_iops=500\nnumjobs=3", "rate", 1500.0),
        ("rw=randread\nrate_iops=500\nrate_process=poisson", "arrivals", "poisson"),
        ("rw=randread ; of the day\nbs=16k # large", "block_bytes", 16384),
    ],
)
def test_options_are_keys_of_plans(options: str, key: str, value: object) -> None:
    assert activity(options)[key] == value


def test_an_engine_that_is_not_named_has_one_outstanding() -> None:
    assert activity("rw=randread\niodepth=32", "[global]\nruntime=9\n")["queue_depth"] == 1


def test_jobs_run_at_once_until_a_wall() -> None:
    text = (
        f"{GLOBAL}[a]\nrw=randread\n[b]\nrw=write\nramp_time=5\nruntime=30\n[c]\nstonewall\nrw=read\n"
        "[d]\nwait_for=c\nrw=read\nbs=1m\n"
    )
    found = asked(text)
    assert [[one["name"] for one in plan.activity] for plan in found.plans] == [["a", "b"], ["c"], ["d"]]
    assert [plan.name for plan in found.plans] == ["a-b", "c", "d"]
    assert (found.plans[0].timing.duration_s, found.plans[0].timing.warmup_s) == (60.0, 5.0)
    assert any(line.startswith("job a+b: runtime of jobs at once is the longest") for line in found.lines)
    assert any("wait_for=c: comes after all jobs before it" in line for line in found.lines)


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ("thinktime=100", "job j: thinktime=100: left out, no key of a plan has it"),
        ("exec_prerun=reboot", "job j: exec_prerun=reboot: left out, no command of a job file is executed"),
        ("verify=crc32c", "job j: verify=crc32c: left out, assay verify proves what is written"),
        ("random_distribution=pareto:1", "job j: random_distribution=pareto:1: left out, offsets are uniform instead"),
        ("rate=10m", "job j: rate=10m: left out, throughput is no load of plans; say rate_iops"),
        ("offset=10g", "job j: offset=10g: left out, say --region"),
        ("loops=3", "job j: loops=3: left out, points end by time"),
        ("size=30%", "job j: size=30%: left out, it is no plain size; say --size"),
        ("group_reporting\nthread", "without effect on which I/Os are asked for: group_reporting, thread"),
        ("filename=/dev/sdz", "filename: left out, a target is named"),
        ("ioengine=sync\niodepth=8", "job j: iodepth=8: sync has one outstanding at a time"),
    ],
)  # fmt: skip
def test_what_cannot_be_taken_is_named_in_a_line(options: str, line: str) -> None:
    assert lines(options) == [line]


def test_files_that_jobs_name_are_volumes() -> None:
    text = (
        f"{GLOBAL}iodepth=8\n[a]\nrw=randread\nfilename=/srv/none/a.dat\n[b]\nrw=write\nfilename=/srv/none/b.dat\n"
        "[both]\nstonewall\nrw=read\nfilename=/srv/none/a.dat:/srv/none/b.dat\n"
        "[few]\nstonewall\nrw=read\nioengine=sync\ndirectory=/srv/none\nfilename=a.dat:b.dat\n"
    )
    found = asked(text, has_target=False)
    assert found.paths == ["/srv/none/a.dat", "/srv/none/b.dat"]
    first, second, third = found.plans
    assert [one["volume"] for one in first.activity] == ["a.dat", "b.dat"]
    # The I/Os outstanding of a job are those on all of its files together.
    assert (second.activity[0]["outstanding"], "volume" in second.activity[0]) == (8, False)
    assert third.activity[0]["outstanding"] == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[a]\nrw=randread\n", "job a names no file .filename=.; give the target: PATH"),
        ("[a]\nrw=randread\nfilename=E\\:\\data\\f.dat\n", "is a path of Windows; give the target: PATH"),
        ("[a]\nrw=randtrim\nfilename=f.dat\n", "no job that can be measured here: left out, plans have no trims"),
        ("[a]\nrw=read\nioengine=rbd\n", "ioengine=rbd is neither of files nor of devices"),
        ("[a]\nrw=read\nbs=${BLOCK}\n", "bs=..BLOCK. has a variable; write its value instead"),
        ("[a]\nrw=read\ndirectory=${HOME}\nfilename=f.dat\n", "directory=..HOME. has a variable"),
        ("[a]\nrw=read\ninclude secret.fio\n", "line 3: includes another file; put its lines here instead"),
        ("rw=read\n[a]\nbs=8k\n", "line 1: 'rw=read' stands before any .section."),
        ("[a]\nrw=backwards\n", "rw=backwards is no pattern of fio"),
        ("[a]\nrw=read\nbs=0k\n", "its blocks are not understood"),
        ("[a]\nrw=read\nbs=tiny\n", "its blocks are not understood"),
        ("[a]\nrw=read\nbs=9g\nfilename=f.dat\n", "no block size"),
        ("".join(f"[j{n}]\nrw=read\n" for n in range(1001)), "has more than 1,000 jobs"),
    ],
)
def test_what_no_plan_can_ask_is_refused_in_a_line(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message) as error:
        asked(text, has_target=False)
    assert "\n" not in str(error.value)
    assert str(error.value).startswith(("--plan j.fio", "job "))


@pytest.mark.parametrize("text", ["", "[timing]\nwarmup_s = 1\n", '[[activity]]\nblock_bytes = "8K"\n', '{"plan": {}}'])
def test_plans_of_assay_are_no_job_files(text: str) -> None:
    assert asked_elsewhere(text, "--plan p.toml", has_target=True) is None


def test_profile_runs_a_job_file_on_its_own_files_by_the_usual_rules(bench: Bench) -> None:
    job = bench.folder / "job.fio"
    job.write_text(
        "[global]\nsize=16m\ntime_based\nruntime=300ms\nbs=8k\n[fill]\nrw=write\nfilename=a.dat\n"
        "[read]\nstonewall\nrw=randread\nfilename=a.dat\nthinktime=5\n"
    )
    document = bench.profile("--plan", job, "--json").document
    assert [point["workload"]["random_share"] for point in document["points"]] == [0.0, 1.0]
    assert [point["part"] for point in document["points"]] == ["fill", "read"]
    assert [point["warmup_s"] for point in document["points"]] == [0.0, 0.0]
    said = bench.profile("--plan", job, "--dry-run")
    assert "job read: thinktime=5: left out, no key of a plan has it" in said.stderr
    # A file that Assay did not make stays what it is.
    (bench.folder / "a.dat").unlink()
    (bench.folder / "a.dat").write_text("somebody's letters")
    refused = bench.profile("--plan", job)
    assert refused.code == 2
    assert (bench.folder / "a.dat").read_text() == "somebody's letters"
    # A target on the command line takes the place of the job's files, and options win.
    document = bench.profile("null:", "--plan", job, "--duration", "100ms", "--json").document
    assert {round(point["measured_s"], 1) for point in document["points"]} == {0.1}


def test_a_preset_and_a_job_file_exclude_each_other(bench: Bench) -> None:
    job = Path(bench.folder / "job.fio")
    job.write_text("[a]\nrw=read\nfilename=f.dat\n")
    outcome = bench.profile("null:", "--plan", job, "--preset", "oltp", "--dry-run")
    assert (outcome.code, outcome.complaint) == (2, "assay: --preset and --plan exclude each other")


def test_every_plan_of_a_job_file_is_one_of_assay() -> None:
    for plan in asked(f"{GLOBAL}[a]\nrw=randrw\nbs=4k,8k\n[b]\nstonewall\nrw=read\n").plans:
        assert IoPlan.model_validate(plan.model_dump(mode="json")) == plan
