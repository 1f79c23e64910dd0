"""Policies of layers whose weights are in few bits: the types of what is not, and the mode.

Their names say both: "int8_from_float32", "int4/128_from_mixed_bfloat16", "gptq/4/128_from_...".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from laminar.engine.errors import DTypeError, InvalidArgumentError

from .policy import DTypePolicy

MODES = ("int8", "float8", "int4", "gptq", "awq")


class QuantizedDTypePolicy(DTypePolicy):
    """The policy of a layer whose weights are kept in few bits: the types of what is not.

    Args:
        mode: "int8", "int4", "float8", "gptq" or "awq".
        source_name: the policy that the layer had; None means the global policy.

    Raises:
        InvalidArgumentError: another mode, or `source_name` names no policy, or one that computes
            in float16 with the mode "int8", whose sums it does not hold.

    Examples:
        >>> laminar.dtype_policies.QuantizedDTypePolicy("int8", "float32").name
        'int8_from_float32'
    """

    _keras_module = "keras.dtype_policies"

    def __init__(self, mode: str, source_name: str | None = None) -> None:
        if mode not in MODES:
            raise InvalidArgumentError(
                f"{type(self).__name__}: expected a mode of {', '.join(MODES)}, got {mode!r}"
            )
        super().__init__(source_name)
        if mode == "int8" and self.compute_dtype == "float16":
            raise InvalidArgumentError(
                f"{type(self).__name__}: the mode 'int8' is too wide for float16",
                remedy="use bfloat16 or float32",
            )
        self.mode = mode
        self.source_name = self._name
        self._name = f"{self._full_mode()}_from_{self._name}"

    def _full_mode(self) -> str:
        """The mode, with what else the name says of it."""
        return self.mode

    @property
    def quantization_mode(self) -> str | None:
        """How weights are kept."""
        return self.mode

    def get_config(self) -> dict[str, Any]:
        return {"mode": self._full_mode(), "source_name": self.source_name}

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.get_config() == self.get_config()

    def __hash__(self) -> int:
        return hash(self._name)

    def __repr__(self) -> str:
        return f'<{type(self).__name__} "{self._name}">'


class QuantizedFloat8DTypePolicy(QuantizedDTypePolicy):
    """The policy of a layer that multiplies numbers in 8 bits of floating point.

    Args:
        mode: "float8".
        source_name: see `QuantizedDTypePolicy`.
        amax_history_length: how many of the largest magnitudes that came last are kept.

    Raises:
        DTypeError: the length is no whole number.

    Examples:
        >>> laminar.dtype_policies.QuantizedFloat8DTypePolicy(
        ...     "float8", "float32"
        ... ).amax_history_length
        1024
    """

    default_amax_history_length = 1024

    def __init__(
        self, mode: str, source_name: str | None = None, amax_history_length: int = 1024
    ) -> None:
        super().__init__(mode, source_name)
        if not isinstance(amax_history_length, int):
            raise DTypeError(
                f"QuantizedFloat8DTypePolicy: amax_history_length must be a whole number, "
                f"got {amax_history_length!r}"
            )
        self.amax_history_length = amax_history_length

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "amax_history_length": self.amax_history_length}


class _Parts(QuantizedDTypePolicy):
    """A policy whose mode has numbers after it: "mode/number/number"."""

    _mode: str
    _numbers: tuple[tuple[str, Callable[[int], bool]], ...]

    def __init__(self, mode: str, source_name: str | None = None) -> None:
        first, *numbers = str(mode).split("/")
        form = "/".join([self._mode, *(f"<{name}>" for name, _ in self._numbers)])
        try:
            values = [int(n) for n in numbers]
        except ValueError:
            values = []
        is_right = first == self._mode and len(values) == len(self._numbers)
        if not is_right or not all(
            fits(n) for (_, fits), n in zip(self._numbers, values, strict=True)
        ):
            raise InvalidArgumentError(
                f"{type(self).__name__}: expected a mode as {form!r}, got {mode!r}"
            )
        for (name, _), value in zip(self._numbers, values, strict=True):
            setattr(self, name, value)
        super().__init__(first, source_name)

    def _full_mode(self) -> str:
        return "/".join([self._mode, *(str(getattr(self, name)) for name, _ in self._numbers)])


def _is_size(n: int) -> bool:
    return n == -1 or n > 0


class Int4DTypePolicy(_Parts):
    """The policy of a layer with weights in 4 bits: the mode is "int4/<block_size>", -1 for none.

    Attributes:
        block_size: so many inputs have a scale of their own.

    Examples:
        >>> laminar.dtype_policies.Int4DTypePolicy("int4/64", "bfloat16").compute_dtype
        'bfloat16'
    """

    _mode = "int4"
    _numbers = (("block_size", _is_size),)
    block_size: int


class GPTQDTypePolicy(_Parts):
    """The policy of a layer that GPTQ has rounded: the mode is "gptq/<weight_bits>/<group_size>".

    Attributes:
        weight_bits: 2, 3, 4 or 8.
        group_size: so many inputs have a scale of their own; -1 for all.

    Examples:
        >>> laminar.dtype_policies.GPTQDTypePolicy("gptq/4/128", "float32").compute_dtype
        'float32'
    """

    _mode = "gptq"
    _numbers = (("weight_bits", (2, 3, 4, 8).__contains__), ("group_size", _is_size))
    weight_bits: int
    group_size: int


class AWQDTypePolicy(_Parts):
    """The policy of a layer that AWQ has rounded: the mode is "awq/4/<group_size>".

    Attributes:
        weight_bits: 4.
        group_size: so many inputs have a scale of their own; -1 for all.

    Examples:
        >>> laminar.dtype_policies.AWQDTypePolicy("awq/4/128", "float32").compute_dtype
        'float32'
    """

    _mode = "awq"
    _numbers = (("weight_bits", (4,).__contains__), ("group_size", _is_size))
    weight_bits: int
    group_size: int


def quantized(mode: str, source: str) -> QuantizedDTypePolicy:
    """The policy of a mode, as names have it, and of the name of another policy."""
    kinds: dict[str, type[QuantizedDTypePolicy]] = {
        "float8": QuantizedFloat8DTypePolicy,
        "gptq": GPTQDTypePolicy,
        "awq": AWQDTypePolicy,
    }
    kind = mode.partition("/")[0]
    if kind == "int4" and "/" in mode:
        return Int4DTypePolicy(mode, source)
    return kinds.get(kind, QuantizedDTypePolicy)(mode, source)
