"""The experiments: one run, comparisons, analysis, the optimum, sweeps, the arena, explanations and training.

All of them give the figures of the command of the same name, bit for bit. Long calls release the interpreter lock, and Ctrl-C
ends them.
"""

from __future__ import annotations

import html as _html
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Union

from . import _temponet as native
from ._model import Model, ModelLike, inner
from ._results import Clairvoyant, Comparison, Run
from ._schedulers import SchedulerLike, all_named, named
from ._tables import Frame, Table
from ._task_set import PathLike, Set, task_set, write_file
from ._time import Time, nanoseconds, optional, positive
from .errors import InputError


def simulate(
    set: Set,
    scheduler: SchedulerLike = "temponet",
    *,
    seed: int = 1,
    horizon: Time | None = None,
    model: ModelLike | None = None,
    shield: bool = True,
    budget: Time | None = None,
    latency: bool = False,
    record_until: Time | None = None,
) -> Run:
    """Runs one scheduler once, as `temponet simulate`.

    `record_until` bounds the jobs and slices that are kept, about 150 bytes for each job; by default all are.

    >>> simulate("standard-125", "mh-edf").met
    8050
    """
    own = task_set(set)._native
    until = optional("record_until", record_until)
    length, limit = positive("horizon", horizon), positive("budget", budget)
    return Run(native.simulate(own, named(scheduler, shield), seed, length, inner(model), limit, latency, until))


def compare(
    set: Set = "robot",
    schedulers: str | Sequence[SchedulerLike] = "all",
    *,
    seed: int = 1,
    horizon: Time | None = None,
    runs: int | None = None,
    rank_by: Sequence[str] = (),
    model: ModelLike | None = None,
    shield: bool = True,
    budget: Time | None = None,
    latency: bool = False,
    charge_latency: bool = False,
    oracle_budget: float | None = 5.0,
) -> Comparison:
    """Runs schedulers on the same jobs and ranks them, as `temponet compare`.

    `runs` is 10 if anything in the set is random, else 1. `oracle_budget` is the time for the optimum, in seconds of one core;
    `None` leaves the optimum out.

    >>> compare("standard-125", "edf,mh-edf").clairvoyant.exact
    True
    """
    if runs is not None and not 1 <= runs <= 1_000_000:
        raise InputError(f"runs = {runs} is not from 1 to 1000000")
    if charge_latency and not latency:
        raise InputError("charge_latency needs latency=True")
    if oracle_budget is not None and not 0 < oracle_budget < float("inf"):
        raise InputError(f"oracle_budget = {oracle_budget} is not a number greater than zero")
    return Comparison(
        native.compare(
            task_set(set)._native,
            all_named(schedulers, shield),
            seed,
            positive("horizon", horizon),
            runs,
            [rank_by] if isinstance(rank_by, str) else list(rank_by),
            inner(model),
            positive("budget", budget),
            latency,
            charge_latency,
            oracle_budget,
        )
    )


def runs(
    set: Set,
    schedulers: str | Sequence[SchedulerLike] = "all",
    *,
    seeds: Iterable[int] = (1,),
    horizon: Time | None = None,
    model: ModelLike | None = None,
    shield: bool = True,
) -> Table:
    """Runs schedulers with several seeds and returns a row for each run: by scheduler, then by seed.

    Schedulers that do not apply to the set have no rows.

    >>> runs("standard-125", "edf,mh-edf").to_numpy()["met"].tolist()
    [6118, 8050]
    """
    own = task_set(set)._native
    chosen = all_named(schedulers, shield)
    return Table(native.runs(own, chosen, [int(seed) for seed in seeds], positive("horizon", horizon), inner(model)))


