"""Layer: a computation with weights."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any, ClassVar, NoReturn, Unpack

import numpy as np

from laminar import dtype_policies, ops, regularizers
from laminar.dtype_policies import PolicyLike
from laminar.engine.errors import (
    DTypeError,
    FailedPreconditionError,
    InvalidArgumentError,
    ShapeError,
    UnimplementedError,
)
from laminar.engine.functions import converted_in_graph
from laminar.engine.graph import Tensor, building
from laminar.engine.ops.core.convert import convert_to_tensor
from laminar.engine.source import inside_layer
from laminar.engine.state import Variable, autocast
from laminar.naming import who
from laminar.recorded import is_ours
from laminar.regularizers import RegularizerLike
from laminar.tree import flatten, map_structure

from .building import Buildable, legacy_shape
from .context import CallContext, current
from .holding import holding
from .input_spec import check_inputs, check_positional
from .layer_options import FirstShape, checked_trainable
from .masking import get_mask, set_mask
from .operation import Operation, infer_outputs, recorded_arguments
from .policies import WithPolicy
from .quantizing import checked
from .reporting import Reporting
from .symbolic import KerasTensor, any_symbolic
from .updates import plain_graph, with_updates


class Layer(Reporting, WithPolicy, Operation):
    """A computation with weights: derive from it, and write `__init__`, `build` and `call`.

    `__init__` stores the arguments, `build(input_shape)` makes the weights with `add_weight`, and
    `call(inputs)` computes with the functions of `laminar.ops`. A `call` that has parameters
    `training` or `mask` receives them.

    Args:
        activity_regularizer: penalty on the output, added to the losses.
        trainable: whether training changes the weights.
        dtype: a dtype or a mixed-precision policy, by default the global one.
        autocast: whether floating inputs are cast to the compute dtype.
        name: unique in a model; made from the class name by default.

    Shapes:
        as documented by each layer; the batch stands first.

    Examples:
        >>> class Scale(layers.Layer):
        ...     def build(self, input_shape):
        ...         self.factor = self.add_weight(shape=(), initializer="ones", name="factor")
        ...
        ...     def call(self, x):
        ...         return x * self.factor
        >>> Scale()(np.array([1.0, 2.0]))
        Tensor([1., 2.], shape=(2,), dtype=float32)
    """

    _laminar_training_default: ClassVar[Any] = None
    # Whether a class of the user's own says what shapes its outputs have.
    _laminar_declares_shapes: ClassVar[bool] = False
    _laminar_first_parameter: ClassVar[str] = "inputs"  # may be passed by name
    # Whether `quantize` is that of one layer, not of all in a model.
    _laminar_checks_quantize: ClassVar[bool] = True

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "call" in cls.__dict__ and "_laminar_call_parameters" not in cls.__dict__:
            parameters = inspect.signature(cls.call).parameters
            cls._laminar_call_parameters = tuple(parameters)[1:]
            first = [p.name for p in parameters.values() if p.kind is p.POSITIONAL_OR_KEYWORD][1:2]
            cls._laminar_first_parameter = first[0] if first else ""
            training = parameters.get("training")
            cls._laminar_training_default = training.default if training is not None else None
        owner = next(base for base in cls.__mro__ if "compute_output_shape" in vars(base))
        cls._laminar_declares_shapes = not is_ours(owner)
        if "quantize" in cls.__dict__ and cls._laminar_checks_quantize:
            cls.quantize = checked(cls.quantize)  # type: ignore[method-assign]  # wrapped

    def __init__(
        self,
        *,
        activity_regularizer: RegularizerLike | None = None,
        trainable: bool = True,
        dtype: PolicyLike | None = None,
        autocast: bool = True,
        name: str | None = None,
        **kwargs: Unpack[FirstShape],
    ) -> None:
        super().__init__(name=name)
        self._laminar_first_shape = legacy_shape(kwargs)
        if kwargs:
            raise InvalidArgumentError(
                f"{type(self).__name__}: unknown arguments {', '.join(sorted(kwargs))}",
                remedy="see the parameters of the class",
            )
        self.activity_regularizer = regularizers.get(activity_regularizer)
        self._laminar_policy = dtype_policies.get(dtype)
        self.autocast = autocast
        self._laminar_trainable = checked_trainable(self, trainable)
        self.built = self._laminar_stateless and type(self).build is Buildable.build
        self.input_spec: Any = None
        self.supports_masking = False
        self._laminar_losses: list[Any] = []
        self._laminar_reports: list[tuple[str, Any]] = []  # by add_metric, in the last call
        self._laminar_has_reported = False
        self._laminar_build_shapes: dict[str, Any] | None = None

    @property
    def _laminar_is_made(self) -> bool:
        """Whether the constructor of layers has run."""
        return "_laminar_losses" in self.__dict__

    # Calling

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Compute the outputs; on symbolic tensors, record the call and give symbolic ones."""
        if not self._laminar_is_made:
            raise FailedPreconditionError(
                f"{type(self).__name__}: __init__ did not call super().__init__()",
                remedy="begin __init__ with super().__init__(**kwargs)",
            )
        if not args and self._laminar_first_parameter in kwargs:
            args = (kwargs.pop(self._laminar_first_parameter),)
        if len(args) > 1:
            check_positional(args, self._laminar_call_parameters, who(self))
        if any_symbolic(args, kwargs):
            return self._laminar_call_symbolic(args, kwargs)
        args = tuple(map_structure(self._laminar_to_tensor, a) for a in args)
        kwargs = {
            k: v if k in ("training", "mask") else map_structure(self._laminar_to_tensor, v)
            for k, v in kwargs.items()
        }
        outer = current.context
        context = outer
        if context is None:
            context = current.context = CallContext(self)
            self._clear_losses()
        before = context.training
        try:
            kwargs = self._laminar_with_training(context, args, kwargs)
            with inside_layer(self.name), _name_scope(self.name):
                self._laminar_checked_build(args, kwargs)
                masks = self._laminar_masks_of(args, kwargs)
                graph = plain_graph() if outer is None else None
                begin = 0 if graph is None else graph.version
                with autocast(self.compute_dtype if self._laminar_casts else None):
                    given = {**kwargs, **masks}
                    call = converted_in_graph(self._laminar_call)
                    compute = self.rematerialized_call(call, *args, **given)
                    outputs = compute(*args, **given)
                if graph is not None:
                    outputs = with_updates(outputs, graph, begin)
                self._laminar_after_call(args, kwargs, outputs)
        finally:
            context.training = before
            current.context = outer
        return outputs

    def _laminar_checked_build(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Build for inputs that fit; what is expected of them may become clear by building."""
        was_built, first = self.built, args[0] if args else None
        check_inputs(self.input_spec, first, who(self))
        self._laminar_maybe_build(args, kwargs)
        if not was_built:
            check_inputs(self.input_spec, first, who(self))

    @property
    def _laminar_call(self) -> Callable[..., Any]:
        """What computes the outputs: `quantized_call` where a mode is set and a class writes it."""
        if self.quantization_mode is None or not self._laminar_has_quantized_call:
            return self.call
        return self.quantized_call

    @property
    def _laminar_has_quantized_call(self) -> bool:
        is_written = type(self).quantized_call is not Operation.quantized_call
        return is_written or hasattr(self, f"_{self.quantization_mode}_call")

    @property
    def _laminar_casts(self) -> bool:
        return self.autocast and self.compute_dtype != self.variable_dtype

    def _laminar_to_tensor(self, leaf: Any) -> Any:
        if isinstance(leaf, Variable):
            leaf = leaf.value
        if isinstance(leaf, np.ndarray | np.generic) or hasattr(leaf, "__dlpack__"):
            leaf = convert_to_tensor(leaf, copy=False)
        if isinstance(leaf, Tensor) and self.autocast and leaf.dtype.is_floating:
            x = convert_to_tensor(leaf, self.compute_dtype)
            if x is not leaf and get_mask(leaf) is not None:
                set_mask(x, get_mask(leaf))
            return x
        return leaf

    def _laminar_with_training(
        self, context: CallContext, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> dict[str, Any]:
        """Resolve `training`: the argument, else that of the call around, else the default."""
        if "training" in self._laminar_call_parameters:
            position = self._laminar_call_parameters.index("training")
            if "training" not in kwargs and len(args) > position:
                context.training = args[position]
                return kwargs
        given = kwargs.pop("training", None)
        if given is not None:
            context.training = bool(given)
        elif context.training is None and self._laminar_training_default in (False, True):
            context.training = self._laminar_training_default
        if "training" not in self._laminar_call_parameters or context.training is None:
            return kwargs
        return {**kwargs, "training": context.training}

    def _laminar_masks_of(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """The mask arguments of `call` that were not passed, from the masks of the inputs."""
        masks: dict[str, Any] = {}
        given = dict(zip(self._laminar_call_parameters, args, strict=False)) | kwargs
        open_parameters = self._laminar_call_parameters[len(args) :]
        for i, (name, value) in enumerate(given.items()):
            parameter = "mask" if i == 0 else f"{name}_mask"
            if parameter in open_parameters and given.get(parameter) is None:
                found = map_structure(get_mask, value)
                if any(m is not None for m in flatten(found)):
                    masks[parameter] = found
                    kwargs.pop(parameter, None)
        return masks

    def _laminar_after_call(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], outputs: Any
    ) -> None:
        if self.activity_regularizer is not None:
            for y in flatten(outputs):
                self.add_loss(_per_example(self.activity_regularizer(y), y))
        self._laminar_pass_masks(args, kwargs, outputs)

    def _laminar_pass_masks(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], outputs: Any
    ) -> None:
        """Give the outputs their masks, from that which was passed or those of the first input."""
        if not args:
            return
        previous = kwargs.get("mask")
        if previous is None:
            previous = map_structure(get_mask, args[0])
        if any(m is not None for m in flatten(previous)):
            self._laminar_set_masks(args[0], outputs, previous)
        elif self._laminar_makes_masks:
            self._laminar_set_masks(args[0], outputs, None)

    @property
    def _laminar_makes_masks(self) -> bool:
        return type(self).compute_mask is not Layer.compute_mask

    def _laminar_set_masks(self, inputs: Any, outputs: Any, previous: Any) -> None:
        if not self.supports_masking and not self._laminar_makes_masks:
            return
        flat = flatten(outputs)
        masks = flatten(self.compute_mask(inputs, previous))
        for y, mask in zip(flat, masks, strict=False):
            if mask is not None and get_mask(y) is None:
                set_mask(y, mask)

    def compute_mask(self, inputs: Any, previous_mask: Any = None) -> Any:
        """The mask of the output, from those of the inputs: passed on as it is.

        Args:
            inputs: as `call` takes them.
            previous_mask: their masks, in the same structure; None where there is none.
        """
        return previous_mask

    def rematerialized_call(
        self, layer_call: Callable[..., Any], *args: Any, **kwargs: Any
    ) -> Callable[..., Any]:
        """`layer_call`, such as its `call`, as the RematScope in which it was made asks."""
        return super().rematerialized_call(layer_call, *args, **kwargs)

    def _laminar_call_symbolic(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        with inside_layer(self.name), _name_scope(self.name):
            self._laminar_checked_build(args, kwargs)
        return self.symbolic_call(*args, **kwargs)

    def compute_output_spec(self, *args: Any, **kwargs: Any) -> Any:
        """The symbolic results of a call, found by tracing it on placeholders.

        Where that cannot be, a class of the user's own that writes `compute_output_shape` is asked
        for the shapes; the dtype is the compute dtype then.
        """
        if not self._laminar_declares_shapes:
            return self._laminar_traced_spec(args, kwargs)
        try:
            return self._laminar_traced_spec(args, kwargs)
        except (InvalidArgumentError, ShapeError, DTypeError):
            raise  # the call does not fit its inputs, wherever it runs
        except Exception:  # a user's code raises anything where it gets no values
            shapes = self._laminar_shapes_for(self.compute_output_shape, args, kwargs)
        outputs = map_structure_shapes(self.compute_output_shape(**shapes), self.compute_dtype)
        self._laminar_pass_masks(args, kwargs, outputs)
        return outputs

    def _laminar_traced_spec(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return infer_outputs(self._laminar_call_quietly, args, kwargs)

    def _laminar_call_quietly(self, *args: Any, **kwargs: Any) -> Any:
        """The call as itself, in a trace that is thrown away: added losses go with it."""
        outer, current.context = current.context, None
        try:
            return Layer.__call__(self, *args, **kwargs)
        finally:
            current.context = outer
            self._clear_losses()

    def compute_output_shape(self, *args: Any, **kwargs: Any) -> Any:
        """The shapes of the outputs for inputs of given shapes.

        Args:
            args: shapes, in the structures in which `call` takes tensors; None for a size that is
                not known.
            kwargs: the same, and other arguments of `call`.

        Raises:
            ShapeError: the layer does not take such inputs.
        """
        symbols = [map_structure_shapes(a, self.compute_dtype) for a in args]
        named = {
            k.removesuffix("_shape"): map_structure_shapes(v, self.compute_dtype)
            for k, v in kwargs.items()
        }
        if not symbols and set(named) == {"input"}:
            symbols, named = [named["input"]], {}
        with inside_layer(self.name):
            self._laminar_maybe_build(tuple(symbols), named)
        if self._laminar_declares_shapes:  # this was called by the class's own method
            outputs = self._laminar_traced_spec(tuple(symbols), named)
        else:
            outputs = self.compute_output_spec(*symbols, **named)
        return map_structure(lambda y: tuple(y.shape), outputs)

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """Compute the outputs: what a layer must write.

        Args:
            args: the inputs: a tensor or a structure of tensors.
            kwargs: what else it takes; of `training` and `mask`, what is known where a call does
                not say it.

        Raises:
            UnimplementedError: the layer does not.
        """
        raise UnimplementedError(
            f"{type(self).__name__} does not say what it computes",
            remedy="write call(self, inputs)",
        )

    # Stateless use

    def stateless_call(
        self,
        trainable_variables: Sequence[Any],
        non_trainable_variables: Sequence[Any],
        *args: Any,
        return_losses: bool = False,
        **kwargs: Any,
    ) -> Any:
        """The outputs with given values of the variables, and the values that the rest gets.

        Args:
            trainable_variables: a value for each of `self.trainable_variables`.
            non_trainable_variables: the same of `self.non_trainable_variables`.
            args: of the call.
            return_losses: whether to give what was added by `add_loss`, too.
            kwargs: of the call.

        Returns:
            (outputs, non-trainable values), and the losses with `return_losses`.
        """
        held = [*self.trainable_variables, *self.non_trainable_variables]
        with holding(held, [*trainable_variables, *non_trainable_variables], who(self)):
            outputs = self(*args, **kwargs)
            losses = self.losses
            updated = [v.read_value() for v in self.non_trainable_variables]
        return (outputs, updated, losses) if return_losses else (outputs, updated)

    # Configuration

    def get_config(self) -> dict[str, Any]:
        """What `from_config` needs to make an equal layer.

        A class that does not write its own gets the arguments of its constructor.
        """
        base: dict[str, Any] = {
            "name": self.name,
            "trainable": self._laminar_trainable,
            "dtype": dtype_policies.serialize(self._laminar_policy),
        }
        if self.activity_regularizer is not None:
            base["activity_regularizer"] = regularizers.serialize(self.activity_regularizer)
        if type(self).get_config is not Layer.get_config:
            return base
        return base | recorded_arguments(self)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} name={self.name}, built={self.built}>"


def refuse_layer(value: Any, who: str) -> NoReturn:
    """Refuse something that was given where a layer belongs: InvalidArgumentError, always."""
    if isinstance(value, type) and issubclass(value, Layer):
        raise InvalidArgumentError(
            f"{who}: expected a layer, got the class {value.__name__}",
            remedy=f"make one: {value.__name__}(...)",
        )
    raise InvalidArgumentError(
        f"{who}: expected a layer, got {value!r}",
        remedy="wrap a function in layers.Lambda, or derive a class from layers.Layer",
    )


def _name_scope(name: str) -> Any:
    """The scope of a layer's operations; what no operation's name may hold becomes "_"."""
    graph = building()
    if graph is None:
        return nullcontext()
    safe = re.sub(r"[^A-Za-z0-9_.>-]", "_", name)
    return graph.name_scope(safe if safe[0] not in "_->" else f"layer{safe}")


def map_structure_shapes(shapes: Any, dtype: Any) -> Any:
    """Symbolic tensors for a shape, or for a structure of shapes."""
    if isinstance(shapes, dict):
        return {k: map_structure_shapes(v, dtype) for k, v in shapes.items()}
    if shapes and isinstance(shapes, list | tuple) and isinstance(shapes[0], list | tuple | dict):
        parts = [map_structure_shapes(s, dtype) for s in shapes]
        return tuple(parts) if isinstance(shapes, tuple) else parts
    return KerasTensor(shapes, dtype)


def _per_example(penalty: Any, y: Any) -> Any:
    """An activity penalty divided by the size of the batch, as Keras 3 does."""
    if not y.shape:
        return penalty
    return ops.divide_no_nan(penalty, ops.cast(ops.shape(y)[0], penalty.dtype))
