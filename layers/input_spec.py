"""InputSpec: what a layer expects of its inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from laminar.dtype_policies import PolicyLike
from laminar.engine.errors import DTypeError, InvalidArgumentError, ShapeError
from laminar.engine.graph import TensorShape, as_dtype
from laminar.tree import flatten
from laminar.typing import Shape


class InputSpec:
    """Expected dtype, number of axes and sizes of one input of a layer.

    Args:
        dtype: expected element type.
        shape: expected shape, None for any size.
        ndim: expected number of axes.
        max_ndim: most axes.
        min_ndim: fewest axes.
        axes: {axis: size} that must hold.
        allow_last_axis_squeeze: whether a last axis of size 1 may be missing or extra.
        name: the key of the input, when inputs come in a dict.
        optional: whether the input may be None.

    Raises:
        DTypeError: an axis is no whole number, or the dtype no element type.
        InvalidArgumentError: an axis is beyond the number of axes.

    Examples:
        >>> spec = layers.InputSpec(ndim=2, axes={-1: 3})
        >>> layer = layers.Identity()
        >>> layer.input_spec = spec
        >>> layer(np.zeros((5, 3))).shape
        (5, 3)
    """

    def __init__(
        self,
        dtype: PolicyLike | None = None,
        shape: Shape | None = None,
        ndim: int | None = None,
        max_ndim: int | None = None,
        min_ndim: int | None = None,
        axes: Mapping[int, int | None] | None = None,
        allow_last_axis_squeeze: bool = False,
        name: str | None = None,
        optional: bool = False,
    ) -> None:
        self.dtype = None if dtype is None else as_dtype(dtype).name
        self.shape = None if shape is None else TensorShape(shape)
        self.ndim = len(self.shape) if self.shape is not None else ndim
        self.max_ndim = max_ndim
        self.min_ndim = min_ndim
        self.axes = _checked_axes(axes, self.ndim or max_ndim)
        self.allow_last_axis_squeeze = allow_last_axis_squeeze
        self.name = name
        self.optional = optional

    def get_config(self) -> dict[str, Any]:
        """What the constructor takes."""
        return {
            "dtype": self.dtype,
            "shape": self.shape,
            "ndim": self.ndim,
            "max_ndim": self.max_ndim,
            "min_ndim": self.min_ndim,
            "axes": self.axes,
        }

    def __repr__(self) -> str:
        given = {k: v for k, v in self.get_config().items() if v}
        return f"InputSpec({', '.join(f'{k}={v}' for k, v in given.items())})"


def _checked_axes(axes: Any, most: int | None) -> dict[int, int | None]:
    """{axis: size}, where no axis is beyond the `most` axes that an input may have."""
    axes = {} if axes is None else axes
    if not isinstance(axes, Mapping) or not all(hasattr(a, "__index__") for a in axes):
        raise DTypeError(f"InputSpec: axes must be a dict with whole numbers as keys, got {axes!r}")
    beyond = [] if most is None else [axis for axis in axes if axis >= most]
    if beyond:
        raise InvalidArgumentError(
            f"InputSpec: axes has axis {beyond[0]}, an input has at most {most} axes"
        )
    return {int(axis): size for axis, size in axes.items()}


def check_inputs(spec: Any, inputs: Any, who: str) -> None:
    """ShapeError unless `inputs` are what `spec` (an InputSpec, or a structure of them) expects."""
    if spec is None:
        return
    if isinstance(spec, dict):
        names = list(spec)
        values = (
            [inputs.get(name) for name in names] if isinstance(inputs, dict) else flatten(inputs)
        )
        specs = [spec[name] for name in names]
    else:
        specs, values = flatten(spec), flatten(inputs)
    if len(values) != len(specs):
        raise InvalidArgumentError(
            f"{who}: expected {len(specs)} input{'s' if len(specs) != 1 else ''}, got {len(values)}"
        )
    for i, (expected, x) in enumerate(zip(specs, values, strict=True)):
        if x is None or expected is None:
            if x is None and expected is not None and not expected.optional:
                raise DTypeError(f"{who}: input {i} is missing")
            continue
        if not hasattr(x, "shape"):
            raise InvalidArgumentError(
                f"{who}: input {i} must be a tensor or an array, got {type(x).__name__}",
                remedy="convert it with numpy.asarray",
            )
        _check(expected, TensorShape(x.shape), x.dtype, f"{who}: input {i}")


def check_positional(args: Sequence[Any], names: Sequence[str], who: str) -> None:
    """Refuse numbers, booleans and strings after the first argument that do not come by name.

    `training` alone may, as it always could.

    Args:
        args: the positional arguments of a call.
        names: what the parameters are called.
        who: the layer, for errors.

    Raises:
        InvalidArgumentError: there is one.
    """
    for i, value in enumerate(args[1:], start=1):
        if isinstance(value, bool | int | float | str):
            name = names[i] if i < len(names) else "name"
            if name == "training":
                continue
            raise InvalidArgumentError(
                f"{who}: the positional arguments of a call are tensors, argument {i + 1} is "
                f"{value!r}",
                remedy=f"give it by name: {name}={value!r}",
            )


def _check(spec: InputSpec, shape: TensorShape, dtype: Any, who: str) -> None:
    rank = shape.rank
    if rank is None:
        return
    if spec.ndim is not None and rank != spec.ndim and not _squeezes(spec, shape):
        raise ShapeError(
            f"{who}: expected {spec.ndim} axes, {_got(shape)}", remedy=_axes_remedy(spec, rank)
        )
    if spec.max_ndim is not None and rank > spec.max_ndim:
        raise ShapeError(f"{who}: expected at most {spec.max_ndim} axes, {_got(shape)}")
    if spec.min_ndim is not None and rank < spec.min_ndim:
        raise ShapeError(
            f"{who}: expected at least {spec.min_ndim} axes, {_got(shape)}",
            remedy="the first axis is the batch: add it, or the missing feature axis",
        )
    if spec.dtype is not None and str(dtype) != str(spec.dtype):
        raise InvalidArgumentError(f"{who}: expected dtype {spec.dtype}, got {dtype}")
    for axis, size in spec.axes.items():
        if not -rank <= axis < rank:
            raise ShapeError(f"{who}: expected an axis {axis}, {_got(shape)}")
        if size is not None and shape[axis] not in (size, None):
            raise ShapeError(
                f"{who}: expected size {size} along axis {axis}, {_got(shape)}",
                remedy="the layer was built for that size: use a new layer for another",
            )
    if spec.shape is not None and rank == len(spec.shape):
        for size, dim in zip(spec.shape, shape, strict=True):
            if size is not None and dim is not None and size != dim:
                raise ShapeError(f"{who}: expected shape {tuple(spec.shape)}, {_got(shape)}")


def _got(shape: TensorShape) -> str:
    return f"got shape {tuple(shape)}"


def _squeezes(spec: InputSpec, shape: TensorShape) -> bool:
    if not spec.allow_last_axis_squeeze or spec.shape is None:
        return False
    return (len(shape) == len(spec.shape) + 1 and shape[-1] == 1) or (
        len(shape) == len(spec.shape) - 1 and spec.shape[-1] == 1
    )


def _axes_remedy(spec: InputSpec, rank: int) -> str:
    if spec.ndim is not None and rank == spec.ndim - 1:
        return "an axis is missing: the batch first (x[None]), or the channels last (x[..., None])"
    return "reshape the input, or put a Reshape or Flatten layer before"
