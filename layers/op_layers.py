"""Ops of `laminar.ops` as parts of a functional model: `ops.mean(x, axis=1) + 1` on symbols.

Each op has a class of its own, made when it is first asked for, under the name that Keras 3 gives
it in files: `mean` is the class "Mean" of module "keras.src.ops.numpy".
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from types import FunctionType
from typing import Any, Self

from laminar import ops
from laminar.ops.recording import recorded_ops, set_recorder
from laminar.registration import list_builtins
from laminar.serialization import deserialize_keras_object

from .masking import get_mask
from .operation import Operation
from .symbolic import KerasTensor, Node, any_symbolic

# Parameters that are data; all others are part of the op's config.
_DATA = frozenset(
    """
    a abs_ angle array arrays b beta bias bins branches choicelist condition condlist
    constant_values coordinates data default depthwise_kernel elements elems end_points
    fill_value gamma image1 image2 images index indices init init_val inputs kernel key
    loop_vars mask mean offset operands output output_length pointwise_kernel pred predictions
    q query rtol atol scale segment_ids sequence_lengths sorted_sequence start start_indices
    start_points step stop target target_length targets tensor transform translation updates
    value values variable variance weights x x1 x2 xs y
    """.split()  # noqa: SIM905  # a list of words
)
# Where a parameter of that name is config in one op.
_CONFIG = {
    ("diagonal", "offset"),
    ("trace", "offset"),
    ("unique", "fill_value"),
    ("resize", "fill_value"),
    ("affine_transform", "fill_value"),
    ("map_coordinates", "fill_value"),
    ("perspective_transform", "fill_value"),
    ("elastic_transform", "fill_value"),
    ("bincount", "weights"),
    ("histogram", "bins"),
    ("allclose", "atol"),
    ("allclose", "rtol"),
    ("squareplus", "b"),
    ("trapezoid", "x"),
}
# Classes whose names do not follow from the function's.
_CLASS_NAMES = {
    "allclose": "AllClose",
    "isin": "IsIn",
    "jvp": "JVP",
    "searchsorted": "SearchSorted",
    "batch_normalization": "BatchNorm",
    "rms_normalization": "RMSNorm",
    "layer_normalization": "LayerNorm",
    "cdist": "CDist",
    "ctc_decode": "CTCDecode",
    "ctc_loss": "CTCLoss",
    "fft": "FFT",
    "fft2": "FFT2",
    "ifft2": "IFFT2",
    "irfft": "IRFFT",
    "istft": "ISTFT",
    "psnr": "PSNR",
    "rfft": "RFFT",
    "rgb_to_grayscale": "RGBToGrayscale",
    "rgb_to_hsv": "RGBToHSV",
    "hsv_to_rgb": "HSVToRGB",
    "ssim": "SSIM",
    "stft": "STFT",
    "svd": "SVD",
    "swish": "Silu",
    "hard_swish": "HardSilu",
}
# Where Keras has a function, if laminar has it elsewhere.
_HOMES = {
    **dict.fromkeys(("maximum", "minimum", "slogdet", "sort", "where"), "numpy"),
    **dict.fromkeys(("fft", "fft2", "ifft2", "irfft", "istft", "rfft", "stft"), "math"),
    **dict.fromkeys(("associative_scan", "cond", "fori_loop", "map", "scan", "switch"), "core"),
    **dict.fromkeys(("vectorized_map", "while_loop"), "core"),
    "extract_sequences": "math",
    "rearrange": "einops",
}
# What Keras has no class for.
_ONLY_LAMINAR = {"extract_patches_3d"}


class OpLayer(Operation):
    """One use of an op in a model; abstract: `op_class` makes a subclass for each op.

    Args:
        name: unique in a model.
        **config: the arguments of the op that are not data.
    """

    function: Callable[..., Any]
    leading: tuple[str, ...]  # config that stands before *args, and is passed by position
    _keras_module: str

    def __init__(self, name: str | None = None, **config: Any) -> None:
        super().__init__(name)
        self._config = config

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """Apply the op."""
        if type(self).__name__ == "GetItem" and isinstance(args[-1], list):
            args = (*args[:-1], tuple(args[-1]))  # as files hold the parts of a key
        config = dict(self._config)
        first = [config.pop(name) for name in self.leading]
        return type(self).function(*first, *args, **kwargs, **config)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), **self._config}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        """Make one from what `get_config` gave; functions among the arguments are looked up."""
        made = {
            key: deserialize_keras_object(value) if isinstance(value, dict) else value
            for key, value in config.items()
        }
        return super().from_config(made)


def _class_name(function_name: str) -> str:
    known = _CLASS_NAMES.get(function_name)
    return known or "".join(part.capitalize() for part in function_name.split("_"))


def _home(function_name: str) -> str:
    if function_name in _ONLY_LAMINAR:
        return "laminar.ops"
    rooms = ("nn", "linalg", "image", "core", "math")
    found = (room for room in rooms if hasattr(getattr(ops, room, None), function_name))
    return f"keras.src.ops.{_HOMES.get(function_name) or next(found, 'numpy')}"


@cache
def op_class(function_name: str) -> type[OpLayer]:
    """The class for an op of `laminar.ops`."""
    function = getattr(ops, function_name, None) or getattr(ops.image, function_name)
    attributes = {
        "function": staticmethod(function),
        "leading": _leading(function_name, function),
        "_keras_module": _home(function_name),
        "__doc__": function.__doc__,
    }
    return type(_class_name(function_name), (OpLayer,), attributes)


def _leading(function_name: str, function: Callable[..., Any]) -> tuple[str, ...]:
    parameters = list(inspect.signature(function).parameters.values())
    kinds = [p.kind for p in parameters]
    if inspect.Parameter.VAR_POSITIONAL not in kinds:
        return ()
    before = parameters[: kinds.index(inspect.Parameter.VAR_POSITIONAL)]
    return tuple(p.name for p in before if not is_data(function_name, p.name))


def is_data(function_name: str, parameter: str) -> bool:
    """Whether a parameter of an op is data rather than config."""
    return parameter in _DATA and (function_name, parameter) not in _CONFIG


def record(name: str, fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Record a call of `fn` with symbolic arguments: the hook of `laminar.ops`.

    `name=` among the keywords is the name of the layer.
    """
    layer_name = kwargs.pop("name", None)
    signature = inspect.signature(fn)
    bound = signature.bind(*args, **kwargs)
    data: dict[str, Any] = {}
    positional: list[Any] = []
    config: dict[str, Any] = {}
    parameters = list(signature.parameters)
    for parameter, value in bound.arguments.items():
        kind = signature.parameters[parameter].kind
        if kind is inspect.Parameter.VAR_POSITIONAL:
            positional.extend(value)
        elif kind is inspect.Parameter.VAR_KEYWORD:
            config |= value
        elif not is_data(name, parameter) and not any_symbolic(value):
            config[parameter] = value
        elif kind is inspect.Parameter.KEYWORD_ONLY or parameter != parameters[len(positional)]:
            data[parameter] = value
        else:
            positional.append(value)
    return op_class(name)(layer_name, **config)(*positional, **data)


