"""Layers with one large weight, which can be kept in few bits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from laminar import dtype_policies, ops, quantizers
from laminar.engine.errors import UnimplementedError
from laminar.engine.state import Variable
from laminar.initializers import InitializerLike
from laminar.naming import who
from laminar.quantizers import QuantizationConfig, QuantizationLike
from laminar.recorded import is_ours

from .contraction import Contraction
from .low_rank import LowRank
from .options import make_weight
from .quantizing import mark_quantized
from .weight_calibrated import AWQMode, CalibratedMode, GPTQMode
from .weight_float8 import Float8Mode
from .weight_integers import Int4Mode, Int8Mode
from .weight_modes import LargeWeight, WeightMode


class MainWeight(LowRank):
    """The part of a layer that deals with its main weight W, in whatever mode.

    A class says with `_main` what W is called, with `_modes` in which modes it can be, and with
    `_laminar_large_weights` what is computed with it; it builds W with `_laminar_make_main`.

    Attributes:
        _laminar_kept: the weights in the mode of the policy; none where there is no mode.
    """

    _modes: ClassVar[Sequence[type[WeightMode]]] = (
        Int8Mode,
        Int4Mode,
        Float8Mode,
        GPTQMode,
        AWQMode,
    )
    _laminar_kept: Sequence[WeightMode] = ()
    quantization_config: QuantizationConfig | None
    bias: Variable | None = None
    activation: Callable[[Any], Any] | None = None

    # From the constructor, and from build

    def _laminar_keep_main(
        self,
        lora_rank: int | None,
        lora_alpha: float | None,
        quantization_config: QuantizationLike | None,
    ) -> None:
        self._laminar_keep_low_rank(lora_rank, lora_alpha)
        self.quantization_config = quantizers.get(quantization_config)

    def _laminar_large_weights(self, shape: tuple[int, ...]) -> list[LargeWeight]:
        """The weights that a mode changes: W, of `shape`, comes first."""
        raise NotImplementedError

    def _laminar_make_main(
        self, shape: Sequence[int | None], *, initializer: InitializerLike | None = None
    ) -> None:
        """Make W, or what a mode has in its place."""
        mode = self.quantization_mode
        if mode is not None:
            self.quantized_build(shape, mode, self.quantization_config)
        if all(kept.floats_made for kept in self._laminar_kept):
            made = make_weight(self, self._main, shape, initializer=initializer)
            setattr(self, f"_{self._main}", made)

    @property
    def _laminar_main_shape(self) -> tuple[int, ...]:
        if self._laminar_kept:
            return self._laminar_kept[0].weight.shape
        return super()._laminar_main_shape

    def _laminar_main_value(self) -> Any:
        if not (self.built and self._laminar_kept):
            return super()._laminar_main_value()
        kept = self._laminar_kept[0]
        if not self.lora_enabled:
            return kept.shown()
        return self._laminar_merged(ops.cast(kept.dequantized(), self.compute_dtype))

    # In few bits

    def quantized_build(
        self, input_shape: Any, mode: str, config: QuantizationConfig | None = None
    ) -> None:
        """Make the variables of a mode.

        Args:
            input_shape: of the main weight.
            mode: "int8", "int4", "float8", "gptq" or "awq".
            config: what can be chosen of the mode.

        Raises:
            UnimplementedError: the layer does not have the mode.
        """
        kind = self._laminar_mode(mode)
        weights = self._laminar_large_weights(tuple(input_shape))
        kept = [kind(self, weight, config) for weight in weights]
        for each in kept:
            each.build()
        self._laminar_kept = kept
        mark_quantized(self)

    def _laminar_mode(self, mode: str | None) -> type[WeightMode]:
        for kind in self._modes:
            if kind.name == mode:
                return kind
        names = ", ".join(repr(kind.name) for kind in self._modes)
        raise UnimplementedError(
            f"{who(self)}: Invalid quantization mode. Expected one of {names}, got {mode!r}"
        )

    def quantize(
        self,
        mode: str | QuantizationConfig | None = None,
        type_check: bool = True,
        config: QuantizationLike | None = None,
    ) -> None:
        """Keep the main weight in few bits, from now on; it is trained no more, but with "float8".

        An update of low rank stays beside it. The modes "gptq" and "awq" take effect when
        `model.quantize` has shown the layer data.

        Args:
            mode: "int8", "int4", "float8", "gptq" or "awq".
            type_check: whether classes that derive from the layer are refused.
            config: what can be chosen of the mode.

        Raises:
            InvalidArgumentError: the layer is not built, or quantized already; or another mode or
                configuration.
            UnimplementedError: the layer does not have the mode, or is of a derived class.
        """
        if type_check and not is_ours(type(self)):
            raise UnimplementedError(
                f"{who(self)}: quantize() is not written for {type(self).__name__}",
                remedy="pass type_check=False if its call uses the weight as the base class does",
            )
        assert isinstance(config, QuantizationConfig)
        assert isinstance(mode, str)
        kind = self._laminar_mode(mode)
        weights = self._laminar_large_weights(self._laminar_main_shape)
        held = self.quantization_config
        self.quantization_config = config
        try:
            values: dict[str, Any] = {}
            for weight in weights:
                value = getattr(self, weight.attribute).read_value()
                values |= kind(self, weight, config).encode(value)
        except BaseException:
            self.quantization_config = held
            raise
        if not kind.floats_stay:
            for weight in weights:
                delattr(self, weight.attribute)
        self.quantized_build(weights[0].shape, mode, config)
        for name, value in values.items():
            getattr(self, name).assign(value)
        policy = self._laminar_own_policy
        if policy.quantization_mode is None:
            self._laminar_set_policy(dtype_policies.get(f"{config.policy}_from_{policy.name}"))

    def _laminar_take_policy(self, policy: str) -> None:
        """Have the variables of a policy instead of the weight: a file will say what they hold."""
        weights = self._laminar_large_weights(self._laminar_main_shape)
        found = dtype_policies.get(policy)
        self._laminar_set_policy(found)
        mode = found.quantization_mode
        if not self._laminar_mode(mode).floats_made:
            for weight in weights:
                delattr(self, weight.attribute)
        self.quantized_build(weights[0].shape, mode)

    def quantized_call(self, *args: Any, **kwargs: Any) -> Any:
        """The call of a layer that is quantized, with the arguments of `call`.

        Raises:
            UnimplementedError: the policy names a mode that the layer does not have.
        """
        return self._laminar_finish(self._laminar_multiply(*args, **kwargs))

    def _laminar_finish(self, y: Any) -> Any:
        """Bias and activation."""
        if self.bias is not None:
            kept = self._laminar_kept
            y = kept[0].add_bias(y, self.bias) if kept else ops.add(y, self.bias)
        return y if self.activation is None else self.activation(y)

    def _laminar_kept_weight(self, index: int = 0) -> WeightMode:
        """A weight in the mode of the policy."""
        self._laminar_mode(self.quantization_mode)
        return self._laminar_kept[index]

    def _laminar_multiply(self, inputs: Any, training: bool | None = None, index: int = 0) -> Any:
        """The product of an input with a weight in its mode."""
        kept = self._laminar_kept_weight(index)
        y = kept.multiply(inputs, training)
        if index == 0 and self.lora_enabled:
            y = ops.add(y, self._laminar_low_rank_product(kept.product, inputs))
        return y

    def _laminar_low_rank_product(self, product: Contraction, x: Any) -> Any:
        update = product.low_rank(x, self._laminar_a, self._laminar_b)
        return ops.cast(self._laminar_scaled(update), self.compute_dtype)

    # Files

    @property
    def variable_serialization_spec(self) -> Mapping[str | None, list[str]]:
        """The attributes that files have, in order, for each mode; None for none.

        What the layer does not have is not in its files.
        """
        found: dict[str | None, list[str]] = {None: self._laminar_saved_names(("{}", "bias"))}
        for kind in self._modes:
            found[kind.name] = self._laminar_saved_names(kind.saved)
        return found

    def _laminar_saved_names(self, templates: Sequence[str]) -> list[str]:
        return [name.format(self._main) for name in templates]

    def save_own_variables(self, store: Any) -> None:
        """Put the variables into a mapping; W with its update of low rank.

        Raises:
            FailedPreconditionError: the mode awaits data, so the variables say nothing yet.
        """
        for kept in self._laminar_kept:
            if isinstance(kept, CalibratedMode):
                kept.check_saved()
        super().save_own_variables(store)

    def load_own_variables(self, store: Any) -> None:
        """Take the variables from such a mapping; an update of low rank begins anew."""
        super().load_own_variables(store)
        for kept in self._laminar_kept:
            if isinstance(kept, CalibratedMode):
                kept.finish()

    def _laminar_stored(self) -> dict[str, Variable]:
        named: dict[str, Variable] = {}
        for name in self.variable_serialization_spec[self.quantization_mode]:
            attribute = f"_{name}" if name == self._main else name
            variable = getattr(self, attribute, None)
            if variable is not None:
                named[name] = variable
        return self._laminar_with_others(named)

    def _laminar_merged_values(self) -> dict[str, Any]:
        if not self._laminar_kept:
            return super()._laminar_merged_values()
        kept = self._laminar_kept[0]
        value = ops.add(kept.dequantized(), self._laminar_update())
        if kept.floats_made:
            return {self._main: value}
        found = kept.encode(value)
        return {name.removeprefix("_"): np.asarray(each) for name, each in found.items()}

    def _laminar_main_config(self) -> dict[str, Any]:
        """What `get_config` says of all this."""
        config = {"quantization_config": quantizers.serialize(self.quantization_config)}
        return config | self._laminar_low_rank_config()
