"""Function: what leads from some symbolic tensors to others, as something to call."""

from __future__ import annotations

from typing import Any

from laminar.layers.layer import map_structure_shapes
from laminar.layers.operation import Operation
from laminar.layers.symbolic import Callee, KerasTensor, any_symbolic
from laminar.tree import map_structure

from .network import Network


class Function(Operation):
    """The computation of symbolic tensors from others: a model without training and files.

    Args:
        inputs: symbolic tensors, in any structure.
        outputs: symbolic tensors that are computed from them.
        name: of the function.

    Raises:
        InvalidArgumentError: something that is not a symbolic tensor, or outputs that need an
            input which is not given.

    Examples:
        >>> x = layers.Input((3,))
        >>> function = laminar.Function(x, ops.sum(x, axis=1))
        >>> function(np.array([[1.0, 2.0, 3.0]]))
        Tensor([6.], shape=(1,), dtype=float32)
    """

    def __init__(self, inputs: Any, outputs: Any, name: str | None = None) -> None:
        super().__init__(name)
        self._laminar_network = Network(inputs, outputs, f"Function {self.name!r}")

    @property
    def inputs(self) -> list[KerasTensor]:
        """The symbolic inputs, as a list."""
        return self._laminar_network.inputs

    @property
    def outputs(self) -> list[KerasTensor]:
        """The symbolic outputs, as a list."""
        return self._laminar_network.outputs

    @property
    def operations(self) -> list[Callee]:
        """The layers and ops that are called."""
        return list(self._laminar_network.operations)

    def __call__(self, inputs: Any) -> Any:
        """The outputs for inputs of the structure that the function was made with."""
        if any_symbolic((inputs,), {}):
            return self.symbolic_call(inputs)
        return self.call(inputs)

    def call(self, inputs: Any) -> Any:
        return self._laminar_network.run(inputs)

    def compute_output_shape(self, input_shape: Any) -> Any:
        """The shapes of the outputs for inputs of given shapes."""
        symbols = map_structure_shapes(input_shape, self.inputs[0].dtype)
        return map_structure(lambda y: tuple(y.shape), self.compute_output_spec(symbols))
