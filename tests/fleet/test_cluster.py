"""Agents on the nodes of a Ray cluster, tried on Ray's own cluster of several nodes on one machine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent_threads import Assay

MODEL = ("model:sata-jbod", "--search", "none", "--block", "8K", "--read", "70", "--warmup", "1s", "--duration", "4s")
SLOW = "Ray takes a minute and a gigabyte; agents and what they do are the same as without it"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    pytest.importorskip("ray")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from ray.cluster_utils import Cluster

        made = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
        made.own = [made.add_node(num_cpus=1, resources={"load": 1}) for _ in range(3)]
        made.wait_for_nodes()
    yield made
    made.shutdown()


def started(cluster: Any, folder: Path, *words: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "assay", "profile", *words, "--cluster", "auto", "--no-report", "-o", str(folder)]
    environ = {**os.environ, "RAY_ADDRESS": cluster.address}
    return subprocess.Popen(command, env=environ, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


@pytest.mark.slow(reason=SLOW)
@pytest.mark.filterwarnings("ignore")
def test_a_cluster_gives_the_answer_of_one_process_and_its_failures_have_names(
    cluster: Any, assay: Assay, tmp_path: Path
) -> None:
    (alone,) = assay("profile", *MODEL, "--outstanding", "12")["points"]
    run = started(cluster, tmp_path, *MODEL, "--outstanding", "36", "--json", "--quiet")
    out, err = run.communicate(timeout=120)
    assert run.returncode == 0, err
    (over,) = json.loads(out)["points"]
    assert over["total"]["iops"] == pytest.approx(3 * alone["total"]["iops"])
    assert over["total"]["latency_ns"] == pytest.approx(alone["total"]["latency_ns"])
    assert [host["name"] for host in over["hosts"]] == ["ray-1", "ray-2", "ray-3"]

    # An infeasible placement.
    run = started(cluster, tmp_path, *MODEL, "--hosts", "4")
    _, err = run.communicate(timeout=120)
    assert run.returncode == 2
    assert "4 hosts are asked for, and 3 nodes offer the resource 'load'; give --hosts 3 or add nodes" in err

    # A cluster that shrinks while a point is measured.
    run = started(cluster, tmp_path / "shrinks", "null:", "--rate", "3000", "--search", "none", "--duration", "60s")
    assert run.stderr is not None
    lines = []
    for line in run.stderr:
        lines.append(line)
        if "measuring" in line:
            break
    cluster.remove_node(cluster.own.pop(), allow_graceful=False)
    lines += run.stderr.readlines()
    assert run.wait(120) == 3, lines
    run.stderr.close()
    assert run.stdout is not None
    run.stdout.close()
    assert any("its agent ended (its node or actor was lost)" in line for line in lines), lines

    # And one that has shrunk when the run is to go on. Ray tells of a lost node late.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cluster.wait_for_nodes(timeout=90)
    (folder,) = (tmp_path / "shrinks").iterdir()
    command = [sys.executable, "-m", "assay", "profile", "--resume", str(folder), "--no-report"]
    again = subprocess.run(
        command, env={**os.environ, "RAY_ADDRESS": cluster.address}, capture_output=True, text=True, timeout=120
    )
    assert again.returncode == 2
    assert "the run began with 3 hosts, and there are 2 now" in again.stderr


def test_a_cluster_that_is_none_is_refused(assay: Assay) -> None:
    found = assay("profile", "null:", "--cluster", "10.0.0.1")
    assert (found["exit_code"], found["complaint"]) == (
        2,
        "--cluster 10.0.0.1: is no cluster; accepted: ray://HOST:10001 or auto",
    )
    found = assay("profile", "null:", "--cluster", "auto", "--hosts", "a,b")
    assert "--hosts a,b: with --cluster it says how many" in found["complaint"]


def test_without_ray_it_says_what_to_install(assay: Assay, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    found = assay("profile", "null:", "--cluster", "auto")
    assert found["exit_code"] == 3
    assert found["complaint"] == "--cluster: ray is not installed; pip install 'assay-storage[ray]'"
