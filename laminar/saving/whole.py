"""Making a model from a file: its config, then its weights, then how it was compiled."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any

from laminar import (
    activations,
    callbacks,
    constraints,
    distillation,
    initializers,
    layers,
    losses,
    metrics,
    models,
    optimizers,
    regularizers,
)
from laminar.engine.errors import (
    DataLossError,
    InvalidArgumentError,
    LaminarError,
    UnknownClassError,
)
from laminar.file_reading import FileReading, reading_file
from laminar.layers.layer import Layer
from laminar.layers.main_weight import MainWeight
from laminar.layers.stored_modes import quantize_as_stored
from laminar.registration import custom_object_scope, unknown_names
from laminar.serialization import deserialize_keras_object
from laminar.utils import feature_space

from .archive import ArchiveReader
from .folder import FolderReader
from .keras2 import modern_model, with_functions
from .keras2_training import modern_training
from .legacy import LegacyFile, is_legacy
from .legacy_restore import restore_legacy, restore_legacy_optimizer
from .limits import Limits
from .loading import LOADING_ERRORS, blaming
from .missing import Substitutes
from .report import UNMADE, LoadReport
from .restore import restore, restore_assets
from .state import stored_objects
from .strict_json import parse_object
from .weights import WeightsReader

Config = dict[str, Any]

# What a file may name has to be listed before it is read: these modules list themselves.
_ROOMS = (
    activations,
    callbacks,
    constraints,
    distillation,
    initializers,
    layers,
    losses,
    metrics,
    models,
    optimizers,
    regularizers,
    feature_space,
)
# A model may have weights that are not in its file: counters, updates of low rank beside the
# weights that they were added to; as many again at most, and a few more.
_SLACK = 1 << 20
# No layer with one large weight has more variables, in whatever mode.
_MOST_VARIABLES = 16


def load_archive(
    path: str,
    custom_objects: Mapping[str, Any],
    compile: bool,
    partial: bool,
    limits: Limits,
    mmap: bool,
) -> tuple[Any, LoadReport]:
    """The model in a `.keras` file, and what was loaded of it; see `load_model`."""
    reader = FolderReader if os.path.isdir(path) else ArchiveReader
    with reader(path, limits=limits) as archive, archive.weights(mmap=mmap) as weights:
        report = LoadReport(path)
        config = dict(archive.config)
        compiled = config.pop("compile_config", None) if compile else None
        config["compile_config"] = None
        is_keras_2 = archive.keras_version < 3
        if is_keras_2:
            with blaming(path, LOADING_ERRORS):
                config = modern_model(config, is_keras_2=True)
        reading = _reading(config, weights.size, partial, report, limits)
        model = _make(config, path, custom_objects, reading, _versions(archive.metadata))
        _quantize_as_stored(model, weights)
        if compiled:
            _compile(model, compiled, path, custom_objects, is_keras_2, partial, report)
        found = restore(
            model, weights, path, partial=partial, is_keras_2=is_keras_2, verify=archive.verify
        )
        report.extend(found)
        with blaming(path, LOADING_ERRORS):
            restore_assets(model, archive.assets, archive.asset)
        reading.fill()
    return model, report


def load_legacy(
    path: str,
    custom_objects: Mapping[str, Any],
    compile: bool,
    partial: bool,
    limits: Limits,
    mmap: bool,
) -> tuple[Any, LoadReport]:
    """The model in a `.h5` file, and what was loaded of it; see `load_model`."""
    with WeightsReader(path, limits=limits, mmap=mmap) as reader:
        stored = LegacyFile(reader, path, limits)
        config = stored.config
        if config is None:
            has = "layers and" if is_legacy(reader) else "weights, and"
            raise DataLossError(
                f"{path}: it holds {has} no model config",
                remedy="make the model in Python, and call model.load_weights(path)",
            )
        report = LoadReport(path)
        is_keras_2 = _major(stored.version) < 3
        with blaming(path, LOADING_ERRORS):
            config = modern_model(config, is_keras_2=is_keras_2)
        reading = _reading(config, reader.size, partial, report, limits)
        versions = f"Keras {stored.version}"
        model = _make(config, path, custom_objects, reading, versions)
        found = restore_legacy(
            model, stored, path, by_name=_has_names(model, stored), partial=partial
        )
        report.extend(found)
        if compile and stored.training_config is not None:
            training = stored.training_config
            _compile(model, training, path, custom_objects, True, partial, report)
            if model.optimizer is not None:
                found = restore_legacy_optimizer(model, stored, path)
                report.extend(found)
        reading.fill()
    return model, report


def _has_names(model: Any, stored: LegacyFile) -> bool:
    """Whether the layers can be told by name: Keras 2 ordered those of a model otherwise."""
    return {layer.name for layer in model.layers if layer.weights} == set(stored.layers)


def _reading(
    config: Config, size: int, partial: bool, report: LoadReport, limits: Limits
) -> FileReading:
    """What the objects of a file may take: room for as many weights as the file has."""
    if partial:
        return FileReading(_room(limits), Substitutes(config, report))
    return FileReading(2 * size + _SLACK)


def _room(limits: Limits) -> int:
    """How many elements there is room for where no file says how many there are."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return min(limits.max_bytes, memory) // 4


