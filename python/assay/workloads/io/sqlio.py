"""The classic `sqlio` command line and its parameter file.

SQLIO is retired, but its command lines live on in runbooks and published studies. This file reads them as the readme
of version 1.5 (1999-11-17) defines them: flags glued to their values, `-o` counted per thread and per file, defaults
`-kR -t1 -s30 -f64 -b2 -i64 -BN testfile.dat`. Only `read_sqlio` does I/O: it opens the parameter file.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, NoReturn, get_args

from assay.base.errors import UsageError
from assay.base.reading import TEXT_MAX_BYTES
from assay.base.windows_paths import PathMap, local_path

Operation = Literal["read", "write"]
Access = Literal["random", "sequential", "stride"]
Buffering = Literal["N", "Y", "H", "S"]
Timer = Literal["system", "processor"]

THREADS_MAX = 256
"""Most threads `-t` takes (readme, "Maximums")."""
FILES_MAX = 256
"""Most files of one command (readme, "Maximums")."""

# Windows' two open flags are two separate switches here: NO_BUFFERING is O_DIRECT, WRITE_THROUGH is O_DSYNC.
_IO_MODE_AND_SYNC: dict[Buffering, tuple[Literal["direct", "buffered"], Literal["dsync", "none"]]] = {
    "N": ("direct", "dsync"),
    "H": ("direct", "none"),
    "S": ("buffered", "dsync"),
    "Y": ("buffered", "none"),
}

# Word processors turn the hyphen of a published command line into one of these.
_DASHES = {"\u2010": "a hyphen", "\u2013": "an en dash", "\u2014": "an em dash", "\u2212": "a minus sign"}

_WINDOWS_PATH = re.compile(r"[A-Za-z0-9]:(?:[\\/].*)?|[A-Za-z]:.*|\\.*")

Maps = Sequence[PathMap]
"""Where Windows paths are on this system."""


@dataclass(frozen=True)
class ParamLine:
    """One line of a parameter file: one pool of threads on one file.

    Parameters
    ----------
    path
        File or device, as written.
    threads
        Threads of the pool, 1 to 256.
    mask
        CPU affinity mask; 0 means none. Windows numbers processors in groups, so it is kept for the output only.
    size_bytes
        Size from the file's fourth column, which is in MB of 2**20 bytes; None where the column is absent.
    """

    path: str
    threads: int
    mask: int = 0
    size_bytes: int | None = None


@dataclass(frozen=True)
class FileFacts:
    """What the generator has to do on one file.

    `outstanding` counts I/Os per thread on this file, so the file sees `threads * outstanding` at once. `stripe_blocks`
    and `ios_per_run` have a meaning only where `access` is `stride`: each next I/O lies `stripe_blocks` blocks further;
    after `ios_per_run` I/Os the thread goes back and moves over by one block. Each of the threads covers its own
    `stripe_blocks / threads` columns of that grid. `span_bytes` is what the stride touches, from the start of the file.
    """

    path: str
    threads: int
    outstanding: int
    block_bytes: int
    operation: Operation
    access: Access
    stripe_blocks: int | None
    ios_per_run: int | None
    start_block: int
    size_bytes: int | None
    span_bytes: int | None


@dataclass(frozen=True)
class PlanFacts:
    """A whole command in the generator's terms: seconds, open mode, and one entry per file."""

    duration_s: int
    io_mode: Literal["direct", "buffered"]
    sync: Literal["dsync", "none"]
    files: tuple[FileFacts, ...]


