"""Task sets: files, dicts, random ones, edits, errors."""

from __future__ import annotations

import pickle
from datetime import timedelta
from pathlib import Path

import pytest
import temponet
from temponet import TaskSet


def test_every_built_in_set_survives_a_dict_and_a_pickle() -> None:
    for built_in in temponet.sets():
        own = TaskSet.load(built_in.name)
        assert pickle.loads(pickle.dumps(own)) == own, built_in.name
        assert TaskSet.from_dict(own.to_dict(), name=own.name) == own, built_in.name


def test_the_schema_describes_the_keys_of_tasks() -> None:
    tasks = temponet.schema()["properties"]["task"]["items"]["properties"]
    for built_in in temponet.sets():
        assert all(key in tasks for task in TaskSet.load(built_in.name).tasks for key in task), built_in.name


def test_files_are_saved_in_every_format(tmp_path: Path) -> None:
    own = TaskSet.load("standard-125")
    for name in ("a.toml", "a.json", "a.csv"):
        own.save(tmp_path / name)
        assert TaskSet.load(tmp_path / name).tasks == own.tasks
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.csv", "a.json", "a.toml"]


def test_a_drawn_set_is_that_of_the_command(command, tmp_path: Path) -> None:
    done = command.run("generate", "--tasks", "9", "--utilization", "1.7", "--cores", "2", "--seed", "5", "--bcet", "0.4", "--variety", "sporadic,values", "-o", "s.toml")
    assert done.returncode == 0, done.stderr
    own = TaskSet.generate(9, utilization=1.7, cores=2, seed=5, bcet=0.4, variety="sporadic,values")
    assert own.to_text() == (tmp_path / "s.toml").read_text()


def test_edits_make_new_sets() -> None:
    own = TaskSet.load("standard-125")
    edited = own.with_task(name="extra", period="1s", wcet="1ms").without(own.task_names[0]).replace(cores=2, on_miss="continue")
    assert len(own) == 3 and own.cores == 1
    assert (len(edited), edited.cores, edited.on_miss, edited.task_names[-1]) == (3, 2, "continue", "extra")


def test_errors_have_file_line_and_value(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('[[task]]\nname = "a"\nperiod = "10ms"\nwcet = "fast"\n')
    with pytest.raises(temponet.FileError, match="fast") as caught:
        TaskSet.load(path)
    assert (caught.value.file, caught.value.line) == (str(path), 4)
    assert str(caught.value).startswith(f"{path}:4: ")
    assert isinstance(caught.value, ValueError)
    again = pickle.loads(pickle.dumps(caught.value))
    assert (type(again), str(again), again.line) == (temponet.FileError, str(caught.value), 4)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: TaskSet.load("no-such-set"), "no-such-set"),
        (lambda: TaskSet.load("robto"), "robot"),
        (lambda: TaskSet.load("missing.toml"), "missing.toml"),
        (lambda: TaskSet.from_dict({"task": [{"name": "a", "period": "1ms"}]}), "wcet"),
        (lambda: TaskSet.from_dict({"task": [{"name": "a", "period": "1ms", "wcet": "9us", "colour": 1}]}), "colour"),
        (lambda: TaskSet.from_dict({"task": object()}), "JSON"),
        (lambda: TaskSet.generate(3, utilization=-1.0), "-1"),
        (lambda: TaskSet.generate(3, utilization=1.0, method="magic"), "magic"),
        (lambda: TaskSet.generate(3, utilization=1.0, bcet=2.0), "bcet = 2"),
        (lambda: TaskSet.generate(3, utilization=1.0, colour=2.0), "colour"),
        (lambda: TaskSet.load("robot").replace(cores=0), "cores = 0"),
        (lambda: TaskSet.load("robot").replace(on_miss="explode"), "explode"),
        (lambda: TaskSet.load("robot").replace(switch_cost="2 parsecs"), "parsecs"),
        (lambda: TaskSet.load("robot").without("nobody"), "nobody"),
        (lambda: temponet.simulate("robot", "edff"), "edf"),
        (lambda: temponet.simulate("robot", "edf", horizon=-5), "-5"),
        (lambda: temponet.simulate("robot", "edf", horizon=0), "horizon = 0"),
        (lambda: temponet.simulate("robot", "edf", model="missing.safetensors"), "missing.safetensors"),
        (lambda: temponet.compare("robot", []), "empty"),
        (lambda: temponet.compare("robot", "edf", rank_by=["beauty"]), "beauty"),
        (lambda: temponet.arena("no-such-scenario", "edf"), "no-such-scenario"),
        (lambda: temponet.sweep([], sets=1), "load"),
        (lambda: temponet.sweep([-1.0], sets=1), "-1"),
        (lambda: temponet.recipe({"seed": "one"}), "one"),
        (lambda: temponet.recipe({"sead": 1}), "sead"),
        (lambda: temponet.train("robot", {"stage": [{"phases": 0, "method": {"cloning": {}}}]}), "phases = 0"),
        (lambda: temponet.train("robot", device="abacus"), "abacus"),
    ],
)
def test_wrong_input_is_an_exception_with_the_value(call, words: str) -> None:
    with pytest.raises(temponet.InputError, match=words):
        call()


def test_recipe_files_have_lines_in_their_errors(tmp_path: Path) -> None:
    path = tmp_path / "recipe.toml"
    path.write_text("seed = 1\n[episode]\nlength = -1\n")
    with pytest.raises(temponet.FileError) as caught:
        temponet.recipe(path)
    assert (caught.value.file, caught.value.line) == (str(path), 3)


def test_times_are_texts_numbers_and_timedeltas() -> None:
    horizons = ("1.5s", 1_500_000_000, timedelta(seconds=1.5))
    assert len({temponet.simulate("standard-125", "edf", horizon=horizon).horizon_ns for horizon in horizons}) == 1
