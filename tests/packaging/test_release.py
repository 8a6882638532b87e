"""A release has one version, notes for it, and digests of what was made."""

from __future__ import annotations

import importlib.util
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture
def release(root: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """packaging/release.py as a module."""
    monkeypatch.syspath_prepend(str(root / "packaging"))
    spec = importlib.util.spec_from_file_location("assay_release", root / "packaging/release.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    sys.modules.pop("bundle", None)


CHANGES = """# Changelog

## Unreleased

## 0.2.0

- Faster.

## 0.1.0

First release.
"""


def test_the_version_stands_in_one_place(root: Path, release: ModuleType) -> None:
    assert "version" in tomllib.loads((root / "pyproject.toml").read_text())["project"]["dynamic"]
    for manifest in (root / "crates").glob("*/Cargo.toml"):
        assert tomllib.loads(manifest.read_text())["package"]["version"] == {"workspace": True}
    assert release.notes_of(release.version(), (root / "CHANGELOG.md").read_text(), trial=True)


def test_notes_are_the_section_of_the_version(release: ModuleType) -> None:
    assert release.notes_of("0.2.0", CHANGES) == "- Faster.\n"
    assert release.notes_of("0.1.0", CHANGES, trial=True) == "First release.\n"


@pytest.mark.parametrize(
    ("version", "changes", "message"),
    [
        ("0.3.0", CHANGES, "CHANGELOG.md has no section 0.3.0"),
        ("0.2.0", CHANGES.replace("## 0.2.0", "- Newer.\n\n## 0.2.0"), "CHANGELOG.md has changes under Unreleased"),
    ],
)
def test_a_version_without_its_section_is_no_release(
    release: ModuleType, version: str, changes: str, message: str
) -> None:
    with pytest.raises(SystemExit, match=message):
        release.notes_of(version, changes)


def test_digests_are_read_by_sha256sum(release: ModuleType, execute, tmp_path: Path) -> None:
    (tmp_path / "one.whl").write_text("one")
    release.write_sums([tmp_path / "one.whl"], tmp_path / "SHA256SUMS")
    checked = execute(["sha256sum", "--check", "--strict", "SHA256SUMS"], folder=tmp_path)
    assert (checked.returncode, checked.stdout) == (0, "one.whl: OK\n")
