"""The kernels of an op: by type of device, element types and label; and quiet while they run."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ...errors import AlreadyExistsError, InvalidArgumentError, UnimplementedError
from ...graph import DType, TensorSpec, as_dtype

HOST = np  # the array library of the host
HOST_TYPE = "cpu"  # its type among devices

Kernel: TypeAlias = Callable[..., Any]
# By the name of an input, or of an attribute that is an element type: those that a kernel is for.
Constraints: TypeAlias = Mapping[str, frozenset[DType]]


class _Entry(NamedTuple):
    kernel: Kernel
    constraints: Constraints

    def serves(self, dtypes: Mapping[str, DType]) -> bool:
        """Whether it is for these element types; what is not known is taken to fit."""
        return all(
            name not in dtypes or dtypes[name] in allowed
            for name, allowed in self.constraints.items()
        )

    def meets(self, other: _Entry) -> bool:
        """Whether there are element types that both are for, and none of them goes first."""
        if bool(self.constraints) != bool(other.constraints):
            return False
        return all(
            self.constraints[name] & other.constraints[name]
            for name in self.constraints.keys() & other.constraints.keys()
        )


class ByType:
    """A kernel that is one of several, by the element types that come.

    Args:
        table: of the op.
        entries: those for element types, then the one for all others, if there is one.
        otherwise: what computes the rest, None where nothing does.
    """

    def __init__(
        self, table: Kernels, entries: Sequence[_Entry], otherwise: Kernel | None = None
    ) -> None:
        self._table = table
        self._entries = entries
        self._otherwise = otherwise

    def or_else(self, otherwise: Kernel | None) -> ByType:
        """The same, where something computes the rest."""
        return ByType(self._table, self._entries, otherwise)

    def serves(self, dtypes: Mapping[str, DType]) -> bool:
        """Whether one of them is for these element types."""
        return any(entry.serves(dtypes) for entry in self._entries)

    def __call__(self, *arrays: Any, **attrs: Any) -> Any:
        dtypes = self._table.dtypes_of(arrays, attrs)
        for entry in self._entries:
            if entry.serves(dtypes):
                return entry.kernel(*arrays, **attrs)
        if self._otherwise is not None:
            return self._otherwise(*arrays, **attrs)
        found = ", ".join(f"{name}: {dtype}" for name, dtype in dtypes.items())
        raise UnimplementedError(f"{self._table.type} has no kernel for {found or 'these inputs'}")


class Kernels(dict[str, Kernel]):
    """By type of device, the kernel that computes an op there; one label's.

    `_entries[type, label]` are all that were registered, those for certain element types first.
    """

    def __init__(self, type: str, input_names: Sequence[str], label: str = "") -> None:
        super().__init__()
        self.type = type
        self.label = label
        self._input_names = input_names
        self._entries: dict[tuple[str, str], list[_Entry]] = {}

    def add(
        self,
        kernel: Kernel,
        device_type: str,
        dtypes: Collection[str] | Mapping[str, Collection[str]] | None,
        label: str,
        *,
        replace: bool,
    ) -> None:
        """Register a kernel; see `OpDef.kernel`."""
        entry = _Entry(kernel, self._constraints(dtypes))
        entries = self._entries.setdefault((device_type, label), [])
        same = [i for i, other in enumerate(entries) if entry.meets(other)]
        if same and not replace:
            what = f"{device_type!r}" + (f", label {label!r}" if label else "")
            kinds = {x for allowed in entry.constraints.values() for x in allowed}
            what += f" and {', '.join(sorted(kinds))}" if kinds else ""
            raise AlreadyExistsError(
                f"{self.type} has a kernel for {what} already",
                remedy="say replace=True to put another in its place",
            )
        for i in reversed(same):
            del entries[i]
        entries.append(entry)
        entries.sort(key=lambda e: not e.constraints)
        if label == self.label:
            self[device_type] = self._one(entries)

    def labelled(self, label: str) -> Kernels:
        """The kernels of a label.

        Raises:
            InvalidArgumentError: there are none.
        """
        found = Kernels(self.type, self._input_names, label)
        found._entries = self._entries
        for (device_type, its_label), entries in self._entries.items():
            if its_label == label:
                found[device_type] = found._one(entries)
        if not found:
            known = sorted({x for _, x in self._entries if x})
            raise InvalidArgumentError(
                f"{self.type} has no kernel with the label {label!r}",
                remedy=f"there are {', '.join(map(repr, known)) or 'none with a label'}",
            )
        return found

    def serves(self, device_type: str, specs: Sequence[TensorSpec]) -> bool:
        """Whether there is a kernel for a type of device and inputs of these specs."""
        kernel = self.get(device_type)
        if not isinstance(kernel, ByType):
            return kernel is not None
        return kernel.serves({n: s.dtype for n, s in self._named(specs)})

    def dtypes_of(self, arrays: Sequence[Any], attrs: Mapping[str, Any]) -> dict[str, DType]:
        """The element types of what a kernel is called with, by name."""
        found = {n: as_dtype(x.dtype) for n, x in self._named(arrays) if hasattr(x, "dtype")}
        return found | {n: as_dtype(v) for n, v in attrs.items() if n.endswith("dtype")}

    def _named(self, values: Sequence[Any]) -> list[tuple[str, Any]]:
        """The inputs by name; of a variadic one, its first."""
        return list(zip(self._input_names, values, strict=False))

    def _one(self, entries: Sequence[_Entry]) -> Kernel:
        (first, *others) = entries
        return first.kernel if not others and not first.constraints else ByType(self, entries)

    def _constraints(
        self, dtypes: Collection[str] | Mapping[str, Collection[str]] | None
    ) -> Constraints:
        if dtypes is None:
            return {}
        if isinstance(dtypes, str):
            raise InvalidArgumentError(
                f"{self.type}: the element types of a kernel are a collection, got {dtypes!r}",
                remedy=f"write dtypes=[{dtypes!r}]",
            )
        if not isinstance(dtypes, Mapping):
            if not self._input_names:
                raise InvalidArgumentError(
                    f"{self.type} has no input whose element type could choose a kernel",
                    remedy='name an attribute: dtypes={"dtype": [...]}',
                )
            dtypes = {self._input_names[0]: dtypes}
        return {name: frozenset(map(as_dtype, kinds)) for name, kinds in dtypes.items()}


# Arithmetic without NumPy's warnings: IEEE values are the result, and nothing is printed.
#
#     before = hush()
#     try: ...
#     finally: restore(before)
#
# This is `np.errstate(all="ignore")`, which makes its setting anew each time and takes as long as
# three small ops; where NumPy keeps its setting elsewhere than in 2.0 to 2.4, it is `np.errstate`.
hush: Callable[[], Any]
restore: Callable[[Any], None]

try:
    from numpy._core.umath import _extobj_contextvar, _make_extobj

    hush = partial(_extobj_contextvar.set, _make_extobj(all="ignore"))
    restore = _extobj_contextvar.reset
except (ImportError, AttributeError, TypeError):

    def hush() -> Any:
        """Warn of nothing from now on, in this thread; gives what `restore` takes."""
        state = np.errstate(all="ignore")
        state.__enter__()
        return state

    def restore(before: Any) -> None:
        """Warn of what one was warned of before."""
        before.__exit__(None, None, None)
