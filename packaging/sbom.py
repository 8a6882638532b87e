"""The bill of materials of a bundle, in CycloneDX's JSON: its Python packages, and the crates in Assay's module.

Packages are those of the bundle's wheels, each with the digest of its wheel; crates are those of `Cargo.lock` that the
module is linked from, each with the digest by which cargo checked it. What a wheel holds inside, such as libpq in
psycopg's, is not taken apart.
"""

from __future__ import annotations

import email.parser
import hashlib
import json
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from cyclonedx.factory.license import LicenseFactory
from cyclonedx.model import HashAlgorithm, HashType
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packageurl import PackageURL
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
ASSAY = "assay-storage"
MODULE = "assay-python"
"""The crate of the extension module."""


def write_sbom(bundle: Path, output: Path) -> Path:
    """Write the bill of materials of a bundle; ends the program if it does not fit CycloneDX's schema."""
    packages, metadata = python_packages(bundle)
    bom = Bom()
    bom.metadata.component = packages[ASSAY]
    crates, needed = rust_crates()
    for component in [*packages.values(), *crates.values()]:
        if component is not packages[ASSAY]:
            bom.components.add(component)
    for name, others in python_needs(metadata).items():
        bom.register_dependency(packages[name], [packages[other] for other in sorted(others)])
    (module,) = (key for key, component in crates.items() if component.name == MODULE)
    bom.register_dependency(packages[ASSAY], [crates[module]])
    for key, others in needed.items():
        bom.register_dependency(crates[key], [crates[other] for other in others])
    text = JsonV1Dot6(bom).output_as_string(indent=1)
    if wrong := JsonStrictValidator(SchemaVersion.V1_6).validate_str(text):
        sys.exit(f"sbom: does not fit the schema: {wrong}")
    output.write_text(text, encoding="utf-8")
    return output


def python_packages(bundle: Path) -> tuple[dict[str, Component], dict[str, Mapping[str, Any]]]:
    """Each wheel as a component, and what its METADATA says."""
    components, metadata = {}, {}
    with tarfile.open(bundle) as tar:
        for entry in tar:
            file = tar.extractfile(entry) if entry.name.endswith(".whl") else None
            if file is None:
                continue
            said = wheel_metadata(file)
            file.seek(0)
            name = canonicalize_name(said["Name"])
            metadata[name] = said
            components[name] = Component(
                type=ComponentType.APPLICATION if name == ASSAY else ComponentType.LIBRARY,
                name=name, version=said["Version"], bom_ref=f"pypi:{name}",
                purl=PackageURL("pypi", None, name, said["Version"]),
                licenses=licenses(said["License-Expression"] or short(said["License"]) or classified(said)),
                hashes=[digest(hashlib.file_digest(file, "sha256").hexdigest())],
            )  # fmt: skip
    return components, metadata


def wheel_metadata(file: Any) -> Any:
    """METADATA of a wheel."""
    with zipfile.ZipFile(file) as wheel:
        (name,) = (name for name in wheel.namelist() if name.count("/") == 1 and name.endswith(".dist-info/METADATA"))
        return email.parser.Parser().parsestr(wheel.read(name).decode())


def short(licence: str | None) -> str | None:
    """A licence that is a name; some packages put its whole text into the field."""
    return licence if licence and len(licence) < 80 and "\n" not in licence else None


def classified(said: Any) -> str | None:
    """The licence that the classifiers name last, such as `Apache Software License`."""
    named = [text for text in said.get_all("Classifier", []) if text.startswith("License :: ")]
    return str(named[-1]).rsplit(" :: ", 1)[-1] if named else None


def python_needs(metadata: Mapping[str, Any]) -> dict[str, set[str]]:
    """What each package needs of the others, with the extras by which it is needed itself; `all` for Assay."""
    needs: dict[str, set[str]] = {}
    waiting, seen = [(ASSAY, "all")], set()
    while waiting:
        name, extra = waiting.pop()
        if (name, extra) in seen:
            continue
        seen.add((name, extra))
        for text in metadata[name].get_all("Requires-Dist", []):
            wanted = Requirement(text)
            other = canonicalize_name(wanted.name)
            if other not in metadata or (wanted.marker and not wanted.marker.evaluate({"extra": extra})):
                continue
            if other != name:
                needs.setdefault(name, set()).add(other)
            waiting += [(other, word) for word in ("", *wanted.extras)]
    return needs


def rust_crates() -> tuple[dict[str, Component], dict[str, list[str]]]:
    """The crates that the module is linked from, by cargo's name for each, and which of them each needs."""
    asked = ["cargo", "metadata", "--locked", "--format-version", "1", "--filter-platform", "x86_64-unknown-linux-gnu"]
    answer = json.loads(subprocess.run(asked, cwd=ROOT, check=True, capture_output=True).stdout)
    nodes = {node["id"]: node for node in answer["resolve"]["nodes"]}
    described = {package["id"]: package for package in answer["packages"]}
    locked = tomllib.loads((ROOT / "Cargo.lock").read_text(encoding="utf-8"))["package"]
    sums = {(package["name"], package["version"]): package.get("checksum") for package in locked}
    (module,) = (key for key, package in described.items() if package["name"] == MODULE)
    needed: dict[str, list[str]] = {}
    waiting = [module]
    while waiting:
        key = waiting.pop()
        if key not in needed:
            # Neither crates of tests nor programs that only run while it is built.
            linked = [
                dep["pkg"] for dep in nodes[key]["deps"] if any(kind["kind"] is None for kind in dep["dep_kinds"])
            ]
            needed[key] = linked
            waiting += linked
    return {key: crate(described[key], sums) for key in needed}, needed


def crate(package: Mapping[str, Any], sums: Mapping[tuple[str, str], str | None]) -> Component:
    """A crate as a component; Assay's own have neither digest nor address, since they are in no registry."""
    name, version = package["name"], package["version"]
    checksum = sums[name, version]
    return Component(
        type=ComponentType.LIBRARY, name=name, version=version, bom_ref=f"cargo:{name}@{version}",
        purl=PackageURL("cargo", None, name, version) if checksum else None,
        licenses=licenses((package["license"] or "").replace("/", " OR ")),
        hashes=[digest(checksum)] if checksum else [],
    )  # fmt: skip


def digest(value: str) -> HashType:
    """A SHA-256."""
    return HashType(alg=HashAlgorithm.SHA_256, content=value)


def licenses(name: str | None) -> Iterable[Any]:
    """A licence as CycloneDX takes it: an SPDX expression, or the name that the author gave."""
    return [LicenseFactory().make_from_string(name)] if name else []