def _make(
    config: Config,
    path: str,
    custom_objects: Mapping[str, Any],
    reading: FileReading,
    versions: str,
) -> Any:
    """The model that a config describes."""
    config = with_functions(config, custom_objects)
    try:
        with reading_file(reading), blaming(path, LOADING_ERRORS):
            model = deserialize_keras_object(config, custom_objects)
    except UnknownClassError as error:
        raise _about_names(error, config, path, custom_objects, versions) from error
    if not isinstance(model, Layer):
        raise DataLossError(
            f"{path}: the file holds a {type(model).__name__}, no model and no layer",
            remedy="load it with the function that wrote it",
        )
    return model


def _quantize_as_stored(model: Any, weights: WeightsReader) -> None:
    """Layers whose weights the file has in few bits keep them so: not all configs say it."""
    for path, obj in stored_objects(model):
        if isinstance(obj, MainWeight) and obj.built and obj.quantization_mode is None:
            names = [f"{path}/vars/{i}".lstrip("/") for i in range(_MOST_VARIABLES)]
            names = [name for name in names if name in weights]
            specs = [weights.spec(name) for name in names]
            quantize_as_stored(obj, specs, lambda i: weights[names[i]])  # noqa: B023  # at once


def _compile(
    model: Any,
    config: Any,
    path: str,
    custom_objects: Mapping[str, Any],
    is_old: bool,
    partial: bool,
    report: LoadReport,
) -> None:
    """Compile a model as it was; in a partial load, leave it uncompiled if that is not possible."""
    try:
        with custom_object_scope(custom_objects), blaming(path, LOADING_ERRORS):
            if is_old:
                if isinstance(config, dict) and "optimizer" in config:
                    config = {**config, "optimizer_config": config["optimizer"]}
                config = modern_training(config, model._laminar_output_names)
            model.compile_from_config(config)
    except LaminarError as error:
        if partial:
            report.add("compile()", UNMADE, error.message)
            return
        if isinstance(error, UnknownClassError):
            note = "; or compile=False, and compile it yourself"
            raise _about_names(error, config, path, custom_objects, "", note) from error
        raise type(error)(
            error.message, remedy=f"{error.remedy or 'check the file'}, or load with compile=False"
        ) from error


def _about_names(
    error: LaminarError,
    config: Any,
    path: str,
    custom_objects: Mapping[str, Any],
    versions: str,
    note: str = "",
) -> UnknownClassError:
    """The error for classes that are not known: all of them, with the line that passes them."""
    found = unknown_names(config, custom_objects)
    if not found:
        return UnknownClassError(error.message, remedy=error.remedy)
    names = list(found)
    listed = ", ".join(map(repr, names))
    given = [*custom_objects, *names]
    line = ", ".join(f"{name!r}: {name.rpartition('>')[2]}" for name in given)
    near = [f"{name} may be {' or '.join(others)}" for name, others in found.items() if others]
    wrote = f" (written by {versions})" if versions else ""
    return UnknownClassError(
        f"{path}{wrote}: the config names {listed}, which laminar does not know",
        remedy=f"load_model({path!r}, custom_objects={{{line}}}){note}"
        + (f"; {'; '.join(near)}" if near else "")
        + "; or load_model(..., partial=True) for what is known",
    )


def _versions(metadata: Mapping[str, Any]) -> str:
    """Who wrote a file, in words."""
    parts = [f"Keras {metadata.get('keras_version', '?')}"]
    if "laminar_version" in metadata:
        parts = [f"laminar {metadata['laminar_version']}"]
    if "date_saved" in metadata:
        parts.append(f"on {metadata['date_saved']}")
    return " ".join(f"{part:.40}" for part in parts)


def _major(version: str) -> int:
    found = re.match(r"\d{1,4}", version)
    return int(found.group()) if found else 0


def model_from_text(text: str, custom_objects: Mapping[str, Any] | None = None) -> Any:
    """A model with new weights, from its config as JSON; see `models.model_from_json`."""
    owner = "model_from_json"
    if not isinstance(text, str):
        raise InvalidArgumentError(f"{owner}: expected a JSON string, got a {type(text).__name__}")
    config = parse_object(text.encode("utf-8", "replace"), owner, Limits())
    version = config.get("keras_version")
    if isinstance(version, str) or "module" not in config:
        with blaming(owner, LOADING_ERRORS):
            is_keras_2 = not isinstance(version, str) or _major(version) < 3
            config = modern_model(config, is_keras_2=is_keras_2)
    reading = FileReading(_room(Limits()))
    with reading_file(reading), blaming(owner, LOADING_ERRORS):
        model = deserialize_keras_object(config, custom_objects)
    reading.fill()
    return model
