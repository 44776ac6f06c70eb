"""What overload does to a schedule, and what to do about it. The cells (# %%) run in order as a script, or one by one in an editor
or notebook that knows them.

    python overload.py [FOLDER]                 # writes overload.svg, edf.svg and best.svg into the folder
"""

# %% The smallest overload: three tasks, a quarter more work than one core can do
from __future__ import annotations

import sys
from pathlib import Path

import temponet

folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
overload = temponet.TaskSet.load("standard-125")
print(overload)

# %% Nothing can meet every deadline, and the optimum says how many can be met
analysis = temponet.analyze(overload, simulate=False)
optimum = temponet.optimum(overload)
assert analysis.overloaded and optimum is not None and optimum.exact
print(analysis.verdict)
print(f"at most {100 * optimum.share:.2f}% of the jobs")

# %% Some schedulers on the same jobs
comparison = temponet.compare(overload, ["edf", "rm", "llf", "mh-edf", "temponet"])
for row in comparison:
    print(f"{row.scheduler:10} {100 * (row.compliance or 0):6.2f}%")
print(comparison.verdict)

# %% A scheduler of our own: EDF that leaves jobs alone that can no longer make it
class Prudent(temponet.Scheduler):
    name = "prudent"

    def decide(self, view: temponet.View) -> list[temponet.Job]:
        possible = [job for job in view.jobs if job.slack >= 0]
        return sorted(possible, key=lambda job: job.deadline)


prudent = temponet.simulate(overload, Prudent())
print(f"prudent    {100 * (prudent.compliance or 0):6.2f}%")

# %% Which tasks pay for it
jobs = temponet.simulate(overload, "edf").jobs.to_numpy()
for task in overload.task_names:
    met = jobs["met"][jobs["task"] == task]
    print(f"edf meets {100 * met.mean():6.2f}% of {task}")

# %% The beginning of two schedules; crosses are missed deadlines
temponet.simulate(overload, "edf").gantt(folder / "edf.svg", until="600ms")
temponet.simulate(overload, comparison.best.scheduler).gantt(folder / "best.svg", until="600ms")

# %% The same question for random sets over a range of loads
sweep = temponet.sweep([0.8, 0.9, 1.0, 1.1, 1.2, 1.3, 1.4], sets=20, jobs=300, schedulers="edf,rm,mh-edf,edf-skip")
sweep.svg(folder / "overload.svg")
at_most = {point.load: point.compliance for point in sweep.curves if point.scheduler == "clairvoyant-upper"}
for point in sweep.curves:
    if point.load == 1.4:
        print(f"load 1.4: {point.scheduler:18} {100 * point.compliance:6.2f}% of {100 * at_most[1.4]:.2f}%")
