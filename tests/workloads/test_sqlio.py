"""The classic sqlio command line, as the readme of version 1.5 defines it."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.base.errors import UsageError
from assay.base.windows_paths import parse_maps
from assay.workloads.io.sqlio import ParamLine, SqlioCommand, parse_param_file, parse_sqlio, read_sqlio
from assay.workloads.io.sqlio_batch import parse_batch, with_hint


def test_without_flags_the_defaults_of_the_readme_apply() -> None:
    # -kR -t1 -s30 -f64 -b2 -i64 -BN testfile.dat
    command = parse_sqlio([])
    assert command == SqlioCommand()
    facts = command.to_plan_facts()
    assert (facts.duration_s, facts.io_mode, facts.sync) == (30, "direct", "dsync")
    (file,) = facts.files
    assert (file.path, file.threads, file.operation, file.block_bytes) == ("testfile.dat", 1, "read", 2048)
    assert (file.access, file.stripe_blocks, file.ios_per_run, file.outstanding) == ("stride", 64, 64, 1)
    # "the default options of -i64 -f64 -b2 touches 8MB"
    assert file.span_bytes == 8 * 2**20


def test_a_published_command_line_is_read_flag_by_flag() -> None:
    command = parse_sqlio(["-kW", "-s360", "-frandom", "-o32", "-b8", "-LS", "-t4", "-BH", "-S100", "/data/f"])
    assert (command.operation, command.duration_s, command.access, command.outstanding) == ("write", 360, "random", 32)
    assert (command.block_bytes, command.latency_timer, command.threads) == (8192, "system", 4)
    assert (command.buffering, command.start_block, command.files) == ("H", 100, ("/data/f",))
    assert command.notices == ()
    (file,) = command.to_plan_facts().files
    assert (file.threads, file.outstanding, file.start_block) == (4, 32, 100)
    assert file.stripe_blocks is None
    assert file.ios_per_run is None
    assert file.span_bytes is None


@pytest.mark.parametrize("dash", ["\u2013", "\u2014", "\u2212", "\u2010"])
def test_a_dash_from_a_word_processor_is_read_as_a_hyphen_with_a_notice(dash: str) -> None:
    command = parse_sqlio([f"{dash}o32"])
    assert command.outstanding == 32
    assert len(command.notices) == 1
    assert f"{dash}o32" in command.notices[0]


@pytest.mark.parametrize(
    ("words", "says_random", "hinted"),
    [
        ("-kR -fsequential -o32 -b8", False, True), ("-kR -fsequential -o8 -b64", False, False),
        ("-kR -fsequential -o8 -b64", True, True), ("-kR -frandom -o32 -b8", True, False),
    ],
)  # fmt: skip
def test_pages_in_order_get_a_hint_that_published_scripts_mean_random_reads(
    words: str, says_random: bool, hinted: bool
) -> None:
    command = with_hint(parse_sqlio(words.split()), says_random=says_random)

    hints = [notice for notice in command.notices if "which -frandom asks for" in notice]
    assert (command.access == "sequential" or not hinted, bool(hints)) == (True, hinted)


def test_a_batch_says_random_in_a_comment_or_in_the_name_of_its_output() -> None:
    text = "rem Random reads\nsqlio -kR -fsequential a\nrem sequential\nsqlio -kR -fsequential a\n"
    lines = parse_batch(text + "sqlio -kR -fsequential a >> RANDOM.txt\n")

    assert [line.says_random for line in lines] == [True, False, True]


def test_a_word_that_begins_with_a_slash_is_a_file() -> None:
    assert parse_sqlio(["/k"]).files == ("/k",)


@pytest.mark.parametrize(
    ("flag", "io_mode", "sync"),
    [
        ("-BN", "direct", "dsync"),
        ("-BH", "direct", "none"),
        ("-BS", "buffered", "dsync"),
        ("-BY", "buffered", "none"),
    ],
)
def test_buffering_maps_to_open_mode_and_write_through(flag: str, io_mode: str, sync: str) -> None:
    facts = parse_sqlio([flag]).to_plan_facts()
    assert (facts.io_mode, facts.sync) == (io_mode, sync)


@pytest.mark.parametrize(
    "flag", ["-p0", "-pI3", "-a0xf", "-aR15", "-aRI0x3", "-dDE", "-RD,1", "-64", "-v1.1.1", "-U", "-Up", "-D50", "-mC4"]
)
def test_windows_only_flags_are_accepted_with_a_notice(flag: str) -> None:
    command = parse_sqlio([flag, "-frandom", "/data/f"])
    assert len(command.notices) == 1
    assert flag in command.notices[0] or flag[:2] in command.notices[0]
    assert command.to_plan_facts() == parse_sqlio(["-frandom", "/data/f"]).to_plan_facts()


@pytest.mark.parametrize(
    ("argument", "named"),
    [
        ("-x1", "-k -t -s"),
        ("-", "-k -t -s"),
        ("--threads=4", "-k -t -s"),
        ("-kX", "-kR"),
        ("-t0", "1 to 256"),
        ("-t257", "1 to 256"),
        ("-t", "missing"),
        ("-s0", "1 or more"),
        ("-s-5", "1 or more"),
        ("-b0", "1 to"),
        ("-b8K", "whole number"),
        ("-b٨", "whole number"),
        ("-frand", "-frandom"),
        ("-f0", "-frandom"),
        ("-ofour", "whole number"),
        ("-i0", "1 or more"),
        ("-L", "-LS"),
        ("-LX", "-LS"),
        ("-BQ", "-BN"),
        ("-S-1", "0 or more"),
        ("-v2", "-v1.1.1"),
        ("-F", "param.txt"),
        ("-Uq", "-Up"),
        ("-pX", "-p0"),
        ("-azz", "-a0xf"),
        ("-mQ4", "-mC"),
        ("-d1", "-dDEF"),
        ("-Dx", "whole number"),
    ],
)
def test_a_bad_flag_or_value_is_refused_in_one_line_with_what_is_accepted(argument: str, named: str) -> None:
    with pytest.raises(UsageError) as refusal:
        parse_sqlio([argument])
    message = str(refusal.value)
    assert argument[:2] in message
    assert argument[2:] in message
    assert named in message
    assert "\n" not in message


@pytest.mark.parametrize("path", ["c:\\testfile.dat", "E:Testfile.dat", "X:", "9:", "\\test", "\\\\server\\share\\f"])
def test_a_windows_path_is_refused_with_the_path_in_the_message(path: str) -> None:
    with pytest.raises(UsageError, match="Windows path"):
        parse_sqlio([path])
    with pytest.raises(UsageError, match=r"line 2: .*Windows path"):
        parse_param_file(f"# comment\n{path} 2 0x0 100\n")


def test_drive_letters_are_mapped() -> None:
    maps = parse_maps([r"Q:\=./data", r"Q:\log=/log"])
    assert parse_sqlio([r"q:\sql\a.dat"], maps).files == ("./data/sql/a.dat",)
    assert [line.path for line in parse_param_file("Q:\\log\\f 2\n/own 1\n", maps)] == ["/log/f", "/own"]
    with pytest.raises(UsageError, match=r"without a --map"):
        parse_sqlio([r"E:\a.dat"], maps)


BATCH = r"""@echo off
REM published: 8 KB random, then 64 KB sequential
"C:\Program Files\SQLIO\sqlio.exe" -kR -s360 -frandom -o32 -b8 -LS -Fparam.txt >> results.txt 2>&1

