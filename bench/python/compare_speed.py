"""Time of `temponet.compare` from Python beside that of the command, in turn.

    python bench/python/compare_speed.py --temponet target/release/temponet
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time

CODE = "import temponet; temponet.compare({name!r}, {schedulers!r}, runs={runs})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--temponet", default="temponet")
    parser.add_argument("--set", default="robot")
    parser.add_argument("--schedulers", default="all")
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    command = [given.temponet, "compare", given.set, "--schedulers", given.schedulers, "--runs", str(given.runs), "--json"]
    program = [sys.executable, "-c", CODE.format(name=given.set, schedulers=given.schedulers, runs=given.runs)]

    def seconds(arguments: list[str]) -> float:
        begun = time.perf_counter()
        subprocess.run(arguments, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return time.perf_counter() - begun

    pairs = [(seconds(command), seconds(program)) for _ in range(given.rounds)]
    there, here = (statistics.median(times) for times in zip(*pairs))
    ratio = statistics.median(mine / theirs for theirs, mine in pairs)
    print(f"command {there:.2f} s, Python {here:.2f} s with the interpreter's start, ratio {ratio:.3f} (medians of {given.rounds} rounds in turn)")


if __name__ == "__main__":
    main()
