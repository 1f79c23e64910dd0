"""Layers with one large weight: low-rank adaptation, and weights in 8 bits."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import laminar
from laminar import layers, ops, quantizers
from laminar.engine.errors import (
    FailedPreconditionError,
    InvalidArgumentError,
    UnimplementedError,
)

CHANCE = np.random.default_rng(0)
ROWS = CHANCE.normal(size=(2, 4)).astype("float32")
IDS = np.array([[0, 1, 2], [3, 4, 0]])

# A layer, its input, and what sums: (letters of input, of weight, of output).
CASES: dict[str, tuple[Any, Any, str]] = {
    "dense": (lambda: layers.Dense(3, bias_initializer="normal"), ROWS, "ac,cd->ad"),
    "dense of sequences": (
        lambda: layers.Dense(3),
        CHANCE.normal(size=(2, 5, 4)).astype("float32"),
        "abc,cd->abd",
    ),
    "heads": (
        lambda: layers.EinsumDense("abc,cde->abde", (None, 2, 3), bias_axes="de"),
        CHANCE.normal(size=(2, 3, 4)).astype("float32"),
        "abc,cde->abde",
    ),
    "heads summed up": (
        lambda: layers.EinsumDense("abde,dec->abc", (None, 4)),
        CHANCE.normal(size=(2, 3, 2, 5)).astype("float32"),
        "abde,dec->abc",
    ),
    "turned": (
        lambda: layers.EinsumDense("ab,cb->ac", 3),
        ROWS,
        "ab,cb->ac",
    ),
    "dots first": (lambda: layers.EinsumDense("...x,xy->...y", 3), ROWS, "ax,xy->ay"),
    "dots last": (
        lambda: layers.EinsumDense("xy...,yz->xz...", (3,)),
        CHANCE.normal(size=(2, 4, 5)).astype("float32"),
        "xyq,yz->xzq",
    ),
}


def summed(letters: str, output: str) -> tuple[int, ...]:
    return tuple(i for i, a in enumerate(letters) if a not in output)


def rounded(x: Any, axes: Any) -> Any:
    scale = 127 / (np.abs(x).max(axis=axes, keepdims=True) + 1e-7)
    return np.clip(np.round(x * scale), -127, 127) / scale


@pytest.mark.parametrize("with_inputs", [True, False])
@pytest.mark.parametrize("case", CASES)
def test_in_8_bits(case: str, with_inputs: bool) -> None:
    make, x, equation = CASES[case]
    layer = make()
    exact = layer(x).numpy()
    kernel = layer.kernel.numpy().astype("float64")
    config = quantizers.Int8QuantizationConfig(
        activation_quantizer="default" if with_inputs else None
    )
    layer.quantize("int8", config=config)
    left, right, output = equation.replace("->", ",").split(",")
    rows = rounded(x.astype("float64"), summed(left, output)) if with_inputs else x
    expected = np.einsum(equation, rows, rounded(kernel, summed(right, output)))
    if layer.bias is not None:
        expected = expected + layer.bias.numpy()
    found = layer(x).numpy()
    assert np.allclose(found, expected, atol=1e-5)
    assert np.abs(found - exact).max() < 0.05
    assert layer.quantization_mode == "int8"
    assert str(layer.kernel.dtype) == "int8"
    assert layer.dtype_policy.name == "int8_from_float32"
    assert len(layer.trainable_variables) == (layer.bias is not None)


def test_dense_as_keras_has_it() -> None:
    layer = layers.Dense(3, activation="relu")
    layer.build((None, 4))
    layer.quantize("int8")
    kernel = [[-3, -95, 37], [90, -73, 121], [77, 127, -14], [-127, 69, -127]]
    layer.kernel.assign(np.array(kernel, "int8"))
    layer._scale.assign([140.54587, 186.47292, 137.85638])  # type: ignore[union-attr]  # the layer is quantized
    x = [
        [0.12573022, -0.13210486, 0.64042264, 0.10490011],
        [-0.5356694, 0.36159506, 1.304, 0.94708097],
    ]
    expected = [[0.16852546, 0.46245426, 0.0], [0.10235145, 1.368971, 0.0]]
    assert np.allclose(layer(np.array(x, "float32")), expected, atol=1e-6)


def test_embedding_in_8_bits() -> None:
    layer = layers.Embedding(5, 4)
    table = rounded(layer(np.arange(5)).numpy().astype("float64"), (1,))
    layer.quantize("int8")
    assert np.allclose(layer(IDS), table[IDS], atol=1e-7)
    assert layer.trainable_variables == []


def test_reversed_embedding_in_8_bits() -> None:
    layer = layers.ReversibleEmbedding(5, 4)
    layer.build(None)
    table = rounded(layer.embeddings.numpy().astype("float64"), (1,))
    layer.quantize("int8")
    assert np.allclose(layer(ROWS, reverse=True), ROWS @ table.T, atol=1e-6)


def test_gradients_pass_the_rounding() -> None:
    layer = layers.Dense(3)
    layer.build((None, 4))
    layer.quantize("int8")
    kernel = layer.kernel.numpy() / layer._scale.numpy()  # type: ignore[union-attr]  # the layer is quantized
    gradient = laminar.grad(lambda x: ops.sum(layer(x)))(ops.convert_to_tensor(ROWS))
    assert np.allclose(gradient, np.ones((2, 3)) @ kernel.T, atol=1e-5)


def small_model() -> Any:
    inputs = layers.Input((3,), dtype="int32")
    x = layers.Embedding(5, 8, name="table")(inputs)
    x = layers.MultiHeadAttention(2, 4, name="attention")(x, x)
    x = layers.LayerNormalization()(x)
    return laminar.Model(inputs, layers.Dense(2, name="head")(layers.Flatten()(x)))


def test_model(tmp_path: Path) -> None:
    model = small_model()
    exact = model.predict(IDS, verbose=0)
    model.quantize("int8")
    found = model.predict(IDS, verbose=0)
    assert 0 < np.abs(found - exact).max() < 0.1
    model.save(tmp_path / "m.keras")
    again = laminar.saving.load_model(tmp_path / "m.keras")
    assert np.array_equal(again.predict(IDS, verbose=0), found)
    assert again.get_layer("head").quantization_mode == "int8"
    model.compile("sgd", "mse")
    before = model.get_layer("head").bias.numpy()
    model.fit(IDS, np.ones((2, 2)), verbose=0)
    assert (model.get_layer("head").bias.numpy() != before).all()


@pytest.mark.parametrize(
    "filters", ["^he", ["head", "nobody"], lambda layer: isinstance(layer, layers.Dense)]
)
def test_some_layers_of_a_model(filters: Any) -> None:
    model = small_model()
    model.quantize("int8", filters=filters)
    assert model.get_layer("head").quantization_mode == "int8"
    assert model.get_layer("table").quantization_mode is None


@pytest.mark.slow
@pytest.mark.parametrize("way", ["laminar to keras", "keras to laminar"])
def test_files_travel(way: str, tmp_path: Path) -> None:
    keras = pytest.importorskip("keras")
    writer, reader = (laminar, keras) if way.startswith("laminar") else (keras, laminar)
    model = writer.Sequential(
        [
            writer.Input((3,), dtype="int32"),
            writer.layers.Embedding(5, 8),
            writer.layers.EinsumDense("abc,cde->abde", (3, 2, 3), bias_axes="de"),
            writer.layers.Flatten(),
            writer.layers.Dense(2, activation="tanh"),
        ]
    )
    model.build((None, 3))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Keras warns of layers that it does not quantize
        model.quantize("int8")
        model.save(tmp_path / "m.keras")
        again = reader.saving.load_model(str(tmp_path / "m.keras"))
    expected = np.asarray(model(IDS.astype("int32")))
    assert np.allclose(again(IDS.astype("int32")), expected, atol=1e-5)


def adapted(layer: Any, x: Any) -> tuple[Any, Any]:
    before = layer(x).numpy()
    layer.enable_lora(2, lora_alpha=4.0)
    assert np.array_equal(layer(x).numpy(), before)
    layer._lora_b.assign(CHANCE.normal(size=tuple(layer._lora_b.shape)))
    return before, layer._lora_a.numpy() @ layer._lora_b.numpy() * 2


@pytest.mark.parametrize("case", CASES)
def test_low_rank(case: str) -> None:
    make, x, equation = CASES[case]
    layer = make()
    before, update = adapted(layer, x)
    assert np.allclose(layer(x), before + np.einsum(equation, x, update), atol=1e-5)
    names = {v.name for v in layer.trainable_variables}
    assert names - {"bias"} == {"lora_kernel_a", "lora_kernel_b"}
    assert layer.get_config()["lora_rank"] == 2


def test_low_rank_of_an_embedding() -> None:
    layer = layers.Embedding(5, 4)
    before, update = adapted(layer, IDS)
    assert np.allclose(layer(IDS), before + update[IDS], atol=1e-6)
    again = layers.Embedding(5, 4)
    again.build(None)
    store: dict[str, Any] = {}
    layer.save_own_variables(store)
    again.load_own_variables(store)  # the file has the sum
    assert np.allclose(again(IDS), layer(IDS), atol=1e-6)


def test_low_rank_from_the_start(tmp_path: Path) -> None:
    model = laminar.Sequential([layers.Input((4,)), layers.Dense(3, lora_rank=2)])
    dense: Any = model.layers[0]
    kernel = dense.kernel.numpy()
    assert dense.lora_enabled
    model.compile(laminar.optimizers.SGD(0.1), "mse")
    model.fit(ROWS, np.ones((2, 3)), epochs=3, verbose=0)
    assert np.array_equal(dense.kernel.numpy(), kernel)
    assert np.abs(dense._lora_b.numpy()).max() > 0
    model.save(tmp_path / "m.keras", include_optimizer=False)
    again = laminar.saving.load_model(tmp_path / "m.keras")
    assert again.layers[0].lora_rank == 2
    found = again.predict(ROWS, verbose=0)
    assert np.allclose(found, model.predict(ROWS, verbose=0), atol=1e-6)


def test_large_updates_of_low_rank_may_stand_beside_a_file(tmp_path: Path) -> None:
    model = laminar.Sequential(
        [layers.Input((900,)), layers.Dense(900, lora_rank=300), layers.Dense(900, lora_rank=300)]
    )
    model.save(tmp_path / "m.keras")
    again = laminar.saving.load_model(tmp_path / "m.keras")
    assert again.count_params() == model.count_params()


def test_low_rank_then_8_bits() -> None:
    layer = layers.Dense(3)
    adapted(layer, ROWS)
    expected = layer(ROWS).numpy()
    layer.quantize("int8")
    assert np.abs(layer(ROWS).numpy() - expected).max() < 0.1
    assert [v.name for v in layer.variables] == ["bias", "kernel", "kernel_scale"]


def test_refused() -> None:
    layer = layers.Dense(3)
    with pytest.raises(FailedPreconditionError, match="needs a built layer"):
        layer.quantize("int8")
    with pytest.raises(FailedPreconditionError, match="needs a built layer"):
        layer.enable_lora(2)
    layer.build((None, 4))
    with pytest.raises(InvalidArgumentError, match="takes the mode 'int8', got mode='int4'"):
        layer.quantize("int4")
    layer.quantize("int8")
    with pytest.raises(FailedPreconditionError, match="quantized already"):
        layer.quantize("int8")
    with pytest.raises(FailedPreconditionError, match="in 8 bits"):
        layer.enable_lora(2)
    with pytest.raises(UnimplementedError, match="not written for BatchNormalization"):
        layers.BatchNormalization().quantize("int8")
    with pytest.raises(FailedPreconditionError, match="is not built"):
        laminar.Sequential([layers.Dense(2)]).quantize("int8")
    with pytest.raises(InvalidArgumentError, match="got mode='foo'"):
        small_model().quantize("foo")


@pytest.mark.parametrize("policy", ["int4/128_from_float32", "float8_from_float32"])
def test_policies_of_other_modes_are_refused(policy: str) -> None:
    with pytest.raises(UnimplementedError, match="weights are kept in 8 bits"):
        layers.Dense(3, dtype=policy)
