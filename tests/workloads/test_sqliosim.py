"""SQLIOSim's configuration file: the published one, every spelling of the same settings, paths, and what is refused."""

from __future__ import annotations

import codecs
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from assay.base.errors import UsageError
from assay.workloads.integrity.plan import IntegrityPlan
from assay.workloads.integrity.sqliosim import CONFIG_MAX_BYTES, Understood, parse_sqliosim

SAMPLES = Path(__file__).parent / "sqliosim"
MB = 1 << 20

DATA = "[File1]\nFileName=/t/a.mdx\nInitialSize=100\n"
LOG = "[File2]\nFileName=/t/a.ldx\nInitialSize=50\nLogFile=TRUE\n"


def parse(text: str | bytes, *maps: str) -> Understood:
    return parse_sqliosim(text, source="t.cfg", maps=maps)


def refusal(text: str | bytes, *maps: str) -> str:
    with pytest.raises(UsageError) as error:
        parse(text, *maps)
    message = str(error.value)
    assert "\n" not in message
    assert len(message) < 800
    return message


def test_the_published_configuration_is_what_the_method_ran() -> None:
    content = (SAMPLES / "published.cfg").read_bytes()
    understood = parse(content, r"E:\sqliosim=/mnt/e", "L:=/mnt/l/")
    plan = understood.plan

    assert plan.name == "sqliosim"
    assert (plan.timing.stress_s, plan.cycles, plan.stop_on_error) == (172_800.0, 1, True)
    assert (plan.memory_bytes, plan.cache_hit_share) == (30_957 * MB, 0.1)
    assert (plan.max_outstanding, plan.target_io_s, plan.bursts) == (1000, 0.02, True)
    assert (plan.no_buffering, plan.write_through, plan.scatter_gather, plan.force_read_ahead) == (True,) * 4
    assert (plan.delete_at_startup, plan.delete_at_shutdown) == (True, False)
    assert plan.random.model_dump() == {
        "users": 8, "jump_share": 0.05, "chain_min": 50, "chain_max": 100, "update_share": 0.9, "log_bytes_min": 64,
        "log_bytes_max": 8192, "rollback_share": 0.01, "sleep_s": 0.005,
    }  # fmt: skip
    assert plan.audit.model_dump() == {"users": 2, "pages": 64, "delay_after_cycles": 2, "delay_s": 0.2}
    ahead, bulk, shrink = plan.read_ahead, plan.bulk_update, plan.shrink
    assert (ahead.users, ahead.pages_min, ahead.pages_max, ahead.delay_after_cycles, ahead.delay_s) == (
        2, 32, 64, 2, 0.2,
    )  # fmt: skip
    assert (bulk.users, bulk.pages_min, bulk.pages_max, bulk.delay_after_cycles, bulk.delay_s) == (0, 64, 128, 2, 0.01)
    assert (shrink.users, shrink.interval_min_s, shrink.interval_max_s) == (1, 120.0, 600.0)
    assert (shrink.extents_min, shrink.extents_max) == (1, 20)
    data, log = plan.files
    assert (data.path, data.size_bytes, data.max_bytes) == ("/mnt/e/data/sqliosim.mdx", 50_000 * MB, 102_400 * MB)
    assert (data.increment_bytes, data.shrinkable, data.log) == (100 * MB, True, False)
    assert (log.path, log.size_bytes, log.max_bytes, log.log) == ("/mnt/l/sqliosim.ldx", 1000 * MB, 2000 * MB, True)


