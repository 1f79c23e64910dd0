"""Dtype policies: the type in which a layer computes, and the type of its variables."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, MutableMapping
from typing import Any, TypeAlias

from laminar.engine.errors import AlreadyExistsError, DTypeError, InvalidArgumentError
from laminar.engine.graph import as_dtype

from ..registration import list_builtins
from ..serialization import deserialize_keras_object, serialize_keras_object
from ..typing import DTypeLike
from .policy import DTypePolicy as DTypePolicy
from .policy import Global, global_policy
from .quantized import AWQDTypePolicy as AWQDTypePolicy
from .quantized import GPTQDTypePolicy as GPTQDTypePolicy
from .quantized import Int4DTypePolicy as Int4DTypePolicy
from .quantized import QuantizedDTypePolicy as QuantizedDTypePolicy
from .quantized import QuantizedFloat8DTypePolicy as QuantizedFloat8DTypePolicy
from .quantized import quantized


class DTypePolicyMap(MutableMapping[str, Any]):
    """Policies by the path of a layer: exact, or a regular expression that matches all of it.

    Args:
        default_policy: for layers that nothing matches; None means the global policy.
        policy_map: the first entries.

    Raises:
        InvalidArgumentError: the default policy is a map.
        DTypeError: `policy_map` is no dict.

    Examples:
        >>> policies = laminar.dtype_policies.DTypePolicyMap()
        >>> policies["decoder/.*"] = laminar.DTypePolicy("float16")
        >>> policies["decoder/dense"].name, policies["encoder/dense"].name
        ('float16', 'float32')
    """

    def __init__(
        self, default_policy: Any = None, policy_map: dict[str, Any] | None = None
    ) -> None:
        if isinstance(default_policy, DTypePolicyMap):
            raise InvalidArgumentError("DTypePolicyMap: the default policy cannot be a map")
        if policy_map is not None and not isinstance(policy_map, dict):
            raise DTypeError(f"DTypePolicyMap: policy_map must be a dict, got {policy_map!r}")
        self._argument = default_policy
        self._default = None if default_policy is None else get(default_policy)
        self._policies: dict[str, DTypePolicy] = {}
        for key, policy in (policy_map or {}).items():
            self[key] = policy

    @property
    def default_policy(self) -> Policy:
        """The policy of layers that nothing matches."""
        found: Policy = global_policy() if self._default is None else self._default
        return found

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
        """What `from_config` needs to make an equal map.

        Without a default policy, the policies are those of the same modes for the global policy
        where the map is made again.
        """
        default = self._argument
        entries = {key: serialize(policy) for key, policy in self._policies.items()}
        if default is None:
            for entry in entries.values():
                config = entry["config"]
                config["source_name" if "source_name" in config else "name"] = None
        return {
            "default_policy": serialize(default) if isinstance(default, Policy) else default,
            "policy_map": entries,
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


def dtype_policy() -> Policy:
    """The policy of layers that name none: as set, else the default floating type.

    Examples:
        >>> laminar.config.dtype_policy().name
        'float32'
    """
    found: Policy = global_policy()
    return found


def set_dtype_policy(policy: PolicyLike) -> None:
    """Set the policy of layers that name none: a policy, its name, or its config.

    Examples:
        >>> laminar.config.set_dtype_policy("mixed_bfloat16")
        >>> layers.Dense(2).compute_dtype
        'bfloat16'
        >>> laminar.config.set_dtype_policy("float32")
    """
    Global.policy = get(policy)


_CLASSES: dict[str, type[DTypePolicy] | type[DTypePolicyMap]] = {
    "AWQDTypePolicy": AWQDTypePolicy,
    "DTypePolicy": DTypePolicy,
    "FloatDTypePolicy": FloatDTypePolicy,
    "DTypePolicyMap": DTypePolicyMap,
    "GPTQDTypePolicy": GPTQDTypePolicy,
    "Int4DTypePolicy": Int4DTypePolicy,
    "QuantizedDTypePolicy": QuantizedDTypePolicy,
    "QuantizedFloat8DTypePolicy": QuantizedFloat8DTypePolicy,
}


list_builtins("keras.dtype_policies", _CLASSES)


def serialize(dtype_policy: Policy) -> dict[str, Any]:
    """A policy as plain data.

    Args:
        dtype_policy: a policy.

    Returns:
        a dict with its class and config, as JSON can hold it.

    Examples:
        >>> laminar.dtype_policies.serialize(laminar.DTypePolicy("float16"))["config"]
        {'name': 'float16'}
    """
    data: dict[str, Any] = serialize_keras_object(dtype_policy)
    return data


def deserialize(config: dict[str, Any], custom_objects: dict[str, Any] | None = None) -> Policy:
    """The policy that `serialize` described.

    Args:
        config: what `serialize` gave.
        custom_objects: classes and functions by name, besides those of laminar and those that are
            registered.

    Returns:
        a policy.

    Raises:
        NotFoundError: there is no class of that name.
        InvalidArgumentError: the class is not that of a policy.

    Examples:
        >>> config = laminar.dtype_policies.serialize(laminar.DTypePolicy("mixed_bfloat16"))
        >>> laminar.dtype_policies.deserialize(config).compute_dtype
        'bfloat16'
    """
    found = deserialize_keras_object(config, custom_objects, module_objects=_CLASSES)
    if not isinstance(found, Policy):
        raise InvalidArgumentError(f"dtype_policies: {config.get('class_name')!r} is no policy")
    return found


def get(identifier: PolicyLike | None) -> Any:
    """A policy: given as such, by name, by element type, as a config, or None for the global one.

    Args:
        identifier: a policy, its name, class or config.

    Returns:
        a policy.

    Raises:
        InvalidArgumentError: it names no policy.

    Examples:
        >>> laminar.dtype_policies.get("mixed_float16").variable_dtype
        'float32'
    """
    if identifier is None:
        return dtype_policy()
    if isinstance(identifier, Policy):
        return identifier
    if isinstance(identifier, dict):
        return deserialize(identifier)
    if isinstance(identifier, str):
        mode, word, source = str(identifier).partition("_from_")
        return quantized(mode, source) if word else DTypePolicy(str(identifier))
    try:
        return DTypePolicy(str(as_dtype(identifier)))
    except DTypeError as cause:
        raise InvalidArgumentError(
            f"dtype: expected a policy, its name or an element type, got {identifier!r}"
        ) from cause
