"""The Kubernetes examples fit its schema, and say what the command understands."""

from __future__ import annotations

import re
import shlex
import tomllib
from pathlib import Path

import pytest
import typer

from assay.apps.cli.app import app


@pytest.fixture
def texts(root: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in (root / "packaging/kubernetes").glob("*.yaml")}


def test_images_have_the_version_of_this_source(root: Path, texts: dict[str, str]) -> None:
    version = tomllib.loads((root / "Cargo.toml").read_text())["workspace"]["package"]["version"]
    named = re.findall(r"assay-storage:([0-9.]+)", "".join(texts.values()) + (root / "docs/kubernetes.md").read_text())
    assert set(named) == {version}


def test_commands_are_understood(texts: dict[str, str]) -> None:
    top = typer.Context(typer.main.get_command(app), info_name="assay")
    lines = re.findall(r"assay ((?:profile|compare) [^|]*?)(?: \\\\?\n|\"\])", "".join(texts.values()))
    assert len(lines) == 4
    for line in lines:
        verb, *words = shlex.split(line)
        top.command.get_command(top, verb).make_context(verb, words, parent=top)


@pytest.mark.packaging
@pytest.mark.parametrize("version", ["1.25.0", "1.37.0"])
def test_the_examples_fit_the_schema(root: Path, make_environment, execute, version: str) -> None:
    programs = make_environment("kubernetes")
    done = execute([programs / "python", "-m", "pip", "install", "--quiet", "kubernetes-validate"], folder=root)
    assert done.returncode == 0, done.stderr
    files = sorted((root / "packaging/kubernetes").glob("*.yaml"))
    command = [programs / "kubernetes-validate", "--strict", "--kubernetes-version", version, *files]
    done = execute(command, folder=root)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (done.stdout + done.stderr).count("passed for resource") == 6