def test_every_setting_of_it_has_a_line_with_its_value() -> None:
    content = (SAMPLES / "published.cfg").read_bytes()
    lines = parse(content, r"E:\sqliosim=/mnt/e", "L:=/mnt/l", "X:=/x").lines
    settings = [line for line in content.decode().splitlines() if "=" in line]

    assert len(settings) == 64
    for setting in settings:
        assert any(f"] {setting}: " in line for line in lines), setting
    assert {line for line in lines if "no effect" in line} == {
        "[CONFIG] ErrorFile=sqliosim.log.xml: no effect; the error log is errors.xml in the run folder",
        "[CONFIG] CPUCount=8: no effect; users share the processors of this machine",
        "[CONFIG] Affinity=0: no effect; users are not bound to processors; taskset binds the whole command",
        "[CONFIG] IOAffinity=0: no effect; users are not bound to processors; taskset binds the whole command",
        "[CONFIG] StampFiles=FALSE: no effect; space is reserved when a file grows, and every new page is written"
        " before it is read",
        *(
            f"[RandomUser] {setting}: no effect; users imitate I/O, not the work of a CPU"
            for setting in ("YieldPercentage=0", "CPUSimulation=FALSE", "CPUCyclesMin=0", "CPUCyclesMax=0")
        ),
        "[File2] MaxSize=2000: no effect; a log is written in the round",
        "--map X:=/x: no effect; no FileName is below it",
    }
    assert "[CONFIG] TestCycleDuration=172800: 48 h 0 min" in lines
    assert "[CONFIG] CacheHitRatio=1000: 10 %" in lines
    assert "[CONFIG] TargetIODuration=20: 20 ms" in lines
    assert r"[File1] FileName=E:\sqliosim\data\sqliosim.mdx: /mnt/e/data/sqliosim.mdx" in lines
    assert "[File1] InitialSize=50000: 48.83 GiB" in lines


def test_streams_and_sparse_files_in_any_spelling() -> None:
    understood = parse((SAMPLES / "streams.cfg").read_bytes())
    plan = understood.plan

    assert [(file.path, file.log, file.sparse) for file in plan.files] == [
        ("test data.mdx", False, False),
        ("test.ldx", True, False),
        ("test data.mdx.replica", False, True),
    ]
    assert [file.max_bytes for file in plan.files] == [None, 50 * MB, 1000 * MB]
    assert (plan.memory_bytes, plan.cycles, plan.timing.stress_s, plan.target_io_s) == (32 * MB, 0, 90.0, 10.0)
    assert (plan.scatter_gather, plan.no_buffering) == (False, False)
    assert "[File11] no effect; it names no file" in understood.lines
    assert any("sparse files with NoBuffering=FALSE" in line for line in understood.lines)


def test_without_files_the_target_is_used() -> None:
    understood = parse((SAMPLES / "commented.cfg").read_bytes())

    assert understood.plan.files == ()
    assert "[File1] not given: the target's volumes are used" in understood.lines


def test_what_is_missing_has_the_defaults_of_the_documentation() -> None:
    understood = parse("[config]\n")

    # The defaults of a plan differ: chains have 50 pages at least, as in the shipped files, and an error ends no run.
    documented = IntegrityPlan(name="sqliosim", stop_on_error=True, random={"chain_min": 1})  # type: ignore[arg-type]
    assert understood.plan == documented
    assert any(
        line.startswith("[RandomUser] not given") and "MinIOChainLength 1 page" in line for line in understood.lines
    )
    assert "[CONFIG] MaxMemoryMB not given: a share of the free memory" in understood.lines


# Every spelling

count, share, delay = st.integers(1, 1 << 20), st.integers(0, 10_000), st.integers(0, 10**7)
flag, user = st.booleans(), st.integers(-1, 10_000)