@dataclass(frozen=True)
class SqlioCommand:
    """A classic command line, understood.

    `outstanding` is None without `-o`: then a thread issues one I/O and waits for it. `latency_timer` is None without
    `-L`: then the classic program prints no latencies. `buffering_given` is kept because the classic program describes
    the buffering only when it was asked for. `notices` says, one sentence each, what was accepted but has no effect.
    """

    operation: Operation = "read"
    threads: int = 1
    duration_s: int = 30
    access: Access = "stride"
    stripe_blocks: int = 64
    block_bytes: int = 2048
    ios_per_run: int = 64
    outstanding: int | None = None
    start_block: int = 0
    buffering: Buffering = "N"
    buffering_given: bool = False
    latency_timer: Timer | None = None
    initiation_latency: bool = False
    utilization: Literal["system", "per processor"] | None = None
    param_file: str | None = None
    param_lines: tuple[ParamLine, ...] = ()
    files: tuple[str, ...] = ("testfile.dat",)
    notices: tuple[str, ...] = field(default=())

    @property
    def io_mode(self) -> Literal["direct", "buffered"]:
        """`direct` where the file cache is off (`-BN`, `-BH`)."""
        return _IO_MODE_AND_SYNC[self.buffering][0]

    @property
    def sync(self) -> Literal["dsync", "none"]:
        """`dsync` where the disk cache is off (`-BN`, `-BS`)."""
        return _IO_MODE_AND_SYNC[self.buffering][1]

    @property
    def pools(self) -> tuple[ParamLine, ...]:
        """Thread pools: the lines of the parameter file, or one pool per file of the command line.

        Raises
        ------
        UsageError
            `-F` was given and its lines are not known yet: see `with_param_lines`.
        """
        if self.param_file is None:
            return tuple(ParamLine(path, self.threads) for path in self.files)
        if not self.param_lines:
            raise UsageError(f"-F: {self.param_file} has not been read; its lines name the files and threads")
        return self.param_lines

    def with_param_lines(self, lines: Sequence[ParamLine]) -> SqlioCommand:
        """Return the command with the parameter file's lines in place.

        Raises
        ------
        UsageError
            The lines do not fit the command: none at all, a size with a stride, too many threads for a stride.
        """
        command = replace(self, param_lines=tuple(lines))
        if not lines:
            raise UsageError(f"-F: {self.param_file} has no line that names a file; write: FILE THREADS [MASK [MB]]")
        _check_pools(command)
        return command

    def to_plan_facts(self) -> PlanFacts:
        """Return what the generator needs, per file.

        Raises
        ------
        UsageError
            `-F` was given and its lines are not known yet.
        """
        stride = self.access == "stride"
        span_blocks = self.start_block + self.stripe_blocks * self.ios_per_run
        files = tuple(
            FileFacts(
                path=pool.path,
                threads=pool.threads,
                outstanding=self.outstanding or 1,
                block_bytes=self.block_bytes,
                operation=self.operation,
                access=self.access,
                stripe_blocks=self.stripe_blocks if stride else None,
                ios_per_run=self.ios_per_run if stride else None,
                start_block=self.start_block,
                size_bytes=pool.size_bytes,
                span_bytes=span_blocks * self.block_bytes if stride else None,
            )
            for pool in self.pools
        )
        return PlanFacts(duration_s=self.duration_s, io_mode=self.io_mode, sync=self.sync, files=files)


class _Fields(dict[str, Any]):
    """Fields of the command collected so far, and the notices beside them."""

    def __init__(self) -> None:
        super().__init__()
        self.notices: list[str] = []
        self.drives_given: str | None = None
        self.sub_blocks_given: str | None = None


def _refuse(flag: str, value: str, accepted: str) -> NoReturn:
    what = f"{value!r} is not accepted" if value else "the value is missing; it is written glued to the flag"
    raise UsageError(f"sqlio {flag}: {what}; accepted: {accepted}")


def _integer(flag: str, value: str, minimum: int, maximum: int | None, example: str) -> int:
    number = int(value) if re.fullmatch(r"[0-9]{1,18}", value) else None
    if number is None or number < minimum or (maximum is not None and number > maximum):
        upper = f" to {maximum}" if maximum is not None else " or more"
        _refuse(flag, value, f"a whole number, {minimum}{upper}, as in {flag}{example}")
    return number


def _kind(fields: _Fields, value: str) -> None:
    operations: dict[str, Operation] = {"R": "read", "W": "write"}
    if value.upper() not in operations:
        _refuse("-k", value, "-kR (reads) or -kW (writes)")
    fields["operation"] = operations[value.upper()]


def _access(fields: _Fields, value: str) -> None:
    if value.lower() in ("random", "sequential"):
        fields["access"] = value.lower()
    elif value.isascii() and value.isdigit() and int(value) >= 1:
        fields["access"], fields["stripe_blocks"] = "stride", int(value)
    else:
        _refuse("-f", value, "-frandom, -fsequential or blocks of a stripe, 1 or more, as in -f64")


