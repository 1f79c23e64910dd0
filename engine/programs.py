"""Programs as files: functions, values and signatures, without the code that made them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from .late import later

_save = later("laminar.export.objects", "save")
_load = later("laminar.export.exported", "load")


def save_model(
    obj: Any,
    filepath: str | os.PathLike[str],
    signatures: Mapping[str, Sequence[Any]] | None = None,
) -> None:
    """Write an object: its functions as graphs, its variables, and those of what it holds.

    It is `laminar.export.save`.

    Args:
        obj: has methods or attributes made by `function`: a model, a layer, an object of one's own.
        filepath: where to.
        signatures: by the path of a function ("f", "net.encode"), a spec for each argument. Others
            are written for their input_signature, or for the tensors that they have been called
            with.

    Raises:
        InvalidArgumentError: there is nothing to write, or a function cannot be traced.
        UnimplementedError: a graph uses what no file can hold.

    Examples:
        >>> class Doubler:
        ...     @laminar.function(input_signature=[engine.TensorSpec((None,), "float32")])
        ...     def __call__(self, x):
        ...         return 2 * x
        >>> engine.save_model(Doubler(), "twice.laminar")
        >>> engine.load_model("twice.laminar")(np.array([1.0, 2.0], "float32"))
        Tensor([2., 4.], shape=(2,), dtype=float32)
    """
    _save(obj, filepath, signatures)


def load_model(filepath: str | os.PathLike[str]) -> Any:
    """What `save_model` has written: its functions, parts and variables under the same names.

    Nothing in the file can run code. It is `laminar.export.load`.

    Args:
        filepath: the file.

    Raises:
        MissingFileError: there is no such file.
        DataLossError: it is damaged, hostile, or not an exported file.

    Examples:
        >>> class Scale:
        ...     def __init__(self):
        ...         self.factor = engine.Variable(3.0)
        ...
        ...     @laminar.function(input_signature=[engine.TensorSpec((), "float32")])
        ...     def apply(self, x):
        ...         return self.factor * x
        >>> engine.save_model(Scale(), "scale.laminar")
        >>> engine.load_model("scale.laminar").apply(2.0)
        Tensor(6., shape=(), dtype=float32)
    """
    return _load(filepath)
