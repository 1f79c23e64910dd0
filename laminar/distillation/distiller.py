"""Distiller: trains a student on labels and on what its teacher says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from laminar import losses, metrics, ops
from laminar.engine.errors import InvalidArgumentError
from laminar.models import Model
from laminar.serialization import deserialize_keras_object, serialize_keras_object
from laminar.tree import flatten, map_structure

from ..typing import TensorStructure
from .losses import DistillationLoss


class Distiller(Model):
    """A model that computes what the student does, and trains it:

        loss = w * loss(y, student(x)) + (1 - w) * sum over i of w_i * loss_i(teacher, student)

    Reported are "student_loss", "distillation_loss" and "total_loss".

    Args:
        teacher: a trained model; it is frozen.
        student: the model that is trained.
        distillation_losses: what is compared: a `DistillationLoss`, or a list of them.
        distillation_loss_weights: the factors w_i, 1 by default.
        student_loss_weight: w, from 0 to 1.
        name: of the model.

    Raises:
        InvalidArgumentError: models that do not belong together, or an argument out of range.

    Source: Hinton, Vinyals and Dean, "Distilling the knowledge in a neural network", 2015,
        arXiv:1503.02531, section 2.

    Examples:
        >>> teacher = laminar.Sequential(
        ...     [layers.Input((4,)), layers.Dense(8, "relu"), layers.Dense(3)]
        ... )
        >>> student = laminar.Sequential([layers.Input((4,)), layers.Dense(3)])
        >>> distiller = laminar.distillation.Distiller(
        ...     teacher, student, laminar.distillation.LogitsDistillation(), student_loss_weight=0.0
        ... )
        >>> distiller.compile("sgd", "mse")
        >>> history = distiller.fit(np.ones((8, 4)), np.ones((8, 3)), verbose=0)
    """

    def __init__(
        self,
        teacher: Model,
        student: Model,
        distillation_losses: DistillationLoss | Sequence[DistillationLoss],
        distillation_loss_weights: float | Sequence[float] | None = None,
        student_loss_weight: float = 0.5,
        name: str = "distiller",
        **kwargs: Any,
    ) -> None:
        super().__init__(name=name, **kwargs)
        _check_models(teacher, student)
        weight = student_loss_weight
        if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 <= weight <= 1:
            raise InvalidArgumentError(
                f"Distiller: student_loss_weight must be a number from 0 to 1, got {weight!r}"
            )
        given: Any = distillation_losses
        parts: list[Any] = list(given) if isinstance(given, list | tuple) else [given]
        factors = [1.0] * len(parts)
        if distillation_loss_weights is not None:
            weights: Any = distillation_loss_weights
            factors = list(weights) if isinstance(weights, list | tuple) else [weights]
        if len(factors) != len(parts):
            raise InvalidArgumentError(
                f"Distiller: {len(factors)} distillation_loss_weights for {len(parts)} losses",
                remedy="give one for each",
            )
        for part in parts:
            if not isinstance(part, DistillationLoss):
                raise InvalidArgumentError(
                    f"Distiller: expected distillation losses, got {part!r}",
                    remedy="such as LogitsDistillation(temperature=3.0)",
                )
            part.validate_model_compatibility(teacher, student)
        self.teacher = teacher
        self.student = student
        self.student_loss_weight = weight
        self.distillation_losses = parts
        self.distillation_loss_weights = factors
        teacher.trainable = False
        self._teacher_features = _features(teacher, [part.teacher_layer_name for part in parts])
        self._student_features = _features(student, [part.student_layer_name for part in parts])
        self._student_loss: Any = None
        self.student_loss_tracker = metrics.Mean(name="student_loss")
        self.distillation_loss_tracker = metrics.Mean(name="distillation_loss")
        self.total_loss_tracker = metrics.Mean(name="total_loss")

    @property
    def _laminar_sublayers(self) -> list[Any]:
        return [self.teacher, self.student]  # what shows features has the same layers

    def compile(  # type: ignore[override]  # as Keras's, it takes the rest by name
        self,
        optimizer: Any = "adam",
        loss: Any = None,
        metrics: Any = None,
        **kwargs: Any,
    ) -> None:
        """Say how the student is trained.

        Args:
            optimizer: see `Model.compile`.
            loss: of the student on labels: name, object or function, or a structure of them like
                its outputs.
            metrics: see `Model.compile`.
            kwargs: its other arguments.

        Raises:
            InvalidArgumentError: no loss, or metrics that are no list.
        """
        if loss is None:
            raise InvalidArgumentError("Distiller: compile() needs a loss for the labels")
        if metrics is not None and not isinstance(metrics, list | tuple):
            raise InvalidArgumentError(f"Distiller: metrics must be a list, got {metrics!r}")
        self._student_loss = map_structure(losses.get, loss)
        super().compile(optimizer=optimizer, loss=None, metrics=metrics, **kwargs)
        self.loss = loss

    def get_compile_config(self) -> dict[str, Any] | None:
        """The arguments of `compile` as data."""
        config = super().get_compile_config()
        return None if config is None else config | {"loss": serialize_keras_object(self.loss)}

    def compile_from_config(self, config: Any) -> None:
        """Compile with what `get_compile_config` gave."""
        known = {key: deserialize_keras_object(value) for key, value in config.items()}
        self.compile(**known)
        if self.optimizer is not None and self.built and self.trainable_variables:
            self.optimizer.build(self.trainable_variables)

    def call(self, inputs: TensorStructure, training: bool | None = None, **kwargs: Any) -> Any:
        """What the student computes."""
        return self.student(inputs, training=training, **kwargs)

    def compute_loss(
        self,
        x: Any = None,
        y: Any = None,
        y_pred: Any = None,
        sample_weight: Any = None,
        training: bool = True,
    ) -> Any:
        """The weighted sum of the student's loss and of the distances from the teacher."""
        if y_pred is None:
            y_pred = self(x, training=training)
        weight = self.student_loss_weight
        learned = self._supervised(y, y_pred, sample_weight) if weight and y is not None else 0.0
        told = self._distances(x, y_pred, training) if weight < 1 else 0.0
        total = weight * learned + (1 - weight) * told
        self.student_loss_tracker.update_state(learned)
        self.distillation_loss_tracker.update_state(told)
        self.total_loss_tracker.update_state(total)
        return total

    def _supervised(self, y: Any, y_pred: Any, sample_weight: Any) -> Any:
        rows = zip(flatten(self._student_loss), flatten(y), flatten(y_pred), strict=True)
        options = {} if sample_weight is None else {"sample_weight": sample_weight}
        parts = [
            ops.mean(
                loss(true, pred, **options) if isinstance(loss, losses.Loss) else loss(true, pred)
            )
            for loss, true, pred in rows
        ]
        return sum(parts[1:], parts[0])

    def _distances(self, x: Any, y_pred: Any, training: bool) -> Any:
        told = _outputs(self.teacher, self._teacher_features, x, False)
        said: dict[Any, Any] = {None: y_pred}
        if self._student_features is not None:
            said |= _outputs(self.student, self._student_features, x, training)
            said[None] = y_pred
        total: Any = 0.0
        for part, factor in zip(
            self.distillation_losses, self.distillation_loss_weights, strict=True
        ):
            by_teacher = told[part.teacher_layer_name]
            by_student = said[part.student_layer_name]
            part.validate_outputs(by_teacher, by_student)
            distance = part.compute_loss(by_teacher, by_student)
            if len(getattr(distance, "shape", ())) > 0:
                raise InvalidArgumentError(
                    f"{type(part).__name__}: compute_loss() must give a scalar, got the shape "
                    f"{tuple(distance.shape)}",
                    remedy="take the mean: ops.mean(loss)",
                )
            total = total + factor * distance
        return total

    def get_config(self) -> dict[str, Any]:
        """The models and losses as data."""
        return {
            **super().get_config(),
            "teacher": serialize_keras_object(self.teacher),
            "student": serialize_keras_object(self.student),
            "distillation_losses": serialize_keras_object(self.distillation_losses),
            "distillation_loss_weights": self.distillation_loss_weights,
            "student_loss_weight": self.student_loss_weight,
        }

    @classmethod
    def from_config(cls, config: Any, custom_objects: Any = None) -> Any:
        """The distiller that `get_config` described."""
        return cls(**deserialize_keras_object(dict(config), custom_objects))


