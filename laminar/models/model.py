"""Model: layers that train together."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

from laminar.engine.errors import (
    InvalidArgumentError,
    NotFoundError,
    UnimplementedError,
)
from laminar.engine.saving import BackgroundWriter
from laminar.layers.building import by_calling
from laminar.layers.layer import Layer
from laminar.layers.open_property import open_property
from laminar.naming import who
from laminar.quantizers import as_config
from laminar.serialization import serialize_keras_object
from laminar.tree import flatten, map_structure

from ..quantizers import QuantizationLike
from ..typing import PathLike
from .compiled_calls import NOT_COMPILED, CompiledCalls, compiled_call
from .network import Network, cut
from .network_config import network_config, network_from_config
from .quantizing import Filters, quantize_layers
from .state_tree import StateTrees


class ReservedAttributeError(InvalidArgumentError, AttributeError):
    """An attribute of this name belongs to the model."""


class Model(StateTrees):
    """Layers that are trained, evaluated and saved together.

    Three ways to make one: `Model(inputs, outputs)` from symbolic tensors (the functional API);
    a subclass that makes its layers in `__init__` and uses them in `call`; or `Sequential`.

    Args:
        inputs: a symbolic tensor, or a list or dict of them.
        outputs: symbolic tensors computed from `inputs`.
        name: of the model.
        trainable: whether training changes its weights.

    Examples:
        >>> x = layers.Input((8,))
        >>> hidden = layers.Dense(16, activation="relu")(x)
        >>> model = laminar.Model(x, layers.Dense(1)(hidden))
        >>> model.compile("sgd", "mse")
        >>> history = model.fit(np.ones((32, 8)), np.ones((32, 1)), epochs=2, verbose=0)
        >>> len(history.history["loss"]), model.predict(np.ones((4, 8)), verbose=0).shape
        (2, (4, 1))
    """

    _laminar_calls: CompiledCalls | None = None
    _laminar_is_stack = False  # whether its layers follow one another: a Sequential

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """`Model(inputs, outputs)` is a Functional."""
        if cls is Model and (args or "inputs" in kwargs or "outputs" in kwargs):
            cls = Functional
        return super().__new__(cls, *args, **kwargs)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        inputs = outputs = None
        if args or "inputs" in kwargs or "outputs" in kwargs:
            inputs, outputs, kwargs = _functional_arguments(type(self).__name__, args, kwargs)
        super().__init__(**kwargs)
        self._laminar_network: Network | None = None
        if inputs is not None:
            self._laminar_network = cut(Network(inputs, outputs, who(self)))
            self.built = True

    # Calling

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Compute the outputs; on symbolic tensors, record the call and give symbolic ones.

        Calls on values are compiled from the second one of a form on, where nothing but their speed
        and the rounding of sums shows it (models/compiled_calls.py says when that is).
        """
        found = compiled_call(self, args, kwargs) if self._laminar_may_compile else NOT_COMPILED
        return super().__call__(*args, **kwargs) if found is NOT_COMPILED else found

    @property
    def _laminar_may_compile(self) -> bool:
        return type(self) is Functional

    def _laminar_call_plainly(self, inputs: Any, training: bool | None) -> Any:
        """A call as that of any layer."""
        given = {} if training is None else {"training": training}
        return super().__call__(inputs, **given)

    def _laminar_not_copied(self, memo: dict[int, Any]) -> dict[str, Any]:
        return {**super()._laminar_not_copied(memo), "_laminar_calls": None}

    # Layers

    @property
    def _laminar_sublayers(self) -> list[Any]:
        found: dict[int, Any] = {}
        for layer in self._laminar_network.layers if self._laminar_network else ():
            found[id(layer)] = layer
        for layer in self._laminar_find(Layer):
            found.setdefault(id(layer), layer)
        return list(found.values())

    @property
    def layers(self) -> list[Layer]:
        """The layers of the model, without those inside other layers."""
        return self._laminar_listed_layers()

    @layers.setter
    def layers(self, value: Any) -> None:
        raise ReservedAttributeError(
            "`layers` lists what the model has; it cannot be assigned",
            remedy="keep your layers in an attribute of another name",
        )

    def _laminar_checkpoint_children(self) -> dict[str, Any]:
        found = super()._laminar_checkpoint_children()
        if self._laminar_network is not None:
            found["layers"] = self.layers
        if getattr(self, "optimizer", None) is not None:
            found["optimizer"] = self.optimizer
        return found

    def _laminar_listed_layers(self) -> list[Layer]:
        return self._laminar_sublayers

    def _laminar_summarized(self) -> list[Any]:
        return (
            list(self._laminar_network.operations)
            if self._laminar_network
            else super()._laminar_summarized()
        )

    def get_layer(self, name: str | None = None, index: int | None = None) -> Layer:
        """The layer of that name, or at that place.

        Raises:
            NotFoundError: there is none.
            InvalidArgumentError: neither or both are given.
        """
        if (name is None) == (index is None):
            raise InvalidArgumentError("get_layer: give a name or an index")
        layers = self.layers
        if index is not None:
            if not -len(layers) <= index < len(layers):
                raise NotFoundError(f"get_layer: the model has {len(layers)} layers, not {index}")
            return layers[index]
        for layer in layers:
            if layer.name == name:
                return layer
        raise NotFoundError(
            f"the model {self.name!r} has no layer {name!r}",
            remedy=f"its layers are {', '.join(layer.name for layer in layers)}",
        )

    @open_property
    def input(self) -> Any:
        return self._laminar_network.inputs_structure if self._laminar_network else super().input

    @open_property
    def output(self) -> Any:
        return self._laminar_network.outputs_structure if self._laminar_network else super().output

    @open_property
    def inputs(self) -> list[Any]:
        """The symbolic inputs, flat; AttributeError for a model that has none."""
        return list(self._laminar_symbolic("inputs").inputs)

    @open_property
    def outputs(self) -> list[Any]:
        """The symbolic outputs, flat; AttributeError for a model that has none."""
        return list(self._laminar_symbolic("outputs").outputs)

    @open_property
    def operations(self) -> list[Any]:
        """The layers and ops between the symbolic inputs and outputs; AttributeError if none."""
        return list(self._laminar_symbolic("operations").operations)

    def _laminar_symbolic(self, what: str) -> Network:
        """The network; AttributeError where there is none, so that hasattr() is false then."""
        if self._laminar_network is None:
            raise AttributeError(
                f"{who(self)} has no {what}: it is no functional model, and no Sequential that is "
                "built"
            )
        return self._laminar_network

    @open_property
    def input_shape(self) -> Any:
        """The shape of each symbolic input."""
        return map_structure(lambda x: tuple(x.shape), self.input)

    @open_property
    def output_shape(self) -> Any:
        """The shape of each symbolic output."""
        return map_structure(lambda y: tuple(y.shape), self.output)

    @open_property
    def output_names(self) -> list[str]:
        """The names of the outputs: keys for losses and metrics."""
        return self._laminar_output_names

    @property
    def _laminar_output_names(self) -> list[str]:
        return self._laminar_network.output_names if self._laminar_network else []

    # Building and calling

    @by_calling
    def build(self, input_shape: Any) -> None:
        """Make the weights: the model is called on symbolic inputs of `input_shape`."""
        if not self.built and not self._laminar_is_building:
            self._laminar_is_building = True
            try:
                self.compute_output_shape(input_shape)
            finally:
                self._laminar_is_building = False

    _laminar_is_building = (
        False  # a `build` of a subclass may call this one, and is not called back
    )

    def _laminar_maybe_build(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if type(self).build is not Model.build and not self._laminar_is_building:
            super()._laminar_maybe_build(args, kwargs)

    def _laminar_after_call(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], outputs: Any
    ) -> None:
        if not self.built:  # now it is: a first call made the weights, and has not failed
            first = args[0] if args else next(iter(kwargs.values()), None)
            if all(hasattr(leaf, "shape") for leaf in flatten(first)):
                shapes = map_structure(lambda x: tuple(x.shape), first)
                self._laminar_build_shapes = {"input_shape": shapes}
            self.built = True
        super()._laminar_after_call(args, kwargs, outputs)

    # A subclass has parameters of its own; these are what callers may pass here.
    _laminar_call_parameters = ("inputs", "training", "mask")

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """Compute the outputs of `inputs`; a subclass without symbolic inputs writes its own."""
        if self._laminar_network is None:
            raise UnimplementedError(
                f"the model {self.name!r} does not say what it computes",
                remedy="write call(self, inputs) in the class, or make it with "
                "Model(inputs, outputs)",
            )
        return self._laminar_network.run(args[0] if args else kwargs["inputs"])

    def _laminar_keep_all(self) -> None:
        if self._laminar_network is not None:
            self._laminar_network.parts = 1

    def _laminar_known_outputs(self) -> Any:
        return self._laminar_network_outputs(Model.call)

    def _laminar_network_outputs(self, call: Any) -> Any:
        """The outputs of the network, if a call does no more than run it: `call` is what does."""
        network, kind = self._laminar_network, type(self)
        if network is None or kind.call is not call or kind.__call__ is not Model.__call__:
            return None
        if any(layer._laminar_has_reported for layer in self._laminar_flatten_layers()):
            return None
        structure = network.outputs_structure
        is_one = isinstance(structure, list | tuple) and len(structure) == 1
        return structure[0] if is_one else structure

    # Information

    def summary(
        self,
        line_length: int | None = None,
        positions: Sequence[float] | None = None,
        print_fn: Callable[[str], object] | None = None,
        expand_nested: bool = False,
        show_trainable: bool = False,
        layer_range: Sequence[str] | None = None,
    ) -> None:
        """Print the layers with their output shapes and numbers of weights.

        Args:
            line_length: width in characters, by default that of the terminal.
            positions: taken for Keras's sake; columns size themselves.
            print_fn: called with the text instead of printing it.
            expand_nested: whether to show the layers inside layers.
            show_trainable: whether to show which layers train.
            layer_range: (first, last) names, or patterns, of the layers to show.
        """
        from laminar.utils.summary import print_summary  # loads rich

        print_summary(self, line_length, print_fn, expand_nested, show_trainable, layer_range)

    # Saving

    def save(
        self, filepath: PathLike, overwrite: bool = True, zipped: bool | None = None, **kwargs: Any
    ) -> None:
        """Write architecture, weights and optimizer state to a file; see `saving.save_model`."""
        from laminar.saving import save_model  # saving makes models of files

        save_model(self, filepath, overwrite=overwrite, zipped=zipped, **kwargs)

    def export(
        self,
        filepath: PathLike,
        format: str = "laminar",
        verbose: bool | None = None,
        input_signature: Any = None,
    ) -> None:
        """Write the model's inference as a graph, which runs without the model's code.

        `laminar.export.load(filepath).serve(x)` gives what `model(x, training=False)` does; so does
        an ONNX file in any runtime of ONNX.

        Args:
            filepath: where to.
            format: "laminar", or "onnx" (with the extra `onnx`).
            verbose: whether to print what was written; by default, yes.
            input_signature: a spec for each argument of the call; by default those of the model's
                symbolic inputs.

        Raises:
            UnimplementedError: another format, or an operation that ONNX does not have.
            InvalidArgumentError: there are no symbolic inputs, and no signature was given.
        """
        from laminar.export import ExportArchive
        from laminar.export.onnx import export_onnx

        if format not in ("laminar", "onnx"):
            raise UnimplementedError(
                f"export: the formats here are 'laminar' and 'onnx', got {format!r}",
                remedy="save the model as a .keras file, which Keras exports to other formats",
            )
        if input_signature is None:
            if self._laminar_network is None:
                raise InvalidArgumentError(
                    f"export: the model {self.name!r} has no symbolic inputs to tell its arguments",
                    remedy="give input_signature=[TensorSpec([None, 4])], one for each argument",
                )
            input_signature = [self.input]
        if format == "onnx":

            def serve(*args: Any) -> Any:
                return self(*args, training=False)

            export_onnx(serve, filepath, input_signature, self.name, verbose is not False)
            return
        archive = ExportArchive()
        archive.track_and_add_endpoint("serve", self, input_signature, training=False)
        archive.write_out(filepath, verbose=verbose is not False)

    def save_weights(
        self,
        filepath: PathLike,
        overwrite: bool = True,
        max_shard_size: float | None = None,
        *,
        objects_to_skip: Sequence[Any] | None = None,
        background: BackgroundWriter | None = None,
    ) -> None:
        """Write the weights to a `.weights.h5` file, or to several; see `saving.save_weights`."""
        from laminar.saving import save_weights  # as in `save`

        save_weights(
            self,
            filepath,
            overwrite,
            max_shard_size,
            objects_to_skip=objects_to_skip,
            background=background,
        )

    def load_weights(self, filepath: PathLike, skip_mismatch: bool = False, **kwargs: Any) -> Any:
        """Read the weights from a file; see `saving.load_weights`."""
        from laminar.saving import load_weights  # as in `save`

        return load_weights(self, filepath, skip_mismatch=skip_mismatch, **kwargs)

    _laminar_checks_quantize = False

    def quantize(  # type: ignore[override]  # Keras gives models other arguments
        self,
        mode: str | None = None,
        config: QuantizationLike | None = None,
        filters: Filters = None,
        **kwargs: Any,
    ) -> None:
        """Keep the large weights of Dense, EinsumDense and Embedding layers in few bits.

        They are trained no more, but with "float8"; to train what is left, compile again. The
        modes "gptq" and "awq" go through blocks of layers, for which see their configurations
        and `get_quantization_layer_structure`.

        Args:
            mode: "int8", "int4", "float8", "gptq" or "awq".
            config: such as a `laminar.quantizers.Int4QuantizationConfig`, which says the mode too.
            filters: which layers: a pattern (regular expression) found in their names, several
                patterns, or a function `layer -> bool`; all by default.
            **kwargs: type_check, whether layers of classes that derive from those of laminar are
                left as they are, with a warning.

        Raises:
            InvalidArgumentError: another mode, configuration or argument; or a layer is not built.
        """
        type_check = kwargs.pop("type_check", True)
        if kwargs:
            raise InvalidArgumentError(f"{who(self)}: quantize() has no {', '.join(kwargs)}")
        found = as_config(mode, config, who(self))
        try:
            quantize_layers(self, found, filters, type_check=type_check)
        finally:
            self._laminar_forget_steps()

    def get_quantization_layer_structure(self, mode: str | None = None) -> dict[str, Any] | None:
        """How "gptq" and "awq" go through the layers: for a class of models to write.

        Args:
            mode: which of them.

        Returns:
            None, or "pre_block_layers": what inputs go through first, such as an embedding, and
            "sequential_blocks": layers, each of which takes what the one before gives.
        """
        return None

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        if self._laminar_network is not None and not memo:
            memo[id(memo)] = []  # as `copy` begins: the layers inside are copied with their calls
            copy.deepcopy(self._laminar_network, memo)
        return super().__deepcopy__(memo)

    def __reduce__(self) -> tuple[Any, ...]:
        from laminar.saving.pickled import archived, unarchived  # as in `save`

        return (unarchived, (archived(self),)) if self.built else super().__reduce__()

    def to_json(self, **kwargs: Any) -> str:
        """The architecture as JSON."""
        return json.dumps(serialize_keras_object(self), **kwargs)

    @classmethod
    def from_config(
        cls, config: Mapping[str, Any], custom_objects: Mapping[str, Any] | None = None
    ) -> Self:
        """Make a model from what `get_config` gave."""
        if "input_layers" in config and "layers" in config:
            inputs, outputs = network_from_config(config, custom_objects)
            options = {k: config[k] for k in ("name", "trainable") if k in config}
            return cls(inputs=inputs, outputs=outputs, **options)
        return super().from_config(dict(config))