class Analysis:
    """What can be proved about a set. `to_dict` has everything that `temponet analyze --json` prints.

    >>> analyze("gap-avionics", simulate=False).proved["edf"]
    'QPA'
    """

    def __init__(self, report: dict[str, Any]) -> None:
        self._json = report

    @property
    def verdict(self) -> str:
        """The conclusion in one sentence."""
        return str(self._json["verdict"])

    @property
    def overloaded(self) -> bool | None:
        """Whether no scheduler can meet every deadline at the wcet; `None` if that cannot be told."""
        return self._json["overloaded"]  # type: ignore[no-any-return]

    @property
    def proved(self) -> dict[str, str]:
        """Schedulers that are proved to meet every deadline, with the test that proves it."""
        return {row["scheduler"]: row["by"] for row in self._json["proved"]}

    @property
    def tests(self) -> dict[str, str]:
        """Results of the schedulability tests by name."""
        return {row["test"]: row["result"] for row in self._json["tests"]}

    @property
    def guaranteed(self) -> list[str]:
        """Tasks whose deadlines the shield guarantees."""
        return [row["name"] for row in self._json["guarantee"]["tasks"]]

    @property
    def what_if(self) -> dict[str, Any] | None:
        """What to change, as in `temponet analyze --what-if --json`; `None` unless it was asked for."""
        return self._json["what_if"]  # type: ignore[no-any-return]

    @property
    def survived(self) -> dict[str, float]:
        """Largest factor on all execution times at which each scheduler meets 99% of the deadlines; empty without simulation."""
        found = self._json["survived"]
        return {} if found is None else {row["scheduler"]: row["factor"] for row in found["rows"]}

    def response_times(self, scheduler: str) -> dict[str, int | None]:
        """Bounds on the response times under a scheduler with fixed priorities ("rm", "dm", "fp"), in nanoseconds."""
        for row in self._json["response_times"]:
            if row["scheduler"] == scheduler:
                return {task["task"]: task["response_ns"] for task in row["tasks"]}
        raise KeyError(scheduler)

    def to_dict(self) -> dict[str, Any]:
        """Returns the report as `temponet analyze --json` prints it."""
        return dict(self._json)

    def __repr__(self) -> str:
        return f"<Analysis of {self._json['task_set']!r}: {self.verdict}>"

    def _repr_html_(self) -> str:
        rows = "".join(f"<tr><td>{_html.escape(test)}</td><td>{_html.escape(result)}</td></tr>" for test, result in self.tests.items())
        return f"<p>{_html.escape(self.verdict)}</p><table><tr><th>test</th><th>result</th></tr>{rows}</table>"


ANALYZED = "edf,rm,dm,llf,srpt,edf-skip,mh-edf,edzl,d-over"
"""Schedulers that `analyze` simulates under rising load if none are named."""


def analyze(
    set: Set = "robot",
    schedulers: str | Sequence[SchedulerLike] = ANALYZED,
    *,
    simulate: bool = True,
    seed: int = 1,
    horizon: Time | None = None,
    model: ModelLike | None = None,
    what_if: bool = False,
) -> Analysis:
    """Proves which deadlines are met and finds how much longer jobs may take, as `temponet analyze`.

    With `what_if` it also finds what to change so that every deadline is met, or how much room each task has.

    >>> analyze("standard-125", simulate=False).overloaded
    True
    >>> analyze("standard-125", simulate=False, what_if=True).what_if["advice"][0]["then"]
    'fits'
    """
    chosen = all_named(schedulers) if simulate else None
    report = native.analyze(task_set(set)._native, chosen, seed, positive("horizon", horizon), inner(model), what_if)
    return Analysis(json.loads(report))


def optimum(
    set: Set, *, seed: int = 1, horizon: Time | None = None, runs: int = 1, budget: float = 5.0
) -> Clairvoyant | None:
    """Returns the most that a scheduler that knows the future could meet; `None` if no job counts.

    `budget` is the effort in seconds of one core. With dispatch costs only the upper bounds hold, and the lower ones are zero.

    >>> optimum("standard-125").lower
    8050
    """
    if runs < 1:
        raise InputError(f"runs = {runs} is less than 1")
    found = native.optimum(task_set(set)._native, seed, positive("horizon", horizon), runs, budget)
    return None if found is None else Clairvoyant.of(json.loads(found))


class CurvePoint(NamedTuple):
    """A scheduler at a point of a sweep."""

    scheduler: str
    load: float
    cores: int
    tasks: int | None
    sets: int
    acceptance: float
    """Share of sets without a miss."""
    compliance: float
    """Share of jobs in time."""


