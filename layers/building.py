"""When and with which shapes a layer makes its weights."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any, ClassVar

from laminar.engine.errors import InvalidArgumentError
from laminar.engine.graph import Tensor
from laminar.engine.source import inside_layer, layer_path
from laminar.engine.state import autocast
from laminar.tree import flatten, map_structure

from .layer_options import FirstShape
from .symbolic import KerasTensor
from .weights import Weighted


class Buildable(Weighted):
    """The part of `Layer` that deals with `build`."""

    _laminar_call_parameters: ClassVar[tuple[str, ...]] = ()
    # Whether a layer that writes no `build` is built as soon as it is made: it has no weights.
    _laminar_stateless: ClassVar[bool] = False
    _laminar_build_shapes: dict[str, Any] | None
    _laminar_path: str | None = None  # where it was built: "model/block/dense"
    # What a layer that was built as it was made was first called with, for what shows it.
    _laminar_first_shapes: dict[str, Any] | None = None

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        build = cls.__dict__.get("build")
        if build is not None and not hasattr(build, "by_calling"):
            cls.build = _build_once(build)  # type: ignore[method-assign]  # wrapped

    @property
    def path(self) -> str:
        """The name under which its weights are listed: that of the layers around it, and its own.

        Before it is built, its own alone.
        """
        return self._laminar_path or self.name

    def build(self, input_shape: Any) -> None:
        """Make the weights for inputs of `input_shape`; by default there are none to make."""
        self._laminar_build_shapes = self._laminar_build_shapes or {"input_shape": input_shape}
        self.built = True

    def _laminar_maybe_build(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if self.built:
            if self._laminar_stateless and self._laminar_first_shapes is None:
                self._laminar_first_shapes = self._laminar_shapes_for(self.build, args, kwargs)
            return
        shapes = self._laminar_shapes_for(self.build, args, kwargs)
        with autocast(None):
            self.build(**shapes)
        self.built = True

    def _laminar_shapes_for(
        self, method: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> dict[str, Any]:
        """The arguments of `build`, or of another method that takes shapes.

        They are one shape, or one for each tensor argument of `call`.
        """
        wanted = list(inspect.signature(method).parameters.values())
        named = [p.name for p in wanted if p.kind is not p.VAR_KEYWORD]
        given = dict(zip(self._laminar_call_parameters, args, strict=False)) | kwargs
        tensors = {name: value for name, value in given.items() if _is_tensor_structure(value)}
        if not named:
            return {}
        if len(named) == 1:
            first = next(iter(tensors.values()), args[0] if args else None)
            return {named[0]: map_structure(_shape_of, first)}
        shapes = {f"{name}_shape": map_structure(_shape_of, v) for name, v in tensors.items()}
        missing = [n for n in named if n not in shapes and _is_required(wanted, n)]
        if missing:
            layer: Any = self
            inspect.signature(layer.call).bind(*args, **kwargs)  # TypeError: one is not given
            raise InvalidArgumentError(
                f"{type(self).__name__}.{method.__name__}() wants {', '.join(missing)}, "
                f"the call has tensors {', '.join(tensors)}",
                remedy="name its parameters after those of call: x_shape for x",
            )
        return {name: shape for name, shape in shapes.items() if name in named}

    def get_build_config(self) -> dict[str, Any] | None:
        """The shapes it was built with, None before."""
        shapes = self._laminar_build_shapes
        if shapes is None:
            return None
        if len(shapes) <= 1:
            return {"input_shape": next(iter(shapes.values()), None)}
        return {"shapes_dict": shapes}

    def build_from_config(self, config: dict[str, Any]) -> None:
        """Make the weights for the shapes in a build config."""
        if self.built:
            return
        if config.get("shapes_dict"):
            shapes = {k: _as_shape(v) for k, v in config["shapes_dict"].items()}
            self.build(**shapes)
        elif config.get("input_shape") is not None:
            self.build(_as_shape(config["input_shape"]))
        elif "input_shape" in config and _needs_no_shape(self.build):
            self.build(None)


def by_calling(build: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator: this `build` calls the layer, which does the rest."""
    build.by_calling = True  # type: ignore[attr-defined]  # a mark
    return build


def _build_once(build: Callable[..., Any]) -> Callable[..., Any]:
    """`build` as subclasses write it, with what all builds have in common."""

    @functools.wraps(build)
    def wrapped(self: Buildable, *args: Any, **kwargs: Any) -> None:
        bound = inspect.signature(build).bind(self, *args, **kwargs)
        shapes = dict(list(bound.arguments.items())[1:])
        shapes |= shapes.pop("kwargs", {})
        if self._laminar_build_shapes is None:
            self._laminar_build_shapes = shapes
        with (
            nullcontext() if self._laminar_is_inside() else inside_layer(self.name),
            autocast(None),
        ):
            self._laminar_path = layer_path()
            build(self, *args, **kwargs)
        self.built = True

    return wrapped


def _is_tensor_structure(value: Any) -> bool:
    leaves = [leaf for leaf in flatten(value) if leaf is not None]
    return bool(leaves) and all(isinstance(leaf, Tensor | KerasTensor) for leaf in leaves)


def _shape_of(leaf: Any) -> Any:
    return None if leaf is None else tuple(leaf.shape)


def _is_required(parameters: Sequence[inspect.Parameter], name: str) -> bool:
    return any(p.name == name and p.default is p.empty for p in parameters)


def _needs_no_shape(build: Callable[..., Any]) -> bool:
    """Whether a layer makes its weights without knowing what comes."""
    parameters = list(inspect.signature(build).parameters.values())
    return len(parameters) == 1 and parameters[0].default is None


def _as_shape(value: Any) -> Any:
    """A shape read from JSON: lists of numbers become tuples, at any depth."""
    if isinstance(value, dict):
        return {k: _as_shape(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        if all(d is None or isinstance(d, int) for d in value):
            return tuple(value)
        return [_as_shape(v) for v in value]
    return value


def legacy_shape(kwargs: FirstShape) -> Any:
    """Keras 2's `input_shape=` of a first layer: the batch shape, or None."""
    if "batch_input_shape" in kwargs:
        return tuple(kwargs.pop("batch_input_shape"))
    if "input_shape" in kwargs:
        shape = kwargs.pop("input_shape")
        return (None, *(shape if isinstance(shape, list | tuple) else (shape,)))
    if "input_dim" in kwargs:
        return (None, kwargs.pop("input_dim"))
    return None
