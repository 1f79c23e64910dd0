"""Weights as whole numbers of 8 or 4 bits with scales."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, TypeAlias

import numpy as np

from laminar import ops, quantizers
from laminar.engine.functions import custom_gradient
from laminar.engine.ops.linalg.few_bits_matmul import few_bits_matmul
from laminar.quantizers import (
    Int4QuantizationConfig,
    Int8QuantizationConfig,
    QuantizationConfig,
)

from .weight_modes import WeightMode

# Gives the value of a variable of a mode by its suffix; "" is what stands for the weight.
Read: TypeAlias = Callable[[str], Any]


class IntegerMode(WeightMode):
    """Whole numbers instead of the weight. Abstract.

    Inputs may be rounded too, with a scale for each row; a product is one of whole numbers then.
    Gradients pass the rounding as if it were not there.
    """

    config_class: ClassVar[type[QuantizationConfig]]

    @property
    def _suffixes(self) -> Sequence[str]:
        """Of the variables that products need."""
        return ("", "_scale")

    @abstractmethod
    def _floats(self, read: Read) -> Any:
        """What the variables stand for, whose values `read` gives by suffix."""

    def dequantized(self) -> Any:
        return self._floats(self.variable)

    def _set_inputs_quantizer(self) -> None:
        config = self.config_class() if self.config is None else self.config
        self.layer.inputs_quantizer = config.activation_quantizer

    def multiply(self, x: Any, training: bool | None) -> Any:
        product = self.product
        if not product.is_matrix:
            return product(self._rounded(x), self.dequantized())

        # Values, not variables: what the gradient needs of them can be part of native code.
        values = {s: ops.convert_to_tensor(self.variable(s)) for s in self._suffixes}
        read = values.__getitem__

        @custom_gradient
        def exact(x: Any) -> Any:
            def backward(dy: Any) -> Any:
                return ops.cast(product.backward(dy, self._floats(read)), x.dtype)

            return product.outputs(self._times_matrix(product.rows(x), read), x), backward

        return exact(x)

    def _rounded(self, x: Any) -> Any:
        """Inputs as they are rounded, with the gradient of those that are not."""
        quantizer = self.layer.inputs_quantizer
        if quantizer is None:
            return x
        outputs, scale = quantizer(x, axis=self.product.summed_inputs(x))
        kept = ops.divide(ops.cast(outputs, x.dtype), scale)
        return ops.add(x, ops.stop_gradient(ops.subtract(kept, x)))

    def _times_matrix(self, rows: Any, read: Read) -> Any:
        """The product of rows with the weight as a matrix."""
        scale = ops.reshape(read("_scale"), (-1,))
        if self.layer.inputs_quantizer is not None:
            rows, row_scale = self.layer.inputs_quantizer(rows, axis=-1)
            scale = ops.multiply(scale, row_scale)
            y = ops.matmul(rows, self.product.matrix(self._integers(read)))
        else:
            y = self._floats_times_matrix(rows, read)
        return ops.divide(ops.cast(y, self.layer.compute_dtype), scale)

    @abstractmethod
    def _floats_times_matrix(self, rows: Any, read: Read) -> Any:
        """The product of rows that are not rounded with the whole numbers as a matrix."""

    @abstractmethod
    def _integers(self, read: Read) -> Any:
        """The whole numbers, in the shape of the weight."""

    def shown(self) -> Any:
        return self._integers(self.variable)

    @abstractmethod
    def rows(self, ids: Any) -> Any:
        """Rows of the weight, which is a table, as floats."""


class Int8Mode(IntegerMode):
    """Whole numbers of 8 bits and a scale for each output: W is about numbers / scale.

    Inputs are rounded to 8 bits as well, unless the configuration says otherwise.
    """

    name = "int8"
    saved = ("{}", "bias", "{}_scale")
    config_class = Int8QuantizationConfig

    def build(self) -> None:
        self._set_inputs_quantizer()
        weight, summed = self.weight, self.product.summed
        self.make(self.attribute(), weight.shape, dtype="int8", name=weight.name)
        blank = np.ones([1 if a in summed else n for a, n in enumerate(weight.shape)])
        self.make(self.attribute("_scale"), self.product.kept_scale(blank).shape, "ones")

    def encode(self, value: Any) -> dict[str, Any]:
        quantizer = self.config.weight_quantizer if self.config is not None else None
        quantizer = quantizer or quantizers.AbsMaxQuantizer()
        outputs, scale = quantizer(value, axis=self.product.summed, to_numpy=True)
        kept = self.product.kept_scale(scale)
        return {self.attribute(): outputs, self.attribute("_scale"): kept}

    def _floats(self, read: Read) -> Any:
        floats = ops.cast(read(""), self.layer.compute_dtype)
        return ops.divide(floats, self.product.scale_of_weight(read("_scale")))

    def _integers(self, read: Read) -> Any:
        return read("")

    def _floats_times_matrix(self, rows: Any, read: Read) -> Any:
        matrix = self.product.matrix(read(""))
        return few_bits_matmul(rows, matrix, bits=8, columns=matrix.shape[1])

    def rows(self, ids: Any) -> Any:
        floats = ops.cast(ops.take(self.variable(), ids, axis=0), self.layer.compute_dtype)
        scale = ops.take(self.variable("_scale"), ids, axis=0)
        return ops.divide(floats, ops.expand_dims(scale, axis=-1))


class Int4Mode(IntegerMode):
    """Whole numbers of 4 bits, two to a byte.

    There is a scale for each output, and W is about numbers / scale; or each block of inputs has a
    scale and a zero for each output, and W is about (numbers - zero) * scale.
    """

    name = "int4"
    saved = ("{}", "bias", "{}_scale", "{}_zero", "g_idx")
    config_class = Int4QuantizationConfig

    @property
    def block_size(self) -> int | None:
        """How many inputs have one scale; None for all."""
        is_given = isinstance(self.config, Int4QuantizationConfig)
        source = self.config if is_given else self.layer._laminar_own_policy
        found: int | None = getattr(source, "block_size", None)
        return None if found == -1 else found

    @property
    def _groups(self) -> np.ndarray[Any, Any] | None:
        """The number of the block of each input."""
        size = self.block_size
        return None if size is None else np.arange(self._num_inputs) // size

    @property
    def _num_inputs(self) -> int:
        return self.weight.matrix[self.weight.group_axis]

    def build(self) -> None:
        self._set_inputs_quantizer()
        weight, groups = self.weight, self._groups
        packed, scales = list(weight.matrix), list(weight.matrix)
        packed[weight.pack_axis] = math.ceil(packed[weight.pack_axis] / 2)
        self.make(self.attribute(), packed, dtype="int8", name=weight.name)
        if groups is None:
            del scales[weight.group_axis]
        else:
            scales[weight.group_axis] = int(groups[-1]) + 1
        self.make(self.attribute("_scale"), scales, "ones")
        if groups is not None:
            self.make(self.attribute("_zero"), scales, dtype="int8")
            if getattr(self.layer, "g_idx", None) is None:
                self.make("g_idx", groups.shape, dtype="float32").assign(groups)

    def encode(self, value: Any) -> dict[str, Any]:
        weight, size = self.weight, self.block_size
        matrix = ops.reshape(value, weight.matrix)
        found: dict[str, Any] = {}
        if size is None:
            quantizer = self.config.weight_quantizer if self.config is not None else None
            quantizer = quantizer or quantizers.AbsMaxQuantizer(value_range=(-8, 7))
            numbers, scale = quantizer(matrix, axis=weight.group_axis, to_numpy=True)
            scale = ops.squeeze(scale, axis=weight.group_axis)
        else:
            numbers, scale, zero = (
                self._turned(each)
                for each in quantizers.abs_max_quantize_grouped_with_zero_point(
                    self._turned(matrix), size, to_numpy=True
                )
            )
            found[self.attribute("_zero")] = zero
        packed, _, _ = quantizers.pack_int4(numbers, axis=weight.pack_axis)
        return {self.attribute(): packed, self.attribute("_scale"): scale, **found}

    def _turned(self, x: Any) -> Any:
        """A matrix with the blocks along its first axis, or from there to where they are."""
        return ops.transpose(x) if self.weight.group_axis else x

    @property
    def _suffixes(self) -> Sequence[str]:
        return ("", "_scale") if self.block_size is None else ("", "_scale", "_zero")

    def _floats(self, read: Read) -> Any:
        found = self._scaled(self._numbers(read), read, self.weight.group_axis)
        return ops.reshape(found, self.weight.shape)

    def _scaled(self, numbers: Any, read: Read, axis: int) -> Any:
        """What numbers stand for, of all rows or of some, with scales along `axis`."""
        groups, dtype = self._groups, self.layer.compute_dtype
        numbers, scale = ops.cast(numbers, dtype), read("_scale")
        if groups is None:
            return ops.divide(numbers, ops.expand_dims(scale, axis))
        scale, zero = (ops.cast(ops.take(x, groups, axis), dtype) for x in (scale, read("_zero")))
        return ops.multiply(ops.subtract(numbers, zero), scale)

    def _numbers(self, read: Read) -> Any:
        axis = self.weight.pack_axis
        return quantizers.unpack_int4(read(""), self.weight.matrix[axis], axis=axis)

    def _integers(self, read: Read) -> Any:
        return ops.reshape(self._numbers(read), self.weight.shape)

    @property
    def _is_in_rows(self) -> bool:
        """Whether the bytes are a matrix as a product takes it: blocks down, packed across."""
        return (self.weight.group_axis, self.weight.pack_axis) == (0, 1)

    def _times_matrix(self, rows: Any, read: Read) -> Any:
        size = self.block_size
        if size is None:
            return super()._times_matrix(rows, read)
        if not self._is_in_rows:
            return ops.matmul(rows, self.product.matrix(self._floats(read)))
        groups = read("_scale"), read("_zero")
        columns = self.weight.matrix[1]
        return few_bits_matmul(rows, read(""), *groups, bits=4, columns=columns, group_size=size)

    def _floats_times_matrix(self, rows: Any, read: Read) -> Any:
        if not self._is_in_rows:
            numbers = ops.cast(self.product.matrix(self._integers(read)), rows.dtype)
            return ops.matmul(rows, numbers)
        return few_bits_matmul(rows, read(""), bits=4, columns=self.weight.matrix[1])

    def rows(self, ids: Any) -> Any:
        def read(suffix: str) -> Any:
            return ops.take(self.variable(suffix), ids, axis=0)

        numbers = quantizers.unpack_int4(read(""), self.weight.matrix[1], axis=-1)
        return self._scaled(numbers, read, -1)
