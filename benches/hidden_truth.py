"""Whether a calibrated model predicts an array it has never seen, within the error bands it gives.

For each seed an array is made up: every uncertain parameter of a catalogue model is drawn at random. It is profiled,
a fresh model with the catalogue's values is calibrated from that profile alone, and asked what a second member, another
RAID policy and another fill would do. Then the made-up array is asked the same. Prints how often the truth lies in the
90 % bands, and their width.

    python benches/hidden_truth.py --seeds 50 --model ps6100xv
"""

from __future__ import annotations

import argparse
import json
import math
import random
import statistics
import sys
from multiprocessing import Pool
from typing import Any

from assay.base.errors import UsageError
from assay.insight.calibration.bands import band_of_answer
from assay.insight.calibration.calibrate import calibrate, uncertain
from assay.insight.calibration.calibrated_file import calibrated_text, calibration_table
from assay.insight.calibration.observations import observations_of_points
from assay.run.simulate import simulate
from assay.targets.arrays.model.configuration import Configuration, configure
from assay.targets.arrays.model.model_file import read_model
from assay.targets.arrays.model.parameters import PARAMETERS
from assay.workloads.io.plan import load_plan

MEASURED = {"raid": "10", "volumes": "12"}
QUESTIONS = {
    "a second member": {"raid": "10", "volumes": "12", "members": "2"},
    "RAID 50": {"raid": "50", "volumes": "12"},
    "half the fill": {"raid": "10", "volumes": "6"},
}
PROFILE = {
    "name": "profile",
    "timing": {"warmup_s": 2, "duration_s": 10},
    "activity": [{"block_bytes": [8192, 65536], "read_share": [0.7, 1.0], "queue_depth": [2, 8]}],
}
ASKED = {
    "name": "asked",
    "limits": ["read.mean<=20ms", "write.mean<=20ms"],
    "timing": {"warmup_s": 2, "duration_s": 10},
    "search": {"axis": "queue-depth", "repeats": 0},
    "activity": [{"block_bytes": 8192, "read_share": 0.7}],
}
WIDE = {"disk.command_overhead": (0.5, 2.0)}
"""What no data sheet says may be anything within these factors; all others as far off as their file says."""


def made_up(model: str, seed: int) -> dict[str, float]:
    """Values of a random array's parameters, in base units."""
    draw = random.Random(seed)
    start = configure(model, MEASURED)
    while True:
        values = {}
        for name, sd in uncertain(start).items():
            low, high = WIDE.get(name, (0.0, 0.0))
            factor = math.exp(draw.uniform(math.log(low), math.log(high)) if low else draw.gauss(0, sd))
            known = PARAMETERS[name]
            value = min(max(float(start.value(name)) * factor, known.low), known.high)
            values[name] = float(round(value)) if known.kind.whole else value
        # The dirty levels are one level with a narrow band above it.
        values["cache.dirty_low"] = min(values["cache.dirty_low"], 0.85)
        values["cache.dirty_high"] = values["cache.dirty_low"] + 0.02
        values["cache.dirty_most"] = max(values["cache.dirty_most"], values["cache.dirty_high"])
        try:
            truth = start.with_values(values).with_options({"seed": str(seed + 1000)})
            simulate(truth, load_plan({**PROFILE, "activity": [{"queue_depth": 1}]}, source="made up"))
        except UsageError:
            continue
        return values


def ask(configuration: Configuration) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The largest load within the limits."""
    points, answers = simulate(configuration, load_plan(ASKED, source="asked"))
    return answers[0], points


def one_seed(task: tuple[str, int]) -> list[dict[str, Any]]:
    """Every question for one made-up array."""
    model, seed = task
    values = made_up(model, seed)
    structure = configure(model, MEASURED)
    truth = structure.with_values(values).with_options({"seed": str(seed + 1000)})
    points, _ = simulate(truth, load_plan({**PROFILE, "seed": seed}, source="profile"))
    observations = observations_of_points(points, structure, "profile")
    fit = calibrate(observations)
    text = calibrated_text(structure, "fitted", fit, calibration_table(fit, observations, "profile"))
    fitted = read_model(text.encode(), origin="fitted")
    rows = []
    for question, options in QUESTIONS.items():
        predicted = Configuration(model=fitted, options=options)
        answer, curve = ask(predicted)
        band = band_of_answer(predicted, answer, curve)
        assert band is not None, "a search that has an answer has a band"
        true_answer, _ = ask(truth.with_options({**options, "seed": str(seed + 2000)}))
        iops, true_iops = answer["max"]["iops"], true_answer["max"]["iops"]
        low, high = iops * band.low, iops * band.high
        rows.append(
            {
                "seed": seed,
                "question": question,
                "free": list(fit.free),
                "predicted": iops,
                "truth": true_iops,
                "error": iops / true_iops - 1,
                "low": low,
                "high": high,
                "inside": low <= true_iops <= high,
                "half_width": (high - low) / 2 / iops,
            }
        )
    return rows


def main() -> None:
    """Run all seeds and print what they show."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--seeds", type=int, default=50)
    arguments.add_argument("--first", type=int, default=1)
    arguments.add_argument("--model", default="ps6100xv")
    arguments.add_argument("--processes", type=int, default=2)
    arguments.add_argument("--json", action="store_true")
    given = arguments.parse_args()
    tasks = [(given.model, seed) for seed in range(given.first, given.first + given.seeds)]
    rows = []
    with Pool(given.processes) as pool:
        for found in pool.imap(one_seed, tasks):
            rows += found
            for row in found:
                mark = "inside" if row["inside"] else "OUTSIDE"
                print(
                    f"seed {row['seed']:3d} {row['question']:16} predicted {row['predicted']:7,.0f}"
                    f" [{row['low']:7,.0f} to {row['high']:7,.0f}] truth {row['truth']:7,.0f} {row['error']:+6.1%}"
                    f" {mark}"
                    f", fitted {', '.join(row['free'])}",
                    file=sys.stderr,
                    flush=True,
                )
    if given.json:
        print(json.dumps(rows, indent=1))
        return
    print(f"{given.model}, {given.seeds} seeds: measured RAID 10, 12 volumes, 1 member")
    for question in [*QUESTIONS, "all"]:
        chosen = [row for row in rows if question in ("all", row["question"])]
        inside = sum(row["inside"] for row in chosen) / len(chosen)
        width = statistics.median(row["half_width"] for row in chosen)
        error = statistics.median(abs(row["error"]) for row in chosen)
        worst = max(abs(row["error"]) for row in chosen)
        print(
            f"{question:16} truth inside the 90 % band: {inside:4.0%}; median band +-{width:.1%};"
            f" error: median {error:.1%}, most {worst:.1%}"
        )


if __name__ == "__main__":
    main()