FIELDS: dict[tuple[str, str], tuple[str, st.SearchStrategy[Any], float]] = {
    ("CONFIG", "MaxMemoryMB"): ("memory_bytes", st.integers(1, 1 << 24), MB),
    ("CONFIG", "StopOnError"): ("stop_on_error", flag, 1),
    ("CONFIG", "TestCycles"): ("cycles", st.integers(0, 1000), 1),
    ("CONFIG", "TestCycleDuration"): ("timing.stress_s", st.integers(0, 10**6), 1),
    ("CONFIG", "CacheHitRatio"): ("cache_hit_share", share, 1e-4),
    ("CONFIG", "WriteThrough"): ("write_through", flag, 1),
    ("CONFIG", "MaxOutstandingIO"): ("max_outstanding", st.integers(0, 140_000), 1),
    ("CONFIG", "TargetIODuration"): ("target_io_s", st.integers(1, 10**6), 1e-3),
    ("CONFIG", "AllowIOBursts"): ("bursts", flag, 1),
    ("CONFIG", "UseScatterGather"): ("scatter_gather", flag, 1),
    ("CONFIG", "ForceReadAhead"): ("force_read_ahead", flag, 1),
    ("CONFIG", "DeleteFilesAtStartup"): ("delete_at_startup", flag, 1),
    ("CONFIG", "DeleteFilesAtShutdown"): ("delete_at_shutdown", flag, 1),
    ("RandomUser", "UserCount"): ("random.users", user, 1),
    ("RandomUser", "JumpToNewRegionPercentage"): ("random.jump_share", share, 1e-4),
    ("RandomUser", "MinIOChainLength"): ("random.chain_min", st.integers(1, 100), 1),
    ("RandomUser", "MaxIOChainLength"): ("random.chain_max", st.integers(100, 1 << 20), 1),
    ("RandomUser", "RandomUserReadWriteRatio"): ("random.update_share", share, 1e-4),
    ("RandomUser", "MinLogPerBuffer"): ("random.log_bytes_min", st.integers(1, 8192), 1),
    ("RandomUser", "MaxLogPerBuffer"): ("random.log_bytes_max", st.integers(8192, 64_000), 1),
    ("RandomUser", "RollbackChance"): ("random.rollback_share", share, 1e-4),
    ("RandomUser", "SleepAfter"): ("random.sleep_s", delay, 1e-3),
    ("AuditUser", "UserCount"): ("audit.users", user, 1),
    ("AuditUser", "BuffersValidated"): ("audit.pages", count, 1),
    ("AuditUser", "DelayAfterCycles"): ("audit.delay_after_cycles", count, 1),
    ("AuditUser", "AuditDelay"): ("audit.delay_s", delay, 1e-3),
    ("ReadAheadUser", "UserCount"): ("read_ahead.users", user, 1),
    ("ReadAheadUser", "BuffersRAMin"): ("read_ahead.pages_min", st.integers(1, 64), 1),
    ("ReadAheadUser", "BuffersRAMax"): ("read_ahead.pages_max", st.integers(64, 1 << 20), 1),
    ("ReadAheadUser", "DelayAfterCycles"): ("read_ahead.delay_after_cycles", count, 1),
    ("ReadAheadUser", "RADelay"): ("read_ahead.delay_s", delay, 1e-3),
    ("BulkUpdateUser", "UserCount"): ("bulk_update.users", user, 1),
    ("BulkUpdateUser", "BuffersBUMin"): ("bulk_update.pages_min", st.integers(1, 128), 1),
    ("BulkUpdateUser", "BuffersBUMax"): ("bulk_update.pages_max", st.integers(128, 1 << 20), 1),
    ("BulkUpdateUser", "DelayAfterCycles"): ("bulk_update.delay_after_cycles", count, 1),
    ("BulkUpdateUser", "BUDelay"): ("bulk_update.delay_s", delay, 1e-3),
    ("ShrinkUser", "MinShrinkInterval"): ("shrink.interval_min_s", st.integers(0, 600), 1),
    ("ShrinkUser", "MaxShrinkInterval"): ("shrink.interval_max_s", st.integers(600, 10**6), 1),
    ("ShrinkUser", "MinExtends"): ("shrink.extents_min", st.integers(1, 20), 1),
    ("ShrinkUser", "MaxExtends"): ("shrink.extents_max", st.integers(20, 1000), 1),
}
"""Keys by section: where they go in the plan, their values, and the size of their unit."""