def _block(fields: _Fields, value: str) -> None:
    fields["block_bytes"] = 1024 * _integer("-b", value, 1, 1024 * 1024, "8 (KB)")


def _outstanding(fields: _Fields, value: str) -> None:
    # A depth of 0 is how the classic program spells "no queue"; it is the same as leaving the flag out.
    fields["outstanding"] = _integer("-o", value, 0, 65536, "32") or None


def _latency(fields: _Fields, value: str) -> None:
    if re.fullmatch(r"[SPsp]i?", value) is None:
        _refuse("-L", value, "-LS, -LP, -LSi or -LPi")
    fields["latency_timer"] = "system" if value[0] in "Ss" else "processor"
    fields["initiation_latency"] = value.endswith("i")
    if fields["latency_timer"] == "processor":
        fields.notices.append(
            "-LP: latencies are taken from the system's monotonic clock, which is safe on any processor"
        )


def _buffering(fields: _Fields, value: str) -> None:
    if value.upper() not in get_args(Buffering):
        _refuse("-B", value, "-BN (no caches), -BY (all), -BH (disk cache only) or -BS (file cache only)")
    fields["buffering"], fields["buffering_given"] = value.upper(), True


def _utilization(fields: _Fields, value: str) -> None:
    if value not in ("", "p"):
        _refuse("-U", value, "-U or -Up")
    fields["utilization"] = "per processor" if value else "system"
    fields.notices.append("-U: the table shows what this kernel counts; DPC time has no counterpart outside Windows")


def _param_file(fields: _Fields, value: str) -> None:
    if not value:
        _refuse("-F", value, "a file name, as in -Fparam.txt")
    fields["param_file"] = value


def _affinity_cpu(fields: _Fields, value: str) -> None:
    if re.fullmatch(r"I?[0-9]{1,4}", value) is None:
        _refuse("-p", value, "a processor number, as in -p0 or -pI0")
    fields.notices.append(f"-p{value}: processor affinity is not applied; use taskset to pin the whole command")


def _affinity_mask(fields: _Fields, value: str) -> None:
    if re.fullmatch(r"(RI?)?(0[xX][0-9a-fA-F]+|[0-9]+)", value) is None:
        _refuse("-a", value, "a mask, as in -a0xf, -aR0xf or -aRI15")
    fields.notices.append(f"-a{value}: processor affinity is not applied; use taskset to pin the whole command")


def _drives(fields: _Fields, value: str) -> None:
    if re.fullmatch(r"[A-Za-z]+", value) is None:
        _refuse("-d", value, "drive letters, as in -dDEF")
    fields.notices.append(f"-d{value}: there are no drive letters here; the file names are taken as given")


def _raw_drives(fields: _Fields, value: str) -> None:
    if re.fullmatch(r"[A-Za-z0-9,]+", value) is None:
        _refuse("-R", value, "drive letters or numbers, as in -RD,E,1")
    fields.drives_given = value
    fields.notices.append(f"-R{value}: there are no drive letters here; only the files named are used")


def _multi_buffer(fields: _Fields, value: str) -> None:
    if re.fullmatch(r"[CS][1-9][0-9]{0,4}", value) is None:
        _refuse("-m", value, "-mC or -mS and a number of sub-blocks, as in -mC4")
    fields.sub_blocks_given = value
    fields.notices.append(f"-m{value}: every I/O uses one buffer; the storage sees the same I/Os")


def _version(fields: _Fields, value: str) -> None:
    if value != "1.1.1":
        _refuse("-v", value, "-v1.1.1")
    fields.notices.append("-v1.1.1: the block re-use of version 1.1.1 was an error and is not reproduced")


def _debug(fields: _Fields, value: str) -> None:
    level = _integer("-D", value, 0, 1000, "1")
    fields.notices.append(f"-D{level}: debug output is not printed; --json carries the details")


def _number_flag(
    flag: str, name: str, minimum: int, maximum: int | None, example: str
) -> Callable[[_Fields, str], None]:
    def read(fields: _Fields, value: str) -> None:
        fields[name] = _integer(flag, value, minimum, maximum, example)

    return read


