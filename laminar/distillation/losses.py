"""How far the outputs of a student are from those of its teacher."""

from __future__ import annotations

import math
from typing import Any

from laminar import losses, ops
from laminar.engine.errors import InvalidArgumentError, LaminarError, UnimplementedError
from laminar.recorded import Recorded
from laminar.serialization import deserialize_keras_object, serialize_keras_object
from laminar.tree import assert_same_structure, flatten, map_structure

from ..typing import TensorStructure


class DistillationLoss(Recorded):
    """Base of what is compared of a teacher and a student: write `compute_loss`.

    `teacher_layer_name` and `student_layer_name`, where a class has them, name layers whose outputs
    are compared instead of those of the models.

    Examples:
        >>> issubclass(
        ...     laminar.distillation.LogitsDistillation, laminar.distillation.DistillationLoss
        ... )
        True
    """

    teacher_layer_name: str | None = None
    student_layer_name: str | None = None

    def compute_loss(
        self, teacher_outputs: TensorStructure, student_outputs: TensorStructure, **kwargs: Any
    ) -> Any:
        """A scalar: how far the student is from the teacher.

        Raises:
            UnimplementedError: the class does not write it.
        """
        raise UnimplementedError(
            f"{type(self).__name__} has no compute_loss(self, teacher_outputs, student_outputs)",
            remedy="write it: it gives a scalar",
        )

    def validate_outputs(
        self, teacher_outputs: TensorStructure, student_outputs: TensorStructure
    ) -> None:
        """ValueError unless both have the same structure."""
        assert_same_structure(teacher_outputs, student_outputs)

    def validate_model_compatibility(self, teacher: Any, student: Any) -> None:
        """Raise an error for models that this cannot compare; by default there are none."""

    def get_config(self) -> dict[str, Any]:
        """The arguments as data."""
        return {}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> DistillationLoss:
        """What `get_config` described."""
        return cls(**deserialize_keras_object(dict(config)))


class _OfEachOutput(DistillationLoss):
    """A loss for each output, or a structure of them, in which None leaves an output out."""

    def __init__(self, loss: Any) -> None:
        self.loss = map_structure(_checked, loss)
        if all(part is None for part in flatten(self.loss)):
            raise InvalidArgumentError(
                f"{type(self).__name__}: loss must have at least one part that is not None",
                remedy="leave it out for the default",
            )

    def validate_outputs(
        self, teacher_outputs: TensorStructure, student_outputs: TensorStructure
    ) -> None:
        super().validate_outputs(teacher_outputs, student_outputs)
        try:
            assert_same_structure(self.loss, teacher_outputs)
        except (ValueError, TypeError) as cause:
            raise InvalidArgumentError(
                f"{type(self).__name__}: loss must have the structure of what is compared: {cause}",
                remedy="give one for each output, None for those that are left out",
            ) from cause

    def compute_loss(
        self, teacher_outputs: TensorStructure, student_outputs: TensorStructure, **kwargs: Any
    ) -> Any:
        """The sum over the outputs of the mean of their losses."""
        parts = zip(
            flatten(self.loss), flatten(teacher_outputs), flatten(student_outputs), strict=True
        )
        return sum(self._compare(loss, t, s) for loss, t, s in parts if loss is not None)

    def _compare(self, loss: Any, teacher: Any, student: Any) -> Any:
        return ops.mean(loss(teacher, student))

    def get_config(self) -> dict[str, Any]:
        return {"loss": serialize_keras_object(self.loss)}


class FeatureDistillation(_OfEachOutput):
    """Compares what two layers compute: mean of `loss(teacher, student)`.

    Args:
        loss: name, object or function; or a structure like what is compared, with None for what is
            left out.
        teacher_layer_name: the layer of the teacher; None for the teacher's output.
        student_layer_name: that of the student.

    Raises:
        InvalidArgumentError: every loss is None.

    Examples:
        >>> loss = laminar.distillation.FeatureDistillation("mse", "hidden", "hidden")
        >>> loss.compute_loss(ops.ones((2, 3)), ops.zeros((2, 3)))
        Tensor(1., shape=(), dtype=float32)
    """

    def __init__(
        self,
        loss: Any = "mse",
        teacher_layer_name: str | None = None,
        student_layer_name: str | None = None,
    ) -> None:
        super().__init__(loss)
        self.teacher_layer_name = teacher_layer_name
        self.student_layer_name = student_layer_name

    def validate_model_compatibility(self, teacher: Any, student: Any) -> None:
        """Raise InvalidArgumentError where a named layer is missing, or has no symbolic output."""
        for model, name in (
            (teacher, self.teacher_layer_name),
            (student, self.student_layer_name),
        ):
            if name is None:
                continue
            try:
                _ = model.get_layer(name).output
            except LaminarError as cause:
                raise InvalidArgumentError(
                    f"FeatureDistillation: {model.name!r} has no layer {name!r} that is called on "
                    f"symbolic tensors: {cause.message}",
                    remedy="name a layer of a functional or sequential model, or none",
                ) from cause

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "teacher_layer_name": self.teacher_layer_name,
            "student_layer_name": self.student_layer_name,
        }


class LogitsDistillation(_OfEachOutput):
    """Compares the outputs, divided by a temperature T: mean of `loss(teacher / T, student / T)`.

    The divergence of Kullback and Leibler takes probabilities, so there both go through softmax
    first; it is multiplied by T**2, so that gradients do not depend on T.

    Args:
        temperature: T, above 0; higher ones make distributions softer.
        loss: name, object or function; or a structure like the outputs, with None for outputs that
            are left out.

    Raises:
        InvalidArgumentError: every loss is None, or `temperature` is not above 0.

    Source: Hinton, Vinyals and Dean, "Distilling the knowledge in a neural network", 2015,
        arXiv:1503.02531, section 2.

    Examples:
        >>> loss = laminar.distillation.LogitsDistillation(temperature=2.0, loss="mse")
        >>> loss.compute_loss(ops.array([[2.0, 0.0]]), ops.array([[0.0, 0.0]]))
        Tensor(0.5, shape=(), dtype=float32)
    """

    def __init__(self, temperature: float = 3.0, loss: Any = "kl_divergence") -> None:
        super().__init__(loss)
        is_number = isinstance(temperature, int | float) and not isinstance(temperature, bool)
        if not is_number or not 0 < temperature < math.inf:
            raise InvalidArgumentError(
                f"LogitsDistillation: temperature must be a number above 0, got {temperature!r}"
            )
        self.temperature = temperature

    def _compare(self, loss: Any, teacher: Any, student: Any) -> Any:
        teacher, student = teacher / self.temperature, student / self.temperature
        if loss is losses.kl_divergence or isinstance(loss, losses.KLDivergence):
            teacher, student = ops.softmax(teacher), ops.softmax(student)
            return super()._compare(loss, teacher, student) * self.temperature**2
        return super()._compare(loss, teacher, student)

    def get_config(self) -> dict[str, Any]:
        return {"temperature": self.temperature, **super().get_config()}


def _checked(loss: Any) -> Any:
    return None if loss is None else losses.get(loss)
