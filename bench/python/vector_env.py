"""Steps per second of the vector environment, beside a NumPy environment of the same problem and EnvPool's classic control.

    python bench/python/vector_env.py              # the table; EnvPool is left out if it is not installed
    python bench/python/vector_env.py --seconds 3 --json

All rows of a run share the machine and the minute, so ratios are what to compare. Steps per CPU second, the time that cores worked for
this process, tell more on a busy machine. A step is one decision of one environment, with
the mask and, except for the rows without, the observation as a fresh array. Actions are random among the possible ones; drawing
them is not timed. The release wheel is what to measure: `pip install ./bindings/python`.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from temponet.gym import ScheduleVectorEnv

sys.path.insert(0, os.path.dirname(__file__))
from numpy_env import NumpyVectorEnv  # noqa: E402


class Rate(NamedTuple):
    """Steps per second of time, and per second that cores worked for this process."""

    wall: float
    cpu: float


def rate(step: Callable[[Any], Any], actions: list[Any], number: int, seconds: float) -> Rate:
    """Measures the rate: the median over five slices of the time."""
    step(actions[0])
    walls, cpus = [], []
    for _ in range(5):
        begun, worked, done = time.perf_counter(), time.process_time(), 0
        while time.perf_counter() - begun < seconds / 5:
            step(actions[done % len(actions)])
            done += 1
        walls.append(done * number / (time.perf_counter() - begun))
        cpus.append(done * number / (time.process_time() - worked))
    return Rate(float(np.median(walls)), float(np.median(cpus)))


def possible(envs: Any, number: int) -> list[np.ndarray]:
    """Actions among the first slots, which are nearly always possible at a choice."""
    generator = np.random.default_rng(0)
    return [generator.integers(0, 2, number) for _ in range(64)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=2.0, help="time for each row")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    rows: list[tuple[str, int, Rate]] = []

    def add(name: str, number: int, envs: Any) -> None:
        envs.reset(seed=1)
        rows.append((name, number, rate(envs.step, possible(envs, number), number, given.seconds)))

    for number in (1, 64, 4096):
        add("temponet, fresh arrays", number, ScheduleVectorEnv(number, "standard-125"))
        add("temponet, shared arrays", number, ScheduleVectorEnv(number, "standard-125", copy=False))
        add("NumPy", number, NumpyVectorEnv(number))
    for number in (64, 4096):
        add("temponet, robot (3 cores)", number, ScheduleVectorEnv(number, "robot", slots=16))
    try:
        import envpool
    except ImportError:
        print("envpool is not installed; its rows are left out", file=sys.stderr)
    else:
        for number in (1, 64, 4096):
            pool = envpool.make("CartPole-v1", env_type="gymnasium", num_envs=number)
            pool.reset()
            rows.append(("EnvPool CartPole-v1", number, rate(pool.step, possible(pool, number), number, given.seconds)))
    if given.json:
        print(json.dumps([{"what": what, "environments": number, "steps_per_second": value.wall, "steps_per_cpu_second": value.cpu} for what, number, value in rows]))
        return
    reference = {number: value for what, number, value in rows if what == "NumPy"}
    print(f"{os.cpu_count()} cores\n\n| what | environments | million steps/s | times NumPy | million steps per CPU second | times NumPy |\n|---|--:|--:|--:|--:|--:|")
    for what, number, value in rows:
        times = [f"{mine / theirs:.1f}" for mine, theirs in zip(value, reference.get(number, ()))] or ["", ""]
        print(f"| {what} | {number} | {value.wall / 1e6:.3f} | {times[0]} | {value.cpu / 1e6:.3f} | {times[1]} |")


if __name__ == "__main__":
    main()
