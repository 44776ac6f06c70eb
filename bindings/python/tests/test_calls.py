"""Long calls: the interpreter goes on, Ctrl-C ends them, and Python schedulers take part."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from typing import Any

import pytest
import temponet

LONG = [
    "temponet.simulate('robot', 'edf', horizon='100000s', record_until=0)",
    "temponet.compare('robot', horizon='20000s', oracle_budget=None)",
    "temponet.optimum('robot', horizon='200s', budget=300.0)",
    "temponet.sweep([1.0], sets=1_000_000)",
    "temponet.arena()",
    "temponet.explain('robot', at=None, horizon='10000s')",
    "temponet.train('robot')",
    "temponet.simulate('robot', 'planner', horizon='10000s')",
    "temponet.simulate('robot', Slow(), horizon='100000s')",
]

CODE = """
import signal, sys, threading, time
import temponet

class Slow(temponet.Scheduler):
    def decide(self, view):
        return view.jobs

print("ready", flush=True)
try:
    {call}
except KeyboardInterrupt:
    print("interrupted", flush=True)
    # The package still works afterwards.
    assert temponet.simulate("standard-125", "edf").met == 6118
    sys.exit(7)
"""


@pytest.mark.parametrize("call", LONG)
def test_ctrl_c_ends_a_long_call_within_a_second(call: str) -> None:
    process = subprocess.Popen([sys.executable, "-c", CODE.format(call=call)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    time.sleep(1.5)
    assert process.poll() is None, "the call was not long"
    begun = time.monotonic()
    process.send_signal(signal.SIGINT)
    line = process.stdout.readline()
    took = time.monotonic() - begun
    assert line == "interrupted\n"
    assert process.wait(timeout=60) == 7
    assert took < 1.0, f"it took {took:.2f} s"


def test_other_threads_run_during_a_call() -> None:
    ticks = 0
    over = threading.Event()

    def tick() -> None:
        nonlocal ticks
        while not over.is_set():
            ticks += 1
            time.sleep(0.001)

    thread = threading.Thread(target=tick)
    thread.start()
    temponet.simulate("robot", "edf", horizon="2000s", record_until=0)
    over.set()
    thread.join()
    assert ticks > 5


class Earliest(temponet.Scheduler):
    """EDF in Python."""

    name = "earliest"

    def decide(self, view: temponet.View) -> list[temponet.Job]:
        # The jobs come in the order of ties, and sorting is stable.
        return sorted(view.jobs, key=lambda job: job.deadline)


def without_name(figures: temponet.Figures) -> dict[str, Any]:
    return {name: value for name, value in figures.to_dict().items() if name != "scheduler"}


def test_a_scheduler_in_python_gives_the_schedule_of_the_one_in_rust() -> None:
    ours, theirs = temponet.simulate("robot", Earliest(), horizon="1s"), temponet.simulate("robot", "edf", horizon="1s")
    assert without_name(ours) == without_name(theirs)
    comparison = temponet.compare("robot", [Earliest(), "edf"], runs=3, horizon="500ms", oracle_budget=None)
    assert without_name(comparison["earliest"]) == without_name(comparison["edf"])


def test_a_scheduler_in_python_can_stand_behind_the_shield() -> None:
    ours = temponet.simulate("robot", temponet._lab.named(Earliest())[1], horizon="500ms")
    shielded = temponet.compare("robot", [Earliest(), "shield:earliest", "shield:edf"], runs=1, horizon="500ms", oracle_budget=None)
    assert shielded["earliest"].met == ours.met
    assert shielded["shield:earliest"].met == shielded["shield:edf"].met


def test_cores_can_be_given_and_state_is_kept_within_a_run() -> None:
    class Counting(temponet.Scheduler):
        def __init__(self) -> None:
            self.decisions = 0

        def start(self, tasks: list[dict[str, Any]], cores: int) -> str | None:
            assert self.decisions == 0 and tasks[0]["wcet"] > 0
            return None if cores == 3 else "only for three cores"

        def decide(self, view: temponet.View) -> dict[int, temponet.Job]:
            self.decisions += 1
            return {core: job for core, job in zip((2, 0, 1), view.jobs)}

    mine = Counting()
    run = temponet.simulate("robot", mine, horizon="200ms")
    assert run.scheduler == "Counting" and run.met > 0 and mine.decisions == 0
    refused = temponet.compare(temponet.TaskSet.load("robot").replace(cores=2), [mine, "edf"], runs=1, horizon="200ms", oracle_budget=None)
    assert refused.skipped == {"Counting": "only for three cores"}


class Broken(temponet.Scheduler):
    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def decide(self, view: temponet.View) -> Any:
        return self.answer(view)


@pytest.mark.parametrize(
    ("answer", "error", "words"),
    [
        (lambda view: 1 / 0, ZeroDivisionError, "division"),
        (lambda view: 5, temponet.InputError, "list of jobs, not 5"),
        (lambda view: ["a"], temponet.InputError, "list of jobs"),
        (lambda view: [view.jobs[0], view.jobs[0]] if view.jobs else [], temponet.InputError, "at most once"),
        (lambda view: {99: view.jobs[0]} if view.jobs else {}, temponet.InputError, "cores from 0 to 2"),
    ],
)
def test_errors_in_a_scheduler_come_back_as_they_are(answer: Any, error: type[Exception], words: str) -> None:
    for call in (lambda: temponet.simulate("robot", Broken(answer), horizon="1s"), lambda: temponet.compare("robot", [Broken(answer), "edf"], horizon="1s")):
        with pytest.raises(error, match=words):
            call()


def test_an_error_in_the_progress_of_a_training_ends_it() -> None:
    def stop(event: dict[str, Any]) -> None:
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        temponet.train("standard-125", progress=stop)


class Copied(temponet.Scheduler):
    """First come, first served, under a name that can be changed."""

    def __init__(self, name: str, held: Any = None) -> None:
        self.name, self.held = name, held

    def decide(self, view: temponet.View) -> list[temponet.Job]:
        return list(view.jobs)


def test_two_schedulers_cannot_have_one_name() -> None:
    for schedulers in (["edf", Copied("edf")], [Copied("mine"), Copied("mine")], [Copied("edf")]):
        with pytest.raises(temponet.InputError, match="two schedulers are called"):
            temponet.compare("standard-125", schedulers, runs=1)


def test_a_scheduler_that_cannot_be_copied_is_an_input_error() -> None:
    with pytest.raises(temponet.InputError, match="cannot be copied.*lock"):
        temponet.compare("standard-125", [Copied("mine", threading.Lock())], runs=1)


def _met(seed: int) -> int:
    return temponet.compare("standard-125", ["edf"], runs=4, seed=seed)["edf"].met


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_works_on_threads_of_its_own() -> None:
    here = [_met(1), _met(2)]
    with multiprocessing.get_context("fork").Pool(2) as pool:
        assert pool.map_async(_met, [1, 2]).get(timeout=60) == here
