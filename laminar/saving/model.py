"""Models on disk: `.keras` archives and `.weights.h5` files, as Keras 3 writes and reads them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import laminar
from laminar import (
    activations,
    callbacks,
    constraints,
    initializers,
    layers,
    losses,
    metrics,
    models,
    optimizers,
    regularizers,
)
from laminar.engine.errors import (
    AlreadyExistsError,
    DataLossError,
    InvalidArgumentError,
    LaminarError,
    NotFoundError,
)
from laminar.engine.source import warn
from laminar.models.model import Model
from laminar.serialization import deserialize_keras_object, serialize_keras_object

from .archive import ArchiveReader, WeightsReader, write_archive, write_weights
from .state import stored_objects

# The version of the format that the files follow.
_FORMAT = "3.10.0"

Path = str | os.PathLike[str]

# What a file may name has to be listed before it is read: these modules list themselves.
_ROOMS = (
    activations,
    callbacks,
    constraints,
    initializers,
    layers,
    losses,
    metrics,
    models,
    optimizers,
    regularizers,
)


def save_model(
    model: Any, filepath: Path, overwrite: bool = True, zipped: bool | None = None
) -> None:
    """Write a model to a `.keras` file: architecture, weights, and the state of the optimizer.

    The file is there whole or not at all; an older file stays until the new one is complete.

    Args:
        model: what to write.
        filepath: a name that ends in `.keras`.
        overwrite: whether an existing file is replaced.
        zipped: kept for Keras scripts; a `.keras` file is always an archive.

    Raises:
        InvalidArgumentError: another kind of file, a model without weights, or a part that has no
            config.
        AlreadyExistsError: the file exists and `overwrite` is false.
    """
    path = os.fspath(filepath)
    if not path.endswith(".keras") or zipped is False:
        raise InvalidArgumentError(
            f"save: the file must end in .keras, got {path!r}",
            remedy="save to 'model.keras', or use save_weights('model.weights.h5')",
        )
    _check_target(path, overwrite)
    _check_built(model, "save")
    config = serialize_keras_object(model)
    metadata = {
        "keras_version": _FORMAT,
        "laminar_version": laminar.__version__,
        "date_saved": datetime.now(UTC).strftime("%Y-%m-%d@%H:%M:%S"),
    }
    weights, names = _collect(model)
    write_archive(path, config, metadata, weights, names=names, assets=_assets(model))


def load_model(
    filepath: Path,
    custom_objects: Mapping[str, Any] | None = None,
    compile: bool = True,
    safe_mode: bool = True,
) -> Any:
    """Read a model from a `.keras` file; nothing in the file is run.

    Args:
        filepath: the file.
        custom_objects: classes and functions by the names that the file uses.
        compile: whether to compile the model as it was, with the state of the optimizer.
        safe_mode: kept for Keras scripts; code in a file is refused in either case.

    Raises:
        MissingFileError: there is no such file.
        NotFoundError: the file names a class that is not known.
        DataLossError: the file is damaged, truncated, or not a model.
    """
    path = os.fspath(filepath)
    if not path.endswith(".keras"):
        raise InvalidArgumentError(
            f"load_model: the file must end in .keras, got {path!r}",
            remedy="for weights alone, make the model and call model.load_weights(path)",
        )
    with ArchiveReader(path) as archive, archive.weights() as weights:
        config = dict(archive.config)
        if not compile:
            config.pop("compile_config", None)
        model = deserialize_keras_object(config, custom_objects, safe_mode)
        if not isinstance(model, Model):
            raise DataLossError(
                f"{path}: the file holds a {type(model).__name__}, not a model",
                remedy="load it with the function that wrote it",
            )
        _restore(model, weights, path, skip_mismatch=False)
        _restore_assets(model, archive)
    return model


def save_weights(
    model: Any, filepath: Path, overwrite: bool = True, max_shard_size: float | None = None
) -> None:
    """Write the weights of a model to a `.weights.h5` file.

    Raises:
        InvalidArgumentError: another kind of file, or a model without weights.
        AlreadyExistsError: the file exists and `overwrite` is false.
    """
    path = os.fspath(filepath)
    if not path.endswith(".weights.h5"):
        raise InvalidArgumentError(
            f"save_weights: the file must end in .weights.h5, got {path!r}",
            remedy="write save_weights('model.weights.h5')",
        )
    if max_shard_size is not None:
        raise InvalidArgumentError(
            "save_weights: weights are written to one file; max_shard_size is not supported",
            remedy="leave max_shard_size out",
        )
    _check_target(path, overwrite)
    _check_built(model, "save_weights")
    weights, names = _collect(model)
    write_weights(path, weights, names=names)


def load_weights(model: Any, filepath: Path, skip_mismatch: bool = False, **kwargs: Any) -> None:
    """Read the weights of a model from a `.weights.h5` or `.keras` file: all of them, or none.

    Args:
        model: must have the architecture that wrote the file.
        filepath: the file.
        skip_mismatch: leave layers as they are that do not fit, with a warning.

    Raises:
        MissingFileError: there is no such file.
        InvalidArgumentError: a layer has another number of weights, or weights of other shapes.
        DataLossError: the file is damaged.
    """
    if kwargs:
        raise InvalidArgumentError(f"load_weights: unknown arguments {', '.join(kwargs)}")
    path = os.fspath(filepath)
    if path.endswith(".keras"):
        with ArchiveReader(path) as archive, archive.weights() as reader:
            _restore(model, reader, path, skip_mismatch=skip_mismatch)
    elif path.endswith(".h5"):
        with WeightsReader(path) as reader:
            _restore(model, reader, path, skip_mismatch=skip_mismatch)
    else:
        raise InvalidArgumentError(
            f"load_weights: expected a .weights.h5 or .keras file, got {path!r}"
        )


def _check_target(path: str, overwrite: bool) -> None:
    if os.path.exists(path) and not overwrite:
        raise AlreadyExistsError(
            f"{path} exists already", remedy="pass overwrite=True, or another name"
        )


def _check_built(model: Any, who: str) -> None:
    if not model.built:
        raise InvalidArgumentError(
            f"{who}: the model {model.name!r} has no weights yet",
            remedy="call it on data, fit it, or build(input_shape) first",
        )


def _collect(model: Any) -> tuple[dict[str, dict[str, Any]], dict[str, str]]:
    """The variables of each stored object by path, and the names of the objects."""
    weights: dict[str, dict[str, Any]] = {}
    names: dict[str, str] = {}
    for path, obj in stored_objects(model):
        store: dict[str, Any] = {}
        obj.save_own_variables(store)
        weights[path] = store
        names[path] = obj.name
    return weights, names


def _assets(model: Any) -> dict[str, bytes]:
    """The files, such as vocabularies, that objects keep beside their variables, by path."""
    assets: dict[str, bytes] = {}
    for path, obj in stored_objects(model):
        if hasattr(obj, "save_assets"):
            store: dict[str, bytes] = {}
            obj.save_assets(store)
            assets |= {f"{path}/{name}" if path else name: data for name, data in store.items()}
    return assets


def _restore_assets(model: Any, archive: ArchiveReader) -> None:
    """Give each object the files that it kept; those of objects inside it are theirs."""
    for path, obj in stored_objects(model):
        if hasattr(obj, "load_assets"):
            head = f"{path}/" if path else ""
            names = [n.removeprefix(head) for n in archive.assets if n.startswith(head)]
            obj.load_assets({n: archive.asset(head + n) for n in names if "/" not in n})


def _restore(model: Any, reader: WeightsReader, path: str, *, skip_mismatch: bool) -> None:
    """Set all variables from the file; on an error, all keep the values they had."""
    objects = stored_objects(model)
    stored = {name.rpartition("/vars/")[0] for name in _variable_paths(reader)}
    unknown = _unknown_layers(stored, {p for p, _ in objects}, path, model.name)
    before = [(v, v.read_value()) for v in _variables(model)]
    try:
        for place, obj in objects:
            _restore_one(obj, place, reader, path, skip_mismatch=skip_mismatch)
    except BaseException:
        for v, value in before:
            v.assign(value)
        raise
    if unknown:
        warn(
            f"{path}: the model {model.name!r} has no place for {len(unknown)} layers of the file, "
            f"which are left out: {_listed(unknown)}"
        )


def _variable_paths(reader: WeightsReader) -> list[str]:
    return [f"/{p}" if p.startswith("vars/") else p for p in reader if "vars/" in p]


def _variables(model: Any) -> list[Any]:
    optimizer = getattr(model, "optimizer", None)
    return [*model.variables, *(optimizer.variables if optimizer is not None else ())]


def _restore_one(
    obj: Any, place: str, reader: WeightsReader, path: str, *, skip_mismatch: bool
) -> None:
    store = reader.variables(place)
    if isinstance(obj, optimizers.Optimizer) and not store:
        return  # written without the state of the optimizer
    try:
        if not store and not _own_count(obj):
            return
        obj.load_own_variables(store)
    except LaminarError as cause:
        message = f"{path}: {place or 'the model'!r}: {cause.message}"
        if skip_mismatch:
            warn(f"skipped: {message}")
            return
        raise type(cause)(message, remedy=cause.remedy) from cause


def _own_count(obj: Any) -> int:
    store: dict[str, Any] = {}
    obj.save_own_variables(store)
    return len(store)


def _unknown_layers(stored: set[str], known: set[str], path: str, name: str) -> list[str]:
    """The layers of a file that the model does not have.

    Raises:
        NotFoundError: these are all: the file belongs to another model.
    """
    layers_stored = {p for p in stored if p and p.split("/")[0] != "optimizer"}
    unknown = sorted(layers_stored - known)
    if unknown and not layers_stored & known:
        raise NotFoundError(
            f"{path}: none of the {len(layers_stored)} layers in the file ({_listed(unknown)}) "
            f"is in the model {name!r}",
            remedy="load the file into the architecture that wrote it, or use load_model",
        )
    return unknown


def _listed(names: list[str]) -> str:
    return ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
