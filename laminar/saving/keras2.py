"""The configs of Keras 2 and of `.h5` files, put into the form that Keras 3 writes to `.keras`.

Data in, data out: nothing is looked up or made here, so that old files go through the same reader,
with the same closed tables of names, as new ones. A `.h5` file of Keras 3 uses a mixed dialect:
layers without their module, calls as in Keras 3.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from laminar import ops
from laminar.engine.errors import DataLossError
from laminar.registration import builtin, register_keras_serializable

from .keras2_ops import modern_op

Config = dict[str, Any]

_ANY = object()
_TRANSPOSED = ("Conv1DTranspose", "Conv2DTranspose", "Conv3DTranspose")
_SEPARABLE = ("SeparableConv1D", "SeparableConv2D")
_DEPTHWISE = ("DepthwiseConv1D", "DepthwiseConv2D")
_RECURRENT = ("SimpleRNN", "LSTM", "GRU", "RNN", "ConvLSTM1D", "ConvLSTM2D", "ConvLSTM3D")
_CELLS = ("SimpleRNNCell", "LSTMCell", "GRUCell")

# Arguments that Keras 3 has no more, with the one value that changes nothing (_ANY: no value does).
_GONE: dict[str, dict[str, Any]] = {
    **{name: {"groups": 1} for name in (*_TRANSPOSED, *_DEPTHWISE)},
    **{
        name: {"groups": 1}
        | {f"kernel_{part}": _ANY for part in ("initializer", "regularizer", "constraint")}
        for name in _SEPARABLE
    },
    **{name: {"implementation": _ANY, "time_major": False} for name in (*_RECURRENT, *_CELLS)},
    "BatchNormalization": {
        "fused": _ANY,
        "renorm": False,
        "renorm_clipping": None,
        "renorm_momentum": _ANY,
        "virtual_batch_size": None,
        "adjustment": None,
    },
    "Embedding": {"input_length": _ANY},
    "MultiHeadAttention": {
        "query_shape": _ANY,
        "key_shape": _ANY,
        "value_shape": _ANY,
        "softmax_robust_masking": _ANY,
    },
}
_CLASSES = {
    "Model": "Functional",
    "BatchNormalizationV1": "BatchNormalization",
    "BatchNormalizationV2": "BatchNormalization",
    "SyncBatchNormalization": "BatchNormalization",
    "GroupedQueryAttention": "GroupQueryAttention",
    "ThresholdedReLU": "ReLU",
}
_KEYS = {"LeakyReLU": {"alpha": "negative_slope"}, "ThresholdedReLU": {"theta": "threshold"}}
_POLICIES = ("Policy", "PolicyV1", "AutoPolicy")


@register_keras_serializable("laminar", "hard_sigmoid_of_keras_2")
def hard_sigmoid_of_keras_2(x: Any) -> Any:
    """y = min(max(x / 5 + 1 / 2, 0), 1): what Keras 2 calls hard_sigmoid, and Keras 3 does not."""
    return ops.clip(0.2 * x + 0.5, 0.0, 1.0)


def modern_model(config: Any, *, is_keras_2: bool) -> Config:
    """The config of a model or layer in the form of Keras 3.

    Args:
        config: {"class_name", "config"} as it stands in a file.
        is_keras_2: whether Keras 2 wrote it, whose lists of one tensor mean the tensor, and whose
            `hard_sigmoid` is another function.

    Raises:
        DataLossError: it is no config, or it uses what has no counterpart in Keras 3.
    """
    return _Upgrade(is_keras_2).layer(config, 0)


class _Upgrade:
    def __init__(self, is_keras_2: bool) -> None:
        self.is_keras_2 = is_keras_2

    def layer(self, entry: Any, depth: int) -> Config:
        """A layer or model, with what it contains."""
        if depth > 50:
            raise DataLossError("the config nests models deeper than 50 levels")
        if not isinstance(entry, dict) or not isinstance(entry.get("class_name"), str):
            raise DataLossError(f"a layer of the config is not as Keras writes it: {entry!r:.200}")
        written = str(entry["class_name"])
        kind = _CLASSES.get(written, written)
        config = entry.get("config")
        if isinstance(config, list):  # a Sequential before Keras 2.2.3
            config = {"name": None, "layers": config}
        if not isinstance(config, dict):
            raise DataLossError(f"the config of {kind!r} must be a mapping, got {config!r:.200}")
        nodes = entry.get("inbound_nodes")
        if kind in ("TFOpLambda", "SlicingOpLambda"):
            return modern_op(entry, nodes)
        if kind == "Functional" or {"layers", "input_layers", "output_layers"} <= config.keys():
            config = self._functional(config, depth)
        elif kind == "Sequential":
            config = self._sequential(config, depth)
        else:
            config = self._plain(kind, written, config, depth)
        module, short = _home(kind, config, entry)
        found: Config = {"class_name": short, "config": config, "module": module}
        found["registered_name"] = None if module else entry.get("registered_name") or kind
        if "build_config" in entry and not self.is_keras_2:
            found["build_config"] = entry["build_config"]
        if "name" in entry:
            found["name"] = entry["name"]
        return found

    # Models

    def _sequential(self, config: Config, depth: int) -> Config:
        layers = list(config.get("layers") or ())
        first = layers[0] if layers and isinstance(layers[0], dict) else {}
        inner = first.get("config")
        if isinstance(inner, dict) and first.get("class_name") != "InputLayer":
            shape = inner.get("batch_input_shape")
            if shape is not None:
                name = f"{inner.get('name', 'layer')}_input"
                layers.insert(0, {"class_name": "InputLayer", "config": _input(shape, name)})
        return {**config, "layers": [self.layer(item, depth + 1) for item in layers]}

    def _functional(self, config: Config, depth: int) -> Config:
        entries = config["layers"]
        if not isinstance(entries, list) or not all(isinstance(e, dict) for e in entries):
            raise DataLossError("the layers of a model must be a list of mappings")
        models = {str(e.get("name")) for e in entries if self._counts_itself(e)}
        calls = _Calls({str(e.get("name")) for e in entries}, models)
        layers = []
        for entry in entries:
            nodes = entry.get("inbound_nodes") or ()
            is_op = entry.get("class_name") in ("TFOpLambda", "SlicingOpLambda")
            modern = [calls.node(node, str(entry.get("class_name"))) for node in nodes]
            if is_op:
                layers.append(modern_op(entry, modern))
                continue
            found = self.layer(entry, depth + 1)
            found.setdefault("name", found["config"].get("name"))
            found["inbound_nodes"] = modern
            layers.append(found)
        ends = {}
        for key in ("input_layers", "output_layers"):
            ends[key] = calls.ends(config[key])
            if self.is_keras_2 and isinstance(ends[key], list) and len(ends[key]) == 1:
                ends[key] = ends[key][0]
        return {**config, "layers": layers, **ends}

    def _counts_itself(self, entry: Config) -> bool:
        """Whether the layer is a model, whose first call has the number 1 in Keras 2."""
        inner = entry.get("config")
        has_layers = isinstance(inner, list) or (isinstance(inner, dict) and "layers" in inner)
        return self.is_keras_2 and has_layers

    # Layers

    def _plain(self, kind: str, written: str, config: Config, depth: int) -> Config:
        found = {_KEYS.get(written, {}).get(key, key): value for key, value in config.items()}
        for key, harmless in _GONE.get(kind, {}).items():
            value = found.pop(key, harmless)
            if harmless is not _ANY and value not in (harmless, None):
                raise DataLossError(
                    f"{kind} {config.get('name')!r}: {key}={value!r} cannot be read"
                )
        shape = found.pop("batch_input_shape", None)
        if kind == "InputLayer" and "batch_shape" not in found:
            found["batch_shape"] = shape
        if written == "SyncBatchNormalization":
            found["synchronized"] = True
        if kind == "Lambda":
            return _function_of_lambda(found)
        axis = found.get("axis")
        if kind == "BatchNormalization" and isinstance(axis, list) and len(axis) == 1:
            found["axis"] = axis[0]
        return {key: self._value(key, value, depth + 1) for key, value in found.items()}

    def _value(self, key: str, value: Any, depth: int) -> Any:
        if key.endswith("activation") and value == "hard_sigmoid" and self.is_keras_2:
            return _function("hard_sigmoid_of_keras_2", "laminar>hard_sigmoid_of_keras_2")
        if isinstance(value, list):
            return [self._value(key, item, depth) for item in value]
        if not isinstance(value, dict) or not {"class_name", "config"} <= value.keys():
            return value
        if key == "dtype" and value["class_name"] in _POLICIES:
            name = _mapping(value["config"], key).get("name", "float32")
            return "float32" if name == "_infer" else name
        if key.endswith("_initializer"):
            return _initializer(value)
        if key in ("layer", "backward_layer", "cell", "cells"):
            return self.layer(value, depth)
        return value


class _Calls:
    """The calls of layers: `names` are those of all layers, `models` count their calls from 1."""

    def __init__(self, names: set[str], models: set[str]) -> None:
        self.names = names
        self.models = models

    def node(self, node: Any, kind: str) -> Config:
        """A call, as {"args", "kwargs"}."""
        if isinstance(node, dict) and {"args", "kwargs"} <= node.keys():
            return node
        kwargs: Config = {}
        first = self._structure(node, kwargs)
        is_op = kind in ("TFOpLambda", "SlicingOpLambda")
        if isinstance(first, list) and len(first) == 1 and not is_op:
            first = first[0]
        given = {key: self._argument(value) for key, value in kwargs.items()}
        if isinstance(first, list) and kind in (*_RECURRENT, "Bidirectional"):
            first, *states = first
            given["initial_state"] = states
        return {"args": [first], "kwargs": given}

    def ends(self, structure: Any) -> Any:
        """The places of a model's inputs or outputs."""
        if isinstance(structure, dict):
            return {key: self.ends(value) for key, value in structure.items()}
        if not isinstance(structure, list):
            raise DataLossError(f"the config refers to {structure!r:.200}")
        if self._is_place(structure, 3):
            return self._place(structure)
        return [self.ends(item) for item in structure]

    def _structure(self, node: Any, kwargs: Config) -> Any:
        """The first argument of a call; what stands beside its tensors goes to `kwargs`."""
        if isinstance(node, dict):
            return {key: self._structure(value, kwargs) for key, value in node.items()}
        if not isinstance(node, list) or not node:
            raise DataLossError(f"a call in the config is not as Keras 2 writes it: {node!r:.200}")
        if not isinstance(node[0], str):
            return [self._structure(item, kwargs) for item in node]
        if len(node) > 3:
            kwargs |= _mapping(node[3], "a call")
        if node[0] == "_CONSTANT_VALUE" and len(node) > 2:
            return node[2]
        if not self._is_place(node[:3], 3):
            raise DataLossError(f"the config refers to {node!r:.200}")
        return self._tensor(node)

    def _argument(self, value: Any) -> Any:
        if self._is_place(value, 3):
            return self._tensor(value)
        if isinstance(value, list):
            return [self._argument(item) for item in value]
        if isinstance(value, dict):
            return {key: self._argument(item) for key, item in value.items()}
        return value

    def _is_place(self, value: Any, length: int) -> bool:
        return (
            isinstance(value, list)
            and len(value) == length
            and isinstance(value[0], str)
            and all(type(number) is int for number in value[1:])
            and value[0] in self.names
        )

    def _place(self, place: list[Any]) -> list[Any]:
        name, node, tensor = place
        return [name, max(node - 1, 0) if name in self.models else node, tensor]

    def _tensor(self, place: list[Any]) -> Config:
        return {
            "class_name": "__keras_tensor__",
            "config": {"keras_history": self._place(place[:3])},
        }


