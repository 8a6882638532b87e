"""No value of what hosts record vanishes: what is in each sample is counted without the importers."""

from __future__ import annotations

import io
import random
import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

import pytest

from assay.telemetry.importers.importer import Into, NotTaken, Options
from assay.telemetry.importers.registry import importer_of
from foreign_files import accounted

SAMPLES = Path(__file__).parent / "imported"


class Sample(NamedTuple):
    """How many values a text holds, and where numbers stand in it."""

    count: Callable[[str], int]
    spot: str


def in_nmon(text: str) -> int:
    count = 0
    for line in text.splitlines():
        cells = line.rstrip(",").split(",")
        place = 2 if cells[0] == "TOP" else 1
        if cells[0] not in ("ZZZZ", "UARG") and re.fullmatch(r"T\d+", "".join(cells[place : place + 1])):
            count += len(cells) - place - 1
    return count


def in_sadf(text: str) -> int:
    names = {"cpu": {"number", "cpu"}, "disk-device": {"dev"}, "irq": {"cpu"}}
    count = 0
    plain = re.sub(r'\sx(?:mlns|si)\S*?="[^"]*"', "", text)
    for stamp in ElementTree.fromstring(plain).iter("timestamp"):
        for one in [part for part in stamp.iter() if part is not stamp]:
            own = set(one.attrib) - {"per", "unit", "iface"} - names.get(one.tag, set())
            count += len(own) + (not one.attrib and not len(one))
    return count


def in_atop(text: str) -> int:
    count = 0
    for line in text.splitlines():
        if line[3:5] == " |":
            cells = [cell for cell in line.split("|")[1:] if cell.strip()]
            count += len(cells) - (line[:3] in ("LVM", "MDD", "DSK", "NET"))
        elif re.match(r"\s+\d+ ", line):
            count += len(line.split())
    return count


def in_lines_of_atop(text: str) -> int:
    rows = [line.split() for line in text.splitlines() if len(line.split()) > 6]
    names = ("cpu", "LVM", "MDD", "DSK")
    return sum(len(row) - 6 - (row[0] in names or (row[0] == "NET" and row[6] != "upper")) for row in rows)


def in_plot(text: str) -> int:
    """Cells of rows without times and names."""
    rows = [line.split() for line in text.splitlines() if re.match(r"\d", line)]
    names = len(re.findall(r"\]Name\b", text))
    return sum(len(row) - 2 - names for row in rows)


def in_collectl(text: str) -> int:
    count, names = 0, 0
    for line in text.splitlines():
        if line.startswith("#"):
            names = {"Name": 1, "Cpu": 1, "Num": 2}.get(line.lstrip("# ").partition(" ")[0], 0)
        elif line.strip() and not line.startswith("waiting"):
            count += len(line.split()) - names
    return count


def in_pmrep(text: str) -> int:
    return sum(line.count(",") for line in text.splitlines() if re.match(r"\d{4}-", line))


def in_pcp(text: str) -> int:
    return len(re.findall(r'"value": ', text))


def in_vscsistats(text: str) -> int:
    return len(re.findall(r"^(?:min|max|mean|count|\d+),.*$", text, re.MULTILINE))


def in_rows(pattern: str, each: str = r"\S+") -> Callable[[str], int]:
    """Values of the last group of each line that matches."""
    return lambda text: sum(
        len(re.findall(each, match[match.lastindex or 0])) for match in re.finditer(pattern, text, re.MULTILINE)
    )


