"""Try mutated inputs until the time is up; every failure names its seed and keeps its input.

    ASSAY_FUZZ_SECONDS=600 ASSAY_SEED=1 python tests/fuzz [KIND...]

`ASSAY_SEED` is the first input's seed; each next input has the next. One seed gives one input, so that
`ASSAY_FUZZ_SECONDS=0 ASSAY_SEED=n` tries that input alone.
"""

from __future__ import annotations

import os
import random
import shlex
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from fuzz.folders import VERBS, made
from fuzz.kinds import Make, kinds
from fuzz.served import a_store
from fuzz.trial import Ended, Input, faults, tried
from own_mounts import own_mounts

LIMIT_S = 30.0
"""An input that takes longer on all processors hangs."""
FAILURES_MAX = 50


def main() -> int:
    own_mounts()
    seconds, first = float(os.environ.get("ASSAY_FUZZ_SECONDS", "600")), int(os.environ.get("ASSAY_SEED", "1"))
    with tempfile.TemporaryDirectory(prefix="assay-fuzz-") as scratch:
        wanted = sys.argv[1:]
        folders = VERBS if not wanted or "run folder" in wanted else ()
        runs = {kind: made(kind, Path(scratch) / kind) for kind in folders}
        chosen = {
            name: made for name, made in kinds(runs, a_store(Path(scratch))).items() if not wanted or name in wanted
        }
        if not chosen:
            print(f"no such kind; kinds: {', '.join(kinds({}, {}))}", file=sys.stderr)
            return 2
        kept = Path(tempfile.gettempdir()) / f"assay-fuzz-failures-{os.getpid()}"
        return fuzz(chosen, seconds, first, Path(scratch), kept)


def fuzz(chosen: dict[str, tuple[int, Make]], seconds: float, first: int, scratch: Path, kept: Path) -> int:
    """Try inputs; returns the exit code."""
    sys.setrecursionlimit(20_000)  # trees that are too deep for others must be written
    # Once, so that every child has them.
    import assay.apps.cli.app  # noqa: F401
    from assay.apps.cli.verbs import declared
    from assay.workloads.declaration import imported

    for verb in declared():
        imported(verb.place)

    names, weights = list(chosen), [weight for weight, _ in chosen.values()]
    count: Counter[str] = Counter()
    codes: Counter[int | None] = Counter()
    failures: Counter[str] = Counter()
    until = time.monotonic() + seconds
    seed = first
    while seed == first or (time.monotonic() < until and failures.total() < FAILURES_MAX):
        dice = random.Random(seed)
        name = dice.choices(names, weights)[0]
        candidate = chosen[name][1](dice)
        with tempfile.TemporaryDirectory(dir=scratch, ignore_cleanup_errors=True) as folder:
            ended = tried(candidate, Path(folder), LIMIT_S)
        count[name] += 1
        codes[ended.code] += 1
        if wrong := faults(candidate, ended):
            failures[name] += 1
            tell(seed, name, candidate, ended, wrong, kept / str(seed))
        seed += 1
    by_kind = ", ".join(f"{name} {n:,}" for name, n in sorted(count.items()))
    print(f"{count.total():,} inputs, {failures.total()} failures: {by_kind}")
    print("exit codes: " + ", ".join(f"{code}: {n:,}" for code, n in sorted(codes.items(), key=str)))
    return 1 if failures else 0


def tell(seed: int, name: str, candidate: Input, ended: Ended, wrong: list[str], folder: Path) -> None:
    """Say what went wrong and keep the input."""
    for path, content in candidate.files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)
    folder.mkdir(parents=True, exist_ok=True)
    shown = shlex.join(candidate.argv).encode("utf-8", "backslashreplace").decode()
    (folder / ".said").write_bytes(ended.stderr)
    last = ended.stderr.decode("utf-8", "replace").strip().splitlines()[-1:] or [""]
    print(f"ASSAY_SEED={seed} ({name}): {'; '.join(wrong)}", flush=True)
    print(f"  {shown[:300]}\n  {last[0][:300]}\n  kept in {folder}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