class Sweep(Frame):
    """Schedulers on many random sets. As a table, it has a row for each scheduler on each set."""

    def __init__(self, inner: native.Sweep) -> None:
        self._inner = inner

    @property
    def curves(self) -> list[CurvePoint]:
        """Acceptance and compliance of each scheduler at each point."""
        curves = json.loads(self._inner.json())["curves"]
        return [CurvePoint(curve["scheduler"], **point) for curve in curves for point in curve["points"]]

    @property
    def refused(self) -> list[tuple[int, str, str]]:
        """Schedulers that do not apply: number of cores, name and reason."""
        return self._inner.refused()

    def _table(self) -> native.Table:
        return self._inner.rows()

    def to_dict(self) -> dict[str, Any]:
        """Returns the curves as `temponet sweep --json` prints them."""
        made: dict[str, Any] = json.loads(self._inner.json())
        return made

    def svg(self, path: PathLike | None = None) -> str:
        """Draws the curves, and writes the picture if there is a path."""
        picture = self._inner.svg()
        if path is not None:
            write_file(path, picture)
        return picture

    def report(self, path: PathLike) -> None:
        """Writes the self-contained page of `temponet sweep --report`."""
        write_file(path, self._inner.html())

    def __len__(self) -> int:
        return len(self._inner.rows())

    def __repr__(self) -> str:
        return f"<Sweep: {len(self)} rows>"

    def _repr_html_(self) -> str:
        return self.svg()


SWEPT = "edf,rm,llf,srpt,edf-skip,mh-edf,edzl,p-edf,dp-wrap"
"""Schedulers of a sweep if none are named."""


class SweepPlan(NamedTuple):
    """A sweep as the native function takes it."""

    ranges: str
    shape: str
    schedulers: list[Any]
    model: Model | None
    cells: int
    """Number of sets in all."""

    def run(self, cells: tuple[int, int] | None = None) -> native.Sweep:
        """Runs the sweep, or a range of its sets."""
        return native.sweep(self.ranges, self.shape, self.schedulers, inner(self.model), cells)


def sweep_plan(
    loads: Iterable[float],
    *,
    cores: int | Sequence[int] = 1,
    tasks: int | Sequence[int] | None = None,
    sets: int = 100,
    jobs: int = 1000,
    schedulers: str | Sequence[SchedulerLike] = SWEPT,
    seed: int = 1,
    model: ModelLike | None = None,
    shield: bool = True,
    oracle_budget: float | None = 0.1,
    **shape: Any,
) -> SweepPlan:
    """Makes the plan of a sweep; see `sweep`."""
    counts_tasks = str(shape.get("method", "")).startswith(("unc:", "waters2015"))
    all_tasks: list[int | None] = [None if counts_tasks else 10] if tasks is None else [tasks] if isinstance(tasks, int) else list(tasks)
    all_cores = [cores] if isinstance(cores, int) else list(cores)
    loads = [float(load) for load in loads]
    if sets < 1 or jobs < 1 or not loads or not all_cores or not all_tasks:
        raise InputError("a sweep needs at least one load, number of cores and tasks, set, and job")
    ranges = {
        "loads": loads,
        "cores": all_cores,
        "tasks": all_tasks,
        "sets": sets,
        "jobs": jobs,
        "seed": seed,
        "oracle": oracle_budget,
    }
    loaded = Model.load(model) if model is not None and not isinstance(model, Model) else model
    cells = len(loads) * len(all_cores) * len(all_tasks) * sets
    return SweepPlan(json.dumps(ranges), json.dumps(shape), all_named(schedulers, shield), loaded, cells)


def sweep(loads: Iterable[float], **settings: Any) -> Sweep:
    """Runs schedulers on random sets of rising load, as `temponet sweep`.

    `loads` are utilizations per core. Keywords: `cores` and `tasks` (a number or several), `sets` for each combination (100),
    `jobs` for each set (1000), `schedulers`, `seed`, `model`, `shield`, `oracle_budget` for each set (0.1 s; `None` for no
    optimum), and the shape of the sets as in `TaskSet.generate`.

    >>> curves = sweep([0.8, 1.2], sets=4, schedulers="edf,mh-edf").curves
    >>> [(point.scheduler, point.load) for point in curves if point.acceptance == 1.0][:2]
    [('edf', 0.8), ('mh-edf', 0.8)]
    """
    return Sweep(sweep_plan(loads, **settings).run())


class ScenarioInfo(NamedTuple):
    """A scenario of the arena."""

    name: str
    version: int
    arena: int
    """Version of the arena."""
    held_out: bool
    """Whether training draws no such sets."""
    goal: str
    sets: int
    description: str