def _features(model: Model, names: Sequence[str | None]) -> Model | None:
    """A model that gives the outputs of these layers beside that of `model`; None for no names."""
    wanted = {name: model.get_layer(name).output for name in names if name is not None}
    if not wanted:
        return None
    return Model(model.input, {"": model.output, **wanted})


def _outputs(model: Model, features: Model | None, x: Any, training: bool) -> dict[Any, Any]:
    """The outputs of the layers by name, and under None that of the model."""
    if features is None:
        return {None: model(x, training=training)}
    found = features(x, training=training)
    return {name or None: value for name, value in found.items()}


def _check_models(teacher: Any, student: Any) -> None:
    for what, model in (("teacher", teacher), ("student", student)):
        if not isinstance(model, Model):
            raise InvalidArgumentError(f"Distiller: the {what} must be a Model, got {model!r}")
    for what in ("inputs", "outputs"):
        pairs = zip(getattr(teacher, what, ()), getattr(student, what, ()), strict=False)
        for ours, theirs in pairs:
            if not ours.shape.is_compatible_with(theirs.shape) or ours.dtype != theirs.dtype:
                raise InvalidArgumentError(
                    f"Distiller: the {what} of teacher and student differ: {ours.spec} and "
                    f"{theirs.spec}",
                    remedy="give both models the same inputs, and outputs of one form",
                )