def with_functions(config: Any, functions: Mapping[str, Any]) -> Any:
    """The config with the code of each Lambda layer replaced by a name, where there is one.

    Args:
        config: as Keras 3 writes it.
        functions: by the name of the Lambda layer whose code they take the place of.
    """
    if isinstance(config, list):
        return [with_functions(item, functions) for item in config]
    if not isinstance(config, dict):
        return config
    inner = config.get("config")
    if config.get("class_name") == "Lambda" and isinstance(inner, dict):
        code, name = inner.get("function"), inner.get("name")
        holds_code = isinstance(code, dict) and code.get("class_name") == "__lambda__"
        if holds_code and isinstance(name, str) and name in functions:
            return {**config, "config": {**inner, "function": _function(name)}}
    return {key: with_functions(value, functions) for key, value in config.items()}


def _home(kind: str, config: Config, entry: Config) -> tuple[str | None, str]:
    """The module that a class is looked up in, None for one of the user's, and its name there."""
    short = kind.rpartition(">")[2]
    is_op = "trainable" not in config and "dtype" not in config and "layers" not in config
    module = str(entry.get("module") or "")
    modules = [module] if module.startswith("keras.src.ops.") else []
    if is_op:  # an op has no more than its name and arguments
        modules += [
            f"keras.src.ops.{m}" for m in ("numpy", "nn", "core", "math", "linalg", "image")
        ]
    for candidate in (*modules, "keras.layers", "keras"):
        if builtin(short, candidate) is not None:
            return candidate, short
    return None, kind


