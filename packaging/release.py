"""Writes a release into dist/: wheels, source, bundle, packages, bill of materials, notes, checksums.

Its version is that of Cargo.toml, its notes are the version's section of CHANGELOG.md. Words name the only parts that
are wanted: `release.py wheel --arch aarch64`. Nothing is published.
"""

from __future__ import annotations

import argparse
import hashlib
import platform
import re
import sys
import tempfile
import tomllib
from collections.abc import Iterable
from pathlib import Path

import bundle

ROOT = Path(__file__).resolve().parent.parent
MACHINES = ("x86_64", "aarch64")
PARTS = ("wheel", "sdist", "bundle", "packages", "sbom")


def main() -> None:
    """Make the parts that are wanted, and say where they lie."""
    parser = argparse.ArgumentParser(description="Write a release, or parts of it, into dist/.")
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"one of {', '.join(PARTS)}; all of them")
    parser.add_argument("--arch", choices=MACHINES, default=platform.machine(), help="machine of a wheel alone")
    parser.add_argument(
        "--python-version", default="{}.{}".format(*sys.version_info), help="Python of bundle and packages (this one)"
    )
    parser.add_argument("--output", type=Path, default=ROOT / "dist", help="folder of the files")
    parser.add_argument("--trial", action="store_true", help="take changes that have no version yet")
    arguments = parser.parse_args()
    output = arguments.output.resolve()
    output.mkdir(parents=True, exist_ok=True)
    if unknown := set(arguments.parts) - set(PARTS):
        parser.error(f"{', '.join(sorted(unknown))}: accepted: {', '.join(PARTS)}")
    if arguments.parts:
        made = make(arguments.parts, [arguments.arch], arguments.python_version, output)
    else:
        notes = output / f"assay-{version()}-notes.md"
        text = notes_of(version(), (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), trial=arguments.trial)
        # What this machine lacks is known before the minutes of building.
        bundle.add_standard_library(f"{other_machine()}-unknown-linux-gnu")
        made = make(PARTS, [platform.machine(), other_machine()], arguments.python_version, output)
        notes.write_text(text, encoding="utf-8")
        made += [notes, write_sums([*made, notes], output / "SHA256SUMS")]
    for path in made:
        print(f"{path.stat().st_size / 1e6:8.1f} MB  {path}")


def version() -> str:
    """The version, from the one place that says it."""
    with (ROOT / "Cargo.toml").open("rb") as file:
        return str(tomllib.load(file)["workspace"]["package"]["version"])


def other_machine() -> str:
    """The machine that this one is not."""
    return next(machine for machine in MACHINES if machine != platform.machine())


def notes_of(wanted: str, changelog: str, *, trial: bool = False) -> str:
    """The section of a version; the program ends where there is none, or changes have no version yet."""
    parts = re.split(r"^## (.+)\n", changelog, flags=re.MULTILINE)
    sections = {name.strip(): text.strip() + "\n" for name, text in zip(parts[1::2], parts[2::2], strict=True)}
    waiting = sections.get("Unreleased", "").strip()
    if trial:
        return waiting + "\n" if waiting else sections[wanted]
    if waiting:
        sys.exit("release: CHANGELOG.md has changes under Unreleased; name that section as Cargo.toml's next version")
    if wanted not in sections:
        sys.exit(f"release: CHANGELOG.md has no section {wanted}, which is Cargo.toml's version")
    return sections[wanted]


def make(parts: Iterable[str], machines: Iterable[str], python: str, output: Path) -> list[Path]:
    """The files of the parts; a bundle is built from a wheel, packages and bill of materials from a bundle."""
    made: list[Path] = []
    with tempfile.TemporaryDirectory(prefix="assay-release-") as work:
        archive: Path | None = None
        wheels = {machine: bundle.build_wheel(output, machine) for machine in machines if "wheel" in parts}
        made += wheels.values()
        if "sdist" in parts:
            bundle.run([str(Path(sys.executable).with_name("maturin")), "sdist", "--out", str(output)])
            made.append(output / f"assay_storage-{version()}.tar.gz")
        if {"bundle", "packages", "sbom"} & set(parts):
            folder = output if "bundle" in parts else Path(work)
            archive = bundle.make_bundle(Path(work), python, folder, wheels.get(platform.machine()))
            made += [archive] if "bundle" in parts else []
        if archive is not None and "packages" in parts:
            from system_packages import make_packages

            made += make_packages(Path(work) / "packages", archive, output)
        if archive is not None and "sbom" in parts:
            from sbom import write_sbom

            made.append(write_sbom(archive, output / f"assay-{version()}-sbom.cdx.json"))
    return made


def write_sums(files: Iterable[Path], output: Path) -> Path:
    """The digests of the files, as `sha256sum --check` reads them."""
    lines = []
    for path in files:
        with path.open("rb") as file:
            lines.append(f"{hashlib.file_digest(file, 'sha256').hexdigest()}  {path.name}\n")
    output.write_text("".join(lines), encoding="utf-8")
    return output


if __name__ == "__main__":
    main()
