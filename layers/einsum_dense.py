"""EinsumDense: sums of products along any axes, in Einstein's notation."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Unpack

from laminar import initializers, ops
from laminar.activations import ActivationLike
from laminar.constraints import ConstraintLike
from laminar.engine.errors import InvalidArgumentError, ShapeError
from laminar.engine.graph import Tensor
from laminar.initializers import InitializerLike
from laminar.naming import who
from laminar.quantizers import QuantizationLike
from laminar.regularizers import RegularizerLike
from laminar.typing import Shape

from .contraction import EinsumProduct
from .input_spec import InputSpec
from .layer_options import LayerOptions
from .main_weight import MainWeight
from .options import config_of, keep, make_weight
from .weight_modes import LargeWeight

_EQUATION = re.compile(r"(\.\.\.)?([a-zA-Z]+)(\.\.\.)?,([a-zA-Z]+)->(\.\.\.)?([a-zA-Z]*)(\.\.\.)?")


class _Weights(NamedTuple):
    """The shapes of the weights, and which axes of the kernel are summed over, and which not."""

    kernel: tuple[int, ...]
    bias: tuple[int, ...] | None
    input_axes: list[int]
    output_axes: list[int]


class EinsumDense(MainWeight):
    """y = activation(einsum(equation, x, kernel) + bias).

    Args:
        equation: such as "abc,cd->abd" or "...x,xy->...y": the axes of the input, of the kernel,
            and of the output.
        output_shape: of the output without the batch and the axes that dots stand for; None for
            unknown sizes.
        activation: applied to each output; None leaves it linear.
        bias_axes: the axes of the output that the bias has; None for no bias.
        kernel_initializer: of the kernel.
        bias_initializer: of the bias.
        kernel_regularizer: penalty on the kernel.
        bias_regularizer: penalty on the bias.
        kernel_constraint: projection of the kernel after each update.
        bias_constraint: likewise of the bias.
        lora_rank: freezes the kernel and trains an update of this rank, see `enable_lora`.
        lora_alpha: the update is multiplied by lora_alpha / lora_rank.
        gptq_unpacked_column_size: kept for Keras scripts; the kernel says it.
        quantization_config: how `quantize` goes about it.

    Shapes:
        as the equation says

    Raises:
        InvalidArgumentError: an equation of another form, or a bias axis that the output lacks.
        ShapeError: the shapes do not fit the equation.

    Examples:
        >>> layer = layers.EinsumDense("abc,cd->abd", output_shape=(None, 5), bias_axes="d")
        >>> layer(np.zeros((2, 3, 4))).shape
        (2, 3, 5)
    """

    activation: Callable[[Any], Any]
    kernel_initializer: Any

    def __init__(
        self,
        equation: str,
        output_shape: int | Sequence[int | None],
        activation: ActivationLike | None = None,
        bias_axes: str | None = None,
        kernel_initializer: InitializerLike = "glorot_uniform",
        bias_initializer: InitializerLike = "zeros",
        kernel_regularizer: RegularizerLike | None = None,
        bias_regularizer: RegularizerLike | None = None,
        kernel_constraint: ConstraintLike | None = None,
        bias_constraint: ConstraintLike | None = None,
        lora_rank: int | None = None,
        lora_alpha: float | None = None,
        gptq_unpacked_column_size: int | None = None,
        quantization_config: QuantizationLike | None = None,
        **kwargs: Unpack[LayerOptions],
    ) -> None:
        super().__init__(**kwargs)
        self._laminar_keep_main(lora_rank, lora_alpha, quantization_config)
        found = _EQUATION.fullmatch(equation.replace(" ", ""))
        if found is None or (found[1], found[3]) != (found[5], found[7]) or (found[1] and found[3]):
            raise InvalidArgumentError(
                f"{who(self)}: equation must have the form 'ab,bc->ac', with dots before or after "
                f"the axes of both input and output, got {equation!r}"
            )
        self.equation = equation
        self._dots_first, self._dots_last = bool(found[1]), bool(found[3])
        self._input_axes, self._kernel_axes, self._output_axes = found[2], found[4], found[6]
        self.partial_output_shape = (
            (output_shape,) if isinstance(output_shape, int) else tuple(output_shape)
        )
        self.bias_axes = bias_axes
        if bias_axes and not set(bias_axes) <= set(self._output_axes):
            raise InvalidArgumentError(
                f"{who(self)}: bias_axes {bias_axes!r} must be among those of the output, "
                f"{self._output_axes!r}"
            )
        keep(
            self,
            activation=activation,
            kernel_initializer=kernel_initializer,
            bias_initializer=bias_initializer,
            kernel_regularizer=kernel_regularizer,
            bias_regularizer=bias_regularizer,
            kernel_constraint=kernel_constraint,
            bias_constraint=bias_constraint,
        )

    def build(self, input_shape: Shape) -> None:
        self._dotted = len(input_shape) - len(self._input_axes)
        weights = self._weights(tuple(input_shape))
        initializer = self.kernel_initializer
        if isinstance(initializer, initializers.VarianceScaling) and None in (
            initializer.input_axes,
            initializer.output_axes,
        ):
            axes = {"input_axes": weights.input_axes, "output_axes": weights.output_axes}
            initializer = type(initializer).from_config({**initializer.get_config(), **axes})
        self._laminar_make_main(weights.kernel, initializer=initializer)
        self.bias = None if weights.bias is None else make_weight(self, "bias", weights.bias)
        self.input_spec = InputSpec(ndim=len(input_shape))
        self._laminar_main_made()

    @property
    def kernel(self) -> Any:
        """The kernel, with its update of low rank.

        Of a layer that is quantized, the whole numbers that stand for it.
        """
        return self._laminar_main_value()

    def _weights(self, shape: tuple[int | None, ...]) -> _Weights:
        """What the equation means for an input of `shape`."""
        named, dotted = len(self._input_axes), len(shape) - len(self._input_axes)
        if dotted < 0 or (dotted > 0 and not (self._dots_first or self._dots_last)):
            raise ShapeError(
                f"{who(self)}: equation {self.equation!r} wants an input of {named} axes"
                f"{' or more' if dotted < 0 else ''}, got shape {shape}"
            )
        own = shape[dotted:] if self._dots_first else shape[:named]
        sizes = dict(zip(self._input_axes, own, strict=True))
        # With dots before the others, the batch is among the axes that they stand for.
        batch_is_named = not (self._dots_first and dotted)
        full = (
            (shape[0], *self.partial_output_shape) if batch_is_named else self.partial_output_shape
        )
        if len(full) != len(self._output_axes):
            raise ShapeError(
                f"{who(self)}: output_shape {self.partial_output_shape} does not fit the output of "
                f"{self.equation!r}",
                remedy="give a size for each of its axes, without the batch and the dots",
            )
        output = dict(zip(self._output_axes, full, strict=True))
        for axis, size in output.items():
            if axis in sizes and None not in (size, sizes[axis]) and size != sizes[axis]:
                raise ShapeError(
                    f"{who(self)}: axis {axis!r} of {self.equation!r} has size {sizes[axis]} in "
                    f"the input {shape}, and {size} in output_shape {self.partial_output_shape}"
                )
            if axis not in sizes and axis not in self._kernel_axes:
                raise InvalidArgumentError(
                    f"{who(self)}: axis {axis!r} of the output of {self.equation!r} is neither in "
                    f"the input nor in the kernel"
                )
        kernel = tuple(self._size(axis, output, sizes) for axis in self._kernel_axes)
        outer = [i for i, axis in enumerate(self._kernel_axes) if axis in output]
        inner = [i for i, axis in enumerate(self._kernel_axes) if axis not in output]
        return _Weights(kernel, self._bias_shape(output, dotted), inner, outer)

    def _size(self, axis: str, *known: dict[str, int | None]) -> int:
        found = [sizes[axis] for sizes in known if axis in sizes]
        if not found:
            raise InvalidArgumentError(
                f"{who(self)}: axis {axis!r} of the kernel of {self.equation!r} is neither in the "
                f"input nor in the output"
            )
        size = next((size for size in found if size is not None), None)
        if size is None:
            raise ShapeError(
                f"{who(self)}: axis {axis!r} of {self.equation!r} sizes a weight, but is unknown",
                remedy="give it in output_shape, or give Input a full shape",
            )
        return size

    def _bias_shape(self, output: dict[str, int | None], dotted: int) -> tuple[int, ...] | None:
        """The sizes of the bias from its first axis on, 1 for axes that it does not have."""
        if not self.bias_axes:
            return None
        first = min(self._output_axes.index(axis) for axis in self.bias_axes)
        shape = [
            self._size(axis, output) if axis in self.bias_axes else 1
            for axis in self._output_axes[first:]
        ]
        return (*shape, *(1,) * (dotted if self._dots_last else 0))

    def call(self, inputs: Tensor, training: bool | None = None) -> Any:
        return self._laminar_finish(ops.einsum(self.equation, inputs, self.kernel))

    def get_config(self) -> dict[str, Any]:
        return (
            super().get_config()
            | {"output_shape": self.partial_output_shape}
            | config_of(
                self,
                "equation",
                "activation",
                "bias_axes",
                "kernel_initializer",
                "bias_initializer",
                "kernel_regularizer",
                "bias_regularizer",
                "activity_regularizer",
                "kernel_constraint",
                "bias_constraint",
            )
            | self._laminar_main_config()
        )

    def _laminar_large_weights(self, shape: tuple[int, ...]) -> list[LargeWeight]:
        product = EinsumProduct(self.equation, self._dotted, shape)
        terms = math.prod(shape[i] for i in product.summed)
        matrix = (terms, math.prod(shape) // max(terms, 1))
        return [LargeWeight("kernel", "_kernel", shape, matrix, product)]
