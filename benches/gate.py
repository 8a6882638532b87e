"""CPU time per I/O of the load generator on `null:`, held against the committed baseline by Assay's own gate.

    python benches/gate.py            measure, and end with 6 where a limit is broken, with 0 where none is for sure
    python benches/gate.py --renew    measure, and keep that as the baseline (benches/baselines/null)

What is compared is `generator.cpu_units_per_io`: CPU time of the load threads over that of a fixed calculation on the
same processor in the same run. Wall time plays no part, so that a busy host does not matter. The interval comes from
the repeats.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from assay.base.errors import ExitCode
from assay.record.repeats import runs_in

BASELINES = Path(__file__).parent / "baselines"
NAME = "null"
LIMIT = "generator.cpu_units_per_io>+20%"
LOAD = ["null:", "--block", "8K", "--read", "100", "--queue-depth", "1,32", "--seed", "1"]
TIMES = ["--duration", "500ms", "--warmup", "100ms"]


def assay(*words: str) -> int:
    """Run a command of Assay; its exit code."""
    return subprocess.run([sys.executable, "-m", "assay", *words], check=False).returncode


def measured(folder: Path, repeats: int) -> Path:
    """Measure the loads a number of times; the folder of the runs."""
    words = ["--repeat", str(repeats), "--no-report", "--quiet", "--output", str(folder)]
    code = assay("profile", *LOAD, *TIMES, *words)
    if code:
        sys.exit(code)
    (found,) = runs_in(folder) if repeats == 1 else folder.iterdir()
    return found


def without_host(folder: Path) -> None:
    """Take names and paths of this host out of a baseline, and histograms, which no gate of CPU time reads."""
    for path in sorted(folder.glob("*/run.json")):
        manifest: dict[str, Any] = json.loads(path.read_text())
        for key in ("command", "request", "folder", "repeats", "notices", "verdict"):
            manifest.pop(key, None)
        manifest["host"].pop("hostname", None)
        path.write_text(json.dumps(manifest, indent=1) + "\n")
        points = path.with_name("points.jsonl")
        lines = [json.dumps(_without(json.loads(line), "histogram")) for line in points.read_text().splitlines()]
        points.write_text("".join(f"{line}\n" for line in lines))
    for number, path in enumerate(sorted(folder.glob("*/"))):
        path.rename(folder / f"{number:03d}")


def _without(value: Any, key: str) -> Any:
    if isinstance(value, dict):
        return {name: _without(one, key) for name, one in value.items() if name != key}
    return [_without(one, key) for one in value] if isinstance(value, list) else value


def main() -> None:
    """Measure, then judge or renew."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--renew", action="store_true", help="keep what is measured as the baseline")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--baselines", type=Path, default=BASELINES)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        runs = measured(Path(folder), asked.repeats)
        if asked.renew:
            code = assay("baseline", "set", str(runs), "--name", NAME, "--baselines", str(asked.baselines))
            if code == 0:
                without_host(asked.baselines / NAME)
            sys.exit(code)
        to = ["--to", NAME, "--baselines", str(asked.baselines)]
        code = assay("compare", str(runs), *to, "--fail-on", LIMIT)
        if code == ExitCode.LIMIT_UNKNOWN:
            print("not worse for sure: a busy host makes intervals wide; measure again on a quieter one (--repeats 10)")
            code = ExitCode.DONE
        sys.exit(code)


if __name__ == "__main__":
    main()
