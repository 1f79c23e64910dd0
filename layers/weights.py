"""The weights of a layer: making them, listing them, setting them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any, ParamSpec

import numpy as np

from laminar import constraints, initializers, regularizers
from laminar.constraints import ConstraintLike
from laminar.engine.errors import FailedPreconditionError, InvalidArgumentError, ShapeError
from laminar.engine.graph import TensorShape, as_dtype
from laminar.engine.ops.core.convert import convert_to_tensor
from laminar.engine.source import inside_layer, layer_path
from laminar.engine.state import Variable
from laminar.file_reading import file_reading
from laminar.initializers import InitializerLike
from laminar.naming import auto_name, who
from laminar.random import SeedGenerator
from laminar.regularizers import RegularizerLike
from laminar.typing import DTypeLike, Shape

from .open_property import open_property
from .tracking import Tracked


class _Changes:
    """How often `trainable` has been set, on any layer: who has seen the number is up to date."""

    count = 0


def trainable_changes() -> int:
    """A number that is another one when `trainable` of a layer has been set."""
    return _Changes.count


P = ParamSpec("P")


def _shape_first(make: Callable[P, Variable]) -> Callable[P, Variable]:
    """Refuse add_weight("kernel", shape=...), as Keras 2 had it, before Python takes it apart."""

    @functools.wraps(make)
    def checked(*args: P.args, **kwargs: P.kwargs) -> Variable:
        layer: Any = args[0]
        if len(args) > 1 and isinstance(args[1], str):
            raise InvalidArgumentError(
                f"{layer.name}: add_weight() takes the shape first, got {args[1]!r}",
                remedy=f"write add_weight(shape=..., name={args[1]!r})",
            )
        if len(args) > 1 and "shape" in kwargs:
            raise InvalidArgumentError(
                f"{layer.name}: add_weight() got two shapes, {args[1]!r} and {kwargs['shape']!r}",
                remedy="give the shape once, as add_weight(shape=..., name=...)",
            )
        return make(*args, **kwargs)

    return checked


class Weighted(Tracked):
    """The part of `Layer` that deals with weights."""

    name: str
    built: bool
    _laminar_trainable: bool
    _laminar_losses: list[Any]
    _laminar_reports: list[tuple[str, Any]]
    _laminar_has_reported: bool

    @property
    def variable_dtype(self) -> str:
        """The dtype of the weights."""
        raise NotImplementedError

    @_shape_first
    def add_weight(
        self,
        shape: Shape | int | None = None,
        initializer: InitializerLike | None = None,
        dtype: DTypeLike | None = None,
        *,
        trainable: bool = True,
        autocast: bool = True,
        regularizer: RegularizerLike | None = None,
        constraint: ConstraintLike | None = None,
        aggregation: str = "none",
        overwrite_with_gradient: bool = False,
        name: str | None = None,
    ) -> Variable:
        """Make a weight of the layer.

        Args:
            shape: its dimensions, all known; () by default.
            initializer: name, object or function; Glorot uniform for floats, zeros otherwise.
            dtype: by default the variable dtype of the layer.
            trainable: whether training changes it.
            autocast: whether it is read in the compute dtype.
            regularizer: penalty on it, added to the losses.
            constraint: projection after each update.
            aggregation: how replicas combine it.
            overwrite_with_gradient: whether its "gradient" is its next value.
            name: the last part of its path.

        Raises:
            ShapeError: a dimension is unknown.
        """
        full = TensorShape(() if shape is None else shape)
        if not full.is_fully_defined:
            raise ShapeError(
                f"{type(self).__name__} {self.name!r}: the shape of weight {name!r} "
                f"is not fully known: {full}",
                remedy="give Input a full shape (the batch alone may be unknown)",
            )
        kind = as_dtype(dtype or self.variable_dtype)
        if initializer is None:
            initializer = "glorot_uniform" if kind.is_floating else "zeros"
        source = initializers.get(initializer)
        reading = file_reading()
        place = getattr(self, "_laminar_path", None) or self.name  # if it is built already
        with inside_layer(place) if not self._laminar_is_inside() else nullcontext():
            variable = Variable(
                source if reading is None else reading.blank,
                shape=full,
                dtype=kind,
                trainable=trainable,
                autocast=autocast,
                aggregation=aggregation,
                name=name or auto_name("variable"),
            )
        if reading is not None:
            reading.made.append((variable, source))
        variable.regularizer = regularizers.get(regularizer)
        variable.constraint = constraints.get(constraint)
        variable.overwrite_with_gradient = overwrite_with_gradient
        self.__dict__.setdefault("_laminar_own", []).append(variable)
        if trainable:
            self.__dict__.setdefault("_laminar_made_trainable", []).append(variable)
        if trainable and not self._laminar_trainable:
            self.__dict__.setdefault("_laminar_frozen", []).append(variable)
            variable.trainable = False
        return variable

    add_variable = add_weight

    def _laminar_is_inside(self) -> bool:
        return layer_path().rpartition("/")[2] == self.name

    @property
    def _laminar_sublayers(self) -> list[Weighted]:
        """The layers among its attributes."""
        return self._laminar_find(Weighted)

    def _laminar_summarized(self) -> list[Any]:
        """The layers and ops that a summary lists."""
        return list(self._laminar_sublayers)

    def _laminar_flatten_layers(self, include_self: bool = True) -> list[Weighted]:
        """Itself and the layers inside it, at any depth, each once."""
        found: dict[int, Weighted] = {}
        stack: list[Weighted] = [self]
        while stack:
            layer = stack.pop(0)
            if id(layer) not in found:
                found[id(layer)] = layer
                stack[:0] = layer._laminar_sublayers
        layers = list(found.values())
        return layers if include_self else layers[1:]

    def _flatten_layers(self, include_self: bool = True, recursive: bool = True) -> list[Weighted]:
        """Keras's private name for it, which packages call."""
        if recursive:
            return self._laminar_flatten_layers(include_self)
        return [*([self] if include_self else ()), *self._laminar_sublayers]

    @open_property
    def _seed_generators(self) -> list[SeedGenerator]:
        """Keras's private name for its own random states, without those of layers inside."""
        return self._laminar_own_seeds

    @property
    def variables(self) -> list[Variable]:
        """All its variables: weights, and the states of random generators; without metrics."""
        found: dict[int, Variable] = {}
        for layer in self._laminar_flatten_layers():
            states = [s.state for s in layer._laminar_own_seeds]
            for v in [*layer._laminar_trained_first(), *states]:
                found.setdefault(id(v), v)
        return list(found.values())

    @property
    def weights(self) -> list[Variable]:
        """Its weights: variables without the states of random generators."""
        seeds = {
            id(s.state)
            for layer in self._laminar_flatten_layers()
            for s in layer._laminar_own_seeds
        }
        return [v for v in self.variables if id(v) not in seeds]

    @property
    def trainable_variables(self) -> list[Variable]:
        """The variables that training changes."""
        if not self._laminar_trainable:
            return []
        layers = [layer for layer in self._laminar_flatten_layers() if layer._laminar_trainable]
        live = {id(v) for layer in layers for v in layer._laminar_own_variables}
        return [v for v in self.variables if v.trainable and id(v) in live]

    @property
    def non_trainable_variables(self) -> list[Variable]:
        """The variables that training leaves."""
        trained = {id(v) for v in self.trainable_variables}
        return [v for v in self.variables if id(v) not in trained]

    @property
    def trainable_weights(self) -> list[Variable]:
        """The weights that training changes."""
        return self.trainable_variables

    @property
    def non_trainable_weights(self) -> list[Variable]:
        """The weights that training leaves."""
        trained = {id(v) for v in self.trainable_variables}
        return [v for v in self.weights if id(v) not in trained]

    @property
    def trainable(self) -> bool:
        """Whether training changes its weights; setting it sets all layers inside, and what
        `trainable` of their variables says."""
        return self._laminar_trainable

    @trainable.setter
    def trainable(self, value: bool) -> None:
        _Changes.count += 1
        for layer in self._laminar_flatten_layers():
            object.__setattr__(layer, "_laminar_trainable", bool(value))
            frozen: list[Variable] = layer.__dict__.setdefault("_laminar_frozen", [])
            if value:
                changed = frozen[:]
                frozen.clear()
            else:
                changed = [v for v in layer._laminar_own_variables if v.trainable]
                frozen += changed
            for v in changed:
                v.trainable = bool(value)

    @property
    def metrics(self) -> list[Any]:
        """The metrics that it and the layers inside it keep."""
        found = [m for layer in self._laminar_flatten_layers() for m in layer._laminar_own_metrics]
        return list({id(m): m for m in found if not isinstance(m, Weighted)}.values())

    @property
    def metrics_variables(self) -> list[Variable]:
        """The variables of its metrics."""
        return [v for m in self.metrics for v in m.variables]

    def count_params(self) -> int:
        """The number of weights, as numbers.

        Raises:
            FailedPreconditionError: the layer has not been built.
        """
        if not self.built:
            raise FailedPreconditionError(
                f"{self.name!r} has no weights yet", remedy="call it on data, or build(shape)"
            )
        return sum(v.size for v in self.weights)

    def get_weights(self) -> list[Any]:
        """The weights as NumPy arrays."""
        return [v.numpy() for v in self.weights]

    def set_weights(self, weights: Sequence[Any]) -> None:
        """Set the weights from arrays in the order of `get_weights`; all fit, or none is set.

        Raises:
            InvalidArgumentError: another number of arrays.
            ShapeError: an array has another shape.
        """
        mine = self.weights
        if len(mine) != len(weights):
            raise InvalidArgumentError(
                f"{self.name}: set_weights() got {len(weights)} arrays, "
                f"the layer has {len(mine)} weights",
                remedy="build the layer first" if not mine else "pass what get_weights() gives",
            )
        arrays = [np.asarray(w) for w in weights]
        for v, array in zip(mine, arrays, strict=True):
            if tuple(v.shape) != array.shape:
                raise ShapeError(
                    f"{self.name}: weight {v.path!r} has shape {tuple(v.shape)}, "
                    f"the array has {array.shape}"
                )
        for v, array in zip(mine, arrays, strict=True):
            v.assign(array)

    def save_own_variables(self, store: Any) -> None:
        """Put the layer's own variables into a mapping, under "0", "1", ..."""
        for i, v in enumerate(self._laminar_saved_variables()):
            store[str(i)] = np.asarray(v)

    def load_own_variables(self, store: Any) -> None:
        """Take the layer's own variables from such a mapping.

        Raises:
            InvalidArgumentError: another number of variables.
            ShapeError: a stored array has another shape.
        """
        mine = self._laminar_saved_variables()
        if len(store) != len(mine):
            raise InvalidArgumentError(
                f"{who(self)}: the file has {len(store)} weights, the layer has {len(mine)}",
                remedy="build the layer with the shapes it was saved with"
                if not self.built
                else "load into the model that wrote the file",
            )
        arrays = [np.asarray(store[str(i)]) for i in range(len(mine))]
        for v, array in zip(mine, arrays, strict=True):
            if tuple(v.shape) != array.shape:
                raise ShapeError(
                    f"{who(self)}: weight {v.path!r} has shape {tuple(v.shape)}, "
                    f"the file has {array.shape}"
                )
        for v, array in zip(mine, arrays, strict=True):
            # One that nobody can change, as those read from a file, need not be copied.
            v.assign(convert_to_tensor(array, copy=array.flags.writeable))

    def _laminar_saved_variables(self) -> list[Variable]:
        return self._laminar_trained_first()

    def _laminar_trained_first(self) -> list[Variable]:
        """Its own variables: first those that training may change, or might before they were
        frozen, so that freezing changes no order of weights.
        """
        lists = ("_laminar_made_trainable", "_laminar_frozen")
        once = {id(v) for name in lists for v in self.__dict__.get(name, ())}
        own = self._laminar_own_variables
        return sorted(own, key=lambda v: not (v.trainable or id(v) in once))