def scenarios(version: int | None = None) -> list[ScenarioInfo]:
    """Returns the scenarios of the arena, or those of one version of it.

    >>> len(scenarios()) >= 50
    True
    """
    return [ScenarioInfo(**row) for row in json.loads(native.scenarios(version))]


class Arena(Frame):
    """Schedulers on fixed scenarios. As a table, it has a row for each scheduler on each scenario."""

    def __init__(self, inner: native.Arena) -> None:
        self._inner = inner
        self._json: dict[str, Any] = json.loads(inner.json())

    @property
    def scores(self) -> dict[str, dict[str, float]]:
        """Score of each scheduler by scenario."""
        return {row["name"]: {entry["name"]: entry["score"] for entry in row["schedulers"]} for row in self._json["scenarios"]}

    @property
    def optimum(self) -> dict[str, tuple[float, float]]:
        """Bounds on the best possible score by scenario: lower and upper."""
        return {row["name"]: (row["clairvoyant"]["lower"], row["clairvoyant"]["upper"]) for row in self._json["scenarios"]}

    @property
    def verdict(self) -> str | None:
        """How the learned scheduler stands, in one sentence; `None` if it did not run."""
        summary = self._json["summary"]
        return None if summary is None else summary["verdict"]

    def _table(self) -> native.Table:
        return self._inner.table()

    def to_dict(self) -> dict[str, Any]:
        """Returns the report as `temponet arena --json` prints it."""
        return dict(self._json)

    def report(self, path: PathLike) -> None:
        """Writes the self-contained page of `temponet arena --report`."""
        write_file(path, self._inner.html())

    def __repr__(self) -> str:
        return f"<Arena: {len(self._json['scenarios'])} scenarios{'' if self.verdict is None else ': ' + self.verdict}>"

    def _repr_html_(self) -> str:
        names = list(dict.fromkeys(name for scores in self.scores.values() for name in scores))
        head = "".join(f"<th>{_html.escape(name)}</th>" for name in ["scenario", *names, "optimum"])
        rows = []
        for scenario, scores in self.scores.items():
            shares = [f"{100 * scores[name]:.2f}%" if name in scores else "–" for name in names]
            shares.append(f"≤{100 * self.optimum[scenario][1]:.2f}%")
            rows.append("".join(f"<td>{_html.escape(cell)}</td>" for cell in [scenario, *shares]))
        return f"<table><tr>{head}</tr>{''.join(f'<tr>{row}</tr>' for row in rows)}</table>"


def arena(
    scenarios: str | Sequence[str] = (),
    schedulers: str | Sequence[SchedulerLike] = "all",
    *,
    version: int | None = None,
    quick: bool = False,
    model: ModelLike | None = None,
    shield: bool = True,
    planner_sets: int | None = None,
) -> Arena:
    """Runs schedulers on fixed scenarios, by default all, as `temponet arena`. `quick` runs a few sets of each.

    >>> scores = arena("one-core-overload", "edf,mh-edf", quick=True).scores["one-core-overload"]
    >>> scores["mh-edf"] > scores["edf"]
    True
    """
    chosen = [scenarios] if isinstance(scenarios, str) else list(scenarios)
    return Arena(native.arena(chosen, version, all_named(schedulers, shield), inner(model), quick, planner_sets))


class Explanation:
    """Why the learned scheduler decided as it did: `text` in words, `to_dict` in figures, and a page."""

    def __init__(self, inner: native.Explanation) -> None:
        self._inner = inner

    @property
    def text(self) -> str:
        """The explanation in words."""
        return self._inner.text

    def to_dict(self) -> dict[str, Any]:
        """Returns the figures as `temponet explain --json` prints them."""
        made: dict[str, Any] = json.loads(self._inner.json)
        return made

    def report(self, path: PathLike) -> None:
        """Writes the self-contained page of `temponet explain --report`."""
        write_file(path, self._inner.html)

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return f'<iframe srcdoc="{_html.escape(self._inner.html)}" style="width:100%;height:40em;border:0"></iframe>'