_FLAGS: dict[str, Callable[[_Fields, str], None]] = {
    "k": _kind,
    "t": _number_flag("-t", "threads", 1, THREADS_MAX, "4"),
    "s": _number_flag("-s", "duration_s", 1, None, "360"),
    "d": _drives,
    "R": _raw_drives,
    "f": _access,
    "p": _affinity_cpu,
    "a": _affinity_mask,
    "o": _outstanding,
    "b": _block,
    "i": _number_flag("-i", "ios_per_run", 1, None, "64"),
    "m": _multi_buffer,
    "L": _latency,
    "U": _utilization,
    "B": _buffering,
    "S": _number_flag("-S", "start_block", 0, None, "1000"),
    "v": _version,
    "F": _param_file,
    "D": _debug,
}
_ACCEPTED_FLAGS = " ".join(f"-{name}" for name in [*_FLAGS, "64"])


def parse_sqlio(argv: Sequence[str], maps: Maps = ()) -> SqlioCommand:
    """Read a classic command line, without opening anything.

    Parameters
    ----------
    argv
        The words after `sqlio`. A word that begins with `-` is a flag with its value glued on (`-b8`); names are case
        sensitive. Any other word, also one that begins with `/`, is a file.
    maps
        Where Windows paths are on this system.

    Raises
    ------
    UsageError
        A flag is unknown, or a value or combination is not accepted; the message names all three.

    Examples
    --------
    >>> command = parse_sqlio(["-kW", "-s360", "-frandom", "-o32", "-b8", "-LS", "data.dat"])
    >>> command.operation, command.duration_s, command.access, command.outstanding, command.block_bytes
    ('write', 360, 'random', 32, 8192)
    """
    fields = _Fields()
    files: list[str] = []
    for word in argv:
        if word[:1] in _DASHES:
            fields.notices.append(f"{word}: begins with {_DASHES[word[0]]}; read as -{word[1:]}")
            word = "-" + word[1:]
        if word == "-64":
            fields.notices.append("-64: memory is 64 bits wide anyway")
        elif word.startswith("-"):
            _read_flag(fields, word)
        else:
            files.append(_local_path(word, maps, "sqlio"))
    command = SqlioCommand(**fields, notices=tuple(fields.notices))
    return _with_files(command, fields, files)


def _read_flag(fields: _Fields, word: str) -> None:
    read = _FLAGS.get(word[1:2])
    if read is None:
        raise UsageError(f"sqlio {word}: unknown flag; accepted: {_ACCEPTED_FLAGS}")
    read(fields, word[2:])


def _with_files(command: SqlioCommand, fields: _Fields, files: list[str]) -> SqlioCommand:
    notices = list(command.notices)
    if fields.sub_blocks_given is not None and command.outstanding is not None:
        raise UsageError(f"sqlio -m{fields.sub_blocks_given}: not accepted together with -o; leave one of them out")
    if fields.drives_given is not None and not files and command.param_file is None:
        raise UsageError(
            f"sqlio -R{fields.drives_given}: there are no drive letters here; name the device as a file, as in /dev/sdb"
        )
    if len(files) > FILES_MAX:
        raise UsageError(f"sqlio: {len(files)} files are named; accepted: up to {FILES_MAX}")
    if command.param_file is not None:
        ignored = [*files, *([f"-t{command.threads}"] if "threads" in fields else [])]
        if ignored:
            notices.append(f"{' '.join(ignored)}: not used, because {command.param_file} names the files and threads")
        return replace(command, files=(), notices=tuple(notices))
    if len(files) > 1 and command.outstanding is None:
        notices.append("without -o the classic program visits the files in turn; here each keeps one I/O per thread")
    command = replace(command, files=tuple(files) or ("testfile.dat",), notices=tuple(notices))
    _check_pools(command)
    return command