class _OpClasses(Mapping[str, Any]):
    """The op classes by name, for reading configs: of the ops that models record."""

    @staticmethod
    @cache
    def _names() -> dict[str, str]:
        """Function names by class name: ops are loaded by need, so some may be no ops."""
        return {_class_name(name): name for room in (ops, ops.image) for name in dir(room)}

    def __getitem__(self, name: str) -> Any:
        function_name = self._names()[name]
        function = getattr(ops, function_name, None) or getattr(ops.image, function_name)
        if not isinstance(function, FunctionType) or function not in recorded_ops:
            raise KeyError(name)
        return op_class(function_name)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self.get(name) is not None

    def __iter__(self) -> Iterator[str]:
        return (name for name in self._names() if name in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)


class CarriedMask(Operation):
    """The mask that a tensor carries, where a model computes with it or gives it.

    Nothing is computed: the call that makes the tensor makes its mask.
    """

    def call(self, x: Any) -> Any:
        """The mask of `x`."""
        return get_mask(x)

    def compute_output_spec(self, x: Any) -> Any:
        return get_mask(x)


def record_mask(carrier: KerasTensor, mask: KerasTensor) -> None:
    """Record that `mask` is that of `carrier`, once somebody asks who made it."""
    Node(CarriedMask(), (carrier,), {}, mask)


set_recorder(record)
list_builtins("laminar.layers", {"CarriedMask": CarriedMask})
list_builtins("laminar.ops", _OpClasses())
for _module in ("numpy", "nn", "core", "math", "linalg", "image", "einops"):
    list_builtins(f"keras.src.ops.{_module}", _OpClasses())
