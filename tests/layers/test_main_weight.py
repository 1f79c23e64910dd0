"""Layers with one large weight: low-rank adaptation, and weights in few bits."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import laminar
from laminar import layers, ops, quantizers
from laminar.engine.errors import (
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
    layer.kernel_scale.assign([140.54587, 186.47292, 137.85638])  # type: ignore[attr-defined]  # the layer is quantized
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
    rows = rounded(ROWS.astype("float64"), (1,))
    assert np.allclose(layer(ROWS, reverse=True), rows @ table.T, atol=1e-6)


def test_gradients_pass_the_rounding() -> None:
    layer = layers.Dense(3)
    layer.build((None, 4))
    layer.quantize("int8")
    kernel = layer.kernel.numpy() / layer.kernel_scale.numpy()  # type: ignore[attr-defined]  # the layer is quantized
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
@pytest.mark.keras_on_jax
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
    a, b = (getattr(layer, f"lora_{layer._main}_{side}") for side in "ab")
    b.assign(CHANCE.normal(size=tuple(b.shape)))
    return before, a.numpy() @ b.numpy() * 2


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
    kernel = dense._kernel.numpy()
    assert dense.lora_enabled
    model.compile(laminar.optimizers.SGD(0.1), "mse")
    model.fit(ROWS, np.ones((2, 3)), epochs=3, verbose=0)
    assert np.array_equal(dense._kernel.numpy(), kernel)
    assert np.abs(dense.lora_kernel_b.numpy()).max() > 0
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


@pytest.mark.parametrize("mode", ["int8", "int4"])
def test_low_rank_beside_few_bits(mode: str, tmp_path: Path) -> None:
    layer: Any = layers.Dense(3)
    _, update = adapted(layer, ROWS)
    without = layers.Dense(3)
    without.build((None, 4))
    without.set_weights([layer._kernel.numpy(), layer.bias.numpy()])
    for each in (layer, without):
        each.quantize(mode)
    expected = without(ROWS).numpy() + ROWS @ update
    assert np.allclose(layer(ROWS), expected, atol=1e-5)
    trained = {v.name for v in layer.trainable_variables}
    assert trained == {"bias", "lora_kernel_a", "lora_kernel_b"}
    # A file has the sum, rounded anew.
    store: dict[str, Any] = {}
    layer.save_own_variables(store)
    again = layers.Dense(3)
    again.build((None, 4))
    again.quantize(mode)
    again.load_own_variables(store)
    assert np.abs(again(ROWS).numpy() - expected).max() < {"int8": 0.1, "int4": 1.5}[mode]
    assert not again.lora_enabled


def grouped(kernel: Any, size: int) -> Any:
    """A matrix rounded to 4 bits, each `size` rows of a column with a scale and a zero."""
    kept = np.empty_like(kernel)
    for begin in range(0, len(kernel), size):
        part = kernel[begin : begin + size]
        # Rows of zeros fill up the last group.
        full = part if len(part) == size else np.concatenate([part, 0 * part[:1]])
        scale = (full.max(0) - full.min(0) + 1e-7) / 15
        zero = np.clip(np.round(-full.min(0) / scale) - 8, -8, 7)
        numbers = np.clip(np.round(part / scale) + zero, -8, 7)
        kept[begin : begin + size] = (numbers - zero) * scale
    return kept


@pytest.mark.parametrize("size", [None, -1, 2, 3, 64])
@pytest.mark.parametrize("case", ["dense", "heads", "heads summed up", "dots first"])
def test_in_4_bits(case: str, size: int | None) -> None:
    make, x, equation = CASES[case]
    layer = make()
    layer(x)
    kernel = layer.kernel.numpy().astype("float64")
    layer.quantize(config=quantizers.Int4QuantizationConfig(block_size=size))
    left, right, output = equation.replace("->", ",").split(",")
    terms = int(np.prod([kernel.shape[i] for i in summed(right, output)]))
    matrix = kernel.reshape(terms, -1)
    if size in (None, -1):
        scale = 7 / (np.abs(matrix).max(axis=0) + 1e-7)
        matrix = np.clip(np.round(matrix * scale), -8, 7) / scale
    else:
        assert size is not None
        matrix = grouped(matrix, size)
    expected = np.einsum(equation, x, matrix.reshape(kernel.shape))
    if layer.bias is not None:
        expected = expected + layer.bias.numpy()
    assert np.allclose(layer(x), expected, atol=1e-5)
    assert layer._kernel.shape == (terms, (matrix.shape[1] + 1) // 2)
    assert layer.dtype_policy.name == f"int4/{-1 if size is None else size}_from_float32"
    assert layer.kernel.shape == kernel.shape
    gradient = laminar.grad(lambda x: ops.sum(layer(x)))(ops.convert_to_tensor(x))
    ones = np.ones(expected.shape)
    dx = np.einsum(f"{output},{right}->{left}", ones, matrix.reshape(kernel.shape))
    assert np.allclose(gradient, dx, atol=1e-5)


def test_inputs_in_8_bits_and_weights_in_4() -> None:
    layer = layers.Dense(3)
    layer.build((None, 4))
    kernel = layer.kernel.numpy()
    config = quantizers.Int4QuantizationConfig(
        activation_quantizer=quantizers.AbsMaxQuantizer(), block_size=None
    )
    layer.quantize(config=config)
    scale = 7 / (np.abs(kernel).max(axis=0) + 1e-7)
    expected = rounded(ROWS.astype("float64"), (1,)) @ (np.round(kernel * scale) / scale)
    assert np.allclose(layer(ROWS), expected, atol=1e-5)


@pytest.mark.parametrize("mode", ["int8", "int4", "int4 in blocks"])
@pytest.mark.parametrize("tie_weights", [True, False])
def test_reversible_embeddings(tie_weights: bool, mode: str) -> None:
    size = 3 if mode == "int4 in blocks" else None
    config: Any = quantizers.Int8QuantizationConfig()
    if mode != "int8":
        config = quantizers.Int4QuantizationConfig(block_size=size)
    layer: Any = layers.ReversibleEmbedding(5, 4, tie_weights=tie_weights)
    layer.build(None)
    table = layer.embeddings.numpy().astype("float64")
    back = table.T if tie_weights else layer.reverse_embeddings.numpy().astype("float64")

    def kept(x: Any) -> Any:  # what each column sums up
        if size is not None:
            return grouped(x, size)
        scale = (127 if mode == "int8" else 7) / (np.abs(x).max(axis=0) + 1e-7)
        return np.round(x * scale) / scale

    layer.quantize(config=config)
    assert np.allclose(layer(IDS), kept(table.T).T[IDS], atol=1e-6)
    rows = rounded(ROWS.astype("float64"), (1,)) if mode == "int8" else ROWS
    assert np.allclose(layer(ROWS, reverse=True), rows @ kept(back), atol=1e-6)
    store: dict[str, Any] = {}
    layer.save_own_variables(store)
    names = layer.variable_serialization_spec[layer.quantization_mode]
    assert len(store) == len([name for name in names if hasattr(layer, name)])
    again: Any = layers.ReversibleEmbedding.from_config(layer.get_config())
    again.build(None)
    again.load_own_variables(store)
    assert np.array_equal(again(IDS), layer(IDS))
    assert np.array_equal(again(ROWS, reverse=True), layer(ROWS, reverse=True))


def test_in_float8() -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    layer = layers.Dense(3)
    layer.build((None, 4))
    kernel = layer.kernel.numpy()
    layer.quantize("float8")
    model = laminar.Sequential([layer])
    model.compile(laminar.optimizers.SGD(0.0), "mse")
    model.fit(ROWS, np.ones((2, 3)), verbose=0)

    def kept(x: Any) -> Any:
        return x.astype(ml_dtypes.float8_e4m3fn).astype("float32")

    assert np.allclose(layer(ROWS), kept(ROWS) @ kept(kernel), atol=1e-6)
    value: Any = layer
    assert value.inputs_amax_history.numpy()[0] == np.abs(ROWS).max()
    assert value.kernel_amax_history.numpy()[0] == np.abs(kernel).max()
    assert value.inputs_scale.numpy() == 1  # of the history before
    model.fit(ROWS, np.ones((2, 3)), verbose=0)
    assert np.isclose(value.inputs_scale.numpy(), np.abs(ROWS).max() / 448)
    assert value.outputs_grad_scale.numpy() != 1
    assert len(layer.trainable_variables) == 8


@pytest.mark.parametrize("policy", ["int8", "int4/2", "int4", "float8", "gptq/4/2", "awq/4/2"])
def test_policies_and_files(policy: str, tmp_path: Path) -> None:
    model = laminar.Sequential(
        [layers.Input((4,)), layers.Dense(3, dtype=f"{policy}_from_float32")]
    )
    layer: Any = model.layers[0]
    for v in layer.variables:
        if "scale" not in v.name and "g_idx" not in v.name:
            v.assign(CHANCE.integers(0, 7, size=tuple(v.shape)))
    mode = policy.partition("/")[0]
    setattr(layer, f"is_{mode}_calibrated", True)
    model.save(tmp_path / "m.keras")
    again = laminar.saving.load_model(tmp_path / "m.keras")
    assert again.layers[0].dtype_policy == layer.dtype_policy
    for v, w in zip(layer.variables, again.layers[0].variables, strict=True):
        assert np.array_equal(v, w)
        assert v.dtype == w.dtype
    assert np.array_equal(again.predict(ROWS, verbose=0), model.predict(ROWS, verbose=0))
    copied = laminar.models.clone_model(model)
    assert [v.path for v in copied.variables] == [v.path for v in model.variables]


@pytest.mark.parametrize("policy", ["int8", "int4", "int4/2", "float8", "int4/-1"])
def test_setting_a_policy_quantizes(policy: str) -> None:
    layer = layers.Dense(3)
    layer.build((None, 4))
    layer.dtype_policy = f"{policy}_from_float32"
    assert layer.quantization_mode == policy.partition("/")[0]
    assert layer(ROWS).shape == (2, 3)
    unbuilt = layers.Dense(3)
    unbuilt.dtype_policy = f"{policy}_from_float32"
    unbuilt.build((None, 4))
    assert unbuilt(ROWS).shape == (2, 3)


@pytest.mark.parametrize("mode", ["int8", "int4", "float8"])
def test_parts_of_layers_keep_their_mode(mode: str, tmp_path: Path) -> None:
    model = small_model()
    model.quantize(mode, filters="^(query|value|head)$")
    expected = model.predict(IDS, verbose=0)
    model.save(tmp_path / "m.keras")
    again = laminar.saving.load_model(tmp_path / "m.keras")
    assert np.array_equal(again.predict(IDS, verbose=0), expected)
    kinds = [v.dtype for v in again.variables]
    assert kinds == [v.dtype for v in model.variables]


def test_policies_by_path() -> None:
    policies = laminar.dtype_policies.DTypePolicyMap()
    policies["model/inner"] = "int8_from_float32"

    class Outer(layers.Layer):
        def __init__(self, **kwargs: Any) -> None:
            super().__init__(**kwargs)
            self.inner = layers.Dense(3, dtype=policies, name="inner")
            self.other = layers.Dense(3, dtype=policies, name="other")

        def call(self, inputs: Any) -> Any:
            return self.other(self.inner(inputs))

    outer = Outer(name="model")
    outer(ROWS)
    assert outer.inner.path == "model/inner"
    assert outer.inner.quantization_mode == "int8"
    assert outer.other.quantization_mode is None
    outer.other.quantize("int4")
    assert policies["model/other"].name == "int4/128_from_float32"
    assert [v.path for v in outer.other.variables][-1] == "model/other/g_idx"


class Doubled(layers.Layer):
    """A layer that writes its own mode."""

    factor: Any

    def build(self, input_shape: Any) -> None:
        if self.quantization_mode is None:
            self.factor = self.add_weight((), "ones", name="factor")

    def call(self, inputs: Any) -> Any:
        return inputs * self.factor

    def quantize(self, mode: Any = None, type_check: bool = True, config: Any = None) -> None:
        self.got = config
        del self.factor
        self._is_quantized = True
        self.dtype_policy = f"{mode}_from_float32"

    def quantized_call(self, inputs: Any) -> Any:
        return inputs * 2


def test_layers_of_users() -> None:
    layer = Doubled()
    with pytest.raises(InvalidArgumentError, match="isn't yet built"):
        layer.quantize("int8")
    model = laminar.Sequential([layers.Input((4,)), layer])
    assert np.allclose(model(ROWS), ROWS)
    model.quantize("int8")
    assert isinstance(layer.got, quantizers.Int8QuantizationConfig)
    assert np.allclose(model(ROWS), ROWS * 2)
    with pytest.raises(InvalidArgumentError, match="already quantized"):
        layer.quantize("int8")


def test_derived_classes_are_left_with_a_warning() -> None:
    class Derived(layers.Dense):
        pass

    model = laminar.Sequential([layers.Input((4,)), Derived(3), layers.Dense(2)])
    with pytest.warns(UserWarning, match="stays as it is"):
        model.quantize("int8")
    assert [layer.quantization_mode for layer in model.layers] == [None, "int8"]
    model.layers[0].quantize("int8", type_check=False)
    assert model.layers[0].quantization_mode == "int8"


CONVOLUTIONS: list[tuple[Any, tuple[int, ...]]] = [
    (lambda: layers.Conv1D(3, 2), (2, 5, 4)),
    (lambda: layers.Conv2D(4, 2, groups=2), (2, 5, 6, 4)),
    (lambda: layers.Conv3D(3, 1, use_bias=False), (1, 2, 3, 2, 4)),
]


@pytest.mark.parametrize(("make", "shape"), CONVOLUTIONS)
def test_low_rank_of_a_convolution(make: Any, shape: tuple[int, ...]) -> None:
    x = CHANCE.normal(size=shape).astype("float32")
    layer = make()
    before = layer(x).numpy()
    kernel = layer.kernel.numpy()
    layer.enable_lora(2, lora_alpha=4.0)
    assert np.array_equal(layer(x), before)
    layer.lora_kernel_b.assign(CHANCE.normal(size=tuple(layer.lora_kernel_b.shape)))
    update = 2 * layer.lora_kernel_a.numpy() @ layer.lora_kernel_b.numpy()
    plain = make()
    plain.build(shape)
    plain.set_weights([kernel + update, *([layer.bias.numpy()] if layer.use_bias else [])])
    assert np.allclose(layer(x), plain(x), atol=1e-5)
    store: dict[str, Any] = {}
    layer.save_own_variables(store)
    assert np.allclose(store["0"], kernel + update, atol=1e-6)
    plain.load_own_variables(store)
    assert layer.get_config()["lora_rank"] == 2
    again = type(layer).from_config(layer.get_config())
    again.build(shape)
    assert again.lora_enabled
    assert {v.name for v in again.trainable_variables} - {"bias"} == {
        "lora_kernel_a",
        "lora_kernel_b",
    }


def test_refused() -> None:
    layer = layers.Dense(3)
    with pytest.raises(InvalidArgumentError, match="isn't yet built"):
        layer.quantize("int8")
    with pytest.raises(InvalidArgumentError, match="isn't yet built"):
        layer.enable_lora(2)
    with pytest.raises(AttributeError, match="is made when the layer is built"):
        layer.kernel  # noqa: B018  # it raises
    layer.build((None, 4))
    with pytest.raises(InvalidArgumentError, match="Invalid quantization mode"):
        layer.quantize("int7")
    with pytest.raises(InvalidArgumentError, match="needs a configuration"):
        layer.quantize("gptq")
    with pytest.raises(InvalidArgumentError, match="Contradictory"):
        layer.quantize("int8", config=quantizers.Int4QuantizationConfig())
    with pytest.raises(InvalidArgumentError, match="nothing of the data"):
        layer.dtype_policy = "gptq/4/128_from_float32"
    assert layer.dtype_policy.name == "float32"
    layer.quantize("int8")
    with pytest.raises(InvalidArgumentError, match="already quantized"):
        layer.quantize("int8")
    layer.enable_lora(2)
    with pytest.raises(InvalidArgumentError, match="already enabled"):
        layer.enable_lora(2)
    constrained = layers.Dense(2, kernel_constraint="non_neg")
    constrained.build((None, 4))
    with pytest.raises(InvalidArgumentError, match="incompatible with kernel constraints"):
        constrained.enable_lora(2)
    normalization = layers.BatchNormalization()
    normalization.build((None, 4))
    with pytest.raises(UnimplementedError, match="not written for BatchNormalization"):
        normalization.quantize("int8")
    embedding = layers.Embedding(3, 2)
    embedding.build(None)
    with pytest.raises(UnimplementedError, match="Expected one of 'int8', 'int4'"):
        embedding.quantize("float8")
    half = layers.Dense(2, dtype="mixed_float16")
    half.build((None, 4))
    with pytest.raises(InvalidArgumentError, match="too wide for float16"):
        half.quantize("int8")
    with pytest.raises(InvalidArgumentError, match="isn't yet built"):
        laminar.Sequential([layers.Dense(2)]).quantize("int8")
    with pytest.raises(InvalidArgumentError, match="got mode='foo'"):
        small_model().quantize("foo")
    with pytest.raises(InvalidArgumentError, match="filters must be"):
        small_model().quantize("int8", filters=3)
