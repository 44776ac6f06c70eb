"""Task sets: read from files and dicts, drawn at random, edited and saved."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Union

from . import _temponet as native
from ._time import Time, nanoseconds, optional
from .errors import FileError, InputError

PathLike = Union[str, "os.PathLike[str]"]


class BuiltIn(NamedTuple):
    """A built-in task set."""

    name: str
    description: str
    source: str


def write_file(path: PathLike, content: str | bytes) -> None:
    """Writes a file under a temporary name and renames it, so that it is never half-written."""
    target = Path(path)
    data = content.encode() if isinstance(content, str) else content
    handle, name = tempfile.mkstemp(prefix=".temponet-", suffix=".partial", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(name, 0o666 & ~umask)
        os.replace(name, target)
    except BaseException:
        os.unlink(name)
        raise


def sets() -> list[BuiltIn]:
    """Returns the built-in task sets.

    >>> [built_in.name for built_in in sets()][:2]
    ['robot', 'standard-112']
    """
    return [BuiltIn(*row) for row in native.sets()]


def schema() -> dict[str, Any]:
    """Returns the JSON schema of task-set files, and so of the dicts that `TaskSet.from_dict` takes.

    >>> schema()["properties"]["cores"]["maximum"]
    4096
    """
    made: dict[str, Any] = json.loads(native.schema())
    return made


class TaskSet:
    """Tasks and the machine that runs them. A set does not change; edits return a new one.

    >>> overload = TaskSet.load("standard-125")
    >>> len(overload), overload.cores, round(overload.utilization, 2)
    (3, 1, 1.25)
    """

    __slots__ = ("_native",)
    _native: native.TaskSet

    def __init__(self, tasks: Sequence[Mapping[str, Any]], *, name: str = "unnamed", cores: int = 1, **settings: Any) -> None:
        """Makes a set of tasks. Tasks and settings have the keys of a task-set file (docs/task-sets.md).

        >>> TaskSet([{"name": "control", "period": "10ms", "wcet": "4ms"}], cores=2)
        <TaskSet 'unnamed': 1 task on 2 cores, utilization 0.40>
        """
        made = TaskSet.from_dict({**settings, "cores": cores, "task": list(tasks)}, name=name)
        self._native = made._native

    @classmethod
    def _of(cls, inner: native.TaskSet) -> TaskSet:
        made = object.__new__(cls)
        made._native = inner
        return made

    @classmethod
    def load(cls, name: PathLike) -> TaskSet:
        """Reads a file (.toml, .json, .csv, rt-app's .json, SimSo's .xml), or a built-in set where no file has that name."""
        return cls._of(native.TaskSet.load(os.fspath(name)))

    @classmethod
    def parse(cls, text: str, format: str = "toml", *, origin: str = "<text>") -> TaskSet:
        """Reads the text of a file: `format` is "toml", "json", "csv" or "xml". Errors name it `origin`.

        >>> TaskSet.parse('task = [{ name = "a", period = "10ms", wcet = "1ms" }]').task_names
        ['a']
        """
        return cls._of(native.TaskSet.parse(text, format, origin))

    @classmethod
    def from_dict(cls, settings: Mapping[str, Any], *, name: str = "unnamed") -> TaskSet:
        """Makes a set of a dict with the keys of a task-set file.

        >>> TaskSet.from_dict({"cores": 2, "task": [{"name": "a", "period": "10ms", "wcet": "fast"}]})
        Traceback (most recent call last):
            ...
        temponet.errors.FileError: <dict>: wcet = "fast" is not a time: write a number, or a number with ns, us, ms or s, such as "2.5ms"
        """
        try:
            text = json.dumps(settings, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise InputError(f"the task set cannot be written as JSON: {error}") from None
        try:
            made = native.TaskSet.parse(text, "json", "<dict>")
        except FileError as error:
            # The dict has no lines; the message has the task and the value.
            raise FileError(error.message, error.file, None) from None
        return cls._of(made.replaced(name=settings.get("name", name)))

    @classmethod
    def generate(
        cls,
        tasks: int | None = None,
        *,
        utilization: float,
        cores: int = 1,
        seed: int = 1,
        variety: str | None = None,
        **shape: Any,
    ) -> TaskSet:
        """Draws a random set, the same as `temponet generate` with these options.

        `shape` has the options of that command (docs/generating.md): `method`, `periods`, `wcets`, `deadlines`, `bcet`,
        `estimates`, `critical`, `critical_factor`, `values`, `granularity`.

        >>> TaskSet.generate(8, utilization=1.8, bcet=0.3, seed=7)
        <TaskSet 'random-8x1-7': 8 tasks on 1 core, utilization 1.80>
        """
        return cls._of(native.generate(tasks, utilization, cores, seed, json.dumps(shape), variety))

    @property
    def name(self) -> str:
        """Name of the set: the stem of its file, or the name of the built-in set."""
        return self._native.name

    @property
    def description(self) -> str:
        """One sentence on the set; it may be empty."""
        return self._native.description

    @property
    def cores(self) -> int:
        """Number of cores."""
        return self._native.cores

    @property
    def on_miss(self) -> str:
        """Rule for a job that misses its deadline: "abort" or "continue"."""
        return self._native.on_miss

    @property
    def task_names(self) -> list[str]:
        """Names of the tasks, in the order of the file."""
        return self._native.task_names

    @property
    def utilization(self) -> float:
        """Total utilization at the wcet. A set with more than its number of cores is overloaded."""
        return self._native.utilization

    @property
    def mean_utilization(self) -> float:
        """Total utilization with mean execution times."""
        return self._native.mean_utilization

    @property
    def hyperperiod(self) -> int | None:
        """Hyperperiod in nanoseconds; `None` if it is too long or there is none."""
        return self._native.hyperperiod

    @property
    def is_random(self) -> bool:
        """Whether runs with different seeds differ."""
        return self._native.is_random

    @property
    def notes(self) -> list[str]:
        """What another tool's file states and the set does not represent."""
        return self._native.notes

    @property
    def warnings(self) -> list[str]:
        """Warnings about the file."""
        return self._native.warnings

    @property
    def default_horizon(self) -> int:
        """Length of a run if none is given, in nanoseconds."""
        return self._native.default_horizon()

    @property
    def tasks(self) -> list[dict[str, Any]]:
        """The tasks as dicts, with the keys of a task-set file.

        >>> TaskSet.load("standard-125").tasks[0]["wcet"]
        '18ms'
        """
        return list(self.to_dict()["task"])

    def to_dict(self) -> dict[str, Any]:
        """Returns the set as a dict with the keys of a task-set file.

        >>> same = TaskSet.from_dict(TaskSet.load("robot").to_dict(), name="robot")
        >>> same == TaskSet.load("robot")
        True
        """
        made: dict[str, Any] = json.loads(self._native.write("json"))
        return made

    def to_text(self, format: str = "toml") -> str:
        """Returns the set as the text of a file: "toml", "json" or "csv"."""
        return self._native.write(format)

    def save(self, path: PathLike) -> None:
        """Writes the set to a file, whose extension selects the format."""
        write_file(path, self._native.write(Path(path).suffix.lstrip(".").lower()))

    def replace(
        self,
        *,
        name: str | None = None,
        cores: int | None = None,
        on_miss: str | None = None,
        switch_cost: Time | None = None,
        migration_cost: Time | None = None,
        decision_cost: Time | None = None,
    ) -> TaskSet:
        """Returns the set on another machine, as the options of the same names do on the command line.

        >>> TaskSet.load("robot").replace(cores=4, switch_cost="10us").cores
        4
        """
        return TaskSet._of(
            self._native.replaced(
                name=name,
                cores=cores,
                on_miss=on_miss,
                switch_cost=optional("switch_cost", switch_cost),
                migration_cost=optional("migration_cost", migration_cost),
                decision_cost=optional("decision_cost", decision_cost),
            )
        )

    def with_task(self, **task: Any) -> TaskSet:
        """Returns the set with another task, or with the task of that name changed.

        >>> faster = TaskSet.load("standard-125").with_task(name="fast", wcet="10ms")
        >>> len(faster), faster.tasks[0]["wcet"]
        (3, '10ms')
        """
        whole = self.to_dict()
        known = {have["name"]: have for have in whole["task"]}
        if task.get("name") in known:
            known[task["name"]].update(task)
        else:
            whole["task"].append(task)
        return TaskSet.from_dict(whole, name=self.name)

    def without(self, *names: str) -> TaskSet:
        """Returns the set without some tasks."""
        unknown = [name for name in names if name not in self.task_names]
        if unknown:
            raise InputError(f"there is no task {unknown[0]!r}")
        whole = self.to_dict()
        whole["task"] = [task for task in whole["task"] if task["name"] not in names]
        return TaskSet.from_dict(whole, name=self.name)

    def __len__(self) -> int:
        return len(self._native.task_names)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.tasks)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TaskSet) and self._native == other._native

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        tasks, cores = len(self), self.cores
        plural = "s" if tasks != 1 else ""
        return f"<TaskSet {self.name!r}: {tasks} task{plural} on {cores} core{'s' if cores != 1 else ''}, utilization {self.utilization:.2f}>"

    def __reduce__(self) -> tuple[Any, ...]:
        # Lists of jobs are CSV only; everything else is in the JSON format.
        try:
            text, format = self._native.write("json"), "json"
        except InputError:
            text, format = self._native.write("csv"), "csv"
        return _unpickled, (text, format, self.name)


def _unpickled(text: str, format: str, name: str) -> TaskSet:
    return TaskSet._of(native.TaskSet.parse(text, format, name).replaced(name=name))


Set = Union[TaskSet, PathLike, Mapping[str, Any]]
"""A task set: a `TaskSet`, the name of a file or built-in set, or a dict with the keys of a file."""


def task_set(given: Set) -> TaskSet:
    """Makes a task set of what names or describes one."""
    if isinstance(given, TaskSet):
        return given
    if isinstance(given, Mapping):
        return TaskSet.from_dict(given)
    return TaskSet.load(given)


__all__ = ["BuiltIn", "PathLike", "Set", "TaskSet", "nanoseconds", "schema", "sets", "task_set", "write_file"]
