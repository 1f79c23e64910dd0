"""Models on disk: `.keras` archives, `.weights.h5` files and `.h5` files, as Keras has them."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import UTC, datetime
from functools import partial
from typing import Any

import laminar
from laminar.engine.checkpoint import CheckpointReader
from laminar.engine.errors import (
    AlreadyExistsError,
    InvalidArgumentError,
)
from laminar.engine.saving import BackgroundWriter
from laminar.engine.source import warn
from laminar.paths import file_name
from laminar.registration import checked_custom_objects
from laminar.serialization import serialize_keras_object

from .archive import ArchiveReader, write_archive
from .flat import (
    CHECKPOINT,
    SAFETENSORS,
    arrays_of,
    checkpoint_store,
    read_safetensors,
    write_safetensors,
    write_weights_checkpoint,
)
from .folder import is_model_folder, write_folder
from .keras2_training import old_training
from .legacy import LegacyFile, is_legacy, write_legacy
from .legacy_restore import arrays_by_name, legacy_weights, restore_legacy, top_weights
from .limits import Limits
from .report import LoadReport
from .restore import assets_of, collect, restore
from .shards import ShardedReader, write_shards
from .weights import WeightsReader, open_file, write_weights
from .whole import load_archive, load_legacy

# The version of the format that the files follow.
_FORMAT = "3.10.0"
_H5 = (".h5", ".hdf5")
_WEIGHTS, _SHARDED = ".weights.h5", ".weights.json"

Path = str | os.PathLike[str]


def save_model(
    model: Any,
    filepath: Path,
    overwrite: bool = True,
    zipped: bool | None = None,
    include_optimizer: bool = True,
    **kwargs: Any,
) -> None:
    """Write a model to a file: architecture, weights, and the state of the optimizer.

    The file is there whole or not at all; an older file stays until the new one is complete. A
    model that has no weights yet is written without them, with a warning.

    Args:
        model: what to write.
        filepath: a name that ends in `.keras`, or in `.h5` for the older format, which has no
            vocabularies and no custom ways of saving.
        overwrite: whether an existing file is replaced; if not, a terminal is asked.
        zipped: false writes the parts of a `.keras` file into a folder of that name.
        include_optimizer: whether to write how the model was compiled, and the optimizer's state.

    Raises:
        InvalidArgumentError: another kind of file, a part that has no config, or an argument that
            is not known.
        AlreadyExistsError: the file exists, `overwrite` is false, and there is nobody to ask.

    Examples:
        >>> model = laminar.Sequential([layers.Input((3,)), layers.Dense(2)])
        >>> laminar.saving.save_model(model, "model.keras")
        >>> laminar.saving.load_model("model.keras").output_shape
        (None, 2)
    """
    if kwargs:
        raise InvalidArgumentError(
            f"save: unknown arguments {', '.join(kwargs)}",
            remedy="the format follows from the name: 'model.keras'",
        )
    path = file_name(filepath, "save")
    is_folder = zipped is False
    if is_folder and path.endswith((".keras", *_H5)):
        raise InvalidArgumentError(
            f"save: with zipped=False a folder is written, which has no ending, got {path!r}",
            remedy=f"save to {path.rpartition('.')[0]!r}",
        )
    if not is_folder and (not path.endswith((".keras", *_H5)) or path.endswith(_WEIGHTS)):
        raise InvalidArgumentError(
            f"save: the file must end in .keras, got {path!r}",
            remedy="save to 'model.keras', or use save_weights('model.weights.h5')",
        )
    with _writing(model) as is_mine:
        if is_mine and _may_write(path, overwrite):
            _write_model(model, path, is_folder, include_optimizer)


def _writing(model: Any) -> AbstractContextManager[bool]:
    """While a file is written; gives whether it is this process that writes it."""
    begin = getattr(model, "_laminar_writing", None)  # not every layer is a model
    return nullcontext(True) if begin is None else begin()


def _write_model(model: Any, path: str, is_folder: bool, include_optimizer: bool) -> None:
    if not _is_built(model):
        warn(
            f"save: the model {model.name!r} has no weights yet, so the file will have none; call "
            "the model on data, fit it, or build(input_shape) first"
        )
    if path.endswith(_H5):
        _write_h5(model, path, include_optimizer)
        return
    config = serialize_keras_object(model)
    metadata = {
        "keras_version": _FORMAT,
        "laminar_version": laminar.__version__,
        "date_saved": datetime.now(UTC).strftime("%Y-%m-%d@%H:%M:%S"),
    }
    weights, names = collect(model)
    if not include_optimizer:
        config.pop("compile_config", None)
        weights = {p: v for p, v in weights.items() if p.split("/")[0] != "optimizer"}
    write = write_folder if is_folder else write_archive
    write(path, config, metadata, weights, names=names, assets=assets_of(model))


def load_model(
    filepath: Path,
    custom_objects: Mapping[str, Any] | None = None,
    compile: bool = True,
    safe_mode: bool = True,
    *,
    partial: bool = False,
    limits: Limits | None = None,
    mmap: bool = False,
) -> Any:
    """Read a model from a `.keras` file, or a `.h5` file of Keras 2 or 3; nothing in it is run.

    Args:
        filepath: the file, or the folder that `save(zipped=False)` wrote.
        custom_objects: classes and functions by the names that the file uses; for the code of a
            `Lambda` layer, which is not run, a function by the name of that layer.
        compile: whether to compile the model as it was, with the state of the optimizer.
        safe_mode: kept for Keras scripts; code in a file is refused in either case.
        partial: load what can be loaded: layers of unknown classes are replaced by ones that have
            their name and outputs but refuse to compute, weights that do not fit are left out, a
            compilation that cannot be repeated too. What is missing is printed, and kept as
            `model.load_report`.
        limits: what the file may ask for; give larger ones for larger models.
        mmap: whether the weights are views of the mapped file: nothing is read before it is used,
            processes share the memory, and a weight takes memory of its own when training changes
            it. Of files that are not compressed; the file must not be changed meanwhile (it may be
            replaced, as `save` does).

    Raises:
        MissingFileError: there is no such file.
        UnknownClassError: the file names a class that is not known.
        DataLossError: the file is damaged, truncated, hostile, or not a model.

    Examples:
        >>> laminar.Sequential([layers.Input((3,)), layers.Dense(2)]).save("model.keras")
        >>> laminar.saving.load_model("model.keras").output_shape
        (None, 2)
    """
    path = file_name(filepath, "load_model")
    is_folder = is_model_folder(path)
    if not path.endswith((".keras", *_H5)) and not is_folder:
        raise InvalidArgumentError(
            f"load_model: the file must end in .keras, got {path!r}",
            remedy="for weights alone, make the model and call model.load_weights(path)",
        )
    custom = checked_custom_objects("load_model", custom_objects)
    load = load_legacy if not is_folder and _is_hdf5(path) else load_archive
    model, report = load(path, custom, compile, partial, limits or Limits(), mmap)
    if partial:
        model.load_report = report
        print(report)
    return model


def save_weights(
    model: Any,
    filepath: Path,
    overwrite: bool = True,
    max_shard_size: float | None = None,
    *,
    objects_to_skip: Sequence[Any] | None = None,
    background: BackgroundWriter | None = None,
) -> None:
    """Write the weights of a model to a `.weights.h5` file, or to several, or in another format.

    Args:
        model: what to write.
        filepath: a name that ends in `.weights.h5`, or in `.weights.json` for several files; in
            `.ckpt` for a checkpoint in TensorFlow's format V2, of which it is the prefix; or in
            `.safetensors`, which needs the package safetensors.
        overwrite: whether an existing file is replaced; if not, a terminal is asked.
        max_shard_size: what one of several files may hold, in GB (2**30 bytes).
        objects_to_skip: layers that are left out.
        background: writes the file beside what follows; the weights are those of now.

    Raises:
        InvalidArgumentError: another kind of file, or a model without weights.
        AlreadyExistsError: the file exists, `overwrite` is false, and there is nobody to ask.
        UnimplementedError: the package safetensors is not installed.

    Examples:
        >>> model = laminar.Sequential([layers.Input((3,)), layers.Dense(2)])
        >>> laminar.saving.save_weights(model, "model.weights.h5")
        >>> model.load_weights("model.weights.h5")
    """
    path = file_name(filepath, "save_weights")
    endings = (_WEIGHTS, CHECKPOINT, SAFETENSORS) if max_shard_size is None else (_SHARDED,)
    if not path.endswith(endings):
        suffix = endings[0]
        raise InvalidArgumentError(
            f"save_weights: the file must end in {suffix}, got {path!r}",
            remedy=f"write save_weights('model{suffix}')"
            if max_shard_size is None
            else f"write save_weights('model{suffix}', max_shard_size={max_shard_size})",
        )
    if max_shard_size is not None and not max_shard_size > 0:
        raise InvalidArgumentError(
            f"save_weights: max_shard_size must be above 0, got {max_shard_size!r}"
        )
    with _writing(model) as is_mine:
        written = f"{path}.index" if path.endswith(CHECKPOINT) else path
        if is_mine and _may_write(written, overwrite):
            _check_built(model, "save_weights")
            found = collect(model, objects_to_skip or ())
            _write_weights(path, found, max_shard_size, background)


def _write_weights(
    path: str,
    found: tuple[Any, Any],
    max_shard_size: float | None,
    background: BackgroundWriter | None,
) -> None:
    weights, names = found
    job: Callable[[], None]
    if max_shard_size is not None:
        job = partial(write_shards, path, weights, max_shard_size, names=names)
    elif path.endswith(CHECKPOINT):
        job = partial(write_weights_checkpoint, path, arrays_of(weights), names)
    elif path.endswith(SAFETENSORS):
        job = partial(write_safetensors, path, arrays_of(weights), names)
    else:
        job = partial(write_weights, path, weights, names=names)
    if background is None:
        job()
    else:
        background.submit(job, "weights")


def load_weights(
    model: Any,
    filepath: Path,
    skip_mismatch: bool = False,
    *,
    by_name: bool = False,
    partial: bool = False,
    objects_to_skip: Sequence[Any] | None = None,
    limits: Limits | None = None,
    mmap: bool = False,
    **kwargs: Any,
) -> LoadReport | None:
    """Read the weights of a model from a file: all of them, or none.

    Args:
        model: must have the architecture that wrote the file.
        filepath: a `.weights.h5`, `.weights.json`, `.safetensors` or `.keras` file, a `.h5` file of
            Keras 2 or 3, or the prefix of a checkpoint, which ends in `.ckpt`.
        skip_mismatch: leave layers as they are that do not fit, with a warning.
        by_name: for a `.h5` file: give weights to the layers of the same name, and leave the others
            as they are.
        partial: load what fits, print what does not, and give the report.
        objects_to_skip: layers that keep their weights, whatever the file has.
        limits: what the file may ask for; give larger ones for larger models.
        mmap: whether the weights are views of the mapped file: nothing is read before it is used,
            processes share the memory, and a weight takes memory of its own when training changes
            it. Of `.weights.h5`, `.weights.json`, `.keras` and `.safetensors` files that are not
            compressed; the file must not be changed meanwhile (it may be replaced, as `save` does).

    Returns:
        With `partial`, what was loaded and what was not; else None.

    Raises:
        MissingFileError: there is no such file.
        InvalidArgumentError: a layer has another number of weights, or weights of other shapes.
        DataLossError: the file is damaged or hostile.

    Examples:
        >>> model = laminar.Sequential([layers.Input((3,)), layers.Dense(2)])
        >>> model.save_weights("model.weights.h5")
        >>> report = laminar.saving.load_weights(model, "model.weights.h5")
    """
    if kwargs:
        raise InvalidArgumentError(f"load_weights: unknown arguments {', '.join(kwargs)}")
    path = file_name(filepath, "load_weights")
    if not path.endswith((".keras", _SHARDED, CHECKPOINT, SAFETENSORS, *_H5)):
        raise InvalidArgumentError(
            f"load_weights: expected a .weights.h5 or .keras file, got {path!r}"
        )
    _check_built(model, "load_weights")
    limits = limits or Limits()
    legacy_options: dict[str, Any] = {"skip_mismatch": skip_mismatch, "partial": partial}
    options = legacy_options | {"skipped": objects_to_skip or ()}
    if path.endswith(_SHARDED):
        _refuse_by_name(by_name, path)
        with ShardedReader(path, limits=limits, mmap=mmap) as shards:
            report = restore(model, shards, path, **options)
    elif path.endswith(CHECKPOINT):
        _refuse_by_name(by_name, path)
        with CheckpointReader(path) as checkpoint:
            report = restore(model, checkpoint_store(checkpoint, limits), path, **options)
    elif path.endswith(SAFETENSORS):
        _refuse_by_name(by_name, path)
        with read_safetensors(path, limits, mmap=mmap) as found:
            report = restore(model, found, path, **options)
    elif not _is_hdf5(path):
        _refuse_by_name(by_name, path)
        with ArchiveReader(path, limits=limits) as archive, archive.weights(mmap=mmap) as reader:
            is_keras_2 = archive.keras_version < 3
            report = restore(
                model, reader, path, is_keras_2=is_keras_2, verify=archive.verify, **options
            )
    else:
        with WeightsReader(path, limits=limits, mmap=mmap) as reader:
            if is_legacy(reader):
                stored = LegacyFile(reader, path, limits)
                _refuse_to_skip(objects_to_skip, path)
                report = restore_legacy(model, stored, path, by_name=by_name, **legacy_options)
            else:
                _refuse_by_name(by_name, path)
                report = restore(model, reader, path, **options)
    if not partial:
        return None
    print(report)
    return report


def _write_h5(model: Any, path: str, include_optimizer: bool) -> None:
    """Write the older format, in configs as Keras 3 writes them to `.keras`."""
    whole = serialize_keras_object(model)
    config = {"class_name": whole["registered_name"] or whole["class_name"]}
    config["config"] = whole["config"]
    compiled = whole.get("compile_config") if include_optimizer else None
    training = None
    optimizer: list[Any] = []
    if compiled:
        training = old_training(compiled)
        optimizer = list(model.optimizer.variables)
    layers = {layer.name: arrays_by_name(legacy_weights(layer)) for layer in model.layers}
    write_legacy(
        path,
        config,
        training,
        layers,
        arrays_by_name(top_weights(model)),
        arrays_by_name(optimizer),
        _FORMAT,
    )


def _is_hdf5(path: str) -> bool:
    """Whether a file is HDF5; what it is called does not matter."""
    with open_file(path) as file:
        return file.read(8) == b"\x89HDF\r\n\x1a\n"


def _may_write(path: str, overwrite: bool) -> bool:
    """Whether to write: an existing file is replaced if so told, here or at the terminal."""
    if overwrite or not os.path.exists(path):
        return True
    if sys.stdin is None or not sys.stdin.isatty():
        raise AlreadyExistsError(
            f"{path} exists already", remedy="pass overwrite=True, or another name"
        )
    answer = ""
    while answer not in ("y", "n"):
        answer = input(f"{path} exists already. Overwrite it? [y/n] ").strip().lower()
    return answer == "y"


def _refuse_to_skip(objects_to_skip: Sequence[Any] | None, path: str) -> None:
    if objects_to_skip:
        raise InvalidArgumentError(
            f"load_weights: {path!r} is of the older format, of which no layer can be skipped",
            remedy="use by_name=True, with other names for the layers that are to stay",
        )


def _refuse_by_name(by_name: bool, path: str) -> None:
    if by_name:
        raise InvalidArgumentError(
            f"load_weights: by_name=True is for .h5 files of layers by name, {path!r} is none",
            remedy="give partial=True: it loads what fits, by name where names say more than paths",
        )


def _is_built(model: Any) -> bool:
    parts = model._laminar_flatten_layers(include_self=False)
    return model.built or bool(parts and all(part.built for part in parts))


def _check_built(model: Any, who: str) -> None:
    if not _is_built(model):
        raise InvalidArgumentError(
            f"{who}: the model {model.name!r} has no weights yet",
            remedy="call it on data, fit it, or build(input_shape) first",
        )
