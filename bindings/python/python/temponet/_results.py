"""Results of runs and comparisons."""

from __future__ import annotations

import html
import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from . import _temponet as native
from ._tables import Frame, Table
from ._task_set import PathLike, TaskSet, write_file
from ._time import Time, optional
from .errors import InputError

if TYPE_CHECKING:
    import numpy as np

# A picture in a notebook brings its own light and dark colors; only its width has to follow the page.
_FRAME = '<div style="overflow-x:auto">{}</div>'


class TaskFigures(NamedTuple):
    """Figures of one task. Times are in nanoseconds."""

    task: str
    released: int
    met: int
    response_mean_ns: float | None
    response_max_ns: int | None
    mk_violated: int
    blocked_mean_ns: float | None = None
    blocked_max_ns: int | None = None


class Figures:
    """Figures of one scheduler, summed over the runs. The names are those of `--json` on the command line."""

    scheduler: str
    """Name with options."""
    released: int
    """Jobs that count: those with a deadline within the horizon."""
    met: int
    """Jobs that met their deadline."""
    missed: int
    """Jobs that did not."""
    compliance: float | None
    """Share of jobs in time, 0 to 1; `None` if no job counts."""
    compliance_ci95: float | None
    """Distance to the farther end of the 95% confidence interval; `None` for one run."""
    pitmd: float | None
    """Share of critical jobs in time; `None` if no job is critical."""
    of_optimum: float | None
    """Share of the clairvoyant optimum; a lower bound if the optimum is not exact, `None` without one."""
    run_success: float
    """Share of runs without a miss."""
    goal: list[float | None]
    """Measures of the goal, in its order."""
    worst_task: float
    """Smallest share of jobs in time over the tasks."""
    value: float
    """Value of the jobs in time."""
    value_possible: float
    """Value of all jobs."""
    art_completed_ns: float | None
    """Mean response time of completed jobs."""
    art_all_ns: float | None
    """Mean response time of all jobs."""
    preemptions: int
    migrations: int
    decisions: int
    idle_ns: int
    shed: int
    """Jobs that left without ever having run; they are among the missed ones."""
    wasted_ns: int
    """Work done for jobs that missed their deadlines."""
    energy: float
    decision_latency_ns: dict[str, int | None] | None
    """Quantiles of the decision latency, if it was measured."""
    tasks: list[TaskFigures]

    def __init__(self, figures: dict[str, Any]) -> None:
        self._json = figures
        for name in ("of_optimum", "decision_latency_ns"):
            setattr(self, name, figures.get(name))
        for name, value in figures.items():
            if name != "tasks":
                setattr(self, name, value)
        self.tasks = [
            TaskFigures(
                row["task"],
                row["released"],
                row["met"],
                row["response_mean_ns"],
                row["response_max_ns"],
                row.get("mk_violated", 0),
                row.get("blocked_mean_ns"),
                row.get("blocked_max_ns"),
            )
            for row in figures["tasks"]
        ]

    def to_dict(self) -> dict[str, Any]:
        """Returns the figures as `--json` prints them."""
        return dict(self._json)

    def __repr__(self) -> str:
        share = "no job counts" if self.compliance is None else f"{100 * self.compliance:.2f}%"
        return f"<{type(self).__name__} {self.scheduler!r}: {self.met} of {self.released} jobs in time, {share}>"


class Run(Figures, Frame):
    """One run of one scheduler. As a table, it is its jobs.

    >>> import temponet
    >>> run = temponet.simulate("standard-125", "edf")
    >>> run
    <Run 'edf': 6118 of 9982 jobs in time, 61.29%>
    """

    task_set: str
    cores: int
    horizon_ns: int
    on_miss: str
    seed: int

    def __init__(self, inner: native.Run) -> None:
        super().__init__(json.loads(inner.json()))
        self._inner = inner

    def _table(self) -> native.Table:
        return self._inner.jobs()

    @property
    def jobs(self) -> Table:
        """One row for each job that counts, in the order in which jobs left."""
        return Table(self._inner.jobs())

    @property
    def slices(self) -> Table:
        """One row for each stretch of time in which a job ran on a core without interruption."""
        return Table(self._inner.slices())

    def gantt(self, path: PathLike | None = None, *, until: Time | None = None) -> str:
        """Draws the schedule up to a time, by default about 40 jobs, as an SVG picture, and writes it if there is a path."""
        picture = self._inner.gantt(optional("until", until))
        if path is not None:
            write_file(path, picture)
        return picture

    def perfetto(self, path: PathLike | None = None) -> str:
        """Returns the trace for ui.perfetto.dev, and writes it if there is a path. The run is simulated once more."""
        trace = self._inner.perfetto()
        if path is not None:
            write_file(path, trace)
        return trace

    def _repr_html_(self) -> str:
        return _FRAME.format(self.gantt()) + f"<p>{html.escape(repr(self)[1:-1])}</p>"


