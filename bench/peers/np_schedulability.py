"""Holds TempoNet's non-preemptive schedules against an exact analysis: gnelissen/np-schedulability-analysis.

    git clone https://github.com/gnelissen/np-schedulability-analysis np
    (build it: np/README.md; the tool needs yaml-cpp, which job sets in CSV do not use)
    cargo build --release
    python bench/peers/np_schedulability.py target/release/temponet np/build/nptest np/examples

The peer takes a set of jobs with ranges of releases and execution times and fixed priorities, and computes for each job the earliest and
the latest completion under non-preemptive global scheduling: exactly on one core (Nasri and Brandenburg, RTSS 2017), as safe bounds on
several (Nasri, Nelissen and Brandenburg, ECRTS 2019). This script draws releases and execution times within the ranges, has TempoNet
simulate them with `preemption = "none"` under `fp`, and checks that

- every completion of ours lies within the peer's range (on several cores, of sets that it proves schedulable);
- on one core, where its verdict is exact, a set that it refuses misses a deadline in one of our runs.

It also counts the jobs of which both ends of the range are reached. It does so for the peer's own examples and for random job sets. Ties are decided as the peer does: by priority, then task, then job.
"""

import csv
import itertools
import random
import subprocess
import sys
import tempfile
from pathlib import Path

SAMPLES = 60  # per job set, beside the corners
MOST_CORNERS = 256
RANDOM_SETS = 60
UNIT = 1_000  # ns per unit of the peer


def read_jobs(path):
    """Returns jobs as dictionaries, in the order of the file."""
    rows = list(csv.reader(path.open(), skipinitialspace=True))[1:]
    keys = ["task", "job", "from", "to", "least", "most", "deadline", "priority"]
    return [dict(zip(keys, map(int, row))) for row in rows if len(row) == 8]


def peer_ranges(nptest, jobs, cores, folder):
    """Returns whether the peer proves the jobs schedulable, and the range of completions of each job."""
    path = folder / "jobs.csv"
    with path.open("w") as out:
        print("Task ID, Job ID, Arrival min, Arrival max, Cost min, Cost max, Deadline, Priority", file=out)
        for job in jobs:
            print(*job.values(), sep=", ", file=out)
    # Without -m the analysis of one core runs, which is exact. -c: it goes on after a missed deadline, which that of several cores cannot.
    options = ["-m", str(cores)] if cores > 1 else ["-c"]
    answer = subprocess.run([nptest, "-r", *options, str(path)], capture_output=True, text=True, check=True).stdout
    is_proved = answer.split(",")[1].strip() == "1"
    rows = list(csv.reader(path.with_suffix(".rta.csv").open(), skipinitialspace=True))[1:]
    return is_proved, {(int(row[0]), int(row[1])): (int(row[2]), int(row[3])) for row in rows}


