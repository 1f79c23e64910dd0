"""What holds elements of several components: queues and staging areas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import InvalidArgumentError
from ..graph import DType, Tensor, TensorShape, as_dtype
from ..ops.core.op_def import OpDef
from .handles import Handle, as_list, as_tensor


class ElementHandle(Handle):
    """Something that holds elements, each of one tensor or of several. Abstract.

    Attributes:
        dtypes, shapes: of the components of an element.
        names: of the components: elements are dicts then; or None.
    """

    def __init__(
        self,
        op: OpDef,
        dtypes: Any,
        shapes: Any,
        names: Any,
        shared_name: str | None,
        name: str,
        attrs: Mapping[str, Any],
    ) -> None:
        self.dtypes: tuple[DType, ...] = tuple(as_dtype(d) for d in as_list(dtypes))
        self.shapes = shapes_of(shapes, len(self.dtypes))
        self.names: list[str] | None = None if names is None else as_list(names)
        if self.names is not None and len(self.names) != len(self.dtypes):
            raise InvalidArgumentError(
                f"{name}: {len(self.dtypes)} components, and {len(self.names)} names for them"
            )
        super().__init__(op, {**self._element, **attrs}, name, shared_name)

    @property
    def _element(self) -> dict[str, Any]:
        return {"dtypes": self.dtypes, "shapes": self.shapes}

    def _components(self, values: Any, *, is_batch: bool = False) -> list[Tensor]:
        """The components of an element, or of a batch, as tensors of their types."""
        if self.names is not None:
            if not isinstance(values, Mapping) or set(values) != set(self.names):
                raise InvalidArgumentError(
                    f"{self!r}: expected a dict of {', '.join(self.names)}, "
                    f"got {sorted(values) if isinstance(values, Mapping) else values!r}"
                )
            values = [values[name] for name in self.names]
        elif isinstance(values, Mapping):
            raise InvalidArgumentError(
                f"{self!r} has no names for its components, got a dict",
                remedy="give names= to it, or pass a list",
            )
        elif len(self.dtypes) == 1 and not (
            isinstance(values, list | tuple)
            and len(values) == 1
            and (_is_array(values[0]) or (self._is_number and not is_batch))
        ):
            values = [values]
        if not isinstance(values, list | tuple) or len(values) != len(self.dtypes):
            got = len(values) if isinstance(values, list | tuple) else 1
            raise InvalidArgumentError(
                f"{self!r}: an element has {len(self.dtypes)} components, got {got}"
            )
        return [as_tensor(x, dtype) for x, dtype in zip(values, self.dtypes, strict=True)]

    @property
    def _is_number(self) -> bool:
        """Whether an element is declared to be one number: [1.0] is then a list of components."""
        return self.shapes[0].rank == 0

    def _result(self, components: Sequence[Tensor]) -> Any:
        if self.names is not None:
            return dict(zip(self.names, components, strict=True))
        return components[0] if len(components) == 1 else list(components)


def _is_array(value: Any) -> bool:
    return isinstance(value, Tensor) or hasattr(value, "shape") or isinstance(value, list | tuple)


def shapes_of(shapes: Any, count: int) -> tuple[TensorShape, ...]:
    """The shapes given for `count` components: one for each, or one alone; None: unknown."""
    if shapes is None:
        return (TensorShape(None),) * count
    one = isinstance(shapes, TensorShape) or all(d is None or isinstance(d, int) for d in shapes)
    if one and not (isinstance(shapes, list | tuple) and len(shapes) == count and None in shapes):
        shapes = [shapes]
    found = tuple(TensorShape(s) for s in shapes)
    if len(found) != count:
        raise InvalidArgumentError(f"{count} dtypes, and {len(found)} shapes for them")
    return found
