"""The documents agree with the code: links, exit codes, plan keys, presets, and every command line they show."""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel
from typer.testing import CliRunner

from assay.apps.cli.app import app
from assay.apps.cli.reference import reference
from assay.apps.cli.verbs import verbs as assay_verbs
from assay.base.errors import ExitCode
from assay.workloads.integrity.plan import DatabaseFile, IntegrityPlan
from assay.workloads.io.activities import IoActivity
from assay.workloads.io.plan import IoPlan, IoSearch, IoTiming, load_plan
from assay.workloads.io.precondition import Precondition
from assay.workloads.registry import workload_named
from assay.workloads.tpcc.plan import TpccLayout, TpccPlan
from assay.workloads.transactions.plan import TransactionsSearch, TransactionsTiming

ROOT = Path(__file__).parents[2]
FILES = [*ROOT.glob("*.md"), ROOT / "llms.txt", *ROOT.glob("docs/**/*.md")]
DOCUMENTS = sorted(str(path.relative_to(ROOT)) for path in FILES)


def blocks(text: str, language: str) -> list[str]:
    """Fenced blocks of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)


def section(text: str, heading: str) -> str:
    """What stands under a heading."""
    (found,) = re.findall(rf"^## {re.escape(heading)}$(.*?)(?=^## |\Z)", text, flags=re.MULTILINE | re.DOTALL)
    return found


def table(text: str) -> dict[str, tuple[str, ...]]:
    """Rows of a table by their first cell, without quotes."""
    rows = [tuple(cell.strip() for cell in line.strip("|").split("|")) for line in text.splitlines() if line[:1] == "|"]
    return {row[0].strip("`"): row[1:] for row in rows[2:]}


def command_lines(text: str) -> Iterator[list[str]]:
    """Arguments of every `assay ...` line in the shell blocks of a document, and after prompts in console blocks."""
    for block in blocks(text, "sh") + blocks(text, "console"):
        # A here-document holds no commands.
        commands = re.sub(r"<<'END'.*?^END$", "", block, flags=re.MULTILINE | re.DOTALL).replace("\\\n", " ")
        for line in commands.splitlines():
            command = line.removeprefix("$ ")
            if command.startswith("assay "):
                yield shlex.split(re.split(r" > | \|\| ", command)[0], comments=True)[1:]


@pytest.mark.parametrize("name", DOCUMENTS)
def test_links_lead_somewhere(root: Path, name: str) -> None:
    document = root / name
    text = document.read_text()
    for target in re.findall(r"\]\(([^)]+)\)", text):
        if target.startswith("#"):
            assert target[1:] in anchors(text)
        elif "://" not in target:
            file, _, anchor = target.partition("#")
            assert (document.parent / file).exists(), f"{name} links to {target}"
            assert not anchor or anchor in anchors((document.parent / file).read_text()), f"{name} links to {target}"


def anchors(text: str) -> list[str]:
    """What links to headings of a document end in."""
    headings = [re.sub(r"[^a-z -]", "", line.lower()).strip(" ") for line in re.findall(r"^#+(.*)$", text, re.M)]
    return [heading.replace(" ", "-") for heading in headings]


def test_exit_codes_are_those_of_the_code(root: Path) -> None:
    rows = table((root / "docs/exit-codes.md").read_text())
    assert {int(code): cells[0].strip("`") for code, cells in rows.items()} == {
        code.value: code.name for code in ExitCode
    }


@pytest.mark.parametrize(
    ("heading", "model"),
    [
        ("Plan", IoPlan),
        ("`[timing]`", IoTiming),
        ("`[search]`", IoSearch),
        ("`[precondition]`", Precondition),
        ("`[[activity]]`", IoActivity),
    ],
)
def test_plan_keys_and_defaults_are_those_of_the_code(root: Path, heading: str, model: type[BaseModel]) -> None:
    rows = table(section((root / "docs/plans.md").read_text(), heading))
    check_rows(rows, {key: field.default for key, field in model.model_fields.items()})


def check_rows(rows: Mapping[str, tuple[str, ...]], defaults: Mapping[str, Any]) -> None:
    """The rows are those of the keys, and show their defaults where these are plain values."""
    assert set(rows) == set(defaults)
    for key, default in defaults.items():
        shown = rows[key][0].strip("`")
        if isinstance(default, bool):
            assert shown == str(default).lower(), key
        elif isinstance(default, int | float):
            assert float(shown) == default, key
        elif isinstance(default, str) and default:
            assert shown == default, key


def test_the_reference_of_options_is_up_to_date(root: Path) -> None:
    pages = [root / "docs/options.md", root / "docs/other-tools.md", *sorted((root / "docs/options").iterdir())]
    written = {str(path.relative_to(root / "docs")): path.read_text() for path in pages}
    assert written == reference(), "write it again with: python -m assay.apps.cli.reference docs"


def test_integrity_plan_keys_and_defaults_are_those_of_the_code(root: Path) -> None:
    text = (root / "docs/plans.md").read_text()
    defaults = {key: field.default for key, field in IntegrityPlan.model_fields.items()}
    tables: dict[str, type[BaseModel]] = {
        key: type(default) for key, default in defaults.items() if isinstance(default, BaseModel)
    }
    inner = {
        f"{name}.{key}": field.default
        for name, model in (tables | {"files": DatabaseFile}).items()
        for key, field in model.model_fields.items()
    }
    check_rows(table(section(text, "Integrity plan")), defaults)
    check_rows(table(section(text, "Integrity timing, users and files")), inner)


def test_transactions_plan_keys_and_defaults_are_those_of_the_code(root: Path) -> None:
    text = (root / "docs/plans.md").read_text()
    inner = {
        f"{name}.{key}": field.default
        for name, model in {"timing": TransactionsTiming, "search": TransactionsSearch}.items()
        for key, field in model.model_fields.items()
    }
    defaults = {key: field.default for key, field in TpccPlan.model_fields.items()}
    check_rows(table(section(text, "Transactions plan")), defaults)
    check_rows(table(section(text, "Transactions timing and search")), inner)
    layout = {key: field.default for key, field in TpccLayout.model_fields.items()}
    check_rows(table(section(text, "Transactions layout")), layout)
    assert set(table(section(text, "Transactions presets"))) == set(workload_named("tpcc").presets())


def test_plans_in_the_documents_are_understood(root: Path) -> None:
    plans = blocks((root / "docs/plans.md").read_text(), "toml")
    plans += re.findall(
        r"\.toml <<'END'\n(.*?)^END$", (root / "docs/tour.md").read_text(), flags=re.MULTILINE | re.DOTALL
    )
    assert len(plans) == 2
    for text in plans:
        assert load_plan(tomllib.loads(text), source="document").workloads()


def test_presets_and_their_limits_are_those_of_the_code(root: Path) -> None:
    rows = table(section((root / "docs/plans.md").read_text(), "Presets"))
    assert set(rows) == set(workload_named("io").presets())
    for name, (_, limits) in rows.items():
        assert (limits == "none") == (not workload_named("io").preset(name).limits)
        assert set(re.findall(r"`([^`]+)`", limits)) <= set(workload_named("io").preset(name).limits)
    tour = (root / "docs/tour.md").read_text()
    assert all(f"`{name}`" in tour for name in workload_named("io").presets())


def test_integrity_presets_are_those_of_the_code(root: Path) -> None:
    rows = table(section((root / "docs/plans.md").read_text(), "Integrity presets"))
    assert set(rows) == set(workload_named("integrity").presets())


def test_command_lines_of_readme_and_tour_are_understood(root: Path) -> None:
    lines = [line for name in ("README.md", "docs/tour.md") for line in command_lines((root / name).read_text())]
    assert {line[0] for line in lines} == verbs()
    for line in lines:
        # Help is shown only after every option before it was understood.
        shown = CliRunner().invoke(app, [*line, "--help"])
        assert shown.exit_code == 0, f"{line}: {shown.output}"


def verbs() -> set[str]:
    # What is hidden is started by Assay itself.
    return {name for name, command in assay_verbs().items() if not command.hidden}


def test_the_readme_names_every_verb(root: Path) -> None:
    readme = (root / "README.md").read_text()
    assert {"assess", "study", "model"} <= verbs()
    assert all(f"`assay {verb} " in readme for verb in verbs())


def test_the_readme_is_read_in_a_few_minutes(root: Path) -> None:
    assert (root / "README.md").stat().st_size <= 7 << 10


def test_the_pictures_of_readme_and_tour_are_small(root: Path) -> None:
    pictures = [
        (root / name).parent / picture
        for name in ("README.md", "docs/tour.md")
        for picture in re.findall(r"!\[[^]]+\]\(([^)]+)\)", (root / name).read_text())
    ]
    assert sorted(picture.stem for picture in pictures) == ["report", "study", "transactions", "ui"]
    for picture in pictures:
        assert picture.read_bytes().startswith(b"\x89PNG")
        assert picture.stat().st_size < 400_000
