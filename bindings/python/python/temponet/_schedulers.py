"""Schedulers: those of the catalog by name, and those written in Python."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Union

from . import _temponet as native
from ._temponet import Job, View
from .errors import InputError


class SchedulerOption(NamedTuple):
    """An option of a scheduler, written after its name: `llf:quantum=500us`."""

    name: str
    default: str
    meaning: str


class SchedulerInfo(NamedTuple):
    """A scheduler of the catalog."""

    name: str
    summary: str
    purpose: str
    options: list[SchedulerOption]


def schedulers() -> list[SchedulerInfo]:
    """Returns all schedulers, as `temponet schedulers` lists them.

    >>> {"edf", "temponet", "llf"} <= {scheduler.name for scheduler in schedulers()}
    True
    """
    return [
        SchedulerInfo(name, summary, purpose, [SchedulerOption(*option) for option in options])
        for name, summary, purpose, options in native.schedulers()
    ]


class Scheduler(ABC):
    """A scheduler written in Python, for `simulate` and `compare`.

    It is slow: each decision makes Python objects of the ready jobs, about a hundred times the time of a scheduler in Rust.
    Every run decides with a deep copy of the object. `start(tasks, cores)`, if there is one, is called before a run, with the
    tasks as dicts; what it returns, if not `None`, is the reason why the scheduler does not apply.

    >>> import temponet
    >>> class Shortest(temponet.Scheduler):
    ...     name = "shortest"
    ...     def decide(self, view):
    ...         return sorted(view.jobs, key=lambda job: job.remaining)
    >>> mine = temponet.simulate("standard-125", Shortest())
    >>> mine.met == temponet.simulate("standard-125", "srpt").met
    True
    """

    name: str = ""
    """Name in results; by default that of the class."""

    @abstractmethod
    def decide(self, view: View) -> Iterable[Job] | Mapping[int, Job]:
        """Decides which jobs run.

        Returns jobs, the best first: as many as there are cores run, each stays on its core if it has one. Or returns a dict
        from core to job, which places them.
        """


SchedulerLike = Union[str, Scheduler]
"""A scheduler: a name with options, such as "llf:quantum=500us", or an object of a class of your own."""


def named(scheduler: SchedulerLike, shield: bool = True) -> Any:
    """Returns what the native functions take."""
    if isinstance(scheduler, str):
        return "temponet-unshielded" if scheduler == "temponet" and not shield else scheduler
    if not hasattr(scheduler, "decide"):
        raise InputError(f"scheduler {scheduler!r} is neither a name nor an object with a method decide")
    return (getattr(scheduler, "name", "") or type(scheduler).__name__, scheduler)


def all_named(given: str | Sequence[SchedulerLike], shield: bool = True) -> list[Any]:
    """Returns what the native functions take for a list of schedulers, or for names separated by commas."""
    schedulers = [name for name in given.split(",") if name.strip()] if isinstance(given, str) else list(given)
    return [named(name.strip() if isinstance(name, str) else name, shield) for name in schedulers]