def _check_pools(command: SqlioCommand) -> None:
    if command.access != "stride":
        return
    for pool in command.pools:
        # The threads share the columns of the stripe between them, so each needs at least one ("About the IOs").
        if pool.threads > command.stripe_blocks:
            raise UsageError(
                f"sqlio -f{command.stripe_blocks}: {pool.threads} threads on {pool.path} need a stripe of at least"
                f" {pool.threads} blocks; accepted: -f{pool.threads} or more, -frandom, -fsequential"
            )
        if pool.size_bytes is not None:
            raise UsageError(
                f"sqlio -f{command.stripe_blocks}: {command.param_file} gives {pool.path} a size;"
                " accepted with a size: -frandom or -fsequential"
            )


def _local_path(path: str, maps: Maps, where: str) -> str:
    if not _WINDOWS_PATH.fullmatch(path):
        return path
    if not maps:
        raise UsageError(
            f"{where}: {path!r} is a Windows path; accepted: a path of this system, as in /data/testfile.dat, or"
            rf" --map '{path[:2]}\=/data'"
        )
    try:
        return local_path(path, maps)[0]
    except UsageError as error:
        raise UsageError(f"{where}: {path!r}: {error}") from None


def parse_param_file(text: str, maps: Maps = ()) -> list[ParamLine]:
    r"""Read the lines `FILE THREADS [MASK [MB]]` of a parameter file; lines that begin with `#` are comments.

    Parameters
    ----------
    text
        The file's text. The mask is hexadecimal (`0x3`) or decimal; the size is in MB of 2**20 bytes.
    maps
        Where Windows paths are on this system.

    Raises
    ------
    UsageError
        A line is not of that form; the message gives its number.

    Examples
    --------
    >>> parse_param_file("# data\n/data/f 4 0x0 2000\n")
    [ParamLine(path='/data/f', threads=4, mask=0, size_bytes=2097152000)]
    """
    lines = []
    for number, line in enumerate(text.removeprefix("\ufeff").splitlines(), start=1):
        if line.strip() and not line.lstrip().startswith("#"):
            lines.append(_param_line(line.split(), maps, f"parameter file, line {number}"))
    return lines


def _param_line(words: list[str], maps: Maps, where: str) -> ParamLine:
    if not 2 <= len(words) <= 4:
        raise UsageError(f"{where}: {' '.join(words)!r} has {len(words)} fields; accepted: FILE THREADS [MASK [MB]]")
    path, threads, mask, size_mb = [*words, *["0x0", ""][len(words) - 2 :]]
    path = _local_path(path, maps, where)
    if not re.fullmatch(r"[0-9]{1,3}", threads) or not 1 <= int(threads) <= THREADS_MAX:
        raise UsageError(f"{where}: threads {threads!r} is not accepted; accepted: 1 to {THREADS_MAX}")
    if re.fullmatch(r"0[xX][0-9a-fA-F]+|[0-9]+", mask) is None:
        raise UsageError(
            f"{where}: mask {mask!r} is not accepted; accepted: hexadecimal (0x3) or decimal (3); 0 for none"
        )
    if size_mb and (not re.fullmatch(r"[0-9]{1,12}", size_mb) or int(size_mb) < 1):
        raise UsageError(f"{where}: size {size_mb!r} is not accepted; accepted: MB, a whole number, 1 or more")
    base = 16 if mask[:2] in ("0x", "0X") else 10
    return ParamLine(path, int(threads), int(mask, base), int(size_mb) * 2**20 if size_mb else None)


def read_sqlio(argv: Sequence[str], maps: Maps = ()) -> SqlioCommand:
    """Read a classic command line and the parameter file it names, relative to the current folder.

    Raises
    ------
    UsageError
        As `parse_sqlio` and `parse_param_file`, or the parameter file cannot be read.
    """
    command = parse_sqlio(argv, maps)
    if command.param_file is None:
        return command
    text = read_text_of(command.param_file, f"sqlio -F{command.param_file}")
    try:
        return command.with_param_lines(parse_param_file(text, maps))
    except UsageError as error:
        raise UsageError(f"{command.param_file}: {error}") from None


def read_text_of(path: str, what: str) -> str:
    """The text of a file, bounded.

    Raises
    ------
    UsageError
        It cannot be read.
    """
    try:
        with Path(path).open("rb") as file:
            return file.read(TEXT_MAX_BYTES).decode(errors="replace")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise UsageError(f"{what}: cannot be read: {reason}; give a file that exists") from None
