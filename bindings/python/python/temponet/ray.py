"""Sweeps, the arena, comparisons and trainings on a Ray cluster.

Work is cut into pieces, each a plain function of its arguments that a Ray task runs on one core. Ray runs a piece again if its
worker dies. Results are put together in the order of the pieces, so the figures are those of one machine, bit for bit,
whatever the cluster. A cluster is joined by `ray.init(address=…)` or the variable `RAY_ADDRESS`; without either, a local one
starts.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Union

import pyarrow as pa
import pyarrow.parquet as pq
import ray

from . import _temponet as native
from ._lab import Arena, RecipeLike, Sweep, SweepPlan, recipe, runs, scenarios, sweep_plan, train
from ._model import Model, ModelLike, inner
from ._schedulers import SchedulerLike, all_named
from ._task_set import PathLike, Set, TaskSet, task_set
from ._time import Time, positive
from .errors import InputError

Progress = Union[bool, Callable[[int, int], object]]
"""Progress of the pieces: `True` writes a line to stderr if it is a terminal, a function is called with done and all."""

# One thread per piece: Ray counts cores, and as many pieces run as there are.
_OPTIONS: dict[str, Any] = {"num_cpus": 1, "max_retries": 5, "runtime_env": {"env_vars": {"RAYON_NUM_THREADS": "1"}}}

# Pieces in flight for each core: enough to keep every core busy, few enough to keep results and arguments small.
_IN_FLIGHT = 4


def connect() -> None:
    """Joins the cluster of `RAY_ADDRESS`, or starts a local one, unless Ray is running."""
    if not ray.is_initialized():
        ray.init(address=os.environ.get("RAY_ADDRESS"), log_to_driver=False, configure_logging=False)


def _shown(progress: Progress) -> Callable[[int, int], object]:
    if callable(progress):
        return progress
    if not progress or not sys.stderr.isatty():
        return lambda done, total: None

    def line(done: int, total: int) -> None:
        print(f"\r{done} of {total} pieces", end="\n" if done == total else "", file=sys.stderr, flush=True)

    return line


def _in_order(function: Any, pieces: Sequence[tuple[Any, ...]], progress: Progress) -> Iterator[Any]:
    """Runs a piece of work for each tuple of arguments and yields the results in order, as soon as they are complete."""
    connect()
    task = ray.remote(function).options(name=f"temponet.{function.__name__}", **_OPTIONS)
    window = _IN_FLIGHT * max(1, int(ray.cluster_resources().get("CPU", 1)))
    shown = _shown(progress)
    flying: dict[Any, int] = {}
    waiting: dict[int, Any] = {}
    done = yielded = submitted = 0
    shown(0, len(pieces))
    try:
        while yielded < len(pieces):
            while submitted < len(pieces) and len(flying) < window:
                flying[task.remote(*pieces[submitted])] = submitted
                submitted += 1
            ready, _ = ray.wait(list(flying), num_returns=1)
            for reference in ready:
                waiting[flying.pop(reference)] = ray.get(reference)
                done += 1
                shown(done, len(pieces))
            while yielded in waiting:
                yield waiting.pop(yielded)
                yielded += 1
    finally:
        for reference in flying:
            ray.cancel(reference, force=True)


def _plain(table: pa.Table) -> pa.Table:
    """Makes one schema of all pieces: their dictionaries differ, and so does what happens to be missing in them."""
    kinds = [(field.name, pa.string() if pa.types.is_dictionary(field.type) else field.type) for field in table.schema]
    return table.cast(pa.schema(kinds))


class _Parquet:
    """A Parquet file that takes its name when it is complete."""

    def __init__(self, path: PathLike | None) -> None:
        self._path = None if path is None else Path(path)
        self._writer: Any = None

    def add(self, table: pa.Table) -> None:
        if self._path is None:
            return
        table = _plain(table)
        if self._writer is None:
            self._writer = pq.ParquetWriter(f"{self._path}.partial", table.schema)
        self._writer.write_table(table)

    def finish(self) -> None:
        if self._writer is not None:
            self._writer.close()
            os.replace(f"{self._path}.partial", str(self._path))


def _sweep_piece(plan: SweepPlan, first: int, end: int) -> list[tuple[int, int, int, int, int]]:
    return plan.run((first, end)).packed()


def sweep(
    loads: Iterable[float], *, piece: int = 64, parquet: PathLike | None = None, progress: Progress = True, **settings: Any
) -> Sweep:
    """Runs `temponet.sweep` on the cluster: `piece` sets in a task, which draws them itself. With `parquet`, rows are also
    written to that file as pieces finish."""
    plan = sweep_plan(loads, **settings)
    if piece < 1:
        raise InputError(f"piece = {piece} is less than 1")
    connect()
    shared = ray.put(plan)
    pieces = [(shared, first, min(first + piece, plan.cells)) for first in range(0, plan.cells, piece)]
    # An empty range checks the plan before anything is sent, and knows its names.
    empty = plan.run((0, 0))
    file = _Parquet(parquet)
    rows: list[tuple[int, int, int, int, int]] = []
    for found in _in_order(_sweep_piece, pieces, progress):
        rows.extend(found)
        file.add(pa.table(empty.with_rows(found).rows()))
    file.finish()
    return Sweep(empty.with_rows(rows))


def _arena_piece(scenario: str, scheduler: Any, model: Model | None, quick: bool, planner_sets: int | None) -> str:
    return native.Arena.part(scenario, scheduler, inner(model), quick, planner_sets)


def arena(
    chosen: str | Sequence[str] = (),
    schedulers: str | Sequence[SchedulerLike] = "all",
    *,
    version: int | None = None,
    quick: bool = False,
    model: ModelLike | None = None,
    shield: bool = True,
    planner_sets: int | None = None,
    progress: Progress = True,
) -> Arena:
    """Runs `temponet.arena` on the cluster: a task for each scheduler, and for the optimum, on each scenario."""
    names = [chosen] if isinstance(chosen, str) else list(chosen)
    names = names or [scenario.name for scenario in scenarios(version)]
    loaded = model if model is None or isinstance(model, Model) else Model.load(model)
    contenders = [None, *_expanded(all_named(schedulers, shield))]
    pieces = [(name, contender, loaded, quick, planner_sets) for name in names for contender in contenders]
    found = list(_in_order(_arena_piece, pieces, progress))
    width = len(contenders)
    parts = [(name, found[place * width : (place + 1) * width]) for place, name in enumerate(names)]
    return Arena(native.Arena.of_parts(parts, quick))


def _expanded(given: list[Any]) -> list[Any]:
    """Replaces `all` by the names that it stands for, and drops duplicates."""
    listed = [name for name, *_ in native.schedulers() if name != "planner" and not name.startswith("shield:")]
    meant = [one for name in given for one in (listed if name == "all" else [name])]
    return list(dict.fromkeys(meant))


def _runs_piece(set: TaskSet, schedulers: list[Any], seeds: list[int], horizon: int | None, model: Model | None) -> pa.Table:
    return pa.table(native.runs(set._native, schedulers, seeds, horizon, inner(model)))


def compare(
    sets: Sequence[Set],
    schedulers: str | Sequence[SchedulerLike] = "all",
    *,
    seeds: Iterable[int] = (1,),
    horizon: Time | None = None,
    model: ModelLike | None = None,
    shield: bool = True,
    piece: int = 16,
    parquet: PathLike | None = None,
    progress: Progress = True,
) -> pa.Table:
    """Runs every scheduler on every set with every seed, and returns a row for each run, as `temponet.runs` for each set.

    A task runs one scheduler on one set with at most `piece` seeds. The columns `set` and `task_set` are the place and the name
    of the set. With `parquet`, rows are also written to that file as pieces finish.
    """
    own = [task_set(one) for one in sets]
    loaded = model if model is None or isinstance(model, Model) else Model.load(model)
    length, all_seeds = positive("horizon", horizon), [int(seed) for seed in seeds]
    if piece < 1 or not own or not all_seeds:
        raise InputError("a comparison needs at least one set, one seed and one seed in a piece")
    chosen = _expanded(all_named(schedulers, shield))
    blocks = [all_seeds[first : first + piece] for first in range(0, len(all_seeds), piece)]
    connect()
    model_there = ray.put(loaded)
    cells = [(place, name, block) for place in range(len(own)) for name in chosen for block in blocks]
    pieces = [(own[place], [name], block, length, model_there) for place, name, block in cells]
    file, tables = _Parquet(parquet), []
    for (place, _, _), table in zip(cells, _in_order(_runs_piece, pieces, progress)):
        count = table.num_rows
        table = table.add_column(0, "task_set", pa.array([own[place].name] * count, pa.string()))
        table = table.add_column(0, "set", pa.array([place] * count, pa.int64()))
        table = _plain(table)
        file.add(table)
        tables.append(table)
    file.finish()
    return pa.concat_tables(tables)


class Trained(NamedTuple):
    """A training on the cluster."""

    seed: int
    model: Model
    report: dict[str, Any]
    """What `temponet.Training.to_dict` returns."""


def _train_piece(set: TaskSet | None, given: dict[str, Any] | None, seed: int, begin_with: str | None, trials: int) -> Trained:
    training = train(set, given, seed=seed, begin_with=begin_with, device="cpu", trials=trials)
    return Trained(seed, training.model, training.to_dict())


def train_many(
    set: Set | None = None,
    given: RecipeLike | None = None,
    *,
    seeds: Iterable[int],
    begin_with: PathLike | None = None,
    trials: int = 40,
    progress: Progress = True,
) -> list[Trained]:
    """Trains once for each seed, each training in a task of its own, and returns the trainings in the order of the seeds."""
    own = None if set is None else task_set(set)
    whole = None if given is None else recipe(given)
    begin = None if begin_with is None else os.fspath(begin_with)
    pieces = [(own, whole, int(seed), begin, trials) for seed in seeds]
    return list(_in_order(_train_piece, pieces, progress))


__all__ = ["Trained", "arena", "compare", "connect", "runs", "sweep", "train_many"]
