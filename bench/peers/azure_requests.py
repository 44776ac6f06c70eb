"""Schedulers on requests of a real LLM service: shares in time, by load, by what is known of lengths, and by whether requests can be cancelled.

    curl -LO https://raw.githubusercontent.com/Azure/AzurePublicDataset/master/data/AzureLLMInferenceTrace_conv.csv
    cargo build --release
    python3 bench/peers/azure_requests.py AzureLLMInferenceTrace_conv.csv target/release/temponet

The trace (Azure LLM inference traces 2023, CC-BY) has arrivals and numbers of tokens. A request takes 0.1 ms for each token of its prompt and 25 ms for each
token of its answer; seven in ten are due in 10 s, the others in 60 s; none is preempted; 16 run at a time. Arrivals are stretched to the load. An estimate is
the true length times exp(sigma * N), known to have that error. Prints a Markdown table; `--keep FOLDER` leaves the task sets there.
"""

import argparse
import csv
import datetime
import json
import math
import random
import subprocess
import tempfile
from pathlib import Path

SCHEDULERS = "edf,fcfs,reject-when-busy,early-reject,lifo,hrrn,rank,rank:patience=5s,edf-skip,edf-skip:q=0.5,edf-shed,sjf-shed,sjf-shed:q=0.9,mh-edf,mh-edf:q=0.5,request-index,tuned,temponet".split(",")
NINTH_DECILE = 1.2815515655446004
CORES = 16


def requests(trace, skip, count):
    """Arrivals in milliseconds and execution times in milliseconds."""
    with open(trace, newline="") as file:
        rows = list(csv.DictReader(file))[skip : skip + count]

    def arrival(row):
        day, fraction = row["TIMESTAMP"].split(".")
        return datetime.datetime.strptime(day, "%Y-%m-%d %H:%M:%S").timestamp() * 1e3 + float("0." + fraction) * 1e3

    first = arrival(rows[0])
    return [(arrival(row) - first, 0.1 * int(row["ContextTokens"]) + 25.0 * int(row["GeneratedTokens"])) for row in rows]


def write(path, jobs, load, sigma, preemption, seed):
    rng = random.Random(seed)
    work, span = sum(length for _, length in jobs), jobs[-1][0]
    stretch = work / (CORES * load) / span
    longest = max(length for _, length in jobs)
    with open(path, "w") as file:
        estimates = "" if sigma is None else "estimate,estimate_p90,"
        file.write(f"name,release,execution,deadline,wcet,{estimates}preemption\n")
        for arrival, length in jobs:
            release, window, error = arrival * stretch, 10_000 if rng.random() < 0.7 else 60_000, rng.gauss(0, 1)
            cells = [f"{number:.6f}" for number in (release, length, release + window, longest)]
            if sigma is not None:
                median = min(length * math.exp(sigma * error), longest)
                cells += [f"{number:.6f}" for number in (median, min(median * math.exp(sigma * NINTH_DECILE), longest))]
            file.write(",".join(["request", *cells, preemption]) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trace")
    parser.add_argument("temponet")
    parser.add_argument("--skip", type=int, default=0, help="requests to leave out at the beginning")
    parser.add_argument("--count", type=int, default=6_000)
    parser.add_argument("--loads", default="1.3,2")
    parser.add_argument("--schedulers", default=",".join(SCHEDULERS))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep")
    args = parser.parse_args()
    jobs = requests(args.trace, args.skip, args.count)
    knowledge = [("no estimate", None), ("σ = 0.5", 0.5), ("exact", 0.0)]
    columns = [(float(load), *known, preemption) for load in args.loads.split(",") for known in knowledge for preemption in ("none", "cancel")]
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(args.keep or folder)
        folder.mkdir(parents=True, exist_ok=True)
        for column in columns:
            load, name, sigma, preemption = column
            path = folder / f"requests-{load}-{name.replace(' ', '')}-{preemption}.csv"
            write(path, jobs, load, sigma, preemption, args.seed)
            command = [args.temponet, "compare", path, "--cores", str(CORES), "--schedulers", args.schedulers, "--json"]
            report = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
            found[column] = report
    heads = [f"{load:g}, {name}" + (", cancelled" if preemption == "cancel" else "") for load, name, _, preemption in columns]
    print("| | " + " | ".join(heads) + " |\n|---|" + "--:|" * len(heads))
    shares = {column: {row["scheduler"]: row["compliance"] for row in report["results"]} for column, report in found.items()}
    for scheduler in args.schedulers.split(","):
        cells = [next((share for name, share in shares[column].items() if name == scheduler), None) for column in columns]
        best = [max(shares[column].values()) for column in columns]
        texts = ["–" if share is None else f"**{100 * share:.1f}**" if share == most else f"{100 * share:.1f}" for share, most in zip(cells, best)]
        print(f"| `{scheduler}` | " + " | ".join(texts) + " |")
    print("| clairvoyant, at most | " + " | ".join(f"{100 * found[column]['clairvoyant']['upper'] / len(jobs):.1f}" for column in columns) + " |")


if __name__ == "__main__":
    main()
