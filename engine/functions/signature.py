"""What of a call decides which graph it runs: the trace key.

A key holds the dtype and shape of each tensor, the value of each other argument, and the context.
Source: "RFC: Functions, not sessions", 2018, sections "Trace Caches" and "Input Signatures".
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..errors import DTypeError, InvalidArgumentError, ShapeError
from ..graph import Tensor, TensorShape, TensorSpec, as_dtype
from ..ops.core.convert import convert_to_tensor
from ..tree import (
    children,
    flatten,
    flatten_with_path,
    is_nested,
    map_structure,
    pack_sequence_as,
    rebuild,
)
from .traces import Identity


class PythonValue:
    """Marks an argument of an input signature that is not a tensor."""


class AnyDType:
    """Stands for the dtype in an input signature: each new dtype is traced."""


PYTHON_VALUE = PythonValue()
TRACE_ON_NEW_VALUE = AnyDType()


class _ShapePattern:
    """A tensor of any dtype; its dtype is part of the key."""

    def __init__(self, shape: Any) -> None:
        self.shape = TensorShape(shape)

    def __str__(self) -> str:
        return f"any dtype{self.shape}"


def as_pattern(entry: Any) -> Any:
    """An entry of an input signature as TensorSpecs and markers, nested as it is.

    Raises:
        InvalidArgumentError: it is neither a TensorSpec, nor (dtype, shape), nor a marker.
    """
    if isinstance(entry, TensorSpec | PythonValue):
        return entry
    if isinstance(entry, tuple) and len(entry) == 2:
        if isinstance(entry[0], AnyDType):
            return _ShapePattern(entry[1])
        spec = _spec_of_pair(entry)
        if spec is not None:
            return spec
    if isinstance(entry, list | tuple):
        return type(entry)(as_pattern(e) for e in entry)
    if isinstance(entry, dict):
        return {key: as_pattern(e) for key, e in entry.items()}
    if hasattr(entry, "shape") and hasattr(entry, "dtype"):
        return TensorSpec(entry.shape, entry.dtype)
    raise InvalidArgumentError(
        f"input_signature: expected TensorSpec, (dtype, shape) or PYTHON_VALUE, got {entry!r}"
    )


def _spec_of_pair(pair: Any) -> TensorSpec | None:
    """The spec that (dtype, shape), or (shape, dtype), says; None if it says none."""
    for dtype, shape in (pair, reversed(pair)):
        is_shape = shape is None or (
            isinstance(shape, list | tuple) and all(d is None or isinstance(d, int) for d in shape)
        )
        if is_shape and isinstance(dtype, str | np.dtype | type):
            return TensorSpec(shape, as_dtype(dtype))
    return None


def with_specs(value: Any) -> Any:
    """An argument of `Function.concrete`, whose pairs of dtype and shape are specs."""
    if isinstance(value, tuple) and len(value) == 2:
        try:
            spec = _spec_of_pair(value)
        except DTypeError:  # a pair of a string and a shape says something else
            spec = None
        if spec is not None:
            return spec
    if not is_nested(value):
        return value
    return rebuild(value, [with_specs(child) for _, child in children(value)])


class Arguments:
    """The arguments of a call in one canonical form.

    Attributes:
        structure: the bound arguments, by name.
        leaves: their leaves.
        specs: for each leaf that is a tensor, what it is traced as; None for the others.
    """

    def __init__(self, structure: Any, leaves: list[Any], patterns: list[Any]) -> None:
        self.structure = structure
        self.leaves = leaves
        self.specs: list[TensorSpec | None] = [
            _traced_as(leaf, pattern) for leaf, pattern in zip(leaves, patterns, strict=True)
        ]

    @property
    def tensors(self) -> list[Any]:
        """The tensors among the leaves."""
        return [t for t, spec in zip(self.leaves, self.specs, strict=True) if spec is not None]

    def call_order(self) -> list[int]:
        """For each tensor in the order of the parameters, its place among `tensors`."""
        places: dict[str, list[int]] = {}
        leaf = number = 0
        for name in sorted(self.structure):  # as leaves are
            places[name] = []
            for _ in flatten(self.structure[name]):
                if self.specs[leaf] is not None:
                    places[name].append(number)
                    number += 1
                leaf += 1
        return [place for name in self.structure for place in places[name]]

    def named_specs(self) -> list[tuple[str, TensorSpec]]:
        """What the tensors are traced as, each with the name of its argument: "x", "batch_0"."""
        paths = [path for path, _ in flatten_with_path(self.structure)]
        return [
            (spec.name or "_".join(map(str, path)), spec)
            for path, spec in zip(paths, self.specs, strict=True)
            if spec is not None
        ]

    def structured_specs(self) -> dict[str, Any] | None:
        """What the arguments are traced as, by name: specs, and Python's numbers, texts and None.

        None if there is something else, which nobody is to keep alive.
        """
        leaves = [
            spec if spec is not None else leaf
            for leaf, spec in zip(self.leaves, self.specs, strict=True)
        ]
        if not all(isinstance(leaf, TensorSpec) or _is_plain(leaf) for leaf in leaves):
            return None
        found: dict[str, Any] = pack_sequence_as(self.structure, leaves)
        return found

    def with_tensors(self, tensors: Sequence[Any]) -> Any:
        """The structure with its tensors replaced."""
        given = iter(tensors)
        leaves = [
            leaf if spec is None else next(given)
            for leaf, spec in zip(self.leaves, self.specs, strict=True)
        ]
        return pack_sequence_as(self.structure, leaves)


def _traced_as(leaf: Any, pattern: Any) -> TensorSpec | None:
    if not isinstance(leaf, Tensor | TensorSpec):
        return None
    if isinstance(pattern, TensorSpec):
        return pattern
    shape = pattern.shape if isinstance(pattern, _ShapePattern) else leaf.shape
    return TensorSpec(shape, leaf.dtype, leaf.name if isinstance(leaf, TensorSpec) else None)


_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_BY_KEYWORD = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
_REST = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def _is_constant(value: Any) -> bool:
    """Whether nothing can change what `value` says."""
    if type(value) is tuple:
        return all(map(_is_constant, value))
    return _is_plain(value) or type(value) in (complex, bytes)


def _is_plain(value: Any) -> bool:
    return value is None or type(value) in (bool, int, float, str)


class Binder:
    """Brings the calls of one Python function to canonical form."""

    def __init__(self, fn: Callable[..., Any], input_signature: Sequence[Any] | None) -> None:
        if not callable(fn):
            raise InvalidArgumentError(
                f"function: expected something that can be called, got {fn!r}",
                remedy="write @function above a def",
            )
        self.signature = inspect.signature(fn)
        self.name = getattr(fn, "__name__", type(fn).__name__)
        self._lay_out(list(self.signature.parameters.values()))
        self.patterns: dict[str, Any] = {}
        if input_signature is not None:
            if not isinstance(input_signature, list | tuple):
                raise InvalidArgumentError(
                    f"{self.name}: input_signature is a list with a TensorSpec for each argument, "
                    f"got {input_signature!r}",
                    remedy='input_signature=[TensorSpec([None, 4], "float32")]',
                )
            entries = [as_pattern(entry) for entry in input_signature]
            try:
                self.patterns = dict(self.signature.bind_partial(*entries).arguments)
            except TypeError as cause:
                raise InvalidArgumentError(
                    f"{self.name}: input_signature has {len(entries)} entries, "
                    f"the function takes {self.signature}"
                ) from cause

    def _lay_out(self, parameters: list[inspect.Parameter]) -> None:
        """What binds a call without asking `inspect` each time."""
        kinds = inspect.Parameter
        rest = {p.kind: p.name for p in parameters if p.kind in _REST}
        self._positional = [p.name for p in parameters if p.kind in _POSITIONAL]
        self._more: Any = rest.get(kinds.VAR_POSITIONAL)
        self._is_plain = not rest
        self._parameters = [
            (p.name, p.kind is not kinds.POSITIONAL_ONLY, p.default) for p in parameters
        ]
        self._by_keyword = {p.name for p in parameters if p.kind in _BY_KEYWORD}
        defaults = (p.default for p in parameters if p.default is not kinds.empty)
        self._steady = all(map(_is_constant, defaults))

    def _bound(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments and defaults by name, in the order of the parameters."""
        if self._is_plain and len(args) <= len(self._positional):
            found = dict(zip(self._positional, args, strict=False))
            unused = len(kwargs)
            for name, by_keyword, default in self._parameters[len(args) :]:
                if by_keyword and name in kwargs:
                    found[name] = kwargs[name]
                    unused -= 1
                elif default is not inspect.Parameter.empty:
                    found[name] = default
                else:
                    break
            else:
                if not unused:
                    return found
        bound = self.signature.bind(*args, **kwargs)  # which says what is wrong with a call
        bound.apply_defaults()
        return dict(bound.arguments)

    def order(self, count: int, keywords: Sequence[str]) -> list[int] | None:
        """Where the leaves of a call stand among what is given, first `count` positional leaves.

        None where other things than these decide, as a default that could change.
        """
        if not self._steady or not self._by_keyword.issuperset(keywords):
            return None
        names = self._positional[:count]
        names += [self._more] * (count - len(names)) + list(keywords)
        return sorted(range(len(names)), key=names.__getitem__)

    def bind(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Arguments:
        """Positional, keyword and default forms of one call give one result."""
        structure = self._bound(args, kwargs)
        patterns: dict[str, Any] = {}
        for name, pattern in self.patterns.items():
            structure[name], patterns[name] = self._match(name, pattern, structure[name])
        leaves = [_as_leaf(leaf) for leaf in flatten(structure)]
        if not patterns:
            return Arguments(structure, leaves, [None] * len(leaves))
        for name in structure.keys() - patterns.keys():
            patterns[name] = _unmatched(structure[name])
        return Arguments(structure, leaves, flatten(patterns))

    def infer(self, arguments: Arguments) -> None:
        """Take the tensors of a call as the signature of all calls."""
        specs = [PYTHON_VALUE if spec is None else spec for spec in arguments.specs]
        self.patterns = pack_sequence_as(arguments.structure, specs)

    def call(self, fn: Callable[..., Any], structure: Mapping[str, Any]) -> Any:
        """Call `fn` with bound arguments."""
        bound = inspect.BoundArguments(self.signature, dict(structure))
        return fn(*bound.args, **bound.kwargs)

    def _match(self, name: str, pattern: Any, value: Any) -> tuple[Any, Any]:
        """`value` converted as `pattern` asks, and the pattern of each of its leaves."""
        if isinstance(pattern, PythonValue):
            return value, _unmatched(value)
        if isinstance(pattern, TensorSpec | _ShapePattern):
            return self._match_tensor(name, pattern, value), pattern
        if not isinstance(value, dict if isinstance(pattern, dict) else list | tuple):
            raise InvalidArgumentError(
                f"{self.name}: the argument {name!r} must be a {type(pattern).__name__}, "
                f"as in input_signature, got {value!r}"
            )
        entries = dict(children(pattern))
        if isinstance(pattern, list) and len(pattern) == 1:  # the pattern of each element
            entries = dict.fromkeys(range(len(value)), pattern[0])
        if list(entries) != [key for key, _ in children(value)]:
            raise InvalidArgumentError(
                f"{self.name}: the argument {name!r} has other elements than input_signature"
            )
        pairs = [self._match(f"{name}_{k}", entries[k], v) for k, v in children(value)]
        matched = rebuild(value, [v for v, _ in pairs])
        return matched, rebuild(value, [p for _, p in pairs])

    def _match_tensor(self, name: str, pattern: Any, value: Any) -> Any:
        """`value` as a tensor of the pattern (a TensorSpec stays one)."""
        given = value
        wanted = pattern.dtype if isinstance(pattern, TensorSpec) else None
        if not isinstance(value, TensorSpec):
            dtype = getattr(value, "dtype", None)
            if dtype is None or wanted is None or str(dtype) == wanted:
                given = convert_to_tensor(value, wanted)
        if wanted is not None and str(given.dtype) != wanted:
            raise DTypeError(
                f"{self.name}: the argument {name!r} must be {pattern}, got {given.dtype}",
                remedy="cast it, or leave input_signature out",
            )
        if not given.shape.is_compatible_with(pattern.shape):
            raise ShapeError(
                f"{self.name}: the argument {name!r} must be {pattern}, "
                f"got {TensorSpec(given.shape, given.dtype)}",
                remedy="write None in input_signature for sizes that vary",
            )
        return given


def _unmatched(value: Any) -> Any:
    return map_structure(lambda leaf: None, value)


def is_variable(leaf: Any) -> bool:
    """Whether an argument is a variable, or another thing that a handle stands for."""
    return hasattr(leaf, "handle")


def _as_leaf(leaf: Any) -> Any:
    """Arrays of NumPy and of other libraries as tensors; anything else as it is."""
    if isinstance(leaf, Tensor | TensorSpec) or is_variable(leaf):
        return leaf
    return convert_to_tensor(leaf) if hasattr(type(leaf), "__array__") else leaf


def trace_key(arguments: Arguments, context: Any) -> Any:
    """The key of a call: equal for calls that may share a graph."""
    parts = [
        _python_key(leaf) if spec is None else spec
        for leaf, spec in zip(arguments.leaves, arguments.specs, strict=True)
    ]
    return (_form(arguments.structure), tuple(parts), context)


def _form(x: Any) -> Any:
    if not is_nested(x):
        return None
    return (type(x), tuple((key, _form(value)) for key, value in children(x)))


def _python_key(value: Any) -> Any:
    if isinstance(value, float):
        return (float, value.hex())  # NaN equals itself, -0.0 differs from 0.0
    if isinstance(value, complex):
        return (complex, value.real.hex(), value.imag.hex())
    if value is None or isinstance(value, bool | int | str | bytes):
        return (type(value), value)
    hashing: Any = type(value).__hash__
    if hashing is object.__hash__ or is_variable(value):
        return Identity(value)
    try:
        hash(value)
    except TypeError:  # it is mutable, or something in it is
        return Identity(value)
    return (type(value), value)