settings = st.fixed_dictionaries({}, optional={key: values for key, (_, values, _) in FIELDS.items()})


def in_any_case(word: str, chance: random.Random) -> str:
    return "".join(chance.choice((letter.upper(), letter.lower())) for letter in word)


def written(given: dict[tuple[str, str], Any], chance: random.Random) -> bytes:
    """A configuration with these settings and two files, in some order and spelling."""
    sections: dict[str, list[str]] = {}
    for (section, name), value in given.items():
        spelled = chance.choice(("ScatterGather", name)) if name == "UseScatterGather" else name
        words = {True: ("true", "1", "yes"), False: ("false", "0", "no")}
        text = in_any_case(chance.choice(words[value]), chance) if isinstance(value, bool) else str(value)
        gap, quote = chance.choice(("", " ", "\t")), chance.choice(("", "", '"'))
        tail = chance.choice(("", " ", "  ; as before"))
        line = f"{gap}{in_any_case(spelled, chance)}{gap}={gap}{quote}{text}{quote}{tail}"
        sections.setdefault(section, []).append(line)
    blocks = [DATA, LOG]
    for section, lines in sections.items():
        chance.shuffle(lines)
        blocks.append(
            "\n".join([f"[{in_any_case(section, chance)}]", *lines, chance.choice(("", "; a comment", "  ;x=1"))])
        )
    chance.shuffle(blocks)
    text = "\n".join(blocks).replace("\n", chance.choice(("\n", "\r\n", "\r\n\r\n")))
    encode = chance.choice(("utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"))
    return (codecs.BOM_UTF16_BE if encode == "utf-16-be" else b"") + text.encode(encode)


@given(given=settings, seed=st.integers(0, 2**32))
def test_any_settings_in_any_spelling_are_the_same_plan(given: dict[tuple[str, str], Any], seed: int) -> None:
    chance = random.Random(seed)
    plan = parse(written(given, chance)).plan
    documented = parse(DATA + LOG).plan.model_dump()

    for key, (place, _, unit) in FIELDS.items():
        table, _, name = place.rpartition(".")
        found = (plan.model_dump()[table] if table else plan.model_dump())[name]
        if key in given:
            assert found == pytest.approx(given[key] * unit, rel=1e-12), key
        else:
            assert found == (documented[table] if table else documented)[name], key
    assert [file.path for file in plan.files] == ["/t/a.mdx", "/t/a.ldx"]
    assert parse(written(given, chance)).plan == plan


# Anything at all

pieces = ["[CONFIG]", "[File1]", "[File2]", "FileName", "InitialSize", "LogFile", "UserCount", "TRUE", "-1", "9" * 19]
pieces += [*'[]=;:"/\\\n\r\0\x85\u2028\ud800\u0661', "E:\\", "..", "\\\\"]
texts = st.text() | st.lists(st.sampled_from(pieces)).map("".join)


@given(content=st.binary() | texts, map=st.text(max_size=12) | st.sampled_from(["E:=/e", "\\\\s\\t=/u", "=", "E:="]))
@example(content="[File1]\nFileName=\ud800\nInitialSize=1", map="E:=/e")
@example(content=b"\xff\xfe\x00", map="E:=/e")
def test_nothing_is_worse_than_a_refusal(content: bytes | str, map: str) -> None:
    try:
        lines = parse(content, map).lines
    except UsageError as error:
        lines = [str(error)]
    assert all(line.splitlines() == [line] for line in lines)


@given(name=st.text(min_size=1, max_size=40) | st.text(r"ab.:/\$DATA", min_size=1, max_size=12))
@example(name=".")
def test_no_name_leaves_its_mapped_folder(name: str) -> None:
    text = f"[File1]\nFileName=E:\\sql\\{name}\nInitialSize=1\n{LOG}"
    try:
        path = parse(text, r"E:\sql=/mnt/e").plan.files[0].path
    except UsageError:
        return
    assert path.startswith("/mnt/e/")
    assert not {"", ".", ".."} & set(path.removeprefix("/mnt/e/").split("/"))


