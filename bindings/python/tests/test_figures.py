"""The same seed gives the figures of the command line, bit for bit."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
import temponet


def test_simulate(command, tmp_path: Path) -> None:
    for scheduler in ("edf", "temponet", "shield:srpt", "llf:quantum=500us"):
        theirs = command.json("simulate", "robot", "--scheduler", scheduler, "--seed", "3", "--horizon", "2s", "--jobs", "jobs.csv", "--trace", "trace.json", "--gantt", "gantt.svg", "--force")
        run = temponet.simulate("robot", scheduler, seed=3, horizon="2s")
        assert run.to_dict() == theirs
        assert run.gantt() == (tmp_path / "gantt.svg").read_text()
        assert json.loads(run.perfetto()) == json.loads((tmp_path / "trace.json").read_text())
        jobs = run.jobs.to_numpy()
        with open(tmp_path / "jobs.csv") as file:
            rows = list(csv.DictReader(file))
        assert len(rows) == len(run.jobs)
        for column in ("job", "release_ns", "deadline_ns", "executed_ns"):
            assert jobs[column].tolist() == [int(row[column]) for row in rows]
        assert jobs["task"].tolist() == [row["task"] for row in rows]
        assert jobs["met"].tolist() == [row["met"] == "true" for row in rows]


def test_compare(command) -> None:
    theirs = command.json("compare", "robot", "--schedulers", "temponet,tuned,edf,rm,d-over", "--runs", "3", "--seed", "7", "--horizon", "2s")
    ours = temponet.compare("robot", ["temponet", "tuned", "edf", "rm", "d-over"], runs=3, seed=7, horizon="2s")
    assert ours.to_dict() == theirs
    assert list(ours.skipped) == ["d-over"]
    assert [row.scheduler for row in ours] == [row["scheduler"] for row in theirs["results"]]


def test_compare_with_other_goals_costs_and_models(command) -> None:
    flags = ["--cores", "2", "--switch-cost", "20us", "--on-miss", "continue", "--rank-by", "worst-task", "--no-oracle", "--model", "random:4", "--no-shield"]
    theirs = command.json("compare", "robot", "--schedulers", "temponet,edf", "--runs", "2", "--horizon", "1s", *flags)
    own = temponet.TaskSet.load("robot").replace(cores=2, switch_cost="20us", on_miss="continue")
    ours = temponet.compare(own, "temponet,edf", runs=2, horizon="1s", rank_by=["worst-task"], oracle_budget=None, model="random:4", shield=False)
    assert ours.to_dict() == theirs


def test_analyze(command) -> None:
    for name in ("gap-avionics", "standard-125"):
        assert temponet.analyze(name).to_dict() == command.json("analyze", name)
    assert temponet.analyze("robot", simulate=False).to_dict() == command.json("analyze", "robot", "--no-simulation")


def test_optimum(command) -> None:
    theirs = command.json("compare", "standard-125", "--schedulers", "edf")["clairvoyant"]
    ours = temponet.optimum("standard-125")
    assert ours is not None and ours.exact
    assert (ours.lower, ours.upper, ours.released) == (theirs["lower"], theirs["upper"], theirs["released"])
    assert round(100 * ours.share, 2) == 80.65


def test_sweep(command, tmp_path: Path) -> None:
    flags = ["--loads", "0.9,1.2", "--cores", "1,2", "--tasks", "6", "--sets", "3", "--jobs", "200", "--schedulers", "edf,mh-edf,d-over", "--bcet", "0.5", "--seed", "4"]
    theirs = command.json("sweep", *flags, "-o", "sweep.csv", "--plot", "sweep.svg")
    ours = temponet.sweep([0.9, 1.2], cores=[1, 2], tasks=6, sets=3, jobs=200, schedulers="edf,mh-edf,d-over", bcet=0.5, seed=4)
    assert ours.to_dict() == theirs
    assert ours.svg() == (tmp_path / "sweep.svg").read_text()
    assert [(cores, name) for cores, name, _ in ours.refused] == [(2, "d-over")]
    rows = [line for line in (tmp_path / "sweep.csv").read_text().splitlines() if not line.startswith("#")]
    assert len(rows) == len(ours) + 1


def test_arena(command) -> None:
    theirs = command.json("arena", "--scenario", "one-core-overload", "--schedulers", "edf,mh-edf,temponet", "--quick")
    assert temponet.arena("one-core-overload", "edf,mh-edf,temponet", quick=True).to_dict() == theirs
    assert [row.name for row in temponet.scenarios(2)] == [row["name"] for row in command.json("arena", "--list", "--version", "2")]


def test_explain(command) -> None:
    assert temponet.explain("robot", at="200ms").to_dict() == command.json("explain", "robot", "--at", "200ms")
    theirs = command.json("explain", "standard-125", "--run", "--horizon", "1s", "--no-shield")
    assert temponet.explain("standard-125", at=None, horizon="1s", shield=False).to_dict() == theirs


RECIPE: dict[str, Any] = {
    "seed": 3,
    "network": {"width": 16, "layers": 1, "heads": 2, "feed_forward": 16},
    "validation": {"runs": 2, "length": 50.0},
    "stage": [{"phases": 2, "method": {"cloning": {"steps": 300, "updates": 8, "teacher": "mh-edf"}}}],
}


def test_train(command, tmp_path: Path) -> None:
    given = temponet.recipe(RECIPE)
    (tmp_path / "recipe.toml").write_text(as_toml(given))
    theirs = command.json("train", "standard-125", "--recipe", "recipe.toml", "-o", "m.safetensors", "--trials", "2", "--device", "cpu")
    events: list[dict[str, Any]] = []
    ours = temponet.train("standard-125", given, trials=2, device="cpu", progress=events.append)
    del theirs["model"], theirs["seconds"]
    assert ours.to_dict() == theirs
    assert ours.model.to_bytes() == (tmp_path / "m.safetensors").read_bytes()
    assert [event["phase"] for event in events if event["event"] == "phase"] == [1, 2]
    assert temponet.recipe(tmp_path / "recipe.toml") == given


def as_toml(value: Any) -> str:
    """Writes a recipe as a TOML file, with inline tables."""

    def inline(value: Any) -> str:
        if isinstance(value, dict):
            return "{ " + ", ".join(f"{json.dumps(key)} = {inline(one)}" for key, one in value.items() if one is not None) + " }"
        if isinstance(value, list):
            return "[" + ", ".join(inline(one) for one in value) + "]"
        return json.dumps(value)

    return "\n".join(f"{key} = {inline(one)}" for key, one in value.items() if one is not None) + "\n"


def test_runs_are_those_of_a_comparison() -> None:
    rows = temponet.runs("robot", "edf,rm", seeds=range(5, 8), horizon="1s").to_numpy()
    by_run = temponet.compare("robot", "edf,rm", seed=5, runs=3, horizon="1s", oracle_budget=None).by_run
    assert rows["compliance"].tolist() == by_run["edf"] + by_run["rm"]
    assert rows["seed"].tolist() == [5, 6, 7] * 2


def test_the_number_of_threads_changes_nothing(command) -> None:
    pytest.importorskip("numpy")
    import os
    import subprocess
    import sys

    code = "import temponet, json; print(json.dumps(temponet.compare('robot', 'edf,temponet', runs=2, horizon='1s').to_dict()))"
    found = {subprocess.run([sys.executable, "-c", code], env={**os.environ, "RAYON_NUM_THREADS": threads}, capture_output=True, text=True, check=True).stdout for threads in ("1", "3")}
    assert len(found) == 1