def our_completions(temponet, jobs, chosen, cores, folder):
    """Simulates jobs with the chosen releases and execution times. Returns the completion of each."""
    order = sorted(range(len(jobs)), key=lambda at: (jobs[at]["priority"], jobs[at]["task"], jobs[at]["job"]))
    rank = {at: len(jobs) - place for place, at in enumerate(order)}
    lines = ['on_miss = "continue"', 'preemption = "none"', f"cores = {cores}", 'time_unit = "ns"']
    for at, (job, (release, execution)) in enumerate(zip(jobs, chosen)):
        deadline = max(1, (job["deadline"] - release) * UNIT)
        lines += ["[[task]]", f'name = "{job["task"]} {job["job"]}"', "period = 1000000000000", f"offset = {release * UNIT}"]
        lines += [f"wcet = {execution * UNIT}", f"deadline = {deadline}", f"priority = {rank[at]}"]
    path, out = folder / "set.toml", folder / "out.csv"
    path.write_text("\n".join(lines))
    command = [temponet, "simulate", str(path), "--scheduler", "fp", "--horizon", "900s", "--jobs", str(out), "--force"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    found = {}
    for row in csv.DictReader(out.open()):
        task, job = map(int, row["task"].split())
        found[task, job] = int(row["completion_ns"]) / UNIT
    return found


def choices(jobs, rng):
    """Yields releases and execution times: corners of the ranges, then random ones."""
    ranges = [(job["from"], job["to"]) for job in jobs] + [(job["least"], job["most"]) for job in jobs]
    open_ends = [at for at, (low, high) in enumerate(ranges) if low < high]
    if 2 ** len(open_ends) <= MOST_CORNERS:
        corners = itertools.product(*[ranges[at] for at in open_ends])
    else:
        corners = ([rng.choice(ranges[at]) for at in open_ends] for _ in range(MOST_CORNERS))
    fixed = [low for low, _ in ranges]
    for corner in corners:
        values = list(fixed)
        for at, value in zip(open_ends, corner):
            values[at] = value
        yield list(zip(values[: len(jobs)], values[len(jobs) :]))
    for _ in range(SAMPLES if open_ends else 0):
        values = [rng.randint(low, high) for low, high in ranges]
        yield list(zip(values[: len(jobs)], values[len(jobs) :]))


def random_jobs(rng):
    """A few jobs with unique priorities, by deadline or not."""
    jobs = []
    for task in range(1, rng.randint(3, 6)):
        start = rng.randint(0, 10)
        least = rng.randint(1, 8)
        ranges = {"from": start, "to": start + rng.randint(0, 4), "least": least, "most": least + rng.randint(0, 5)}
        deadline = ranges["to"] + ranges["most"] + rng.randint(0, 25)
        jobs.append({"task": task, "job": 1, **ranges, "deadline": deadline, "priority": rng.randint(1, 4)})
    if rng.random() < 0.5:
        for job in jobs:
            job["priority"] = job["deadline"]
    return jobs


def check(temponet, nptest, jobs, cores, rng, folder):
    """Compares one job set. Returns the counts to print, and the first contradiction."""
    is_proved, ranges = peer_ranges(nptest, jobs, cores, folder)
    seen, runs, misses, wrong = {}, 0, 0, None
    for chosen in choices(jobs, rng):
        completions = our_completions(temponet, jobs, chosen, cores, folder)
        runs += 1
        for job in jobs:
            name = job["task"], job["job"]
            at, (best, worst) = completions[name], ranges[name]
            low, high = seen.get(name, (at, at))
            seen[name] = min(low, at), max(high, at)
            misses += at > job["deadline"]
            if (cores == 1 or is_proved) and not best <= at <= worst:
                wrong = wrong or f"job {name} completes at {at}, outside {best} to {worst}: {chosen}"
    if is_proved and misses:
        wrong = wrong or "proved, but a deadline is missed"
    reached = sum(seen[name] == ranges[name] for name in seen)
    return is_proved, runs, len(jobs), reached, misses, wrong


def main():
    temponet, nptest, examples = sys.argv[1:4]
    rng, wrongs = random.Random(1), 0
    skipped = ("actions", "prec", "abort")
    sets = [(path.stem, read_jobs(path)) for path in sorted(Path(examples).glob("*.csv"))
            if not any(word in path.name for word in skipped)]
    sets += [(f"random {number}", random_jobs(rng)) for number in range(RANDOM_SETS)]
    totals = {}
    print("job set, cores, peer proves it, runs, jobs, jobs whose whole range is reached, missed deadlines")
    with tempfile.TemporaryDirectory() as folder:
        for (name, jobs), cores in itertools.product(sets, [1, 2]):
            is_proved, runs, count, reached, misses, wrong = check(temponet, nptest, jobs, cores, rng, Path(folder))
            # A refusal on one core is exact, so some completion must be late.
            if cores == 1 and not is_proved and not misses:
                wrong = wrong or "refused, but no deadline is missed"
            if not name.startswith("random") or wrong:
                print(f"{name}, {cores}, {is_proved}, {runs}, {count}, {reached}, {misses}")
            if wrong:
                wrongs += 1
                print("  CONTRADICTION:", wrong)
            total = totals.setdefault(cores, [0, 0, 0, 0, 0])
            for at, number in enumerate([1, runs, count, reached, not is_proved]):
                total[at] += number
    for cores, (count, runs, jobs, reached, refused) in totals.items():
        print(f"{cores} core{'s' * (cores > 1)}: {count} job sets ({refused} refused), {runs} runs, "
              f"the whole range of {reached} of {jobs} jobs is reached")
    print(f"{wrongs} contradictions")
    sys.exit(bool(wrongs))


if __name__ == "__main__":
    main()