# Paths


@pytest.mark.parametrize(
    ("name", "path"),
    [
        (r"E:\sql\a.mdx", "/mnt/e/a.mdx"),
        (r"e:\SQL\Data\A.mdx", "/mnt/e/Data/A.mdx"),
        ("E:/sql/x/../a.mdx", "/mnt/e/a.mdx"),
        (r"E:\sql\.\x\\a.mdx", "/mnt/e/x/a.mdx"),
        (r"\\?\E:\sql\a.mdx", "/mnt/e/a.mdx"),
        (r"E:\sqldata\a.mdx", "/srv/all/sqldata/a.mdx"),
        (r"E:\a.mdx", "/srv/all/a.mdx"),
        (r"E:\sql\deep\er\a.mdx", "/mnt/deep/er/a.mdx"),
        (r"E:\sql\a.mdx:stream", "/mnt/e/a.mdx.stream"),
        (r"E:\sql\a.mdx:stream:$DATA", "/mnt/e/a.mdx.stream"),
        (r"E:\sql\a.mdx::$data", "/mnt/e/a.mdx"),
        (r"\\server\share\sql\a.mdx", "/mnt/share/sql/a.mdx"),
        (r"\\?\UNC\Server\Share\a.mdx", "/mnt/share/a.mdx"),
        (r"\\.\PhysicalDrive1", "/dev/sdz"),
        (r'"E:\sql\with space.mdx"', "/mnt/e/with space.mdx"),
        (r"E:\sql\semi;colon.mdx", "/mnt/e/semi;colon.mdx"),
        ("/data/a:b\\c.mdx", "/data/a:b\\c.mdx"),
        ("../a.mdx", "../a.mdx"),
        ("a.mdx", "a.mdx"),
        ("a.mdx:replica", "a.mdx.replica"),
        (r"sub\a.mdx", "sub/a.mdx"),
        ("E:\\sql\\\u00fc.mdx", "/mnt/e/\u00fc.mdx"),
    ],
)
def test_a_name_becomes_a_path_of_this_system(name: str, path: str) -> None:
    maps = (r"E:\sql=/mnt/e", "e:=/srv/all", r"E:/SQL/Deep\=/mnt/deep", r"\\server\share=/mnt/share/")
    text = f"[File1]\nFileName={name}\nInitialSize=1\n{LOG}"

    for content in (text, text.encode("utf-16"), text.encode("cp1252")):
        assert parse(content, *maps, r"\\.\PhysicalDrive1=/dev/sdz").plan.files[0].path == path


@pytest.mark.parametrize(
    ("name", "said"),
    [
        (r"F:\sql\deep\a.mdx", r"without a --map; say where it is here: --map 'F:\sql\deep=/FOLDER'"),
        (r"F:\a.mdx", r"--map 'F:\=/FOLDER'"),
        (r"\\server\share\a.mdx", r"--map '\\server\share=/FOLDER'"),
        (r"\rooted\a.mdx", r"--map '\rooted=/FOLDER'"),
        (r"E:\sqldata\a.mdx", r"--map 'E:\sqldata=/FOLDER'"),
        (r"E:\sql\..\other\a.mdx", r"the path leaves E:\sql, which --map stands for"),
        (r"E:\sql\x\..\..\a.mdx", r"the path leaves E:\sql"),
        (r"E:\sql\.:\a.mdx", r"the path leaves E:\sql"),
        (r"E:\sql\..::$DATA\a.mdx", r"the path leaves E:\sql"),
        (r"E:\sql\x\..", "this is a folder; a file is needed"),
        ("E:\\sql\\", "this is a folder"),
        ("/mnt/", "this is a folder"),
        ("E:a.mdx", r"depends on a current folder; write it as E:\a.mdx"),
        (r"..\a.mdx", "the path leaves the folder it is relative to"),
        (r"E:\sql\a.mdx ; the data", "a comment stands on a line of its own"),
        (f"/{'a' * 5000}", "at most 4096 characters"),
    ],
)
def test_a_name_that_leads_nowhere_says_what_is_needed(name: str, said: str) -> None:
    message = refusal(f"[File1]\nFileName={name}\nInitialSize=1\n{LOG}", r"E:\sql=/mnt/e")

    assert message.startswith("t.cfg: [File1] FileName=")
    assert said in message


