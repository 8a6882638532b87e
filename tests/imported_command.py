"""What the server that forks commands imports and prepares once: all of the package, so that no list of it grows old.

Commands import most of it when they need it, and build what checks run folders then. For a fork both are there.
Nothing here may start a thread, which a fork would not have: vl_convert, typst and polars do, and stay out.
"""

from __future__ import annotations

import importlib
import pkgutil

import assay
from assay.record.shapes import _adapter, _shapes
from assay.record.shapes.kinds import all_shapes

for module in pkgutil.walk_packages(assay.__path__, "assay."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
for name in (
    "jinja2",
    "psycopg",
    "pymysql",
    "rich.console",
    "rich.table",
    "scipy.stats",
    "sqlglot",
    "typer.rich_utils",
):
    importlib.import_module(name)
for shape, *_ in (*_shapes("manifest", tuple(all_shapes())), *_shapes("point", tuple(all_shapes()))):
    _adapter(shape)
