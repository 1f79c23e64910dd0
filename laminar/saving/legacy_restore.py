"""The variables of a model in the layout of `.h5` files: by the order of the layers, or by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from laminar.engine.errors import DataLossError, InvalidArgumentError, LaminarError, ShapeError
from laminar.engine.ops.core.convert import convert_to_tensor
from laminar.engine.source import warn

from .legacy import LegacyFile, StoredWeights
from .loading import Loading
from .report import ABSENT, LOADED, UNUSED, LoadReport, listed

_ITERATIONS = ("iteration", "iter", "iterations")
_TOP = "the model's own weights"
# What legacy optimizers of Keras 2 call their slots: the last part of a variable's name.
_SLOTS = {"m", "v", "vhat", "momentum", "rms", "mg"}
_SLOTS |= {"accumulator", "accum_grad", "accum_var", "linear"}


def legacy_weights(layer: Any) -> list[Any]:
    """The weights of a layer in the order of `.h5` files: trainable ones first."""
    return [*layer.trainable_weights, *layer.non_trainable_weights]


def top_weights(model: Any) -> list[Any]:
    """The weights of a model outside of its layers."""
    inside = {id(v) for layer in model.layers for v in layer.weights}
    return [v for v in model.weights if id(v) not in inside]


def restore_legacy(
    model: Any,
    stored: LegacyFile,
    file: str,
    *,
    by_name: bool = False,
    skip_mismatch: bool = False,
    partial: bool = False,
) -> LoadReport:
    """Set the weights of all layers from a `.h5` file; on an error, all keep their values.

    Args:
        model: what is loaded into.
        stored: the file.
        file: its name, for messages.
        by_name: give each layer the weights of the layer of its name, and leave others as they are;
            else the layers that have weights are taken in order.
        skip_mismatch: leave layers as they are that do not fit, with a warning.
        partial: load what fits, by name, and report the rest.

    Raises:
        InvalidArgumentError: another number of layers, or a layer does not fit.
    """
    layers = [layer for layer in model.layers if layer.weights]
    by_name = by_name or partial
    if not by_name and len(layers) != len(stored.layers):
        raise InvalidArgumentError(
            f"{file}: it has {len(stored.layers)} layers with weights, "
            f"the model {model.name!r} has {len(layers)}",
            remedy="load it into the architecture that wrote it, or by name: "
            "load_weights(path, by_name=True)",
        )
    with Loading(model, file, skip_mismatch=skip_mismatch, partial=partial) as loading:
        pairs = _pairs(layers, stored, by_name)
        for name, layer in pairs:
            if name is None:
                loading.report.add(layer.name, ABSENT)
            else:
                _load(loading, layer.name, legacy_weights(layer), layer, stored.layers[name])
        taken = {name for name, _ in pairs}
        for name in stored.layers:
            if name not in taken:
                loading.report.add(name, UNUSED)
        own = top_weights(model)
        if own or (stored.top.names and not by_name):
            _load(loading, _TOP, own, model, stored.top)
        if by_name and not partial and not loading.report.loaded and layers:
            raise InvalidArgumentError(
                f"{file}: none of its layers ({listed(list(stored.layers))}) has the name of one "
                f"of the model {model.name!r} ({listed([la.name for la in layers])})",
                remedy="give the layers the names of the file, or load in order: by_name=False",
            )
    return loading.report


def _pairs(
    layers: Sequence[Any], stored: LegacyFile, by_name: bool
) -> list[tuple[str | None, Any]]:
    """The layers of a model with the names of theirs in the file."""
    named = [(la.name if la.name in stored.layers else None, la) for la in layers]
    if by_name:
        return named
    in_order: list[tuple[str | None, Any]] = list(zip(stored.layers, layers, strict=True))
    fit = map(_fits, map(legacy_weights, layers), stored.layers.values())
    # Keras 2 may have put the same layers into another order.
    return named if {name for name, _ in named} == set(stored.layers) and not all(fit) else in_order


def _fits(variables: Sequence[Any], weights: StoredWeights) -> bool:
    shapes = sorted(tuple(v.shape) for v in variables)
    return shapes == sorted(weights.shapes)


def _load(
    loading: Loading, what: str, variables: Sequence[Any], owner: Any, weights: StoredWeights
) -> None:
    loading.load(what, lambda: _set(_in_order(variables, owner, weights), owner, weights))


def _set(variables: Sequence[Any], owner: Any, weights: StoredWeights) -> None:
    who = f"{type(owner).__name__} {owner.name!r}"
    if len(variables) != len(weights.names):
        raise InvalidArgumentError(
            f"the file has {len(weights.names)} weights, {who} has {len(variables)}",
            remedy="load it into the model that wrote the file, or with skip_mismatch=True",
        )
    for v, name, shape in zip(variables, weights.names, weights.shapes, strict=True):
        if tuple(v.shape) != shape:
            raise ShapeError(
                f"{who}: weight {v.path!r} has shape {tuple(v.shape)}, "
                f"the file has {name!r} of shape {shape}"
            )
    for i, v in enumerate(variables):
        v.assign(convert_to_tensor(weights.read(i), copy=False))


def _in_order(variables: Sequence[Any], owner: Any, weights: StoredWeights) -> Sequence[Any]:
    """The variables in the order of the file.

    That order depends on which of them trained when it was written: where the names and shapes
    of the file agree with another of the two orders there are, that one is taken.
    """
    wanted = [(_last(n), s) for n, s in zip(weights.names, weights.shapes, strict=True)]
    for candidate in (variables, owner.weights if owner.weights else variables, _split(owner)):
        if [(_last(v.path), tuple(v.shape)) for v in candidate] == wanted:
            return candidate
    return variables


def _split(owner: Any) -> list[Any]:
    """The weights as they are ordered where all layers train."""
    inner = list(owner.weights)
    return [v for v in inner if v.trainable] + [v for v in inner if not v.trainable]


def _last(path: str) -> str:
    return path.removesuffix(":0").rpartition("/")[2]


# Optimizers


def restore_legacy_optimizer(model: Any, stored: LegacyFile, file: str) -> LoadReport:
    """Set the variables of the optimizer; where they cannot be matched, warn and begin anew."""
    report = LoadReport(file)
    weights, optimizer = stored.optimizer, model.optimizer
    if optimizer is None or not weights.names:
        return report
    if not optimizer.built:
        optimizer.build(model.trainable_variables)
    if not any(weights.shapes) and any(v.shape for v in optimizer.variables):
        return report  # written without slots, before the first step
    try:
        order = _optimizer_order(optimizer, model.trainable_variables, weights)
        for v, index in order:
            if tuple(v.shape) != weights.shapes[index]:
                raise ShapeError(
                    f"{v.path!r} has shape {tuple(v.shape)}, {weights.names[index]!r} has "
                    f"{weights.shapes[index]}"
                )
        values = [(v, weights.read(index)) for v, index in order]
    except LaminarError as error:
        if isinstance(error, DataLossError):
            raise
        warn(f"{file}: the state of the optimizer is not loaded: {error.message}")
        return report
    for v, value in values:
        v.assign(convert_to_tensor(value, copy=False))
    report.add(optimizer.name, LOADED)
    return report


def _optimizer_order(
    optimizer: Any, trained: Sequence[Any], weights: StoredWeights
) -> list[tuple[Any, int]]:
    """The variables of an optimizer, each with the place of its value in the file."""
    mine = optimizer.variables
    if len(mine) == len(weights.names) and not any(n.endswith(":0") for n in weights.names):
        return [(v, i) for i, v in enumerate(mine)]  # Keras 3: the same order
    names = [name.removesuffix(":0") for name in weights.names]
    order: list[tuple[Any, int]] = []
    rest = []
    for i, name in enumerate(names):
        last = name.rpartition("/")[2]
        if last in _ITERATIONS:
            order.append((mine[0], i))
        elif last != "learning_rate" or weights.shapes[i]:
            rest.append(i)
    theirs = [_slot(names[i]) for i in rest]
    # The optimizer names its slots after the variables: see `add_variable_from_reference`.
    indices = {v.path.replace("/", "_").replace(":", "_"): i for i, v in enumerate(trained)}
    if len(indices) != len(trained):
        raise InvalidArgumentError("two variables of the model have the same path")
    ours = [_own_slot(v, indices) for v in mine[1:]]
    slots = [(v, slot) for v, slot in zip(mine[1:], ours, strict=True) if slot is not None]
    if len(slots) != len(rest):
        raise InvalidArgumentError(
            f"it has {len(rest)} slots in the file, {optimizer.name!r} has {len(slots)}"
        )
    ranks = list(dict.fromkeys(kind for kind, _ in theirs))
    variables = list(dict.fromkeys(of for _, of in theirs))
    paths = [v.path for v in trained]
    if set(variables) == set(paths):
        variables = paths
    place = {
        (ranks.index(kind), variables.index(of)): i
        for i, (kind, of) in zip(rest, theirs, strict=True)
    }
    kinds = list(dict.fromkeys(kind for _, (kind, _) in slots))
    for v, (kind, index) in slots:
        key = (kinds.index(kind), index)
        if key not in place:
            raise InvalidArgumentError(f"no slot of the file belongs to {v.path!r}")
        order.append((v, place[key]))
    return order


def _slot(name: str) -> tuple[str, str]:
    """The kind of a slot, and the variable that it belongs to.

    Keras 2.11 and later: "Adam/m/dense/kernel"; before, "Adam/dense/kernel/m".
    """
    head, _, rest = name.partition("/")
    variable, _, last = rest.rpartition("/")
    if last in _SLOTS:
        return last, variable
    kind, _, variable = rest.partition("/")
    return kind, variable or head


def _own_slot(v: Any, indices: Mapping[str, int]) -> tuple[str, int] | None:
    """The kind of an optimizer's variable, and the number of the variable that it belongs to."""
    name = stem = v.path.partition("/")[2]
    while "_" in stem:
        stem = stem.rpartition("_")[0]
        if stem in indices:
            return name[len(stem) + 1 :], indices[stem]
    return None


def arrays_by_name(variables: Sequence[Any]) -> dict[str, np.ndarray[Any, Any]]:
    """Values by path; a number is added to a path that is taken, or that leads to another."""
    found: dict[str, np.ndarray[Any, Any]] = {}
    groups: set[str] = set()
    for v in variables:
        name, count = v.path, 1
        while name in found or name in groups or _groups(name) & found.keys():
            name, count = f"{v.path}_{count}", count + 1
        found[name] = np.asarray(v)
        groups |= _groups(name)
    return found


def _groups(path: str) -> set[str]:
    """The paths of the groups around an array."""
    parts = path.split("/")
    return {"/".join(parts[:i]) for i in range(1, len(parts))}