@pytest.mark.parametrize("text", ["", "E:", "E:=", "=/mnt", "/data=/mnt", "data=/mnt", r"E:\..\x=/mnt", "E:=/mnt/\n"])
def test_a_map_that_is_none_is_refused(text: str) -> None:
    assert refusal(DATA + LOG, text) == rf"--map {text!r}: accepted: WINDOWS-PATH=PATH, as in --map 'E:\sql=/mnt/e'"


def test_a_path_has_one_map() -> None:
    assert "is mapped to /a already" in refusal(DATA + LOG, r"E:\sql=/a", "e:/SQL/=/b")
    assert parse(DATA + LOG, "E:=/a", "e:=/a").plan.files


# What is refused


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[CONFIGS]\n", "unknown section [CONFIGS]; did you mean [CONFIG]?"),
        ("[File0]\n", "unknown section [File0]; did you mean [File1]?"),
        ("[mysqld]\n", "unknown section [mysqld]; known: CONFIG, RandomUser"),
        ("[CONFIG]\nCacheHitRation=1\n", "[CONFIG] unknown key CacheHitRation; did you mean CacheHitRatio?"),
        ("[AuditUser]\nRADelay=1\n", "[AuditUser] unknown key RADelay"),
        ("[File1]\nInitalSize=1\n", "[File1] unknown key InitalSize; did you mean InitialSize?"),
        ("[CONFIG]\nCacheHitRatio=ten\n", "CacheHitRatio=ten is not accepted; accepted: a whole number, 0 to 10000"),
        ("[CONFIG]\nCacheHitRatio=10%\n", "CacheHitRatio=10% is not accepted"),
        ("[CONFIG]\nCacheHitRatio=\n", "CacheHitRatio= is not accepted"),
        ("[CONFIG]\nCacheHitRatio=;1\n", "CacheHitRatio= is not accepted"),
        ("[CONFIG]\nCacheHitRatio=10001\n", "10000 is 100 %"),
        ("[CONFIG]\nTestCycleDuration=-300\n", "TestCycleDuration=-300 is not accepted"),
        ("[CONFIG]\nTestCycleDuration=1.5\n", "whole number"),
        ("[CONFIG]\nTestCycles=99999999999999999999\n", "[CONFIG] TestCycles=99999999999999999999 is not accepted"),
        ("[CONFIG]\nMaxMemoryMB=0\n", "MaxMemoryMB=0 is not accepted"),
        ("[CONFIG]\nMaxOutstandingIO=140001\n", "0 to 140000"),
        ("[CONFIG]\nTargetIODuration=0\n", "TargetIODuration=0 is not accepted"),
        ("[CONFIG]\nStopOnError=maybe\n", "[CONFIG] StopOnError=maybe is not accepted; accepted: TRUE or FALSE"),
        ("[CONFIG]\nCPUCount=two\n", "[CONFIG] CPUCount=two is not accepted"),
        ("[CONFIG]\nAffinity=all\n", "[CONFIG] Affinity=all is not accepted; accepted: a mask"),
        ("[CONFIG]\nTestCycles=1\n[config]\ntestcycles=2\n", "TestCycles=2 is not accepted; accepted: one value"),
        ("[CONFIG]\nUseScatterGather=TRUE\nScatterGather=FALSE\n", "one value; it was TRUE before"),
        ("[RandomUser]\nUserCount=-2\n", "[RandomUser] UserCount=-2 is not accepted; accepted: a whole number, -1 to"),
        ("[RandomUser]\nUserCount=\u0661\n", "UserCount=\u0661 is not accepted"),
        ("[RandomUser]\nMaxLogPerBuffer=64001\n", "1 to 64000 (bytes)"),
        ("[RandomUser]\nMinLogPerBuffer=9000\n", "accepted: at most MaxLogPerBuffer=8192"),
        ("[RandomUser]\nMaxIOChainLength=5\nMinIOChainLength=6\n", "accepted: at most MaxIOChainLength=5"),
        ("[ShrinkUser]\nMaxShrinkInterval=60\n", "MinShrinkInterval=120 is not accepted"),
        (DATA, "no log file; at least one [FileN] with LogFile=TRUE is needed"),
        (LOG, "no data file; at least one [FileN] with LogFile=FALSE is needed"),
        ("[File1]\nInitialSize=1\n", "[File1] FileName is missing"),
        ("[File1]\nFileName=/t/a\n", "[File1] InitialSize is missing"),
        ("[File1]\nFileName=/t/a\nInitialSize=0\n", "InitialSize=0 is not accepted"),
        ("[File1]\nFileName=/t/a\nInitialSize=33554433\n", "32 TiB at most"),
        ("[File1]\nFileName=/t/a\nInitialSize=9\nMaxSize=8\n", "MaxSize=8 is not accepted; accepted: at least Init"),
        ("[File1]\nFileName=/t/a\nInitialSize=9\nIncrement=10\n", "accepted: at most the file's 9 MB"),
        ("[File1]\nFileName=/t/a\nInitialSize=2097153\nLogFile=1\n", "at most 2097152 for a log"),
        ("[File1]\nFileName=/t/a\nInitialSize=1\nMaxSize=2097153\nLogFile=1\n", "MaxSize=2097153 is not accepted"),
        (DATA + LOG.replace("a.ldx", "x/../a.mdx"), "/t/x/../a.mdx is not accepted; accepted: a file of its own"),
        ("", "is empty; accepted: sections such as [CONFIG] and [File1]"),
        ("; nothing\n\n", "is empty"),
        ("TestCycles=1\n", "line 1: TestCycles=1: accepted: [CONFIG]"),
        ("[CONFIG]\n\nTestCycles 1\n", "line 3: TestCycles 1: accepted"),
        ('{"a": 1}', 'line 1: {"a": 1}: accepted: [CONFIG]'),
        ("[CONFIG\n", "line 1: [CONFIG: accepted"),
        ("[CONFIG]\nTestCycles=1\0\n", "is not text"),
        (b"\x7fELF\x02\x01\x01" + bytes(64), "is not text"),
        (b"\xff\xfe\x00\xd8", "is not text"),
        ("[CONFIG]\n" + ";" * CONFIG_MAX_BYTES, "has more than 1 MiB"),
        (bytes(CONFIG_MAX_BYTES + 1), "has more than 1 MiB"),
    ],
)  # fmt: skip
def test_what_cannot_be_meant_is_refused(text: str | bytes, said: str) -> None:
    message = refusal(text)

    assert message.startswith("t.cfg: ")
    assert said in message


