"""Native half of the package. The typed layer over it is what programs use; only `Job` and `View` are public."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

__version__: str
LONGEST: int

class TaskSet:
    @staticmethod
    def load(name: str) -> TaskSet: ...
    @staticmethod
    def parse(text: str, kind: str, origin: str) -> TaskSet: ...
    def write(self, kind: str) -> str: ...
    def replaced(
        self,
        *,
        name: str | None = None,
        cores: int | None = None,
        on_miss: str | None = None,
        switch_cost: int | None = None,
        migration_cost: int | None = None,
        decision_cost: int | None = None,
    ) -> TaskSet: ...
    @property
    def name(self) -> str: ...
    @property
    def description(self) -> str: ...
    @property
    def cores(self) -> int: ...
    @property
    def on_miss(self) -> str: ...
    @property
    def task_names(self) -> list[str]: ...
    @property
    def utilization(self) -> float: ...
    @property
    def mean_utilization(self) -> float: ...
    @property
    def hyperperiod(self) -> int | None: ...
    @property
    def is_random(self) -> bool: ...
    @property
    def notes(self) -> list[str]: ...
    @property
    def warnings(self) -> list[str]: ...
    def default_horizon(self) -> int: ...

class Model:
    @staticmethod
    def load(name: str) -> Model: ...
    @staticmethod
    def from_bytes(bytes: bytes) -> Model: ...
    def to_bytes(self) -> bytes: ...
    def with_tensors(
        self, tensors: list[tuple[str, list[float]]], provenance: str, never_idles: bool | None
    ) -> Model: ...
    def shapes(self) -> list[tuple[str, int, int]]: ...
    def tensor(self, name: str) -> list[float]: ...
    def architecture(self) -> str: ...
    @property
    def provenance(self) -> str | None: ...
    @property
    def is_untrained(self) -> bool: ...
    @property
    def checksum(self) -> str: ...

class Table:
    def __len__(self) -> int: ...
    @property
    def names(self) -> list[str]: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def to_numpy(self) -> dict[str, NDArray[Any]]: ...

class Run:
    def json(self) -> str: ...
    def jobs(self) -> Table: ...
    def slices(self) -> Table: ...
    def gantt(self, until: int | None = None) -> str: ...
    def perfetto(self) -> str: ...

class Comparison:
    def json(self) -> str: ...
    def table(self) -> Table: ...
    def html(self) -> str: ...
    def by_run(self) -> list[tuple[str, list[float]]]: ...
    def gantt(self, scheduler: str, until: int | None = None) -> str: ...
    def jobs(self, scheduler: str) -> Table: ...

class Sweep:
    def json(self) -> str: ...
    def refused(self) -> list[tuple[int, str, str]]: ...
    def rows(self) -> Table: ...
    def svg(self) -> str: ...
    def html(self) -> str: ...
    def packed(self) -> list[tuple[int, int, int, int, int]]: ...
    def with_rows(self, rows: list[tuple[int, int, int, int, int]]) -> Sweep: ...

class Arena:
    @staticmethod
    def part(scenario: str, scheduler: Any, model: Model | None, quick: bool, planner_sets: int | None) -> str: ...
    @staticmethod
    def of_parts(parts: list[tuple[str, list[str]]], quick: bool) -> Arena: ...
    def json(self) -> str: ...
    def table(self) -> Table: ...
    def html(self) -> str: ...

class Explanation:
    @property
    def json(self) -> str: ...
    @property
    def html(self) -> str: ...
    @property
    def text(self) -> str: ...

class Training:
    def model(self) -> Model: ...
    def json(self) -> str: ...
    def svg(self) -> str: ...
    def html(self) -> str: ...

class Job:
    """A job as far as a scheduler may know it. Times are in nanoseconds."""

    @property
    def id(self) -> int:
        """Number that names the job while it is active."""
    @property
    def task(self) -> str:
        """Name of the task."""
    @property
    def number(self) -> int:
        """Number of the job within its task, from 0."""
    @property
    def criticality(self) -> int:
        """Criticality level; 0 is not critical."""
    @property
    def value(self) -> float:
        """Value of meeting the deadline."""
    @property
    def release(self) -> int:
        """Release time."""
    @property
    def deadline(self) -> int:
        """Absolute deadline."""
    @property
    def wcet(self) -> int:
        """Worst-case execution time."""
    @property
    def bcet(self) -> int:
        """Best-case execution time."""
    @property
    def estimate(self) -> tuple[int, int] | None:
        """Estimate of the execution time: median and ninth decile; `None` if the job carries no estimate."""
    @property
    def executed(self) -> int:
        """Work done so far."""
    @property
    def remaining(self) -> int:
        """Remaining work at the wcet, overhead included."""
    @property
    def slack(self) -> int:
        """Time to the deadline minus the remaining work."""
    @property
    def core(self) -> int | None:
        """Core that the job is on; `None` if it is not running."""

class View:
    """The state at a decision point. Times are in nanoseconds."""

    @property
    def now(self) -> int:
        """Current time."""
    @property
    def cores(self) -> int:
        """Number of cores."""
    @property
    def jobs(self) -> list[Job]:
        """Ready jobs, running ones included, in the order of ties."""

class Environments:
    def __init__(self, settings: str, set: TaskSet | None, number: int) -> None: ...
    @property
    def features(self) -> int: ...
    @property
    def choices(self) -> int: ...
    @property
    def cores(self) -> int: ...
    def now(self, place: int) -> int: ...
    def reset(
        self,
        seeds: NDArray[np.int64],
        chosen: NDArray[np.bool_] | None,
        observations: NDArray[np.float32],
        masks: NDArray[np.int8],
        figures: NDArray[np.int64],
    ) -> None: ...
    def step(
        self,
        actions: NDArray[np.int64],
        autoreset: int,
        observations: NDArray[np.float32],
        masks: NDArray[np.int8],
        rewards: NDArray[np.float64],
        terminated: NDArray[np.bool_],
        truncated: NDArray[np.bool_],
        figures: NDArray[np.int64],
        finals: NDArray[np.float32],
        final_masks: NDArray[np.int8],
    ) -> None: ...

def time(written: str) -> int: ...
def generate(
    tasks: int | None, utilization: float, cores: int, seed: int, shape: str, variety: str | None
) -> TaskSet: ...
def sets() -> list[tuple[str, str, str]]: ...
def schema() -> str: ...
def schedulers() -> list[tuple[str, str, str, list[tuple[str, str, str]]]]: ...
def simulate(
    set: TaskSet,
    scheduler: Any,
    seed: int,
    horizon: int | None,
    model: Model | None,
    budget: int | None,
    latency: bool,
    record_until: int | None,
) -> Run: ...
def compare(
    set: TaskSet,
    schedulers: Sequence[Any],
    seed: int,
    horizon: int | None,
    runs: int | None,
    rank_by: list[str],
    model: Model | None,
    budget: int | None,
    latency: bool,
    charge_latency: bool,
    oracle: float | None,
) -> Comparison: ...
def runs(
    set: TaskSet, schedulers: Sequence[Any], seeds: list[int], horizon: int | None, model: Model | None
) -> Table: ...
def analyze(
    set: TaskSet,
    schedulers: Sequence[Any] | None,
    seed: int,
    horizon: int | None,
    model: Model | None,
    what_if: bool,
) -> str: ...
def optimum(set: TaskSet, seed: int, horizon: int | None, runs: int, seconds: float) -> str | None: ...
def sweep(
    ranges: str, shape: str, schedulers: Sequence[Any], model: Model | None, cells: tuple[int, int] | None
) -> Sweep: ...
def arena(
    scenarios: list[str],
    version: int | None,
    schedulers: Sequence[Any],
    model: Model | None,
    quick: bool,
    planner_sets: int | None,
) -> Arena: ...
def scenarios(version: int | None) -> str: ...
def explain(
    set: TaskSet, at: int, seed: int, horizon: int | None, model: Model | None, shield: bool
) -> Explanation: ...
def explain_run(set: TaskSet, seed: int, horizon: int | None, model: Model | None, shield: bool) -> Explanation: ...
def recipe(text: str | None, kind: str, origin: str) -> str: ...
def train(
    set: TaskSet | None,
    recipe: str | None,
    seed: int | None,
    begin_with: str | None,
    device: str,
    judged: int,
    callback: Callable[[dict[str, Any]], object] | None,
) -> Training: ...
def observations(
    model: Model, set: TaskSet, scheduler: str, seed: int, horizon: int
) -> list[tuple[list[int], list[int], list[float], list[int]]]: ...