COUNTED = {
    "nmon.nmon": Sample(in_nmon, r"(?<=,)-?\d+\.\d(?=,|$)"),
    "diskstats.txt": Sample(in_rows(r"^ *\d+ +\d+ [a-z]\w* (.*)$"), r"(?<= )\d{2,}(?= |$)"),
    "nfsiostat.txt": Sample(in_rows(r"^(?:  )( +\S.*\d.*)$", r"\S+(?: \(\S+\))?"), r"(?<=  )\d+\.\d{3}(?= |$)"),
}
COUNTED["sadf.xml"] = Sample(in_sadf, r'(?<==")\d+\.\d\d(?=")')
COUNTED["atop.txt"] = Sample(in_atop, r"(?<= )\d+\.\d+(?=[ %MG])")
COUNTED["atop-lines.txt"] = Sample(in_lines_of_atop, r"(?<= )(?:\d{3,4}|\d{6,8})(?= |$)")
COUNTED["collectl-plot.txt"] = Sample(in_plot, r"(?<= )\d{1,4}(?= |$)")
COUNTED["collectl.txt"] = Sample(in_collectl, r"(?<=[ ]{4})\d{2,3}(?= |$)")
COUNTED["pmrep.csv"] = Sample(in_pmrep, r"(?<=,)\d+\.\d{3}(?=,|$)")
COUNTED["pcp.json"] = Sample(in_pcp, r'(?<="value": ")[\d.]+(?=")')
COUNTED["vscsistats.csv"] = Sample(in_vscsistats, r"(?<=,)\d{3,4}(?=$)")
OPTIONS: dict[str, dict[str, int]] = {
    "vscsistats.csv": {"interval_ns": 10**10},
    "nfsiostat.txt": {"interval_ns": 10**10},
}
"""What a sample does not say of itself."""

JUNK = ("x", "n/a", "-", "1e999", "nan", "1.6Q", "--5", "9" * 400, "99%%", "0x1F")


@pytest.mark.parametrize("name", COUNTED)
def test_what_becomes_of_a_files_values_adds_up_to_what_is_in_it(name: str) -> None:
    text = (SAMPLES / name).read_text()
    assert accounted(text, **OPTIONS.get(name, {})) == COUNTED[name].count(text) > 0


@pytest.mark.parametrize("name", COUNTED)
def test_values_that_are_no_numbers_are_accounted_for(name: str) -> None:
    original = (SAMPLES / name).read_text()
    spots = list(re.finditer(COUNTED[name].spot, original, re.MULTILINE))
    read = 0
    for seed in range(60):
        dice = random.Random(seed)
        text = original
        for spot in sorted(dice.sample(spots, min(len(spots), 5)), key=lambda spot: -spot.start()):
            text = text[: spot.start()] + dice.choice(JUNK) + text[spot.end() :]
        found = accounted(text, **OPTIONS.get(name, {}))
        if found is not None:
            read += 1
            assert found == COUNTED[name].count(text), seed
    assert read > 30


@pytest.mark.parametrize("name", COUNTED)
@pytest.mark.slow(reason="seconds of work; make test has quicker ones of the kind")
def test_mutated_files_are_read_or_refused(name: str) -> None:
    original = (SAMPLES / name).read_text()
    pieces = (
        "",
        "\n",
        "9" * 40,
        "-",
        ":",
        "x",
        ",",
        " ",
        "T0001",
        "ZZZZ,",
        "=",
        "<",
        ">",
        '"',
        "{",
        "#",
        "1e400",
        "nan",
    )
    read = 0
    for seed in range(150):
        dice = random.Random(seed)
        text = original
        for _ in range(dice.randint(1, 8)):
            place = dice.randrange(len(text))
            text = text[:place] + dice.choice(pieces) + text[place + dice.choice((0, 1, 1, 3, 40)) :]
        chosen = importer_of(text)
        if chosen is None:
            continue
        into = Into(chosen.name, Options(zone_s=0, interval_ns=10**10), lambda _: None)
        with suppress(NotTaken):
            chosen.read(io.StringIO(text, newline=""), into)
            into.flush()
            read += 1
    # Most mutations of XML and JSON make them none.
    assert read > (2 if name.endswith((".xml", ".json")) else 40)


@pytest.mark.parametrize("unit", [" ", "x ", "1 ", "[a:", "a mounted on /", "a | ", "Tue Mar ", "(", "T0001,"])
@pytest.mark.slow(reason="seconds of work; make test has quicker ones of the kind")
def test_no_format_takes_longer_than_a_line_is_long(unit: str) -> None:
    """A search that goes back and forth over one line would take hours here."""
    text = unit * (64 * 1024 // len(unit))
    assert importer_of(text) is None
    for name in COUNTED:
        original = (SAMPLES / name).read_text()
        accounted(f"{original}{text}\n", **OPTIONS.get(name, {}))