def test_names_that_windows_takes_for_the_same_file_are_refused() -> None:
    text = "[File1]\nFileName=E:\\A.mdx\nInitialSize=1\n[File2]\nFileName=e:\\a.MDX\nInitialSize=1\nLogFile=1\n"

    assert "[File1] has this one" in refusal(text, "E:=/mnt/e")
    # Here they are two.
    assert len(parse(text.replace("E:\\", "/mnt/").replace("e:\\", "/mnt/")).plan.files) == 2


# What is understood otherwise than written


def files(**keys: str) -> str:
    return "\n".join([DATA.rstrip(), *(f"{key}={value}" for key, value in keys.items()), LOG])


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("[CONFIG]\nNoBuffering=FALSE", "[CONFIG] NoBuffering=FALSE: no effect; scatter/gather I/O passes by"),
        (
            "[CONFIG]\nCPUCount=1\n[RandomUser]\nUserCount=1000",
            "1004 users in all; SQLIOSim has at most 923 with CPUCount=1",
        ),
        ("[RandomUser]\nMinLogPerBuffer=100", "MinLogPerBuffer: SQLIOSim wants a multiple or a fraction of a sector"),
        ("[RandomUser]\nMaxLogPerBuffer=1000", "MaxLogPerBuffer: SQLIOSim wants a multiple of a sector"),
        ("[RandomUser]\nMinIOChainLength=0", "[RandomUser] MinIOChainLength=0: 1 page"),
        (files(Shrinkable="TRUE"), "[File1] Shrinkable=TRUE: no effect; with Increment=0 the file keeps its size"),
        (files(MaxSize="200"), "[File1] MaxSize=200: no effect; a file that is not Shrinkable keeps its size"),
        (
            files(MaxSize="200", Increment="10", Shrinkable="TRUE") + "[CONFIG]\nMaxMemoryMB=200",
            "[ShrinkUser] MaxExtends: SQLIOSim lowers Increment until MaxExtends times Increment is below 200 MiB",
        ),
        (
            files() + "[BulkUpdateUser]\nBuffersBUMax=12801",
            "[BulkUpdateUser] BuffersBUMax: more than the 12800 pages of the smallest data file",
        ),
    ],
)
def test_a_line_says_what_is_otherwise(text: str, line: str) -> None:
    assert [found for found in parse(text).lines if line in found]


