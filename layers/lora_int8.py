"""Layers with one large weight: trained by an update of low rank, or kept in 8 bits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from laminar import dtype_policies, ops, quantizers
from laminar.engine.errors import FailedPreconditionError, UnimplementedError
from laminar.engine.graph import Tensor
from laminar.engine.state import Variable
from laminar.initializers import InitializerLike
from laminar.naming import who
from laminar.quantizers import QuantizationConfig, QuantizationLike

from .layer import Layer
from .options import make_weight, whole


class MainWeight(Layer):
    """The part of a layer that deals with its main weight W.

    With low-rank adaptation W stays as it is and W + (alpha / rank) A B is used, where A and B,
    which training changes, share an axis of the size `rank`. In 8 bits W is kept as whole numbers
    and a scale for each of its outputs, and the inputs are rounded alike, with a scale for each
    row; gradients pass the rounding as if it were not there.

    A class says with `_main` which attribute W is, builds it with `_make_main`, uses
    `_effective_kernel()` and, in 8 bits, `_dequantize(y)`.

    Source: Hu et al., "LoRA: low-rank adaptation of large language models", 2021,
        arXiv:2106.09685, section 4.1.
    """

    _main: ClassVar[str] = "kernel"
    _scale: Variable | None = None

    # From the constructor, and from build

    def _keep_main(
        self,
        lora_rank: int | None,
        lora_alpha: float | None,
        quantization_config: QuantizationLike | None,
    ) -> None:
        self.lora_rank = None if lora_rank is None else whole(self, "lora_rank", lora_rank)
        self.lora_alpha = self.lora_rank if lora_alpha is None else lora_alpha
        self.lora_enabled = False
        self.quantization_config = quantizers.get(quantization_config)
        if self.quantization_mode not in (None, "int8"):
            raise UnimplementedError(
                f"{who(self)}: weights are kept in 8 bits, not as the policy "
                f"{self._laminar_policy.name!r} says",
                remedy="use a policy such as 'int8_from_float32'",
            )

    def _make_main(
        self, shape: Sequence[int | None], *, initializer: InitializerLike | None = None
    ) -> Variable:
        if self.quantization_mode is None:
            return make_weight(self, self._main, shape, initializer=initializer)
        return self.add_weight(
            shape, "zeros", dtype="int8", trainable=False, autocast=False, name=self._main
        )

    def _main_made(self, scale_shape: Sequence[int]) -> None:
        """At the end of `build`: what stands beside W."""
        if self.quantization_mode is not None:
            self._scale = self._make_scale(scale_shape)
        elif self.lora_rank is not None:
            self._add_lora("he_uniform", "zeros")

    def _make_scale(self, shape: Sequence[int]) -> Variable:
        return self.add_weight(shape, "ones", trainable=False, name=f"{self._main}_scale")

    @property
    def _weight(self) -> Variable:
        found: Variable = getattr(self, self._main)
        return found

    # Low-rank adaptation

    def enable_lora(
        self,
        rank: int,
        lora_alpha: float | None = None,
        a_initializer: InitializerLike = "he_uniform",
        b_initializer: InitializerLike = "zeros",
    ) -> None:
        """Freeze the main weight, and train an update of low rank of it instead.

        Args:
            rank: of the update.
            lora_alpha: the update is multiplied by lora_alpha / rank; `rank` by default.
            a_initializer: of A.
            b_initializer: of B; zeros leave the layer as it is.

        Raises:
            FailedPreconditionError: the layer is not built, adapted already, or in 8 bits.
            InvalidArgumentError: `rank` is no whole number above 0.
        """
        self._refuse_unbuilt("enable_lora")
        if self.lora_enabled or self.quantization_mode is not None:
            raise FailedPreconditionError(
                f"{who(self)}: enable_lora() was called before, or the weight is in 8 bits"
            )
        self.lora_rank = whole(self, "rank", rank)
        self.lora_alpha = self.lora_rank if lora_alpha is None else lora_alpha
        self._add_lora(a_initializer, b_initializer)

    def _add_lora(self, a_initializer: InitializerLike, b_initializer: InitializerLike) -> None:
        shape = tuple(self._weight.shape)
        rank = self.lora_rank
        self._lora_a = self.add_weight(
            (*shape[:-1], rank), a_initializer, name=f"lora_{self._main}_a"
        )
        self._lora_b = self.add_weight(
            (rank, shape[-1]), b_initializer, name=f"lora_{self._main}_b"
        )
        self._weight.trainable = False
        self.lora_enabled = True

    def _lora_update(self, a: Any) -> Any:
        """(alpha / rank) a B."""
        assert self.lora_alpha is not None
        assert self.lora_rank is not None
        return ops.multiply(self.lora_alpha / self.lora_rank, ops.matmul(a, self._lora_b))

    # In 8 bits

    def quantize(
        self,
        mode: str | QuantizationConfig | None = None,
        type_check: bool = True,
        config: QuantizationLike | None = None,
    ) -> None:
        """Keep the main weight in 8 bits, from now on; it is trained no more.

        Args:
            mode: "int8".
            type_check: kept for Keras scripts.
            config: a `quantizers.Int8QuantizationConfig`.

        Raises:
            FailedPreconditionError: the layer is not built, or in 8 bits already.
            InvalidArgumentError: another mode or configuration.
        """
        self._refuse_unbuilt("quantize")
        if self.quantization_mode is not None:
            raise FailedPreconditionError(
                f"{who(self)}: it is quantized already, as {self._laminar_policy.name!r}"
            )
        self.quantization_config = quantizers.as_config(mode, config, who(self))
        value = ops.cast(self._merged(), self.variable_dtype)
        quantizer = self.quantization_config.weight_quantizer or quantizers.AbsMaxQuantizer()
        outputs, scale = quantizer(value, axis=self._main_axes())
        self._laminar_policy = dtype_policies.QuantizedDTypePolicy(
            "int8", self._laminar_policy.name
        )
        delattr(self, self._main)
        if self.lora_enabled:
            del self._lora_a, self._lora_b
            self.lora_enabled = False
            self.lora_rank = self.lora_alpha = None
        setattr(self, self._main, self._make_main(tuple(value.shape)))
        self._weight.assign(outputs)
        shape = self._scale_shape()
        self._scale = self._make_scale(shape)
        self._scale.assign(ops.reshape(self._for_outputs(scale), shape))

    def _main_axes(self) -> tuple[int, ...]:
        """The axes of W that are summed over: what is left has a scale for each place."""
        raise NotImplementedError

    def _scale_shape(self) -> tuple[int, ...]:
        """The shape of the scale, as it divides outputs."""
        raise NotImplementedError

    def _for_outputs(self, scale: Any) -> Any:
        """A scale whose axes are those of W, in the order of the outputs' axes."""
        return scale

    def _refuse_unbuilt(self, what: str) -> None:
        if not self.built:
            raise FailedPreconditionError(
                f"{who(self)}: {what}() needs a built layer",
                remedy="call the layer on data, or build(input_shape), first",
            )

    # In use

    def _effective_kernel(self) -> Any:
        """What takes the place of W in the computation."""
        if self._scale is not None:
            return ops.cast(self._weight, self.compute_dtype)
        if self.lora_enabled:
            return ops.add(self._weight, self._lora_update(self._lora_a))
        return self._weight

    def _merged(self) -> Any:
        """W with its update of low rank."""
        if not self.lora_enabled:
            return self._weight.read_value()
        return ops.add(self._weight, self._lora_update(self._lora_a))

    def _quantize_inputs(self, x: Tensor, axes: Sequence[int]) -> Any:
        """Inputs as 8 bits keep them, with one scale along `axes`."""
        if self._scale is None:
            return x
        quantizer = self.quantization_config.activation_quantizer
        if quantizer is None:
            return x
        outputs, scale = quantizer(x, axis=tuple(axes))
        kept = ops.divide(ops.cast(outputs, x.dtype), scale)
        return ops.add(x, ops.stop_gradient(ops.subtract(kept, x)))

    def _dequantize(self, y: Tensor) -> Any:
        """Outputs by the scale of W."""
        return y if self._scale is None else ops.divide(y, self._scale)

    # Files

    def save_own_variables(self, store: Any) -> None:
        """Put the variables into a mapping; W with its update of low rank."""
        for i, v in enumerate(self._laminar_saved_variables()):
            is_merged = v is self._weight and self.lora_enabled
            store[str(i)] = np.asarray(self._merged() if is_merged else v)

    def load_own_variables(self, store: Any) -> None:
        """Take the variables from such a mapping; an update of low rank begins anew."""
        super().load_own_variables(store)
        if self.lora_enabled:
            self._lora_b.assign(ops.zeros_like(self._lora_b.value))

    def _laminar_saved_variables(self) -> list[Variable]:
        own = [
            v for v in self._laminar_own_variables if v is not self._scale and v is not self._weight
        ]
        if self.lora_enabled:
            own = [v for v in own if v is not self._lora_a and v is not self._lora_b]
        first = [self._weight] if self._main in self.__dict__ else []
        return [*first, *own, *([] if self._scale is None else [self._scale])]

    def _main_config(self) -> dict[str, Any]:
        """What `get_config` says of all this."""
        config = {"quantization_config": quantizers.serialize(self.quantization_config)}
        if self.lora_rank is not None:
            config |= {"lora_rank": self.lora_rank, "lora_alpha": self.lora_alpha}
        return config