timeout /T 30 /NOBREAK > nul
sleep 30
sqlio -kW -s360 "-fsequential" -o8 -b64 a.dat
:: the end
"""


def test_a_batch_is_its_commands_with_the_rests_between() -> None:
    first, second = parse_batch(BATCH)
    assert (first.number, first.words[0], first.words[-1], first.rest_s) == (3, "-kR", "-Fparam.txt", None)
    assert (second.number, second.words, second.rest_s) == (
        7,
        ("-kW", "-s360", "-fsequential", "-o8", "-b64", "a.dat"),
        60,
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [("sqlio a.dat\nformat c:\n", "line 2: 'format c:' is no command of sqlio"), ("rem nothing\n", "holds no command")],
)
def test_a_batch_that_is_not_understood_is_refused_before_anything_runs(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        parse_batch(text)


@given(st.text(max_size=200))
def test_any_text_is_a_batch_or_refused(text: str) -> None:
    with contextlib.suppress(UsageError):
        assert parse_batch(text)


def test_raw_drives_alone_are_refused_because_nothing_else_is_named() -> None:
    with pytest.raises(UsageError, match="/dev/"):
        parse_sqlio(["-RDEF"])


def test_multi_buffer_does_not_go_with_outstanding() -> None:
    with pytest.raises(UsageError, match=r"-mC4.*-o"):
        parse_sqlio(["-mC4", "-o8"])


def test_a_stripe_needs_a_block_for_every_thread() -> None:
    assert parse_sqlio(["-f4", "-t4"]).to_plan_facts().files[0].threads == 4
    with pytest.raises(UsageError, match="-f4: 5 threads"):
        parse_sqlio(["-f4", "-t5"])


def test_outstanding_zero_means_no_queue() -> None:
    assert parse_sqlio(["-o0"]).outstanding is None


def test_every_thread_works_on_every_file_of_the_command_line() -> None:
    facts = parse_sqlio(["-t2", "-o8", "-frandom", "a", "b"]).to_plan_facts()
    assert [(file.path, file.threads, file.outstanding) for file in facts.files] == [("a", 2, 8), ("b", 2, 8)]


def test_several_files_without_outstanding_are_not_visited_in_turn_and_a_notice_says_so() -> None:
    assert any("in turn" in notice for notice in parse_sqlio(["-frandom", "a", "b"]).notices)


def test_a_parameter_file_has_files_threads_masks_sizes_and_comments() -> None:
    text = "\ufeff# my files\r\n/data/a 4 0x0 2000\r\n\r\n  #/data/b 1\n/data/c\t2\n/dev/sdb 1 15\n"
    assert parse_param_file(text) == [
        ParamLine("/data/a", 4, 0, 2000 * 2**20),
        ParamLine("/data/c", 2),
        ParamLine("/dev/sdb", 1, 15),
    ]


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("/data/a", "FILE THREADS"),
        ("/data/a 1 0x0 100 extra", "FILE THREADS"),
        ("/data/a 0", "threads '0'"),
        ("/data/a 257", "threads '257'"),
        ("/data/a 1 0xg", "mask '0xg'"),
        ("/data/a 1 0x0 0", "size '0'"),
        ("/data/a 1 0x0 1G", "size '1G'"),
    ],
)
def test_a_bad_parameter_line_is_refused_with_its_number(line: str, named: str) -> None:
    with pytest.raises(UsageError) as refusal:
        parse_param_file(f"\n{line}\n")
    assert "line 2" in str(refusal.value)
    assert named in str(refusal.value)


def test_a_parameter_file_names_files_and_threads_instead_of_the_command_line(tmp_path: Path) -> None:
    param = tmp_path / "param.txt"
    param.write_text("/data/a 4 0x0 100\n/data/b 2\n")
    command = read_sqlio(["-kW", "-t2", "-frandom", "-o8", f"-F{param}", "testfile.dat"])
    assert [(file.path, file.threads, file.size_bytes) for file in command.to_plan_facts().files] == [
        ("/data/a", 4, 100 * 2**20),
        ("/data/b", 2, None),
    ]
    (notice,) = command.notices
    assert "testfile.dat -t2" in notice


def test_parsing_alone_opens_nothing_and_says_that_the_lines_are_not_known() -> None:
    command = parse_sqlio(["-Fno-such-file.txt"])
    with pytest.raises(UsageError, match=r"no-such-file\.txt"):
        command.to_plan_facts()


@pytest.mark.parametrize(
    ("text", "named"),
    [(None, "cannot be read"), ("# nothing\n", "no line"), ("/data/a\n", "line 1"), ("/data/a 1 0 100\n", "-frandom")],
)
def test_a_parameter_file_that_cannot_be_used_is_refused_by_name(tmp_path: Path, text: str | None, named: str) -> None:
    param = tmp_path / "param.txt"
    if text is not None:
        param.write_text(text)
    with pytest.raises(UsageError) as refusal:
        read_sqlio([f"-F{param}"])
    assert str(param) in str(refusal.value)
    assert named in str(refusal.value)


@given(
    st.lists(
        st.one_of(
            st.integers(1, 256).map(lambda n: f"-t{n}"),
            st.integers(1, 10**6).map(lambda n: f"-s{n}"),
            st.integers(1, 1024).map(lambda n: f"-b{n}"),
            st.integers(0, 4096).map(lambda n: f"-o{n}"),
            st.sampled_from(["-kR", "-kW", "-BN", "-BY", "-BH", "-BS", "-LS", "-LPi"]),
        )
    )
)
def test_the_last_of_repeated_flags_counts(flags: list[str]) -> None:
    last = {flag[:2]: flag for flag in flags}
    once, repeated = parse_sqlio(["-frandom", *last.values()]), parse_sqlio(["-frandom", *flags])
    assert repeated.to_plan_facts() == once.to_plan_facts()


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=12))
def test_any_word_is_either_understood_or_refused_with_a_usage_error(word: str) -> None:
    # Anything but a UsageError fails the test.
    with contextlib.suppress(UsageError):
        assert parse_sqlio([word]).files
