"""The network of the learned scheduler in PyTorch, and the way back.

`Encoder` has the shape of a model and the names of its tensors, so a network trained in PyTorch, in whatever way, becomes a model
of the learned scheduler with `export_torch`. `observations` gives what the network sees in the runs of a scheduler, with the jobs
that the scheduler chose.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from . import _temponet as native
from ._model import Model, ModelLike
from ._task_set import PathLike, Set, task_set
from ._time import Time, nanoseconds
from .errors import InputError


class _Attention(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value, self.output = (nn.Linear(width, width) for _ in range(4))

    def forward(self, x: Tensor, bias: Tensor) -> Tensor:
        batch, rows, width = x.shape

        def split(y: Tensor) -> Tensor:
            return y.view(batch, rows, self.heads, width // self.heads).transpose(1, 2)

        query, key, value = split(self.query(x)), split(self.key(x)), split(self.value(x))
        logits = query @ key.transpose(2, 3) / math.sqrt(width // self.heads) + bias[:, None, None, :]
        mixed = torch.softmax(logits, dim=-1) @ value
        mixed = self.output(mixed.transpose(1, 2).reshape(batch, rows, width))
        return mixed  # type: ignore[no-any-return]


class _FeedForward(nn.Module):
    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(width, hidden), nn.Linear(hidden, width)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.down(torch.relu(self.up(x)))
        return y


class _Layer(nn.Module):
    def __init__(self, width: int, heads: int, hidden: int) -> None:
        super().__init__()
        self.attention = _Attention(width, heads)
        self.attention_norm = nn.LayerNorm(width)
        self.feed_forward = _FeedForward(width, hidden)
        self.feed_forward_norm = nn.LayerNorm(width)

    def forward(self, x: Tensor, bias: Tensor) -> Tensor:
        x = self.attention_norm(x + self.attention(x, bias))
        y: Tensor = self.feed_forward_norm(x + self.feed_forward(x))
        return y


class Encoder(nn.Module):
    """The network of a model: `Encoder(Model.load("random:1"))` begins with its weights.

    The input is a batch of decisions, as `batch` makes it. The output has one value per row; row 0 is that of idling.
    """

    def __init__(self, like: ModelLike = "random:1") -> None:
        super().__init__()
        model = like if isinstance(like, Model) else Model.load(like)
        shape = model.architecture
        for name in ("real", "slots", "actor"):
            if shape.get(name) is not None:
                raise InputError(f"the model has {name!r} in its architecture, which the network in PyTorch does not have")
        if shape.get("speeds"):
            raise InputError("the model chooses speeds, which the network in PyTorch does not")
        width = shape["width"]
        self.job_features = [feature["name"] for feature in shape["job"]]
        self.idle_features = [feature["name"] for feature in shape["idle"]]

        def tables(features: list[dict[str, Any]]) -> nn.ParameterDict:
            return nn.ParameterDict({feature["name"]: torch.zeros(feature["size"], width) for feature in features})

        self.embed = nn.ModuleDict({"job": tables(shape["job"]), "idle": tables(shape["idle"])})
        self.layers = nn.ModuleList(
            _Layer(width, shape["heads"], shape["feed_forward"]) for _ in range(shape["layers"])
        )
        self.head = nn.ModuleDict({"job": nn.Linear(width, 1), "idle": nn.Linear(width, 1)})
        own = self.state_dict()
        values = {name: torch.from_numpy(tensor.copy()).view_as(own[name]) for name, tensor in model.tensors().items()}
        self.load_state_dict(values)

    def forward(self, idle: Tensor, jobs: Tensor, bias: Tensor) -> Tensor:
        tables = self.embed["job"], self.embed["idle"]
        job_tables = [tables[0].get_parameter(name) for name in self.job_features]
        idle_tables = [tables[1].get_parameter(name) for name in self.idle_features]
        first = sum(table[idle[:, place]] for place, table in enumerate(idle_tables))
        rows = sum(table[jobs[:, :, place]] for place, table in enumerate(job_tables))
        assert isinstance(first, Tensor) and isinstance(rows, Tensor)
        x = torch.cat([first[:, None, :], rows], dim=1)
        for layer in self.layers:
            x = layer(x, bias)
        return torch.cat([self.head["idle"](x[:, :1]), self.head["job"](x[:, 1:])], dim=1).squeeze(-1)


@dataclass
class Decision:
    """What the network sees at a choice, and what a scheduler chose."""

    idle: list[int]
    """Token of the idle row."""
    jobs: np.ndarray[Any, Any]
    """Tokens of the job rows, `[rows, features]`. Jobs that the network cannot tell apart share a row."""
    bias: list[float]
    """Attention bias of every row: the logarithm of the number of jobs that it stands for."""
    chosen: list[int]
    """Rows of the jobs that the scheduler ran, counted from 1."""


def observations(
    model: ModelLike, set: Set, scheduler: str, *, seed: int = 1, horizon: Time | None = None
) -> list[Decision]:
    """Returns the choices of a scheduler's run, decision points with more ready jobs than cores, as a model's network sees them."""
    own = model if isinstance(model, Model) else Model.load(model)
    chosen = task_set(set)
    length = chosen.default_horizon if horizon is None else nanoseconds("horizon", horizon)
    width = len(own.architecture["job"])
    seen = native.observations(own._native, chosen._native, scheduler, seed, length)
    return [Decision(idle, np.array(jobs, np.int64).reshape(-1, width), bias, rows) for idle, jobs, bias, rows in seen]


def batch(decisions: Sequence[Decision]) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Returns decisions as tensors: tokens of the idle rows, tokens of the job rows, attention biases, and the wanted rows as shares that sum to one.

    Decisions with fewer rows are padded; the padding has a bias of minus infinity, so nothing attends to it.
    """
    most = max(len(decision.jobs) for decision in decisions)
    width = decisions[0].jobs.shape[1]
    jobs = np.zeros((len(decisions), most, width), np.int64)
    bias = np.full((len(decisions), most + 1), -np.inf, np.float32)
    wanted = np.zeros((len(decisions), most + 1), np.float32)
    for place, decision in enumerate(decisions):
        jobs[place, : len(decision.jobs)] = decision.jobs
        bias[place, : len(decision.bias)] = decision.bias
        for row in decision.chosen:
            wanted[place, row] += 1.0 / len(decision.chosen)
    idle = np.array([decision.idle for decision in decisions], np.int64)
    return torch.from_numpy(idle), torch.from_numpy(jobs), torch.from_numpy(bias), torch.from_numpy(wanted)


def export_torch(
    network: nn.Module,
    path: PathLike | None = None,
    *,
    like: ModelLike = "random:1",
    provenance: str = "trained in PyTorch",
    never_idles: bool = True,
) -> Model:
    """Makes a model of a network with the tensors of `Encoder(like)`, and writes it if there is a path.

    `like` says how jobs become tokens. With `never_idles` a core is never left idle while jobs wait, which a network that did
    not learn the value of idling needs.
    """
    model = like if isinstance(like, Model) else Model.load(like)
    values = {name: tensor.detach().cpu().to(torch.float32).numpy() for name, tensor in network.state_dict().items()}
    missing = [name for name in model.tensors() if name not in values]
    if missing:
        raise InputError(f"the network has no tensor {missing[0]!r}")
    made = model.with_tensors(values, provenance=provenance, never_idles=never_idles)
    if path is not None:
        made.save(path)
    return made


__all__ = ["Decision", "Encoder", "batch", "export_torch", "observations"]
