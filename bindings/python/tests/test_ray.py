"""A local Ray cluster of two workers gives the figures of one machine, bit for bit."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import temponet

pytestmark = pytest.mark.long


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[None]:
    ray = pytest.importorskip("ray")
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    yield
    ray.shutdown()


SWEEP: dict[str, Any] = {"cores": [1, 2], "tasks": 6, "sets": 10, "jobs": 200, "schedulers": "edf,mh-edf,temponet", "bcet": 0.5}


def test_sweep(tmp_path: Path) -> None:
    import pyarrow.parquet as pq
    import temponet.ray

    seen: list[tuple[int, int]] = []
    there = temponet.ray.sweep([0.9, 1.2], piece=7, parquet=tmp_path / "rows.parquet", progress=lambda *of: seen.append(of), **SWEEP)
    here = temponet.sweep([0.9, 1.2], **SWEEP)
    assert there.to_dict() == here.to_dict()
    assert there.to_arrow().to_pylist() == here.to_arrow().to_pylist() == pq.read_table(tmp_path / "rows.parquet").to_pylist()
    assert seen[0] == (0, 6) and seen[-1] == (6, 6) and len(seen) == 7
    assert [path.name for path in tmp_path.iterdir()] == ["rows.parquet"]


def test_a_worker_that_is_killed_costs_only_its_piece() -> None:
    import psutil
    import temponet.ray

    killed: list[int] = []

    def kill() -> None:
        for _ in range(600):
            for process in psutil.process_iter(["cmdline"]):
                if "ray::temponet._sweep_piece" in " ".join(process.info["cmdline"] or []):
                    process.kill()
                    killed.append(process.pid)
                    return
            time.sleep(0.05)

    thread = threading.Thread(target=kill)
    thread.start()
    settings = {**SWEEP, "sets": 60, "jobs": 2000}
    there = temponet.ray.sweep([1.1], piece=10, **settings)
    thread.join()
    assert killed, "no worker was seen at work"
    assert there.to_dict() == temponet.sweep([1.1], **settings).to_dict()


def test_arena() -> None:
    import temponet.ray

    names, schedulers = ["one-core-overload", "values"], "edf,mh-edf,d-over,temponet"
    there = temponet.ray.arena(names, schedulers, quick=True, progress=False)
    assert there.to_dict() == temponet.arena(names, schedulers, quick=True).to_dict()


def test_compare(tmp_path: Path) -> None:
    import pyarrow.parquet as pq
    import temponet.ray

    sets = ["standard-125", temponet.TaskSet.load("robot").replace(cores=2), temponet.TaskSet.generate(6, utilization=1.2, bcet=0.5)]
    there = temponet.ray.compare(sets, "edf,temponet", seeds=range(1, 6), horizon="1s", piece=2, parquet=tmp_path / "runs.parquet")
    rows = there.to_pylist()
    for place, one in enumerate(sets):
        here = temponet.runs(one, "edf,temponet", seeds=range(1, 6), horizon="1s").to_arrow().to_pylist()
        assert [{name: row[name] for name in here[0]} for row in rows if row["set"] == place] == here
    assert pq.read_table(tmp_path / "runs.parquet").to_pylist() == rows


def test_train_many() -> None:
    import temponet.ray
    from test_figures import RECIPE

    there = temponet.ray.train_many("standard-125", RECIPE, seeds=[3, 4], trials=2)
    for trained in there:
        here = temponet.train("standard-125", RECIPE, seed=trained.seed, trials=2, device="cpu")
        assert trained.report == here.to_dict() and trained.model == here.model
    assert there[0].model != there[1].model
