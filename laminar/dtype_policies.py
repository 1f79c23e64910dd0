"""Dtype policies: the type in which a layer computes, and the type of its variables."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, MutableMapping
from typing import Any, TypeAlias

from laminar.engine.errors import AlreadyExistsError, DTypeError, InvalidArgumentError
from laminar.engine.graph import Tensor, as_dtype
from laminar.engine.ops.core.arrays import Defaults
from laminar.engine.ops.core.convert import convert_to_tensor

from .ops.core import cast
from .serialization import deserialize_keras_object, list_builtins, serialize_keras_object
from .typing import DTypeLike

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
    """

    _keras_module = "keras"  # how files name the module

    def __init__(self, name: str | None = None) -> None:
        if name is None:
            name = dtype_policy().name
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


class QuantizedDTypePolicy(DTypePolicy):
    """The policy of a layer whose weights are kept in 8 bits: the types of what is not.

    Args:
        mode: "int8".
        source_name: the policy that the layer had; None means the global policy.

    Raises:
        InvalidArgumentError: another mode, or `source_name` names no policy.
    """

    _keras_module = "keras.dtype_policies"

    def __init__(self, mode: str, source_name: str | None = None) -> None:
        if mode != "int8":
            raise InvalidArgumentError(
                f"QuantizedDTypePolicy: expected the mode 'int8', got {mode!r}"
            )
        super().__init__(source_name)
        self.mode = mode
        self.source_name = self._name
        self._name = f"{mode}_from_{self._name}"

    @property
    def quantization_mode(self) -> str | None:
        """How weights are kept."""
        return self.mode

    def get_config(self) -> dict[str, Any]:
        return {"mode": self.mode, "source_name": self.source_name}

    def __repr__(self) -> str:
        return f'<QuantizedDTypePolicy "{self._name}">'


class DTypePolicyMap(MutableMapping[str, Any]):
    """Policies by the path of a layer: exact, or a regular expression that matches all of it.

    Args:
        default_policy: for layers that nothing matches; None means the global policy.
        policy_map: the first entries.
    """

    def __init__(
        self, default_policy: Any = None, policy_map: dict[str, Any] | None = None
    ) -> None:
        self._argument = default_policy
        self._default = None if default_policy is None else get(default_policy)
        self._policies: dict[str, DTypePolicy] = {}
        for key, policy in (policy_map or {}).items():
            self[key] = policy

    @property
    def default_policy(self) -> Policy:
        """The policy of layers that nothing matches."""
        return dtype_policy() if self._default is None else self._default

    @property
    def name(self) -> str:
        """The name of the default policy, marked as that of a map."""
        return f"map_{self.default_policy.name}"

    @property
    def compute_dtype(self) -> str:
        """The compute type of the default policy."""
        return self.default_policy.compute_dtype

    @property
    def variable_dtype(self) -> str:
        """The variable type of the default policy."""
        return self.default_policy.variable_dtype

    @property
    def quantization_mode(self) -> str | None:
        """How the default policy quantizes weights."""
        return self.default_policy.quantization_mode

    def __getitem__(self, key: str) -> Any:
        if key in self._policies:
            return self._policies[key]
        matching = [pattern for pattern in self._policies if re.fullmatch(pattern, key)]
        if len(matching) > 1:
            raise InvalidArgumentError(
                f"DTypePolicyMap: {key!r} is matched by {len(matching)} patterns: {matching}",
                remedy="make the patterns exclude one another",
            )
        return self._policies[matching[0]] if matching else self.default_policy

    def __setitem__(self, key: str, policy: Any) -> None:
        if key in self._policies:
            raise AlreadyExistsError(
                f"DTypePolicyMap: {key!r} has the policy {self._policies[key].name!r} already",
                remedy="delete it first",
            )
        self._policies[key] = get(policy)

    def __delitem__(self, key: str) -> None:
        del self._policies[key]

    def __contains__(self, key: object) -> bool:
        return key in self._policies

    def __iter__(self) -> Iterator[str]:
        return iter(self._policies)

    def __len__(self) -> int:
        return len(self._policies)

    def get_config(self) -> dict[str, Any]:
        """What `from_config` needs to make an equal map."""
        default = self._argument
        return {
            "default_policy": serialize(default) if isinstance(default, Policy) else default,
            "policy_map": {key: serialize(policy) for key, policy in self._policies.items()},
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> DTypePolicyMap:
        """The map that `get_config` described."""
        return cls(**config)

    def __repr__(self) -> str:
        entries = {key: policy.name for key, policy in self._policies.items()}
        return f"<DTypePolicyMap {entries}, otherwise {self.default_policy.name!r}>"


FloatDTypePolicy = DTypePolicy  # Keras's name for those without quantization
Policy = DTypePolicy | DTypePolicyMap
# A policy, its name, an element type, or a config.
PolicyLike: TypeAlias = Policy | DTypeLike | Mapping[str, Any]


class _Global:
    policy: Policy | None = None


def dtype_policy() -> Policy:
    """The policy of layers that name none: as set, else the default floating type."""
    return DTypePolicy(str(Defaults.floating)) if _Global.policy is None else _Global.policy


def set_dtype_policy(policy: PolicyLike) -> None:
    """Set the policy of layers that name none: a policy, its name, or its config."""
    _Global.policy = get(policy)


_CLASSES: dict[str, type[DTypePolicy] | type[DTypePolicyMap]] = {
    "DTypePolicy": DTypePolicy,
    "FloatDTypePolicy": FloatDTypePolicy,
    "DTypePolicyMap": DTypePolicyMap,
    "QuantizedDTypePolicy": QuantizedDTypePolicy,
}


list_builtins("keras.dtype_policies", _CLASSES)


def serialize(policy: Policy) -> dict[str, Any]:
    """A policy as plain data."""
    if isinstance(policy, DTypePolicyMap):  # a mapping too, which would be taken for plain data
        return {
            "module": "keras.dtype_policies",
            "class_name": "DTypePolicyMap",
            "config": policy.get_config(),
            "registered_name": None,
        }
    data: dict[str, Any] = serialize_keras_object(policy)
    return data


def deserialize(config: dict[str, Any], custom_objects: dict[str, Any] | None = None) -> Policy:
    """The policy that `serialize` described.

    Raises:
        NotFoundError: there is no class of that name.
        InvalidArgumentError: the class is not that of a policy.
    """
    found = deserialize_keras_object(config, custom_objects, module_objects=_CLASSES)
    if not isinstance(found, Policy):
        raise InvalidArgumentError(f"dtype_policies: {config.get('class_name')!r} is no policy")
    return found


def get(identifier: PolicyLike | None) -> Any:
    """A policy: given as such, by name, by element type, as a config, or None for the global one.

    Raises:
        InvalidArgumentError: it names no policy.
    """
    if identifier is None:
        return dtype_policy()
    if isinstance(identifier, Policy):
        return identifier
    if isinstance(identifier, dict):
        return deserialize(identifier)
    if isinstance(identifier, str):
        mode, word, source = str(identifier).partition("_from_")
        return QuantizedDTypePolicy(mode, source) if word else DTypePolicy(str(identifier))
    try:
        return DTypePolicy(str(as_dtype(identifier)))
    except DTypeError as cause:
        raise InvalidArgumentError(
            f"dtype: expected a policy, its name or an element type, got {identifier!r}"
        ) from cause
