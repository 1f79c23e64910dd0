"""Small behaviours that code for Keras leans on, one test for each."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import laminar
from laminar import distillation, distribution, engine, layers, losses, ops, optimizers
from laminar.engine import errors

rng = np.random.default_rng(0)


def test_name_scopes_stand_before_the_paths_of_variables() -> None:
    with laminar.name_scope("outer"):
        assert laminar.Variable([1.0], name="v").path == "outer/v"
        with laminar.name_scope("inner") as full:
            assert laminar.Variable([1.0], name="v").path == "outer/inner/v"
            dense = layers.Dense(1, name="dense")
            dense.build((None, 2))
            assert dense.kernel.path == "outer/inner/dense/kernel"
    with laminar.name_scope(full):
        assert laminar.Variable([1.0], name="v").path == "outer/inner/v"
    assert laminar.Variable([1.0], name="v").path == "v"
    with pytest.raises(ValueError, match="a name is a string, got 4"), laminar.name_scope(4):  # type: ignore[arg-type]  # a mistake
        pass


@pytest.mark.parametrize(
    "kind", [errors.DTypeError, errors.FailedPreconditionError, errors.NotFoundError]
)
def test_what_keras_refuses_with_value_error_is_one(kind: type[Exception]) -> None:
    assert issubclass(kind, ValueError)


def test_a_registered_name_is_looked_up_with_its_package() -> None:
    @laminar.saving.register_keras_serializable()
    class Swapped(layers.Layer):
        pass

    found = laminar.saving.get_registered_object
    assert found("Custom>Swapped") is found("Swapped") is Swapped
    assert found("elsewhere>Swapped") is None
    assert found("elsewhere>Swapped", {"Swapped": Swapped}) is Swapped
    config = {"module": "keras.layers", "class_name": "Dense", "config": {"units": 1}}
    with pytest.raises(ValueError, match="elsewhere>Swapped"):
        laminar.saving.deserialize_keras_object({**config, "registered_name": "elsewhere>Swapped"})


def test_models_without_symbols_have_no_inputs() -> None:
    model: Any = laminar.Sequential()
    for name in ("inputs", "outputs", "input_shape", "output_shape"):
        assert not hasattr(model, name)
    model.add(layers.Input((3,)))
    model.add(layers.Dense(2))
    assert model.input_shape == (None, 3)
    assert [tuple(y.shape) for y in model.outputs] == [(None, 2)]


def test_weights_take_the_shape_first() -> None:
    layer = layers.Layer(name="mine")
    for given in ({}, {"shape": (2,)}):
        with pytest.raises(ValueError, match="takes the shape first, got 'kernel'"):
            layer.add_weight("kernel", **given)  # type: ignore[arg-type]  # a mistake
    with pytest.raises(ValueError, match="got two shapes"):
        layer.add_weight((2,), shape=(3,))  # type: ignore[misc]  # a mistake
    assert layer.add_weight((2,), name="kernel").shape == (2,)


def test_moments_of_float16_stay_finite() -> None:
    x = np.array([-741.0, 353.2, 1099.0, -1807.0, 502.8, -83.4, 333.5, -130.9], np.float16)
    mean, variance = map(np.asarray, ops.moments(x, axes=[0]))
    np.testing.assert_allclose(float(mean), x.astype(np.float64).mean(), rtol=1e-3)
    assert float(variance) == 65504.0 < x.astype(np.float64).var()


def test_ctc_of_labels_that_hold_the_blank() -> None:
    """As in other implementations: a label is skipped to where it differs from the one before.

    The expected numbers are those of PyTorch 2.13.
    """
    logits = (np.arange(24).reshape((2, 4, 3)).astype("float32") - 12) / 100
    labels = np.array([[1, 2, 1, 0], [1, 2, 0, 2]])
    found = np.asarray(losses.CTC(reduction=None)(labels, logits))
    np.testing.assert_allclose(found, [2.4429317, 2.4543583], rtol=1e-5)


def test_muon_scales_its_steps() -> None:
    x = rng.normal(size=(4, 2)).astype("float32")
    found = optimizers.Muon(rms_rate=0.2).lr_adjust(ops.convert_to_tensor(x))
    np.testing.assert_allclose(found, x * 0.2 * 2, rtol=1e-6)
    assert optimizers.Muon(rms_rate=None).lr_adjust(x) is x


def test_attention_computed_by_hand_can_be_causal() -> None:
    layer = layers.MultiHeadAttention(num_heads=1, key_dim=2)
    x = rng.normal(size=(1, 3, 2)).astype("float32")
    layer.build(x.shape, x.shape)
    q, k, v = (ops.convert_to_tensor(rng.normal(size=(1, 3, 1, 2)), "float32") for _ in range(3))
    seen = np.array([[[True, True, True], [True, False, True], [True, True, True]]])
    both = np.tril(np.ones((3, 3), bool)) & seen
    wanted, _ = layer._compute_attention(q, k, v, attention_mask=ops.convert_to_tensor(both))
    for scores in (False, True):
        found, _ = layer._compute_attention(
            q, k, v, ops.convert_to_tensor(seen), None, scores, use_causal_mask=True
        )
        np.testing.assert_allclose(found, wanted, rtol=1e-5)


def test_layouts_get_their_mesh_later() -> None:
    layout = distribution.TensorLayout(("data", "unknown"), None)
    mesh = distribution.DeviceMesh((1,), ["data"], ["cpu:0"])
    with pytest.raises(ValueError, match="no axis 'unknown'"):
        layout.device_mesh = mesh
    assert layout.device_mesh is None


@pytest.mark.parametrize("values", [(), (None,), (None, float), ("float32", None)])
def test_the_type_of_nothing_is_the_default(values: tuple[Any, ...]) -> None:
    assert laminar.backend.result_type(*values) == "float32"


def test_text_among_numbers_comes_with_a_remedy() -> None:
    with pytest.raises(TypeError, match=r"layers\.StringLookup or layers\.TextVectorization"):
        ops.add("a", 1.0)


def test_what_a_graph_makes_is_named_as_in_a_graph_like_it() -> None:
    names = []
    for _ in range(2):
        with engine.Graph().as_default():
            w = engine.Variable(1.0, name="w")
            for optimizer in (optimizers.SGD(0.1), optimizers.SGD(0.1)):
                optimizer.apply([w * 2], [w])
                names.append([v.name for v in optimizer.variables])
    assert names[:2] == names[2:]
    assert names[0] != names[1]


def test_a_scale_that_adapts_takes_the_place_of_a_fixed_one() -> None:
    inner = optimizers.SGD(0.1, loss_scale_factor=5.0)
    scaled = optimizers.LossScaleOptimizer(inner, initial_scale=10.0)
    w = laminar.Variable([2.0])
    scaled.build([w])
    loss = scaled.scale_loss(ops.convert_to_tensor(1.0))
    np.testing.assert_allclose(np.asarray(loss), 10.0)
    scaled.apply([ops.convert_to_tensor([10.0])], [w])
    np.testing.assert_allclose(w.numpy(), [1.9], rtol=1e-6)
    assert inner.loss_scale_factor is None


class Plain(laminar.Model):
    def __init__(self) -> None:
        super().__init__()
        self.dense = layers.Dense(2)

    def call(self, x: Any) -> Any:
        return self.dense(x)


def test_one_distillation_loss_has_one_weight() -> None:
    """Of models that are subclasses: their inputs are not known."""
    teacher, student = Plain(), Plain()
    loss = distillation.LogitsDistillation()
    distiller = distillation.Distiller(teacher, student, loss, distillation_loss_weights=0.25)
    assert distiller.distillation_loss_weights == [0.25]


def test_stretches_of_signals_whose_length_is_not_known() -> None:
    cut = laminar.function(
        lambda x: ops.extract_sequences(x, 4, 3),
        input_signature=[engine.TensorSpec([None, None], "float32")],
    )
    x = np.arange(20, dtype="float32").reshape(2, 10)
    for n in (10, 7, 4, 3):
        wanted = [[row[i : i + 4] for i in range(0, n - 3, 3)] for row in x[:, :n]]
        found = np.asarray(cut(x[:, :n]))
        np.testing.assert_array_equal(found, np.reshape(wanted, (2, -1, 4)))
    assert ops.extract_sequences(layers.Input((None,)), 4, 3).shape == (None, None, 4)


def test_weights_of_a_layer_that_is_made_frozen_say_so() -> None:
    dense = layers.Dense(2, trainable=False)
    dense.build((None, 3))
    assert [v.trainable for v in dense.weights] == [False, False]
    dense.trainable = True
    assert [v.trainable for v in dense.weights] == [True, True]
    norm = layers.BatchNormalization(trainable=False)
    norm.build((None, 3))
    norm.trainable = True
    assert [v.trainable for v in norm.weights] == [True, True, False, False]
    with pytest.raises(ValueError, match="trainable must be True or False, got 'no'"):
        layers.Dense(2, trainable="no")  # type: ignore[arg-type]  # a mistake


def test_arrays_are_cut_into_as_many_batches_as_steps_are_asked_for() -> None:
    x, y = rng.normal(size=(10, 3)), np.zeros((10, 1))
    seen: list[Any] = []

    class Watched(layers.Layer):
        def call(self, x: Any) -> Any:
            if x.shape[0] is not None:  # None while the model is built
                seen.append(x.shape[0])
            return ops.mean(x, axis=1, keepdims=True)

    model = laminar.Sequential([Watched()])
    model.compile("sgd", "mse", run_eagerly=True)

    def sizes(run: Any) -> list[int]:
        seen.clear()
        run()
        return seen[:]

    assert sizes(lambda: model.predict(x, steps=3, verbose=0)) == [4, 4, 2]
    assert sizes(lambda: model.evaluate(x, y, steps=2, verbose=0)) == [5, 5]
    assert sizes(lambda: model.fit(x, y, steps_per_epoch=2, verbose=0)) == [5, 5]
    assert sizes(lambda: model.predict(x, steps=2, batch_size=3, verbose=0)) == [3, 3]
    split: dict[str, Any] = {"validation_split": 0.4, "validation_steps": 2, "verbose": 0}
    assert sizes(lambda: model.fit(x, y, steps_per_epoch=3, **split)) == [2, 2, 2, 2, 2]
    kept: dict[str, Any] = {"validation_data": (x, y), "validation_steps": 2, "verbose": 0}
    assert sizes(lambda: model.fit(x, y, **kept)) == [10, 5, 5]


def test_freezing_a_weight_changes_no_order() -> None:
    dense, table = layers.Dense(2, lora_rank=1), layers.Embedding(3, 2)
    dense.build((None, 3))
    table.build((None,))
    table.enable_lora(1)
    assert [v.name for v in dense.weights] == ["kernel", "bias", "lora_kernel_a", "lora_kernel_b"]
    assert [v.name for v in dense.trainable_weights] == ["bias", "lora_kernel_a", "lora_kernel_b"]
    assert [v.name for v in table.weights][0] == "embeddings"
    plain = layers.Dense(2)
    plain.build((None, 3))
    plain.kernel.trainable = False
    assert [w.shape for w in plain.get_weights()] == [(3, 2), (2,)]
