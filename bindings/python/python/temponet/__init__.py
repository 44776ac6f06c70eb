"""TempoNet: a deadline scheduler that learns, with a safety net, and the lab around it.

>>> import temponet
>>> temponet.compare("standard-125", ["edf", "temponet"]).best.scheduler
'temponet'

`TaskSet` reads, draws, edits and saves task sets. `simulate`, `compare`, `analyze`, `optimum`, `sweep`, `arena`, `explain` and
`train` are the commands of the same names, with the same figures. `Scheduler` is the base of schedulers written in Python.
`temponet.gym` has the Gymnasium environments, `temponet.sb3` the adapter for Stable-Baselines3, `temponet.torch` the network in
PyTorch, and `temponet.ray` spreads work over a Ray cluster.
"""

from __future__ import annotations

from ._lab import (
    Analysis,
    Arena,
    CurvePoint,
    Explanation,
    ScenarioInfo,
    Sweep,
    Training,
    analyze,
    arena,
    compare,
    explain,
    optimum,
    recipe,
    runs,
    scenarios,
    simulate,
    sweep,
    train,
)
from ._model import Model
from ._results import Clairvoyant, Comparison, Figures, Run, TaskFigures
from ._schedulers import Scheduler, SchedulerInfo, SchedulerOption, schedulers
from ._tables import Table
from ._task_set import BuiltIn, TaskSet, schema, sets
from ._temponet import Job, View, __version__
from .errors import FileError, InputError, TemponetError

__all__ = [
    "Analysis",
    "Arena",
    "BuiltIn",
    "Clairvoyant",
    "Comparison",
    "CurvePoint",
    "Explanation",
    "Figures",
    "FileError",
    "InputError",
    "Job",
    "Model",
    "Run",
    "ScenarioInfo",
    "Scheduler",
    "SchedulerInfo",
    "SchedulerOption",
    "Sweep",
    "Table",
    "TaskFigures",
    "TaskSet",
    "TemponetError",
    "Training",
    "View",
    "__version__",
    "analyze",
    "arena",
    "compare",
    "explain",
    "export_torch",
    "optimum",
    "recipe",
    "runs",
    "scenarios",
    "schedulers",
    "schema",
    "sets",
    "simulate",
    "sweep",
    "train",
]


def __getattr__(name: str) -> object:
    # PyTorch takes seconds to import, so its part is imported when it is asked for.
    if name == "export_torch":
        from .torch import export_torch

        return export_torch
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
