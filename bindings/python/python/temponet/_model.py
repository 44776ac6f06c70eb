"""Models of the learned scheduler."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any, Union

from . import _temponet as native
from ._task_set import PathLike, write_file

if TYPE_CHECKING:
    import numpy as np


class Model:
    """Weights of the learned scheduler, with what they see. A model does not change.

    >>> Model.built_in().is_untrained
    False
    """

    __slots__ = ("_native",)
    _native: native.Model

    def __init__(self, inner: native.Model) -> None:
        self._native = inner

    @classmethod
    def load(cls, name: PathLike) -> Model:
        """Loads a model: a file, "built-in", or untrained weights such as "random:1"."""
        return cls(native.Model.load(os.fspath(name)))

    @classmethod
    def built_in(cls) -> Model:
        """Returns the model that comes with the package."""
        return cls(native.Model.load("built-in"))

    @classmethod
    def from_bytes(cls, content: bytes) -> Model:
        """Reads the content of a model file."""
        return cls(native.Model.from_bytes(content))

    def to_bytes(self) -> bytes:
        """Returns the content of a model file."""
        return self._native.to_bytes()

    def save(self, path: PathLike) -> None:
        """Writes a model file, which `temponet compare --model` takes."""
        write_file(path, self.to_bytes())

    @property
    def architecture(self) -> dict[str, Any]:
        """Shape of the network: width, layers, heads, vocabularies of the tokens."""
        made: dict[str, Any] = json.loads(self._native.architecture())
        return made

    @property
    def provenance(self) -> str | None:
        """Where the weights come from."""
        return self._native.provenance

    @property
    def is_untrained(self) -> bool:
        """Whether the weights are random."""
        return self._native.is_untrained

    @property
    def checksum(self) -> str:
        """Checksum of the content."""
        return self._native.checksum

    def tensors(self) -> dict[str, np.ndarray[Any, Any]]:
        """Returns the tensors by name, as float32 arrays of rows and columns."""
        import numpy as np

        shapes = self._native.shapes()
        return {name: np.array(self._native.tensor(name), np.float32).reshape(rows, columns) for name, rows, columns in shapes}

    def with_tensors(self, tensors: dict[str, Any], *, provenance: str, never_idles: bool | None = None) -> Model:
        """Returns the model with other values of some tensors, and with another rule on idling if it is given."""
        import numpy as np

        flat = [(name, np.asarray(values, np.float32).ravel().tolist()) for name, values in tensors.items()]
        return Model(self._native.with_tensors(flat, provenance, never_idles))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Model) and self.to_bytes() == other.to_bytes()

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<Model: {self.provenance or 'unknown provenance'}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return Model.from_bytes, (self.to_bytes(),)


ModelLike = Union[Model, PathLike]
"""A model: a `Model`, or what `Model.load` takes."""


def inner(model: ModelLike | None) -> native.Model | None:
    """Returns the native model; `None` stands for the built-in one."""
    if model is None or isinstance(model, Model):
        return None if model is None else model._native
    return Model.load(model)._native
