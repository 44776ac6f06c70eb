"""Compares the clairvoyant optimum with OR-Tools' CP-SAT, an independent exact solver, on the same instances.

    pip install ortools
    cargo build --release
    python3 bench/peers/ortools_oracle.py [--cases one-60,one-200,burst-60,two-40] [--instances 7] [--limit 120]

For each case, prints on how many instances both agree (where both are exact) and the median time of each.
"""

import argparse
import csv
import json
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

from ortools.sat.python import cp_model

ROOT = Path(__file__).resolve().parents[2]
TEMPONET = ROOT / "target" / "release" / "temponet"
UNITS = {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": 1_000_000_000}
CORES = {"one": 1, "burst": 1, "two": 2, "four": 4, "eight": 8}


def nanoseconds(text):
    for unit in ("ns", "us", "ms", "s"):
        if text.endswith(unit) and not (unit == "s" and text[-2] in "num"):
            whole, _, part = text[: -len(unit)].partition(".")
            return int(whole or 0) * UNITS[unit] + int((part + "0" * 9)[:9] or 0) * UNITS[unit] // 10**9
    raise ValueError(text)


def read(path):
    lines = [line for line in path.read_text().splitlines() if not line.startswith("#")]
    rows = csv.DictReader(lines)
    return [tuple(nanoseconds(row[key]) for key in ("release", "execution", "deadline")) for row in rows]


def solve(jobs, cores, limit):
    model = cp_model.CpModel()
    taken = [model.new_bool_var(f"x{i}") for i in range(len(jobs))]
    if cores == 1:
        # Jobs whose windows lie inside [a, b] can have at most b - a of work in time.
        for a in sorted({r for r, _, _ in jobs}):
            for b in sorted({d for _, _, d in jobs}):
                inside = [i for i, (r, _, d) in enumerate(jobs) if r >= a and d <= b]
                if sum(jobs[i][1] for i in inside) > b - a > 0:
                    model.add(sum(jobs[i][1] * taken[i] for i in inside) <= b - a)
    else:
        # Horn's network: the work of each job in each interval between two consecutive releases or deadlines.
        dates = sorted({date for r, _, d in jobs for date in (r, d)})
        loads = [[] for _ in dates]
        for i, (r, p, d) in enumerate(jobs):
            parts = []
            for k, (a, b) in enumerate(zip(dates, dates[1:])):
                if r <= a and b <= d:
                    part = model.new_int_var(0, min(p, b - a), f"y{i}_{k}")
                    parts.append(part)
                    loads[k].append(part)
            model.add(sum(parts) == p * taken[i])
        for k, (a, b) in enumerate(zip(dates, dates[1:])):
            if loads[k]:
                model.add(sum(loads[k]) <= cores * (b - a))
    model.maximize(sum(taken))
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = limit
    solver.parameters.num_workers = 2
    begin = time.perf_counter()
    status = solver.solve(model)
    seconds = time.perf_counter() - begin
    return (round(solver.objective_value), seconds, status == cp_model.OPTIMAL)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cases", default="one-60,one-200,burst-60,burst-200,two-40,four-100")
    parser.add_argument("--instances", type=int, default=7)
    parser.add_argument("--limit", type=float, default=120.0)
    args = parser.parse_args()
    print(f"{'case':12} {'agree':>9} {'CP-SAT':>12} {'unfinished':>10} {'temponet':>12} {'ratio':>9}")
    for case in args.cases.split(","):
        cores = CORES[case.split("-")[0]]
        with tempfile.TemporaryDirectory() as folder:
            command = [TEMPONET, "bench", "oracle", "--case", case, "--instances", str(args.instances)]
            subprocess.run([*command, "--write", folder], check=True)
            own = json.loads(subprocess.run([*command, "--json"], check=True, capture_output=True).stdout)
            agree, compared, unfinished, times = 0, 0, 0, []
            for path in sorted(Path(folder).glob("*.csv")):
                found, seconds, is_optimal = solve(read(path), cores, args.limit)
                times.append(seconds)
                run = [TEMPONET, "compare", path, "--cores", str(cores), "--schedulers", "edf", "--json"]
                report = json.loads(subprocess.run(run, check=True, capture_output=True).stdout)
                optimum = report["clairvoyant"]
                unfinished += not is_optimal
                if is_optimal and optimum["exact"]:
                    compared += 1
                    agree += found == optimum["met"]
        ours, theirs = own["cases"][0]["median_ms"] / 1e3, statistics.median(times)
        print(f"{case:12} {agree:>4}/{compared:<4} {theirs * 1e3:9.1f} ms {unfinished:>10} {ours * 1e3:9.2f} ms {theirs / ours:8.0f}x")


if __name__ == "__main__":
    main()