class _FunctionalKind(type):
    """Counts subclasses of `Model` with symbolic inputs and outputs as functional, too."""

    def __instancecheck__(cls, obj: Any) -> bool:
        if super().__instancecheck__(obj):
            return True
        network = getattr(obj, "_laminar_network", None) if isinstance(obj, Model) else None
        return cls is Functional and network is not None and not obj._laminar_is_stack


class Functional(Model, metaclass=_FunctionalKind):
    """What `Model(inputs, outputs)` makes; see `Model`.

    A subclass of `Model` that hands inputs and outputs to its constructor counts as one in
    `isinstance`.

    Examples:
        >>> x = layers.Input((3,))
        >>> isinstance(laminar.Model(x, layers.Dense(2)(x)), laminar.models.Functional)
        True
    """

    _keras_module = "keras.src.models.functional"

    def get_config(self) -> dict[str, Any]:
        """The layers, their calls, and which tensors go in and out.

        A subclass with another constructor gets the arguments of that constructor.
        """
        if type(self) is not Functional:
            return super().get_config()
        assert self._laminar_network is not None
        return {
            "name": self.name,
            "trainable": self.trainable,
            **network_config(self._laminar_network),
        }

    def get_build_config(self) -> dict[str, Any]:
        """As Keras writes it: a functional model is built by its layers."""
        return {"input_shape": None}


def _functional_arguments(
    who: str, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Any, Any, dict[str, Any]]:
    rest = dict(kwargs)
    given = list(args)
    inputs = given.pop(0) if given else rest.pop("inputs", None)
    outputs = given.pop(0) if given else rest.pop("outputs", None)
    if given:
        rest.setdefault("name", given.pop(0))
    if inputs is None or outputs is None:
        raise InvalidArgumentError(
            f"{who}: inputs and outputs are given together or not at all",
            remedy="Model(inputs=..., outputs=...)",
        )
    return inputs, outputs, rest
