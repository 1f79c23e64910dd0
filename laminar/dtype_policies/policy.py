"""Policies of layers that are not quantized, and the one of layers that name none."""

from __future__ import annotations

from typing import Any

from laminar.engine.errors import DTypeError, InvalidArgumentError
from laminar.engine.graph import Tensor, as_dtype
from laminar.engine.ops.core.arrays import Defaults
from laminar.engine.ops.core.convert import convert_to_tensor

from ..ops.core import cast

_MIXED = {"mixed_float16": "float16", "mixed_bfloat16": "bfloat16"}


class DTypePolicy:
    """The types of a layer's computation and of its variables.

    Args:
        name: an element type, for both; or "mixed_float16" or "mixed_bfloat16", which compute in
            the half type and keep variables in float32. None means the global policy.

    Raises:
        DTypeError: `name` is not a string.
        InvalidArgumentError: it names no policy.

    Source: Micikevicius et al., "Mixed precision training", 2018, arXiv:1710.03740, section 3.1.

    Examples:
        >>> policy = laminar.DTypePolicy("mixed_bfloat16")
        >>> policy.compute_dtype, policy.variable_dtype
        ('bfloat16', 'float32')
        >>> layers.Dense(2, dtype=policy)(np.ones((1, 3))).dtype
        'bfloat16'
    """

    _keras_module = "keras"  # how files name the module

    def __init__(self, name: str | None = None) -> None:
        if name is None:
            name = global_policy().name
        if not isinstance(name, str):
            raise DTypeError(f"DTypePolicy: expected a name such as 'mixed_float16', got {name!r}")
        self._name = name
        if name in _MIXED:
            self._compute_dtype, self._variable_dtype = _MIXED[name], "float32"
            return
        try:
            self._compute_dtype = self._variable_dtype = str(as_dtype(name))
        except DTypeError as cause:
            raise InvalidArgumentError(
                f"DTypePolicy: there is no policy {name!r}",
                remedy="use 'mixed_float16', 'mixed_bfloat16', or an element type: 'float32'",
            ) from cause

    @property
    def name(self) -> str:
        """What it was made from."""
        return self._name

    @property
    def compute_dtype(self) -> str:
        """The type in which layers compute, and of what they return."""
        return self._compute_dtype

    @property
    def variable_dtype(self) -> str:
        """The type in which variables are kept."""
        return self._variable_dtype

    @property
    def quantization_mode(self) -> str | None:
        """How weights are quantized: not at all."""
        return None

    def convert_input(self, x: Any, autocast: bool, dtype: Any) -> Any:
        """`x` as a layer takes it: arrays as tensors, floats cast to `dtype` with `autocast`.

        Integers, and what is no tensor or array, stay as they are.
        """
        wanted = as_dtype(dtype)
        symbolic = getattr(type(x), "is_keras_tensor", False)
        if not symbolic and not isinstance(x, Tensor):
            if not hasattr(x, "__array__"):
                return x
            x = convert_to_tensor(x)
        found = as_dtype(x.dtype)
        return cast(x, wanted) if autocast and found.is_floating and found != wanted else x

    def get_config(self) -> dict[str, Any]:
        """What `from_config` needs to make an equal policy."""
        return {"name": self._name}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> DTypePolicy:
        """The policy that `get_config` described."""
        return cls(**config)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DTypePolicy) and self._name == other._name

    def __hash__(self) -> int:
        return hash(self._name)

    def __repr__(self) -> str:
        return f'<DTypePolicy "{self._name}">'


class Global:
    """What `set_dtype_policy` has set; None for the default floating type."""

    policy: Any = None


def global_policy() -> Any:
    """The policy of layers that name none: as set, else the default floating type."""
    return DTypePolicy(str(Defaults.floating)) if Global.policy is None else Global.policy
