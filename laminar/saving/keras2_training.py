"""What `compile` was told, as `.h5` files have it, in the form of `compile_from_config`."""

from __future__ import annotations

from typing import Any

from laminar import losses
from laminar.engine.errors import DataLossError
from laminar.registration import builtin, get_registered_object

Config = dict[str, Any]

_GONE = ("jit_compile", "is_legacy_optimizer", "decay", "schedule_decay", "name_scope")
_BY_TASK = ("accuracy", "acc", "crossentropy", "ce")


def modern_training(config: Any, output_names: list[str]) -> Config:
    """The compile config of Keras 3 for the `training_config` of a `.h5` file.

    Args:
        config: the content of the attribute.
        output_names: of the model; Keras 2 puts them before the names of metrics.

    Raises:
        DataLossError: it is not of the form that Keras writes.
    """
    if not isinstance(config, dict) or "optimizer_config" not in config:
        raise DataLossError("the training config names no optimizer")
    found = {
        "optimizer": modern_optimizer(config["optimizer_config"]),
        "loss": _each(config.get("loss"), _loss),
        "loss_weights": config.get("loss_weights"),
    }
    for key in ("metrics", "weighted_metrics"):
        metrics = config.get(key)
        if isinstance(metrics, list) and len(output_names) == 1:
            nested = [item for item in metrics if isinstance(item, list)]
            if len(metrics) == 1 and nested:  # one list for each output
                metrics = nested[0]
        elif isinstance(metrics, list):
            metrics = [[] if item in (None, [None]) else item for item in metrics]
        found[key] = _each(metrics, lambda entry: _metric(entry, output_names))
    return found


def old_training(config: Config) -> Config:
    """The `training_config` of a `.h5` file for the compile config of a model.

    Losses are written by their full names: Keras 3 does not read "mse" in a `.h5` file.
    """
    found = {key: value for key, value in config.items() if key != "optimizer"}
    found["loss"] = _each(config.get("loss"), _full_name)
    found["optimizer_config"] = config["optimizer"]
    return found


def _full_name(loss: Any) -> Any:
    return losses.get(loss).__name__ if isinstance(loss, str) else loss


def modern_optimizer(entry: Any) -> Config:
    """The config of an optimizer of Keras 2 in the form of Keras 3.

    A `decay` of Keras 2 becomes the schedule that it stands for: rate / (1 + decay * iterations).
    """
    kind, config = _parts(entry)
    inner = dict(config)
    if "inner_optimizer" in inner:
        inner["inner_optimizer"] = modern_optimizer(inner["inner_optimizer"])
        inner.pop("dynamic", None)
    if "lr" in inner:
        inner["learning_rate"] = inner.pop("lr")
    decay = inner.get("decay") or 0
    if isinstance(decay, int | float) and decay > 0:
        inner["learning_rate"] = {
            "module": "keras.optimizers.schedules",
            "class_name": "InverseTimeDecay",
            "config": {
                "initial_learning_rate": inner.get("learning_rate"),
                "decay_steps": 1,
                "decay_rate": decay,
            },
            "registered_name": None,
        }
    for key in _GONE:
        inner.pop(key, None)
    if inner.get("epsilon", 0) is None:
        inner["epsilon"] = 1e-7
    return _entry(kind, inner, "keras.optimizers")


def _loss(entry: Any) -> Any:
    if isinstance(entry, str):
        return _named(entry)
    kind, config = _parts(entry)
    inner = dict(config)
    if inner.get("reduction") == "auto":
        inner["reduction"] = "sum_over_batch_size"
    function = inner.pop("fn", None)
    if kind.rpartition(">")[2] == "LossFunctionWrapper":
        inner["fn"] = _function(function, "keras.losses")
    return _entry(kind, inner, "keras.losses")


def _metric(entry: Any, output_names: list[str]) -> Any:
    if isinstance(entry, str):
        return _named(entry)
    kind, config = _parts(entry)
    inner = dict(config)
    name = str(inner.get("name"))
    for output in output_names:
        if len(output_names) > 1 and name.startswith(f"{output}_"):
            name = inner["name"] = name.removeprefix(f"{output}_")
            break
    function = inner.pop("fn", None)
    if kind.rpartition(">")[2] == "MeanMetricWrapper":
        if name in _BY_TASK:
            return name
        inner["fn"] = _function(function, "keras.metrics")
    return _entry(kind, inner, "keras.metrics")


def _each(structure: Any, make: Any) -> Any:
    """`make` of each entry of a list or dict of entries."""
    if structure is None:
        return None
    if isinstance(structure, str) or (isinstance(structure, dict) and "class_name" in structure):
        return make(structure)
    if isinstance(structure, dict):
        return {key: _each(value, make) for key, value in structure.items()}
    if isinstance(structure, list):
        return [_each(item, make) for item in structure]
    raise DataLossError(f"the training config holds {structure!r:.200}")


def _parts(entry: Any) -> tuple[str, Config]:
    if isinstance(entry, dict):
        kind, config = entry.get("class_name"), entry.get("config")
        if isinstance(kind, str) and isinstance(config, dict):
            return kind, config
    raise DataLossError(f"the training config holds {entry!r:.200}")


def _entry(kind: str, config: Config, module: str) -> Config:
    """A config entry: of a built-in class where `kind` is the name of one."""
    short = kind.rpartition(">")[2]
    known = get_registered_object(kind) is None and builtin(short, module) is not None
    return {
        "module": module if known else None,
        "class_name": short if known else kind,
        "config": config,
        "registered_name": None if known else kind,
    }


def _named(name: str) -> Any:
    """A function by its name: one of the user's is looked up, a built-in one stays a name."""
    return name if get_registered_object(name) is None else _function(name, "builtins")


def _function(name: Any, module: str) -> Config:
    if isinstance(name, dict):
        return name
    known = isinstance(name, str) and builtin(name, module) is not None
    return {
        "module": module if known else "builtins",
        "class_name": "function",
        "config": name,
        "registered_name": None if known else name,
    }
