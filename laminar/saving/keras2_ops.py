"""TensorFlow functions in models of Keras 2 (`TFOpLambda`, `SlicingOpLambda`), as ops of Keras 3.

The table is closed: a function that does not stand in it is refused by name.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from laminar.engine.errors import DataLossError

Config = dict[str, Any]


@dataclass(frozen=True)
class _Op:
    """The op of Keras 3 for a TensorFlow function.

    Args:
        name: its class.
        data: the names of the other tensors, TensorFlow's to Keras's.
        config: the names of all else.
        fixed: config that the TensorFlow function implies.
        module: where Keras has the class.
    """

    name: str
    data: dict[str, str] = field(default_factory=dict)
    config: dict[str, str] = field(default_factory=dict)
    fixed: dict[str, Any] = field(default_factory=dict)
    module: str = "numpy"


def _binary(name: str) -> _Op:
    return _Op(name, data={"y": "x2"})


def _reduction(name: str) -> _Op:
    return _Op(name, config={"axis": "axis", "keepdims": "keepdims"})


def _unary(name: str, module: str = "numpy") -> _Op:
    return _Op(name, module=module)


_ADD, _SUBTRACT, _MULTIPLY, _DIVIDE = map(_binary, ("Add", "Subtract", "Multiply", "TrueDivide"))
_MATMUL = _Op("Matmul", data={"b": "x2"}, config={"transpose_a": "", "transpose_b": ""})
_SOFTMAX = _Op("Softmax", config={"axis": "axis"}, module="nn")

_OPS: dict[str, _Op] = {
    **{f"{home}.add": _ADD for home in ("math", "__operators__")},
    **{f"{home}.subtract": _SUBTRACT for home in ("math", "__operators__")},
    **{f"{home}.multiply": _MULTIPLY for home in ("math", "__operators__")},
    **{
        f"{home}.{name}": _DIVIDE
        for home in ("math", "__operators__")
        for name in ("truediv", "divide")
    },
    "math.floordiv": _binary("FloorDivide"),
    "math.pow": _binary("Power"),
    "math.maximum": _binary("Maximum"),
    "math.minimum": _binary("Minimum"),
    "math.greater": _binary("Greater"),
    "math.less": _binary("Less"),
    **{
        f"math.{theirs}": _unary(ours)
        for theirs, ours in {
            "abs": "Absolute",
            "sqrt": "Sqrt",
            "square": "Square",
            "exp": "Exp",
            "log": "Log",
            "log1p": "Log1p",
            "negative": "Negative",
            "sin": "Sin",
            "cos": "Cos",
            "floor": "Floor",
            "ceil": "Ceil",
            "round": "Round",
            "sign": "Sign",
            "tanh": "Tanh",
        }.items()
    },
    "math.rsqrt": _unary("Rsqrt", "math"),
    **{f"math.reduce_{name}": _reduction(name.capitalize()) for name in ("mean", "sum", "prod")},
    **{f"math.reduce_{name}": _reduction(name.capitalize()) for name in ("max", "min")},
    "math.argmax": _Op("Argmax", config={"axis": "axis"}),
    "math.l2_normalize": _Op(
        "Normalize", config={"axis": "axis", "epsilon": ""}, fixed={"order": 2}, module="nn"
    ),
    **{f"{home}.sigmoid": _unary("Sigmoid", "nn") for home in ("math", "nn")},
    **{f"{home}.softmax": _SOFTMAX for home in ("math", "nn")},
    "math.softplus": _unary("Softplus", "nn"),
    **{
        f"nn.{theirs}": _unary(ours, "nn")
        for theirs, ours in {
            "relu": "Relu",
            "relu6": "Relu6",
            "elu": "Elu",
            "selu": "Selu",
            "softplus": "Softplus",
            "softsign": "Softsign",
            "silu": "Silu",
            "swish": "Silu",
            "log_softmax": "LogSoftmax",
        }.items()
    },
    "nn.tanh": _unary("Tanh"),
    "nn.gelu": _Op(
        "Gelu", config={"approximate": "approximate"}, fixed={"approximate": False}, module="nn"
    ),
    "nn.leaky_relu": _Op("LeakyRelu", config={"alpha": "negative_slope"}, module="nn"),
    "clip_by_value": _Op("Clip", config={"clip_value_min": "x_min", "clip_value_max": "x_max"}),
    "concat": _Op("Concatenate", config={"axis": "axis"}),
    "stack": _Op("Stack", config={"axis": "axis"}, fixed={"axis": 0}),
    "reshape": _Op("Reshape", config={"shape": "newshape"}),
    "transpose": _Op("Transpose", config={"perm": "axes"}),
    "expand_dims": _Op("ExpandDims", config={"axis": "axis"}),
    "squeeze": _Op("Squeeze", config={"axis": "axis"}),
    "tile": _Op("Tile", config={"multiples": "repeats"}),
    "split": _Op(
        "Split",
        config={"num_or_size_splits": "indices_or_sections", "axis": "axis"},
        fixed={"axis": 0},
    ),
    "cast": _Op("Cast", config={"dtype": "dtype"}, module="core"),
    "matmul": _MATMUL,
    "linalg.matmul": _MATMUL,
    "identity": _Op("Identity"),
    "__operators__.getitem": _Op("GetItem"),
}
# Arguments that say nothing about the result.
_IGNORED = frozenset({"name", "validate_indices", "message"})
# The values of arguments of `_Op.config` without a counterpart ("") that Keras 3 implies.
_DEFAULTS = {"transpose_a": False, "transpose_b": False, "epsilon": 1e-12}


def modern_op(entry: Config, calls: Any) -> Config:
    """The config of a TensorFlow function as that of an op of Keras 3.

    Args:
        entry: the layer's entry in the model.
        calls: its calls, as {"args", "kwargs"} each.

    Raises:
        DataLossError: the function, or an argument, has no counterpart in the table.
    """
    config = entry.get("config")
    name = config.get("name") if isinstance(config, dict) else None
    function = config.get("function") if isinstance(config, dict) else None
    op = _OPS.get(function) if isinstance(function, str) else None
    if op is None or not isinstance(calls, list):
        raise DataLossError(
            f"the model applies the TensorFlow function {function!r} ({name!r}), which laminar "
            "does not know",
            remedy="replace it by layers or keras.ops in the model's code, and save it again",
        )
    settings: list[Config] = []
    nodes = []
    for call in calls:
        setting, node = _call(op, call, str(function))
        settings.append(setting)
        nodes.append(node)
    if any(setting != settings[0] for setting in settings):
        raise DataLossError(f"{name!r}: one TensorFlow function is called with several settings")
    return {
        "module": f"keras.src.ops.{op.module}",
        "class_name": op.name,
        "config": {"name": name, **(settings[0] if settings else {})},
        "registered_name": None,
        "name": entry.get("name", name),
        "inbound_nodes": nodes,
    }


def _call(op: _Op, call: Config, function: str) -> tuple[Config, Config]:
    """The settings of one call, and the call itself."""
    args, kwargs = list(call["args"]), dict(call["kwargs"])
    setting = dict(op.fixed)
    if function == "__operators__.getitem":
        key = kwargs.pop("slice_spec", None)
        args.append(_key(key))
    data = {}
    for key, value in kwargs.items():
        if key in _IGNORED:
            continue
        if key in op.data:
            data[op.data[key]] = value
        elif op.config.get(key) == "":
            if value not in (None, _DEFAULTS[key]):
                raise DataLossError(f"tf.{function}: {key}={value!r:.100} cannot be read")
        elif key in op.config:
            if value is not None:
                setting[op.config[key]] = value
        elif value is not None:
            raise DataLossError(f"tf.{function}: the argument {key!r} cannot be read")
    return setting, {"args": [*args, *data.values()], "kwargs": {}}


def _key(spec: Any) -> Any:
    """What a tensor is indexed with, in the encoding of Keras 3."""
    if isinstance(spec, list):
        return [_key(part) for part in spec]
    if isinstance(spec, dict) and {"start", "stop", "step"} <= spec.keys():
        return {"class_name": "__slice__", "config": spec}
    if isinstance(spec, dict) and spec.get("class_name") == "__ellipsis__":
        return {"class_name": "__ellipsis__", "config": {}}
    if spec is None or isinstance(spec, int):
        return spec
    raise DataLossError(f"a slice of the config is not of the form of Keras 2: {spec!r:.200}")
