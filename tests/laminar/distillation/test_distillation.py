"""A student learns from labels and from a teacher."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import log_softmax, softmax

import laminar
from laminar import layers, losses, ops
from laminar.distillation import (
    DistillationLoss,
    Distiller,
    FeatureDistillation,
    LogitsDistillation,
)
from laminar.engine.errors import InvalidArgumentError, UnimplementedError

rng = np.random.default_rng(0)
X = rng.normal(size=(24, 5)).astype("float32")
Y = rng.integers(0, 3, 24)
T, S = rng.normal(size=(2, 4, 3)).astype("float32")


def model(units: int, name: str) -> laminar.Sequential:
    return laminar.Sequential(
        [layers.Input((5,)), layers.Dense(units, "relu", name="hidden"), layers.Dense(3)], name=name
    )


def distiller(parts: Any = None, **options: Any) -> Distiller:
    parts = LogitsDistillation(2.0) if parts is None else parts
    made = Distiller(model(8, "teacher"), model(8, "student"), parts, **options)
    made.compile(
        "sgd", losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"]
    )
    return made


def divergence(teacher: Any, student: Any, temperature: float) -> float:
    p = softmax(teacher / temperature, axis=-1)
    q = log_softmax(student / temperature, axis=-1)
    return float((p * (np.log(p) - q)).sum(-1).mean()) * temperature**2


def test_logits() -> None:
    for loss in ("kl_divergence", losses.KLDivergence()):
        found = LogitsDistillation(2.0, loss).compute_loss(T, S)
        np.testing.assert_allclose(found, divergence(T, S, 2.0), rtol=1e-5)
    found = LogitsDistillation(2.0, "mse").compute_loss(T, S)
    np.testing.assert_allclose(found, ((T - S) ** 2).mean() / 4, rtol=1e-5)


def test_structures_of_outputs() -> None:
    part = FeatureDistillation({"a": "mse", "b": None})
    outputs = {"a": T, "b": T}, {"a": S, "b": T + 1}
    part.validate_outputs(*outputs)
    np.testing.assert_allclose(part.compute_loss(*outputs), ((T - S) ** 2).mean(), rtol=1e-5)
    with pytest.raises(InvalidArgumentError, match="structure of what is compared"):
        part.validate_outputs(T, S)


def test_the_loss_is_that_of_labels_and_of_the_teacher() -> None:
    made = distiller(student_loss_weight=0.25)
    teacher, student = np.asarray(made.teacher(X)), np.asarray(made.student(X))
    labels = float(-log_softmax(student, axis=-1)[np.arange(24), Y].mean())
    told = divergence(teacher, student, 2.0)
    found = made.evaluate(X, Y, verbose=0, return_dict=True)
    np.testing.assert_allclose(found["student_loss"], labels, rtol=1e-4)
    np.testing.assert_allclose(found["distillation_loss"], told, rtol=1e-4)
    np.testing.assert_allclose(found["loss"], 0.25 * labels + 0.75 * told, rtol=1e-4)
    np.testing.assert_array_equal(made.predict(X, verbose=0), made.student.predict(X, verbose=0))


def test_training_leaves_the_teacher() -> None:
    features = FeatureDistillation("mse", "hidden", "hidden")
    made = distiller([LogitsDistillation(), features], distillation_loss_weights=[0.5, 1.0])
    before = made.teacher.get_weights()
    losses_ = made.fit(X, Y, epochs=15, verbose=0).history["loss"]
    assert losses_[-1] < losses_[0]
    for a, b in zip(before, made.teacher.get_weights(), strict=True):
        np.testing.assert_array_equal(a, b)
    assert {id(v) for v in made.trainable_variables} == {
        id(v) for v in made.student.trainable_variables
    }


@pytest.mark.parametrize("weight", [0.0, 1.0])
def test_one_part_alone(weight: float) -> None:
    history = distiller(student_loss_weight=weight).fit(X, Y, verbose=0).history
    unused = "distillation_loss" if weight else "student_loss"
    assert history[unused] == [0.0]


def test_files(tmp_path: Path) -> None:
    made = distiller([FeatureDistillation("mae", "hidden", "hidden")], student_loss_weight=0.7)
    made.fit(X, Y, verbose=0)
    made.save(tmp_path / "m.keras")
    again = laminar.saving.load_model(tmp_path / "m.keras")
    assert (again.student_loss_weight, again.distillation_losses[0].teacher_layer_name) == (
        0.7,
        "hidden",
    )
    a, b = (m.evaluate(X, Y, verbose=0, return_dict=True) for m in (made, again))
    assert a == pytest.approx(b, rel=1e-5)
    again.fit(X, Y, verbose=0)


def test_files_name_what_is_here() -> None:
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "from laminar import saving\n"
            "config = {'module': 'keras.distillation', 'class_name': 'LogitsDistillation',"
            " 'config': {'temperature': 2.0}, 'registered_name': None}\n"
            "from laminar.saving.whole import deserialize_keras_object as read\n"
            "assert read(config).temperature == 2.0",
        ],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_a_comparison_of_ones_own() -> None:
    class Gap(DistillationLoss):
        def compute_loss(self, teacher_outputs: Any, student_outputs: Any, **kwargs: Any) -> Any:
            return ops.max(ops.abs(teacher_outputs - student_outputs))

    class Rows(DistillationLoss):
        def compute_loss(self, teacher_outputs: Any, student_outputs: Any, **kwargs: Any) -> Any:
            return ops.sum(teacher_outputs - student_outputs, axis=-1)

    distiller(Gap()).fit(X, Y, verbose=0)
    with pytest.raises(InvalidArgumentError, match="must give a scalar"):
        distiller(Rows()).fit(X, Y, verbose=0)
    with pytest.raises(UnimplementedError, match="no compute_loss"):
        DistillationLoss().compute_loss(T, S)


def test_mistakes() -> None:
    teacher, student = model(8, "teacher"), model(4, "student")
    part = LogitsDistillation()
    with pytest.raises(InvalidArgumentError, match="the teacher must be a Model"):
        Distiller("teacher", student, part)  # type: ignore[arg-type]  # the mistake
    with pytest.raises(InvalidArgumentError, match="from 0 to 1"):
        Distiller(teacher, student, part, student_loss_weight=2)
    with pytest.raises(InvalidArgumentError, match="1 distillation_loss_weights for 2 losses"):
        Distiller(teacher, student, [part, part], distillation_loss_weights=[1.0])
    with pytest.raises(InvalidArgumentError, match="expected distillation losses, got None"):
        Distiller(teacher, student, None)  # type: ignore[arg-type]  # the mistake
    with pytest.raises(InvalidArgumentError, match="has no layer 'other'"):
        Distiller(teacher, student, FeatureDistillation(teacher_layer_name="other"))
    wide = laminar.Sequential([layers.Input((5,)), layers.Dense(7)])
    with pytest.raises(InvalidArgumentError, match="the outputs of teacher and student differ"):
        Distiller(teacher, wide, part)
    with pytest.raises(InvalidArgumentError, match="needs a loss"):
        Distiller(teacher, student, part).compile()
    with pytest.raises(InvalidArgumentError, match="above 0"):
        LogitsDistillation(0.0)
    with pytest.raises(InvalidArgumentError, match="at least one part"):
        FeatureDistillation([None, None])