def explain(
    set: Set = "robot",
    *,
    at: Time | None = 0,
    seed: int = 1,
    horizon: Time | None = None,
    model: ModelLike | None = None,
    shield: bool = True,
) -> Explanation:
    """Explains the first decision of the learned scheduler with a ready job at or after `at`, as `temponet explain`. With
    `at=None` it explains all decisions of a run.

    >>> explain("standard-125", at="100ms").to_dict()["decision"]["now_ns"] >= 100_000_000
    True
    """
    own, length = task_set(set)._native, positive("horizon", horizon)
    if at is None:
        return Explanation(native.explain_run(own, seed, length, inner(model), shield))
    return Explanation(native.explain(own, nanoseconds("at", at), seed, length, inner(model), shield))


class Training:
    """A finished training: its model, its phases and the verdict on unseen jobs."""

    def __init__(self, inner: native.Training) -> None:
        self._inner = inner
        self._json: dict[str, Any] = json.loads(inner.json())

    @property
    def model(self) -> Model:
        """The best model."""
        return Model(self._inner.model())

    @property
    def phases(self) -> list[dict[str, Any]]:
        """Figures of the phases: stage, method, phase, updates, loss, norm, score, best, met, critical, skipped."""
        return list(self._json["phases"])

    @property
    def verdict(self) -> dict[str, Any]:
        """Figures of the verdict: the model with and without its shield beside all other schedulers."""
        return dict(self._json["verdict"])

    @property
    def sentence(self) -> str:
        """The verdict in words."""
        return str(self._json["sentence"])

    def to_dict(self) -> dict[str, Any]:
        """Returns what `temponet train --json` prints, except for the file and the time taken."""
        return dict(self._json)

    def svg(self, path: PathLike | None = None) -> str:
        """Draws the training, and writes the picture if there is a path."""
        picture = self._inner.svg()
        if path is not None:
            write_file(path, picture)
        return picture

    def report(self, path: PathLike) -> None:
        """Writes the curves as a self-contained page."""
        write_file(path, self._inner.html())

    def __repr__(self) -> str:
        return f"<Training: {len(self.phases)} phases. {self.sentence}>"

    def _repr_html_(self) -> str:
        return self.svg() + f"<p>{_html.escape(self.sentence)}</p>"


RecipeLike = Union[Mapping[str, Any], PathLike]
"""A recipe: a dict with the keys of a recipe file (docs/training.md), which may leave keys out, or the name of a file."""


def recipe(given: RecipeLike | None = None) -> dict[str, Any]:
    """Returns a recipe with all its settings; the default one without an argument.

    >>> recipe({"seed": 7})["seed"]
    7
    """
    if given is None:
        text = native.recipe(None, "json", "")
    elif isinstance(given, Mapping):
        text = native.recipe(_recipe_text(given), "json", "")
    else:
        try:
            content = Path(given).read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"cannot be read: {error}", str(given)) from None
        text = native.recipe(content, "toml", str(given))
    made: dict[str, Any] = json.loads(text)
    return made


def _recipe_text(given: Mapping[str, Any]) -> str:
    try:
        return json.dumps(given, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InputError(f"the recipe cannot be written as JSON: {error}") from None


def train(
    set: Set | None = None,
    recipe: RecipeLike | None = None,
    *,
    seed: int | None = None,
    begin_with: PathLike | None = None,
    device: str = "auto",
    trials: int = 40,
    progress: Callable[[dict[str, Any]], object] | None = None,
) -> Training:
    """Trains a model for a set, or for random sets as the recipe draws them, and judges it on unseen jobs, as `temponet train`.

    Without a recipe, the training goes on from the built-in model. `progress` is called with a dict for each event: `begun`,
    `update` (every eighth), `phase`. An exception in it, or Ctrl-C, ends the training.
    """
    given = globals()["recipe"](recipe) if recipe is not None else None
    if not 2 <= trials <= 100_000:
        raise InputError(f"trials = {trials} is not from 2 to 100000")
    if device not in ("auto", "cpu", "cuda"):
        raise InputError(f"device = {device!r} is none of 'auto', 'cpu', 'cuda'")
    own = None if set is None else task_set(set)._native
    begin = None if begin_with is None else str(begin_with)
    text = None if given is None else json.dumps(given)
    return Training(native.train(own, text, seed, begin, device, trials, progress))




__all__ = [
    "Analysis",
    "Arena",
    "CurvePoint",
    "Explanation",
    "ScenarioInfo",
    "Sweep",
    "Training",
    "analyze",
    "arena",
    "compare",
    "explain",
    "optimum",
    "recipe",
    "runs",
    "scenarios",
    "simulate",
    "sweep",
    "train",
]