def test_the_shipped_values_meet_no_objection() -> None:
    lines = parse(DATA + LOG + "[CONFIG]\nCPUCount=2\nMaxMemoryMB=209\n").lines

    assert not [line for line in lines if "SQLIOSim " in line or "more than" in line]


def test_scatter_gather_goes_around_the_file_cache() -> None:
    assert parse("[CONFIG]\nNoBuffering=FALSE\n").plan.no_buffering
    assert not parse("[CONFIG]\nNoBuffering=FALSE\nScatterGather=FALSE\n").plan.no_buffering


def test_files_are_in_the_order_of_their_numbers_and_several_logs_are_accepted() -> None:
    text = "".join(
        f"[File{number}]\nFileName=/t/{number}\nInitialSize=1\nLogFile={number % 2}\n" for number in (10, 9, 2, 1, 30)
    )

    assert [(file.path, file.log) for file in parse(text).plan.files] == [
        ("/t/1", True),
        ("/t/2", False),
        ("/t/9", True),
        ("/t/10", False),
        ("/t/30", False),
    ]


def test_the_published_configuration_printed_as_a_table_or_in_columns_is_the_same_plan() -> None:
    content = (SAMPLES / "published.cfg").read_text()
    lines = [line for line in content.splitlines() if line and not line.startswith(";")]
    maps = (r"E:\sqliosim=/mnt/e", "L:=/mnt/l/")
    rows, section = ["Section\tParameter\tValue"], ""
    for line in lines:
        if line.startswith("["):
            section = line.strip("[]")
        else:
            rows.append("\t".join([section, *line.split("=", 1)]))
    third = -(-len(lines) // 3)
    beside = [
        "".join(f"{lines[at]:<48}" for at in range(row, len(lines), third)).rstrip() for row in range(third)
    ]  # fmt: skip

    wanted = parse(content, *maps)
    table, columns = parse("\n".join(rows), *maps), parse("\n".join(beside), *maps)

    assert table.plan == columns.plan == wanted.plan
    assert table.lines == ["t.cfg: read as rows of section, key and value, as papers print it", *wanted.lines]
    assert columns.lines[0] == "t.cfg: read as 3 columns side by side, as papers print it"
