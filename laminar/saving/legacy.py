"""The layout of `.h5` files: whole models and weights of Keras 2, whole models of Keras 3.

The root (of a file of weights) or its group "model_weights" (of a file of a model) lists the layers
in the attribute `layer_names`. The group of a layer lists its weights in `weight_names`, which are
the paths of arrays inside that group: trainable ones first. Lists that are too long for one
attribute are cut into `layer_names0`, `layer_names1`, ... The group "optimizer_weights" lists the
optimizer's variables in the same way. The attributes `model_config` and `training_config` of the
root are JSON.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from .limits import Limits, refused
from .strict_json import format_object, parse_object
from .weights import WeightsReader, write_groups

Array = npt.NDArray[Any]

_WEIGHTS, _OPTIMIZER, _TOP = "model_weights", "optimizer_weights", "top_level_model_weights"
_ATTRIBUTE_BYTES = 64_000  # HDF5 keeps attributes of less than 64 KiB in the header of their object


@dataclass(frozen=True)
class StoredWeights:
    """The weights of one layer: their names, shapes, and how to read them."""

    names: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]
    read: Callable[[int], Array]


class LegacyFile:
    """A `.h5` file, open for reading; `is_legacy` says whether it is one.

    Args:
        reader: the open file.
        name: of the file, for messages.
        limits: what its JSON may ask for.
    """

    def __init__(self, reader: WeightsReader, name: str, limits: Limits | None = None) -> None:
        self.name = name
        self._reader = reader
        self._limits = limits or Limits()
        self._root = _WEIGHTS if _has(reader, "", _WEIGHTS) else ""

    @cached_property
    def layers(self) -> dict[str, StoredWeights]:
        """The layers in the order of the model, without those that have no weights."""
        names = self._list(self._root, "layer_names")
        if len(set(names)) != len(names):
            raise refused(f"{self.name}: two layers have the same name")
        found = {name: self._stored(f"{self._root}/{name}".lstrip("/")) for name in names}
        return {name: stored for name, stored in found.items() if stored.names}

    @cached_property
    def top(self) -> StoredWeights:
        """The weights of the model itself, outside of its layers."""
        return self._stored(f"{self._root}/{_TOP}".lstrip("/"))

    @cached_property
    def optimizer(self) -> StoredWeights:
        """The variables of the optimizer."""
        return self._stored(_OPTIMIZER)

    @property
    def config(self) -> dict[str, Any] | None:
        """The model's config, None in a file of weights."""
        return self._json("model_config")

    @property
    def training_config(self) -> dict[str, Any] | None:
        """What `compile` was told; None for a model that was not compiled."""
        return self._json("training_config")

    @property
    def version(self) -> str:
        """The version of Keras that wrote the file; "1" if it does not say."""
        for path in ("", self._root):
            version = self._reader.attributes(path).get("keras_version")
            if isinstance(version, str):
                return version
        return "1"

    def _stored(self, group: str) -> StoredWeights:
        if group not in self._reader.groups:
            return StoredWeights((), (), _nothing)
        names = tuple(self._list(group, "weight_names"))
        paths = [f"{group}/{name}" for name in names]
        missing = [
            name for name, path in zip(names, paths, strict=True) if path not in self._reader
        ]
        if missing:
            raise refused(f"{self.name}: {group}: it lists {missing[0]!r}, which is not there")
        shapes = tuple(self._reader.spec(path).shape for path in paths)
        return StoredWeights(names, shapes, lambda i: self._reader[paths[i]])

    def _list(self, path: str, name: str) -> list[str]:
        """A list of texts that may be cut into several attributes."""
        if path and path not in self._reader.groups:
            raise refused(f"{self.name}: it lists the layer {path!r}, which is not there")
        attributes = self._reader.attributes(path)
        found: list[str] = []
        pieces = [name] if name in attributes else []
        while not pieces or pieces[0] != name:
            if f"{name}{len(pieces)}" not in attributes:
                break
            pieces.append(f"{name}{len(pieces)}")
        for piece in pieces:
            value = attributes[piece]
            if isinstance(value, np.ndarray) and value.size == 0:
                continue  # an empty list is written as one of numbers
            if not isinstance(value, list) or not all(isinstance(v, str) for v in value):
                raise refused(f"{self.name}: {path or 'the root'}: {piece} is not a list of names")
            found.extend(value)
        return found

    def _json(self, name: str) -> dict[str, Any] | None:
        value = self._reader.attributes().get(name)
        if value is None:
            return None
        if not isinstance(value, str):
            raise refused(f"{self.name}: {name} is not a text")
        return parse_object(value.encode("utf-8"), f"{self.name}: {name}", self._limits)


def is_legacy(reader: WeightsReader) -> bool:
    """Whether a HDF5 file has the layout of this module rather than that of `.weights.h5`."""
    attributes = reader.attributes()
    if {"layer_names", "layer_names0", "model_config"} & attributes.keys():
        return True
    return _has(reader, "", _WEIGHTS)


def write_legacy(
    path: str | os.PathLike[str],
    config: dict[str, Any],
    training_config: dict[str, Any] | None,
    layers: Mapping[str, Mapping[str, Array]],
    top: Mapping[str, Array],
    optimizer: Mapping[str, Array],
    version: str,
) -> None:
    """Write a whole model to a `.h5` file that Keras 3 opens.

    Args:
        path: the file; it is there whole, or not at all.
        config: {"class_name", "config"} of the model.
        training_config: what `compile` was told.
        layers: the weights of each layer by name, trainable ones first.
        top: the weights of the model itself.
        optimizer: the variables of the optimizer by name, in order.
        version: of the format.
    """
    attributes: dict[str, dict[str, Any]] = {
        "": {
            "keras_version": version,
            "backend": "laminar",
            "model_config": format_object(config, "model_config").decode(),
        },
        _WEIGHTS: {
            "keras_version": version,
            "backend": "laminar",
            **_cut("layer_names", list(layers)),
        },
    }
    if training_config is not None:
        text = format_object(training_config, "training_config").decode()
        attributes[""]["training_config"] = text
    arrays: dict[str, Array] = {}
    groups = {f"{_WEIGHTS}/{name}": weights for name, weights in layers.items()}
    groups[f"{_WEIGHTS}/{_TOP}"] = top
    if optimizer:
        groups[_OPTIMIZER] = optimizer
    for group, weights in groups.items():
        attributes[group] = _cut("weight_names", list(weights))
        arrays |= {f"{group}/{name}": array for name, array in weights.items()}
    write_groups(path, attributes, arrays)


def _cut(name: str, items: Sequence[str]) -> dict[str, Any]:
    """A list of texts as attributes, none of them too long; each text takes the longest's room."""
    texts = [item.encode("utf-8") for item in items]
    longest = max((len(text) for text in texts), default=1)
    most = max(1, _ATTRIBUTE_BYTES // longest)
    if len(texts) <= most:
        return {name: np.array(texts, f"S{longest}")}
    pieces = [texts[i : i + most] for i in range(0, len(texts), most)]
    return {f"{name}{i}": np.array(piece, f"S{longest}") for i, piece in enumerate(pieces)}


def _has(reader: WeightsReader, path: str, name: str) -> bool:
    return f"{path}/{name}".lstrip("/") in reader.groups


def _nothing(index: int) -> Array:
    raise IndexError(index)
