"""Checks that TempoNet and SimSo schedule alike: random sets under the abort rule, every job compared.

    pip install simso
    cargo build --release
    python bench/peers/simso_agreement.py target/release/temponet

Times are multiples of 1/64 ms, which SimSo's floating-point milliseconds represent exactly. Equal deadlines are excluded, because two
correct simulators can break a tie differently. For each scheduler, prints how many jobs agree in completion (or abortion), and the first
job that does not.
"""

import contextlib
import csv
import io
import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path

from simso.configuration import Configuration
from simso.core import Model

# TempoNet's scheduler, SimSo's scheduler, number of cores, range of loads per core.
PAIRS = [
    ("edf", "simso.schedulers.EDF_mono", 1, (0.5, 1.3)),
    ("rm", "simso.schedulers.RM_mono", 1, (0.5, 1.3)),
    ("edf", "simso.schedulers.EDF", 2, (0.5, 1.3)),
    ("edf", "simso.schedulers.EDF", 4, (0.5, 1.3)),
    ("rm", "simso.schedulers.RM", 2, (0.2, 0.5)),
    ("edzl", "simso.schedulers.EDZL", 2, (0.2, 0.6)),
    ("p-edf:fit=first", "simso.schedulers.P_EDF", 3, (0.3, 0.7)),
    # In overload SimSo's global RM makes jobs wait although they are among the m of highest priority.
    ("rm", "simso.schedulers.RM", 2, (0.5, 1.3)),
]
SETS = 40
HORIZON_MS = 1000
GRAIN = 15_625  # ns


def random_set(rng, cores, loads):
    """Returns tasks as (name, period, wcet) in ns; no two deadlines of different tasks are equal."""
    while True:
        tasks = any_set(rng, cores, loads)
        deadlines = [date for _, period, _ in tasks for date in range(period, HORIZON_MS * 1_000_000, period)]
        if len(set(deadlines)) == len(deadlines):
            return tasks


def any_set(rng, cores, loads):
    count = rng.randint(cores + 1, cores + 6)
    load = cores * rng.uniform(*loads)
    shares = [rng.random() for _ in range(count)]
    total = sum(shares)
    tasks = []
    for index, share in enumerate(shares):
        period = rng.randrange(640, 6400) * GRAIN
        wcet = max(1, int(min(0.95, load * share / total) * period) // GRAIN) * GRAIN
        tasks.append((f"t{index}", period, wcet))
    return tasks


def ours(program, tasks, cores, scheduler, folder):
    task_set = {"time_unit": "ns", "cores": cores,
                "task": [{"name": n, "period": p, "wcet": c} for n, p, c in tasks]}
    (folder / "set.json").write_text(json.dumps(task_set))
    subprocess.run([program, "simulate", "set.json", "--scheduler", scheduler, "--horizon", f"{HORIZON_MS}ms",
                    "--jobs", "jobs.csv"], cwd=folder, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with open(folder / "jobs.csv") as file:
        return {(row["task"], int(row["release_ns"])): int(row["completion_ns"]) if row["completion_ns"] else None
                for row in csv.DictReader(file)}


def simso(tasks, cores, scheduler):
    configuration = Configuration()
    configuration.cycles_per_ms = 1_000_000
    configuration.duration = HORIZON_MS * configuration.cycles_per_ms
    for index, (name, period, wcet) in enumerate(tasks, 1):
        configuration.add_task(name=name, identifier=index, period=period / 1e6, activation_date=0, wcet=wcet / 1e6,
                               deadline=period / 1e6, abort_on_miss=True)
    for core in range(1, cores + 1):
        configuration.add_processor(name=f"core {core}", identifier=core)
    configuration.scheduler_info.clas = scheduler
    configuration.check_all()
    model = Model(configuration)
    with contextlib.redirect_stdout(io.StringIO()):  # its schedulers print
        model.run_model()
    jobs = {}
    for task in model.results.tasks.values():
        for job in task.jobs:
            done = job.end_date is not None and not job.aborted
            jobs[(task.task.name, round(job.activation_date))] = round(job.end_date) if done else None
    return jobs


def main():
    program = str(Path(sys.argv[1]).resolve())
    rng = random.Random(1)
    for scheduler, peer, cores, loads in PAIRS:
        same = total = 0
        first = None
        for number in range(SETS):
            tasks = random_set(rng, cores, loads)
            with tempfile.TemporaryDirectory() as folder:
                mine = ours(program, tasks, cores, scheduler, Path(folder))
            theirs = simso(tasks, cores, peer)
            for job, completion in mine.items():
                total += 1
                other = theirs.get(job, "absent")
                agree = completion == other
                same += agree
                if not agree and first is None:
                    first = f"set {number}, job {job}: ours {completion}, SimSo {other}"
        print(f"{scheduler:15} {peer:27} {cores} cores, load {loads[0]}-{loads[1]}: {same} of {total} jobs agree ({100 * same / total:.3f}%)"
              + (f"; first difference: {first}" if first else ""), flush=True)


main()
