"""In which dtypes, and in how few bits, a layer keeps its weights and computes."""

from __future__ import annotations

from typing import Any

from laminar import dtype_policies
from laminar.dtype_policies import DTypePolicyMap, PolicyLike
from laminar.engine.errors import (
    InvalidArgumentError,
    UnimplementedError,
)
from laminar.naming import who
from laminar.quantizers import QuantizationConfig, QuantizationLike

from .building import Buildable
from .quantizing import is_quantized


class WithPolicy(Buildable):
    """The part of `Layer` that deals with its dtype policy."""

    _laminar_policy: Any  # a policy, or a map of policies by path

    @property
    def dtype_policy(self) -> Any:
        """The dtypes of weights and of computation."""
        return self._laminar_policy

    @dtype_policy.setter
    def dtype_policy(self, value: PolicyLike | None) -> None:
        policy = dtype_policies.get(value)
        mode = policy.quantization_mode
        quantizes = mode is not None and self.built and not is_quantized(self)
        if quantizes and mode in ("gptq", "awq"):
            raise InvalidArgumentError(
                f"{who(self)}: the policy {policy.name!r} says nothing of the data that the mode "
                f"{mode!r} looks at",
                remedy="call quantize(config=...) of the model",
            )
        held = self._laminar_own_policy
        self._laminar_set_policy(policy)
        if quantizes:
            try:
                self.quantize(mode)
            except BaseException:
                self._laminar_set_policy(held)
                raise

    @property
    def _laminar_own_policy(self) -> Any:
        """The policy of the layer; of a map of policies by path, its entry."""
        policy = self._laminar_policy
        return policy[self.path] if isinstance(policy, DTypePolicyMap) else policy

    def _laminar_set_policy(self, policy: Any) -> None:
        """Change the policy; of a map of policies by path, the entry of the layer."""
        if not isinstance(self._laminar_policy, DTypePolicyMap):
            self._laminar_policy = policy
            return
        if self.path in self._laminar_policy:
            del self._laminar_policy[self.path]
        self._laminar_policy[self.path] = policy

    @property
    def quantization_mode(self) -> str | None:
        """How the weights are kept: None, or a mode such as "int8" after `quantize`."""
        found: str | None = self._laminar_own_policy.quantization_mode
        return found

    def quantize(
        self,
        mode: str | QuantizationConfig | None = None,
        type_check: bool = True,
        config: QuantizationLike | None = None,
    ) -> None:
        """Refuse, with UnimplementedError: the layer has no large weight to keep in few bits.

        A class that writes `quantize` gets the mode and its configuration, checked; it makes the
        variables in `quantized_build` and computes in `quantized_call`.
        """
        raise UnimplementedError(
            f"{who(self)}: quantize() is not written for {type(self).__name__}",
            remedy="Dense, EinsumDense and Embedding have it; model.quantize() takes those alone",
        )

    def quantized_build(self, input_shape: Any, mode: str) -> None:
        """Make the variables of a mode: UnimplementedError where a class does not write it."""
        raise UnimplementedError(
            f"{who(self)}: quantized_build() is not written for {type(self).__name__}"
        )

    @property
    def dtype(self) -> str:
        """The dtype of the weights."""
        return self.variable_dtype

    @property
    def variable_dtype(self) -> str:
        """The dtype of the weights."""
        return str(self._laminar_own_policy.variable_dtype)

    @property
    def compute_dtype(self) -> str:
        """The dtype of the computation."""
        return str(self._laminar_own_policy.compute_dtype)

    @property
    def input_dtype(self) -> str:
        """The dtype that inputs are cast to."""
        return self.compute_dtype