def _input(shape: Any, name: str) -> Config:
    return {"batch_shape": shape, "dtype": "float32", "name": name}


def _initializer(entry: Config) -> Config:
    config = dict(_mapping(entry["config"], "an initializer"))
    config.pop("dtype", None)
    config.pop("partition_info", None)
    if entry["class_name"] == "VarianceScaling" and config.get("distribution") == "normal":
        config["distribution"] = "truncated_normal"
    return {**entry, "config": config}


def _function_of_lambda(config: Config) -> Config:
    """A Lambda layer of Keras 2: a function is named, or else its code stands in the file."""
    found = {k: v for k, v in config.items() if k not in ("module", "function_type")}
    function = found.get("function")
    if config.get("function_type", "lambda") == "function" and isinstance(function, str):
        found["function"] = _function(function)
    elif isinstance(function, list):
        found["function"] = {"class_name": "__lambda__", "config": {}}
    shape_type = found.pop("output_shape_type", "raw")
    found.pop("output_shape_module", None)
    if shape_type != "raw":  # code too; the shape is found by tracing
        found.pop("output_shape", None)
    return found


def _function(name: str, registered: str | None = None) -> Config:
    return {
        "module": "builtins",
        "class_name": "function",
        "config": name,
        "registered_name": registered or name,
    }


def _mapping(value: Any, what: str) -> Config:
    if not isinstance(value, dict):
        raise DataLossError(f"{what} of the config must hold a mapping, got {value!r:.200}")
    return value
