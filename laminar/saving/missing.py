"""Layers that stand for those of a file that could not be made."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from laminar.engine.errors import FailedPreconditionError, InvalidArgumentError, LaminarError
from laminar.layers.layer import Layer
from laminar.layers.symbolic import KerasTensor
from laminar.tree import flatten

from .report import UNMADE, LoadReport

Config = dict[str, Any]
# shapes[layer name][call][tensor] is the (shape, dtype) of a result, as the file says.
Shapes = dict[str, dict[int, dict[int, tuple[Any, str]]]]


class MissingLayer(Layer):
    """Stands for a layer of a file whose class is not known, or that cannot be made.

    It has the name and the outputs of that layer, so that the model around it is complete;
    computing with it, and saving it, are refused.

    Args:
        class_name: what the file calls the class.
        reason: why it could not be made.
        outputs: the shape and dtype of each result, for each call.
        name: of the layer.
    """

    def __init__(
        self,
        class_name: str,
        reason: str,
        outputs: Mapping[int, Mapping[int, tuple[Any, str]]],
        name: str | None = None,
    ) -> None:
        super().__init__(name=name)
        self.class_name = class_name
        self.reason = reason
        self._outputs_of_calls = {call: dict(tensors) for call, tensors in outputs.items()}

    def compute_output_spec(self, *args: Any, **kwargs: Any) -> Any:
        """The results that the file says; like the input where it says nothing."""
        tensors = self._outputs_of_calls.get(len(self.inbound_nodes), {})
        if not tensors:
            first = flatten([args, kwargs])[0]
            return KerasTensor(first.shape, first.dtype)
        known = [tensors.get(i, tensors[min(tensors)]) for i in range(max(tensors) + 1)]
        found = [KerasTensor(tuple(shape), dtype) for shape, dtype in known]
        return found[0] if len(found) == 1 else found

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """Refuse: what it computes is not known."""
        raise FailedPreconditionError(
            f"the layer {self.name!r} of class {self.class_name!r} was not made when the model was "
            f"loaded with partial=True: {self.reason}",
            remedy="load the file with the class in custom_objects",
        )

    def get_config(self) -> Config:
        """Refuse: there is nothing to save.

        Raises:
            InvalidArgumentError: always.
        """
        raise InvalidArgumentError(
            f"the layer {self.name!r} of class {self.class_name!r} cannot be saved: it was not "
            "made when the model was loaded with partial=True",
            remedy="load the file with the class in custom_objects",
        )


class Substitutes:
    """Puts a `MissingLayer` in the place of each layer that cannot be made, and reports it.

    Args:
        config: of the whole model: it tells the shapes of results.
        report: takes note of what is missing.
    """

    def __init__(self, config: Config, report: LoadReport) -> None:
        self._shapes: Shapes = {}
        self._report = report
        self._find_shapes(config)

    def __call__(self, config: Config, error: LaminarError) -> Any:
        """Something for the object of that config; None if it is not a layer."""
        inner = config.get("config")
        if not isinstance(inner, dict) or {"layers", "input_layers"} <= inner.keys():
            return None
        name = inner.get("name")
        is_layer = "trainable" in inner or "inbound_nodes" in config
        if not is_layer or not isinstance(name, str):
            return None
        kind = str(config.get("class_name"))
        self._report.add(name, UNMADE, f"{kind}: {error.message}")
        return MissingLayer(kind, error.message, self._shapes.get(name, {}), name=name)

    def _find_shapes(self, value: Any) -> None:
        """Collect the shapes of the tensors that calls take, and of what stands before a layer."""
        if isinstance(value, list):
            for item in value:
                self._find_shapes(item)
        elif isinstance(value, dict):
            if value.get("class_name") == "__keras_tensor__":
                self._keep(value.get("config"))
            elif value.get("class_name") == "Sequential":
                self._keep_stack(value.get("config"))
            for item in value.values():
                self._find_shapes(item)

    def _keep(self, tensor: Any) -> None:
        if not isinstance(tensor, dict) or not isinstance(tensor.get("shape"), list):
            return
        name, call, index = tensor["keras_history"]
        kind = tensor.get("dtype", "float32")
        self._shapes.setdefault(name, {}).setdefault(call, {})[index] = (tensor["shape"], kind)

    def _keep_stack(self, config: Any) -> None:
        """In a stack of layers, a layer gives what the next was built for."""
        layers = config.get("layers") if isinstance(config, dict) else None
        for layer, following in zip(layers or (), (layers or ())[1:], strict=False):
            inner, build = layer.get("config"), following.get("build_config")
            shape = build.get("input_shape") if isinstance(build, dict) else None
            if isinstance(inner, dict) and isinstance(shape, list):
                name = inner.get("name", "")
                self._shapes.setdefault(name, {}).setdefault(0, {})[0] = (shape, "float32")
