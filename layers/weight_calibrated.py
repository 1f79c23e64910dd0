"""Weights in few bits that data was looked at for: GPTQ and AWQ."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

import numpy as np

from laminar import ops, quantizers
from laminar.engine.errors import FailedPreconditionError, InvalidArgumentError
from laminar.naming import who
from laminar.quantizers import AWQConfig, GPTQConfig
from laminar.quantizers.awq import InputMagnitudes, awq_round
from laminar.quantizers.gptq import InputProducts, Rounded, gptq_round

from .weight_modes import WeightMode


class CalibratedMode(WeightMode):
    """Whole numbers from 0 on: W' is about (numbers - zero) * scale. Abstract.

    Each output has scales and zeros for groups of inputs. Until `calibrate` has run, the layer
    computes with the weight itself. W is a matrix here, of all that is summed over and all that
    is not; of a kernel with three axes the largest one, if it is the first, is the input.
    """

    floats_stay = True
    _observer: Any = None
    config_class: ClassVar[type[Any]]

    @property
    def _setting(self) -> Any:
        """What says how many bits there are, and how large groups are."""
        is_given = isinstance(self.config, self.config_class)
        return self.config if is_given else self.layer._laminar_own_policy

    @property
    def matrix(self) -> tuple[int, int]:
        """Inputs and outputs.

        Raises:
            InvalidArgumentError: the weight has another number of axes than 2 or 3.
        """
        shape = self.weight.shape
        if len(shape) not in (2, 3):
            raise InvalidArgumentError(
                f"{who(self.layer)}: {self.name} is for kernels of 2 or 3 axes, got shape {shape}"
            )
        is_first = len(shape) == 2 or shape[0] == max(shape)
        count = shape[0] if is_first else math.prod(shape[:-1])
        return count, math.prod(shape) // count

    @property
    def _is_packed(self) -> bool:
        return bool(self._setting.weight_bits == 4)

    @property
    def is_calibrated(self) -> bool:
        """Whether data has been looked at."""
        return bool(getattr(self.layer, f"is_{self.name}_calibrated", False))

    def attribute(self, suffix: str = "") -> str:
        return super().attribute(suffix) if suffix else f"quantized_{self.weight.name}"

    def build(self) -> None:
        setattr(self.layer, f"is_{self.name}_calibrated", False)
        (inputs, outputs), size = self.matrix, self._setting.group_size
        num_groups = 1 if size == -1 else math.ceil(inputs / size)
        rows = math.ceil(outputs / 2) if self._is_packed else outputs
        self.make(self.attribute(), (rows, inputs), dtype="uint8", name=self.weight.name)
        self.make(self.attribute("_scale"), (outputs, num_groups), "ones")
        self.make(self.attribute("_zero"), (outputs, num_groups), dtype="uint8")
        self.make("g_idx", (inputs,), dtype="float32")

    def dequantized(self) -> Any:
        weight = getattr(self.layer, self.weight.attribute, None)
        if weight is not None:
            return weight
        groups = ops.cast(self.layer.g_idx, "int32")
        scale, zero = (ops.take(self.variable(s), groups, axis=1) for s in ("_scale", "_zero"))
        numbers = ops.cast(self._numbers(), scale.dtype)
        floats = ops.multiply(ops.subtract(numbers, ops.cast(zero, scale.dtype)), scale)
        return ops.reshape(self._unscaled(ops.transpose(floats)), self.weight.shape)

    def _unscaled(self, floats: Any) -> Any:
        """The weight as a matrix, of what the numbers stand for."""
        return floats

    def _numbers(self) -> Any:
        packed = self.variable()
        if not self._is_packed:
            return packed
        return quantizers.unpack_int4(packed, self.matrix[1], axis=0, dtype="uint8")

    def shown(self) -> Any:
        weight = getattr(self.layer, self.weight.attribute, None)
        return self._numbers() if weight is None or self.is_calibrated else weight

    # Looking at data

    @contextmanager
    def observed_by(self, observer: Any) -> Iterator[None]:
        """Inside, `observer` takes in what comes to the layer."""
        self._observer = observer
        try:
            yield
        finally:
            self._observer = None

    def multiply(self, x: Any, training: bool | None) -> Any:
        if self._observer is not None:
            self._observer.add(np.asarray(x).reshape(-1, self.matrix[0]))
        return super().multiply(x, training)

    def observer(self) -> Any:
        """What takes in the inputs that come: `add(x)`, with what is summed over last."""
        raise NotImplementedError

    def check_saved(self) -> None:
        """Refuse to be saved where the variables do not hold the weight yet."""
        if not self.is_calibrated:
            raise FailedPreconditionError(
                f"{who(self.layer)}: the mode {self.name!r} has seen no data, so there are no "
                f"weights in few bits to be saved",
                remedy="call model.quantize(config=...) with the layer in one of the blocks",
            )

    def finish(self) -> None:
        """The variables hold the weight: it is not needed any more."""
        if hasattr(self.layer, self.weight.attribute):
            delattr(self.layer, self.weight.attribute)
        setattr(self.layer, f"is_{self.name}_calibrated", True)

    def _keep(self, rounded: Rounded) -> None:
        """Take these numbers instead of the weight."""
        numbers = rounded.numbers.astype(np.uint8)
        if self._is_packed:
            numbers, _, _ = quantizers.pack_int4(numbers, axis=0, dtype="uint8")
        self.variable().assign(numbers)
        self.variable("_scale").assign(rounded.levels.scale)
        self.variable("_zero").assign(rounded.levels.zero)
        self.layer.g_idx.assign(rounded.groups)
        self.finish()

    def _outputs_by_inputs(self) -> Any:
        return np.asarray(self.dequantized()).reshape(self.matrix).T

    def calibrate(self, observer: Any) -> None:
        """Round the weight, for inputs like those that `observer` has seen."""
        raise NotImplementedError


class GPTQMode(CalibratedMode):
    """Each input's error of rounding is made good by those after it; see `GPTQConfig`."""

    name = "gptq"
    saved = ("bias", "quantized_{}", "{}_scale", "{}_zero", "g_idx")
    config_class = GPTQConfig

    def observer(self) -> InputProducts:
        return InputProducts(self.matrix[0])

    def calibrate(self, observer: InputProducts) -> None:
        assert isinstance(self.config, GPTQConfig)
        self._keep(gptq_round(self._outputs_by_inputs(), observer, self.config))


class AWQMode(CalibratedMode):
    """Inputs have scales, by which what the numbers stand for is divided; see `AWQConfig`."""

    name = "awq"
    saved = ("bias", "quantized_{}", "{}_scale", "{}_zero", "awq_scales", "g_idx")
    config_class = AWQConfig

    def build(self) -> None:
        super().build()
        self.make("awq_scales", (self.matrix[0],), "ones")

    def _unscaled(self, floats: Any) -> Any:
        return ops.divide(floats, ops.expand_dims(self.layer.awq_scales, -1))

    def observer(self) -> InputMagnitudes:
        return InputMagnitudes(self.matrix[0])

    def calibrate(self, observer: InputMagnitudes) -> None:
        assert isinstance(self.config, AWQConfig)
        scaled = awq_round(self._outputs_by_inputs(), observer, self.config)
        self._keep(scaled.rounded)
        self.layer.awq_scales.assign(scaled.scales)
