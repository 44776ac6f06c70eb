"""Measures the speed of SimSo and TempoNet on the task sets of our benchmark, in the same run.

    pip install simso
    cargo build --release
    python bench/peers/simso_speed.py target/release/temponet

Prints the jobs per second of both and the ratio, for every case of `temponet bench sim` for which SimSo has a scheduler.
"""

import contextlib
import io
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from simso.configuration import Configuration
from simso.core import Model

# Case, SimSo's scheduler, number of jobs to simulate.
CASES = [
    ("edf-1x5", "simso.schedulers.EDF_mono", 20_000),
    ("edf-8x100", "simso.schedulers.EDF", 5_000),
    ("edf-8x600", "simso.schedulers.EDF", 3_000),
]


def nanoseconds(text):
    for unit, size in (("ns", 1), ("us", 1e3), ("ms", 1e6), ("s", 1e9)):
        if text.endswith(unit) and text[: -len(unit)].replace(".", "").isdigit():
            return float(text[: -len(unit)]) * size
    raise ValueError(text)


def simso_jobs_per_second(task_set, scheduler, jobs):
    configuration = Configuration()
    configuration.cycles_per_ms = 1_000_000
    tasks = [(task["name"], nanoseconds(task["period"]) / 1e6, nanoseconds(task["wcet"]) / 1e6) for task in task_set["task"]]
    milliseconds = jobs / sum(1 / period for _, period, _ in tasks)
    configuration.duration = int(milliseconds * configuration.cycles_per_ms)
    for index, (name, period, wcet) in enumerate(tasks, 1):
        configuration.add_task(name=name, identifier=index, period=period, activation_date=0, wcet=wcet, deadline=period,
                               abort_on_miss=True)
    for core in range(1, task_set["cores"] + 1):
        configuration.add_processor(name=f"core {core}", identifier=core)
    configuration.scheduler_info.clas = scheduler
    configuration.check_all()
    model = Model(configuration)
    begin = time.perf_counter()
    with contextlib.redirect_stdout(io.StringIO()):  # SimSo's schedulers print
        model.run_model()
    seconds = time.perf_counter() - begin
    return sum(len(task.jobs) for task in model.results.tasks.values()) / seconds


def main():
    program = str(Path(sys.argv[1]).resolve())
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([program, "bench", "sim", "--write", folder], check=True)
        for case, scheduler, jobs in CASES:
            task_set = json.loads((Path(folder) / f"{case}.json").read_text())
            theirs = simso_jobs_per_second(task_set, scheduler, jobs)
            output = subprocess.run([program, "bench", "sim", "--case", case, "--json"], check=True, capture_output=True)
            ours = json.loads(output.stdout)["cases"][0]["jobs_per_s"]
            print(f"{case:10} SimSo {theirs:10,.0f} jobs/s, TempoNet {ours:12,.0f} jobs/s, ratio {ours / theirs:8,.0f}", flush=True)


main()