class Clairvoyant(NamedTuple):
    """The clairvoyant optimum, summed over the runs: what a scheduler that knows the future could meet."""

    released: int
    """Jobs that count."""
    lower: int
    """Jobs in time in the best schedule found."""
    upper: int
    """No schedule meets more."""
    exact: bool
    """Whether both are equal."""
    value: float | None
    """Greatest value, if it is exact."""
    value_lower: float | None
    value_upper: float | None
    critical_lower: int | None
    """Critical jobs in time in the best schedule for them."""
    critical_upper: int | None

    @property
    def share(self) -> float:
        """Upper bound as a share of the jobs."""
        return self.upper / self.released

    @staticmethod
    def of(found: dict[str, Any]) -> Clairvoyant:
        """Reads the optimum of a report."""
        return Clairvoyant(**{name: found[name] for name in Clairvoyant._fields})


class Comparison(Frame):
    """Schedulers on the same jobs, the best first. As a table, it has one row for each scheduler.

    >>> import temponet
    >>> comparison = temponet.compare("standard-125", ["edf", "mh-edf"])
    >>> comparison.best.scheduler, round(comparison["edf"].compliance, 4)
    ('mh-edf', 0.6129)
    """

    def __init__(self, inner: native.Comparison) -> None:
        self._inner = inner
        self._json: dict[str, Any] = json.loads(inner.json())
        self.rows = [Figures(row) for row in self._json["results"]]
        """Figures of the schedulers, the best first."""
        found = self._json.get("clairvoyant")
        self.clairvoyant = None if found is None else Clairvoyant.of(found)
        """The optimum; `None` if it was not asked for."""

    @property
    def verdict(self) -> str:
        """The result in words."""
        return str(self._json["verdict"])

    @property
    def advice(self) -> dict[str, Any]:
        """What is best, who decides in it, what cannot be told from it, and the evidence; the verdict is its sentences.

        Example:
            >>> import temponet
            >>> advice = temponet.compare("standard-125", ["edf", "mh-edf"]).advice
            >>> advice["best"], advice["evidence"]["runs"]
            ('mh-edf', 1)
        """
        return dict(self._json["advice"])

    @property
    def goal(self) -> list[str]:
        """Measures that rank the schedulers, the most important one first."""
        return list(self._json["goal"])

    @property
    def shield(self) -> str | None:
        """What the shield does on the set, in one sentence; `None` if no scheduler is behind it."""
        return self._json.get("shield")

    @property
    def skipped(self) -> dict[str, str]:
        """Schedulers that do not apply to the set, with the reasons."""
        return {row["scheduler"]: row["reason"] for row in self._json["skipped"]}

    @property
    def best(self) -> Figures:
        """Figures of the best scheduler."""
        if not self.rows:
            raise InputError("no scheduler applies to the set")
        return self.rows[0]

    @property
    def by_run(self) -> dict[str, list[float]]:
        """Share of deadlines met, by scheduler, run by run."""
        return dict(self._inner.by_run())

    def __getitem__(self, scheduler: str) -> Figures:
        for row in self.rows:
            if row.scheduler == scheduler:
                return row
        raise KeyError(scheduler)

    def __iter__(self) -> Iterator[Figures]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def _table(self) -> native.Table:
        return self._inner.table()

    def jobs(self, scheduler: str) -> Table:
        """Jobs of the beginning of a scheduler's first run."""
        return Table(self._inner.jobs(scheduler))

    def gantt(self, scheduler: str, path: PathLike | None = None, *, until: Time | None = None) -> str:
        """Draws the beginning of the schedule of a scheduler's first run as an SVG picture."""
        picture = self._inner.gantt(scheduler, optional("until", until))
        if path is not None:
            write_file(path, picture)
        return picture

    def report(self, path: PathLike) -> None:
        """Writes the self-contained page of `temponet compare --report`."""
        write_file(path, self._inner.html())

    def to_dict(self) -> dict[str, Any]:
        """Returns the report as `temponet compare --json` prints it."""
        return dict(self._json)

    def __repr__(self) -> str:
        return f"<Comparison of {len(self)} schedulers on {self._json['task_set']!r}: {self.verdict}>"

    def _repr_html_(self) -> str:
        cells = []
        if self.clairvoyant is not None:
            bound = f"{'' if self.clairvoyant.exact else '≤'}{100 * self.clairvoyant.share:.2f}%"
            cells.append(f"<tr><td><i>clairvoyant</i></td><td>{bound}</td><td></td><td></td></tr>")
        for row in self.rows:
            share = "–" if row.compliance is None else f"{100 * row.compliance:.2f}%"
            critical = "–" if row.pitmd is None else f"{100 * row.pitmd:.2f}%"
            cells.append(f"<tr><td>{html.escape(row.scheduler)}</td><td>{share}</td><td>{critical}</td><td>{row.missed}</td></tr>")
        head = "<tr><th>scheduler</th><th>met</th><th>critical</th><th>missed</th></tr>"
        table = f"<table>{head}{''.join(cells)}</table><p>{html.escape(self.verdict)}</p>"
        return table + (_FRAME.format(self.gantt(self.rows[0].scheduler)) if self.rows else "")


__all__ = ["Clairvoyant", "Comparison", "Figures", "Run", "TaskFigures", "TaskSet"]
