"""`assay sqlio`: batches, drive letters and models; what the flags mean is tested with the parser."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from assay_command import Bench


def rates(text: str) -> list[float]:
    """I/Os per second of each run in classic output."""
    return [float(line.split()[1]) for line in text.splitlines() if line.startswith("IOs/sec:")]


def test_a_batch_runs_each_command_on_mapped_drives_and_ends_at_the_first_that_fails(bench: Bench) -> None:
    (bench.folder / "data").mkdir()
    (bench.folder / "param.txt").write_text("Q:\\a.dat 2 0x0 8\n")
    (bench.folder / "study.cmd").write_text(
        "sqlio -kR -s1 -frandom -o2 -b8 -LS -BH -Fparam.txt >> out.txt\n\nsqlio -kW -s1 -frandom -BH Q:\\none\\b.dat\n"
    )

    outcome = bench.assay("sqlio", "--batch", "study.cmd", "--map", r"Q:\=./data")

    assert outcome.code == 2
    assert outcome.stdout.count("sqlio v1.5.SG") == 1
    assert rates(outcome.stdout)[0] > 0
    assert "using specified size: 8 MB for file: ./data/a.dat" in outcome.stdout
    assert "data/none does not exist" in outcome.stderr
    assert "go on with: assay sqlio --batch study.cmd --from-line 3" in outcome.stderr


def test_a_model_is_loaded_on_all_its_volumes(bench: Bench) -> None:
    flags = ("sqlio", "-kR", "-s20", "-frandom", "-o4", "-b8", "-LS", "-BH")
    one, six = (rates(bench.assay(*flags, f"model:ps6100xv?volumes={count}").stdout)[0] for count in (1, 6))
    assert six > 2 * one
