"""ONNX files: what onnxruntime computes from them is what the models compute."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import laminar
from laminar import layers, ops
from laminar.engine import TensorSpec
from laminar.engine.errors import UnimplementedError
from laminar.engine.functions import Function
from laminar.engine.ops.core import registry
from laminar.engine.ops.core.op_def import OpDef

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")

from laminar.export.onnx.model import onnx_model  # noqa: E402  (without onnx there is nothing)

rng = np.random.default_rng(0)
BATCH = 3


def run(file: Any, arrays: list[Any]) -> list[Any]:
    session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
    names = [x.name for x in session.get_inputs()]
    found: list[Any] = session.run(None, dict(zip(names, arrays, strict=True)))
    return found


def check_model(model: Any, path: Path, rtol: float = 1e-4) -> None:
    """onnxruntime gives what the model gives, for a batch of a size that the file does not name."""
    for v in model.weights:
        if "float" in str(v.dtype):
            v.assign(rng.uniform(0.1, 0.9, v.shape))
    arrays = []
    for x in model.inputs:
        shape = [BATCH if d is None else d for d in x.shape]
        is_whole = "int" in str(x.dtype)
        given = rng.integers(0, 4, shape) if is_whole else rng.normal(size=shape)
        arrays.append(given.astype(str(x.dtype)))
    model.export(path, format="onnx", verbose=False)
    expected = model(arrays if len(arrays) > 1 else arrays[0], training=False)
    expected = expected if isinstance(expected, list | tuple) else [expected]
    for found, value in zip(run(path, arrays), expected, strict=True):
        wanted = np.asarray(value)
        assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
        np.testing.assert_allclose(found, wanted, rtol=rtol, atol=1e-5)


def chain(shape: tuple[int | None, ...], *steps: Any, dtype: str = "float32") -> Any:
    x = y = layers.Input(shape, dtype=dtype)
    for step in steps:
        y = step(y)
    return laminar.Model(x, y)


def joined(layer: Any, one: tuple[int, ...] = (4,), other: tuple[int, ...] = (4,)) -> Any:
    a, b = layers.Input(one), layers.Input(other)
    return laminar.Model([a, b], layer([a, b]))


def attending(layer: Any, **how: Any) -> Any:
    x = layers.Input((5, 4))
    return laminar.Model(x, layer(x, x, **how))


_ACTIVATIONS = [
    "relu",
    "sigmoid",
    "tanh",
    "softplus",
    "softsign",
    "elu",
    "selu",
    "gelu",
    "swish",
    "exponential",
    "hard_sigmoid",
    "hard_silu",
    "mish",
    "relu6",
    "log_softmax",
    "leaky_relu",
    "celu",
    "hard_tanh",
    "hard_shrink",
    "soft_shrink",
    "squareplus",
    "tanh_shrink",
    "sparse_plus",
    "log_sigmoid",
]
# By name: makes a model.
MODELS: dict[str, Any] = {
    "dense": lambda: chain((4,), layers.Dense(3, "relu"), layers.Dense(2, "softmax")),
    "dense-of-steps": lambda: chain((None, 4), layers.Dense(3)),
    "einsum": lambda: chain((5, 4), layers.EinsumDense("abc,cd->abd", (None, 6), bias_axes="d")),
    "embedding": lambda: chain((6,), layers.Embedding(10, 4), dtype="int32"),
    "conv1d-causal": lambda: chain((10, 3), layers.Conv1D(4, 3, padding="causal")),
    "conv2d-same": lambda: chain((10, 9, 3), layers.Conv2D(4, 3, 2, "same", activation="relu")),
    "conv2d-any-size": lambda: chain((None, None, 3), layers.Conv2D(4, 3)),
    "conv2d-first": lambda: chain((3, 10, 9), layers.Conv2D(4, 3, data_format="channels_first")),
    "conv2d-groups": lambda: chain((10, 9, 4), layers.Conv2D(4, 3, groups=2, dilation_rate=2)),
    "conv3d": lambda: chain((6, 6, 6, 2), layers.Conv3D(3, 2)),
    "depthwise": lambda: chain((8, 8, 3), layers.DepthwiseConv2D(3, depth_multiplier=2)),
    "depthwise1d": lambda: chain((8, 3), layers.DepthwiseConv1D(3)),
    "separable": lambda: chain((8, 8, 3), layers.SeparableConv2D(4, 3)),
    "transpose2d": lambda: chain((5, 6, 3), layers.Conv2DTranspose(4, 3, 2, "same")),
    "transpose1d": lambda: chain((5, 3), layers.Conv1DTranspose(4, 2, 3)),
    "transpose3d": lambda: chain((3, 3, 3, 3), layers.Conv3DTranspose(4, 3, 2)),
    "max-pool": lambda: chain((9, 8, 3), layers.MaxPooling2D(padding="same")),
    "average-pool": lambda: chain((8, 8, 3), layers.AveragePooling2D(3, padding="same")),
    "average-pool3d": lambda: chain((4, 4, 4, 2), layers.AveragePooling3D(2)),
    "global-pools": lambda: joined(
        lambda xs: [layers.GlobalAveragePooling1D()(xs[0]), layers.GlobalMaxPooling1D()(xs[1])],
        (5, 2),
        (4, 2),
    ),
    "adaptive-average": lambda: chain((8, 8, 3), layers.AdaptiveAveragePooling2D(3)),
    "adaptive-max": lambda: chain((8, 3), layers.AdaptiveMaxPooling1D(3)),
    "batch-normalization": lambda: chain((4,), layers.BatchNormalization()),
    "layer-normalization": lambda: chain((5, 4), layers.LayerNormalization()),
    "layer-normalization-axes": lambda: chain((5, 4), layers.LayerNormalization(axis=(1, 2))),
    "group-normalization": lambda: chain((4, 4, 8), layers.GroupNormalization(4)),
    "unit-normalization": lambda: chain((4,), layers.UnitNormalization()),
    "rms-normalization": lambda: chain((4,), layers.RMSNormalization()),
    "spectral": lambda: chain((4,), layers.SpectralNormalization(layers.Dense(3))),
    "rests": lambda: chain(
        (4, 2), layers.Dropout(0.5), layers.GaussianNoise(0.1), layers.SpatialDropout1D(0.5)
    ),
    "reshaping": lambda: chain(
        (4, 6), layers.Reshape((3, -1)), layers.Permute((2, 1)), layers.Flatten()
    ),
    "repeat": lambda: chain((4,), layers.RepeatVector(3)),
    "borders": lambda: chain((6, 6, 2), layers.Cropping2D(1), layers.ZeroPadding2D((2, 1))),
    "upsampling": lambda: chain((4, 4, 2), layers.UpSampling2D(2)),
    "upsampling-bilinear": lambda: chain(
        (4, 4, 2), layers.UpSampling2D(2, interpolation="bilinear")
    ),
    "add": lambda: joined(layers.Add()),
    "average": lambda: joined(layers.Average()),
    "maximum": lambda: joined(layers.Maximum()),
    "concatenate": lambda: joined(layers.Concatenate()),
    "dot": lambda: joined(layers.Dot(1, normalize=True)),
    "attention": lambda: joined(layers.Attention(), (3, 4), (5, 4)),
    "additive-attention": lambda: joined(layers.AdditiveAttention(), (3, 4), (5, 4)),
    "multi-head": lambda: attending(layers.MultiHeadAttention(2, 3), use_causal_mask=True),
    "grouped-query": lambda: attending(layers.GroupQueryAttention(3, 4, 2)),
    "lstm": lambda: chain((5, 3), layers.LSTM(4, return_sequences=True), layers.LSTM(2)),
    "lstm-of-any-length": lambda: chain((None, 3), layers.LSTM(4, return_sequences=True)),
    "lstm-masked": lambda: chain(
        (6,), layers.Embedding(10, 4, mask_zero=True), layers.LSTM(3), dtype="int32"
    ),
    "gru-backwards": lambda: chain((5, 3), layers.GRU(4, go_backwards=True)),
    "simple-rnn": lambda: chain((5, 3), layers.SimpleRNN(4)),
    "bidirectional": lambda: chain(
        (5, 3), layers.Bidirectional(layers.LSTM(4, return_sequences=True))
    ),
    "time-distributed": lambda: chain((5, 3), layers.TimeDistributed(layers.Dense(2))),
    "masking": lambda: chain((5, 3), layers.Masking(), layers.GRU(2)),
    "conv-lstm": lambda: chain((3, 5, 5, 2), layers.ConvLSTM2D(2, 3)),
    "activations": lambda: chain((4,), *map(layers.Activation, _ACTIVATIONS)),
    "activation-layers": lambda: chain(
        (4,), layers.ReLU(6.0), layers.LeakyReLU(), layers.PReLU(), layers.ELU(), layers.Softmax()
    ),
    "scaling": lambda: chain(
        (4,), layers.Rescaling(2.0, 1.0), layers.Normalization(mean=1.0, variance=2.0)
    ),
    "resizing": lambda: chain((8, 8, 3), layers.Resizing(4, 5)),
    "resizing-nearest": lambda: chain((8, 8, 3), layers.Resizing(5, 11, "nearest")),
    "center-crop": lambda: chain((8, 8, 3), layers.CenterCrop(4, 5)),
    "multi-hot": lambda: chain((3,), layers.CategoryEncoding(5, "multi_hot"), dtype="int32"),
    "one-hot": lambda: chain((1,), layers.CategoryEncoding(5, "one_hot"), dtype="int32"),
    "count": lambda: chain((3,), layers.CategoryEncoding(5, "count"), dtype="int32"),
    "discretization": lambda: chain((3,), layers.Discretization([0.0, 1.0, 2.0])),
    "augmentation": lambda: chain((8, 8, 3), layers.RandomFlip(), layers.RandomRotation(0.1)),
}


@pytest.mark.parametrize("name", MODELS)
def test_layers(name: str, tmp_path: Path) -> None:
    check_model(MODELS[name](), tmp_path / "m.onnx")


@pytest.mark.slow
def test_an_application(tmp_path: Path) -> None:
    model = laminar.applications.MobileNetV3Small(weights=None, input_shape=(64, 64, 3), classes=5)
    check_model(model, tmp_path / "m.onnx", rtol=1e-3)


def test_half_precision(tmp_path: Path) -> None:
    """float16 outside, float32 where numbers are summed."""
    x = layers.Input((4,), dtype="float32")
    y = layers.Dense(3, dtype="mixed_float16", activation="gelu")(x)
    model = laminar.Model(x, layers.LayerNormalization(dtype="mixed_float16")(y))
    model.export(tmp_path / "m.onnx", format="onnx", verbose=False)
    given = rng.normal(size=(2, 4)).astype("float32")
    (found,) = run(tmp_path / "m.onnx", [given])
    assert found.dtype == np.float16
    np.testing.assert_allclose(found, np.asarray(model(given)), rtol=2e-2, atol=2e-2)


# Functions of one tensor of shape (?, 4)
FUNCTIONS: dict[str, Any] = {
    "argmax": lambda x: ops.argmax(x, axis=-1),
    "top_k": lambda x: ops.top_k(x, 2),
    "sort": lambda x: [ops.sort(x), ops.argsort(-x)],
    "cumsum": lambda x: ops.cumsum(x, axis=1),
    "slices": lambda x: [x[:, ::2], x[:, ::-1], x[:, 1], x[:, -1], x[..., None], x[:, 1:3]],
    "take": lambda x: ops.take(x, [0, 2], axis=1),
    "along": lambda x: ops.take_along_axis(x, ops.argsort(x), axis=1),
    "stack": lambda x: [ops.stack([x, x]), *ops.unstack(x, axis=1)],
    "split": lambda x: [*ops.split(x, 2, axis=1), *ops.split(x, [1], axis=1)],
    "tile": lambda x: [ops.tile(x, (1, 2)), ops.repeat(x, 2, axis=1), ops.roll(x, 1, axis=1)],
    "einsum": lambda x: ops.einsum("ab,cb->ac", x, x),
    "reductions": lambda x: [
        *(f(x, axis=1) for f in (ops.sum, ops.mean, ops.max, ops.min, ops.prod, ops.var)),
        *(f(x, axis=1) for f in (ops.logsumexp, ops.norm, ops.std)),
        ops.any(x > 0, axis=1),
        ops.all(x > 0),
    ],
    "softmax-of-all": lambda x: [ops.softmax(x, axis=(0, 1)), ops.log_softmax(x, axis=(0, 1))],
    "whole-numbers": lambda x: ops.cast(x * 10, "int32") // 3 + ops.cast(x * 10, "int32") % 3,
    "remainders": lambda x: [x // 0.3, x % 0.3, ops.floor(x), ops.round(x)],
    "logic": lambda x: ops.logical_or(ops.logical_and(x > 0, x < 1), ops.logical_not(x > -1)),
    "triangles": lambda x: [ops.tril(x), ops.triu(x, 1)],
    "shapes": lambda x: ops.reshape(x, (ops.shape(x)[0] * 2, 2)) + ops.cast(ops.size(x), x.dtype),
    "condition": lambda x: ops.cond(ops.sum(x) > 0, lambda: x * 2, lambda: x - 1),
    "pad": lambda x: [ops.pad(x, ((0, 0), (1, 2))), ops.pad(x, ((0, 0), (1, 2)), mode="reflect")],
    "one-hot": lambda x: ops.one_hot(ops.cast(x * 3, "int32"), 4),
}


def check_function(fn: Any, given: Any) -> None:
    spec = TensorSpec([None, *given.shape[1:]], str(given.dtype))
    file = onnx_model(Function(fn).concrete(spec), "function")
    onnx.checker.check_model(file)
    expected = laminar.tree.flatten(fn(given))
    for found, wanted in zip(run(file.SerializeToString(), [given]), expected, strict=True):
        wanted = np.asarray(wanted)
        assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name: str) -> None:
    check_function(FUNCTIONS[name], rng.normal(size=(BATCH, 4)).astype("float32"))


# Elementwise ops on floats that are made of functions which ONNX does not have.
_REFUSED = {
    *("Atan2", "BesselI", "CopySign", "Digamma", "Erfinv", "Lgamma", "NextAfter", "Polygamma"),
    *("Angle", "Complex", "SignBit"),
    *("BesselIe", "Betainc", "Igamma", "IgammaGradA", "Igammac", "Ndtri", "PolygammaOf", "Zeta"),
    *("BetaincGradA", "IgammaBendA", "ZetaSlope"),
}
# Attributes that have no default.
_ATTRIBUTES: dict[str, dict[str, Any]] = {
    "BesselI": {"order": 0},
    "BesselIe": {"order": 0},
    "LeakyRelu": {"negative_slope": 0.2},
    "NanToNum": {"nan": 0.0, "posinf": 1.0, "neginf": -1.0},
    "Polygamma": {"n": 1},
    "ZetaSlope": {"order": 1},
    "RootQuotient": {"epsilon": 1e-3},
    "Threshold": {"threshold": 0.5, "value": 0.1},
}


def _of_floats() -> list[OpDef]:
    """The elementwise ops on floats alone, but for those that gradients are made of."""
    found = []
    for name in registry.all_ops():
        op = registry.find(name)
        if op is None or op.scalar is None or op.type.endswith("Grad") or op.type == "Where":
            continue
        types = [op.dtypes.get(x) for x in op.input_names]
        if all(kinds is None or laminar.engine.float32 in kinds for kinds in types):
            found.append(op)
    return found


@pytest.mark.parametrize("op", _of_floats(), ids=lambda op: op.type)
def test_elementwise(op: OpDef) -> None:
    count = len(op.input_names)
    given = rng.uniform(-0.9, 0.9, (count, 20)).astype("float32")
    attrs = _ATTRIBUTES.get(op.type, {})

    def fn(x: Any) -> Any:
        return op(*(x[i] for i in range(count)), **attrs)

    if op.type in _REFUSED:
        with pytest.raises(UnimplementedError, match=f"export: {op.type} .*cannot be written"):
            check_function(fn, given)
    else:
        check_function(fn, given)


def test_what_has_no_counterpart_is_refused(tmp_path: Path) -> None:
    x = layers.Input((4, 4))
    model = laminar.Model(x, ops.cholesky(x))
    with pytest.raises(UnimplementedError, match="Cholesky .*cannot be written as ONNX"):
        model.export(tmp_path / "m.onnx", format="onnx")
    word = layers.Input((1,), dtype="string")
    model = laminar.Model(word, layers.StringLookup(vocabulary=["a", "b"])(word))
    with pytest.raises(UnimplementedError, match="no ONNX file can hold"):
        model.export(tmp_path / "m.onnx", format="onnx")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(UnimplementedError, match="'laminar' and 'onnx', got 'tf_saved_model'"):
        model.export(tmp_path / "m", format="tf_saved_model")


def test_what_is_printed_and_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = chain((4,), layers.Dense(3, name="scores"))
    model.export(tmp_path / "m.onnx", format="onnx")
    assert "m.onnx: functional" in capsys.readouterr().out
    file = onnx.load(tmp_path / "m.onnx")
    assert any("scores/kernel" in x.name for x in file.graph.initializer)
    (batch, features) = file.graph.input[0].type.tensor_type.shape.dim
    assert (batch.dim_param, features.dim_value) == ("batch", 4)


def test_without_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library_file = sys.modules["laminar.export.onnx.library"]
    library_file.library.cache_clear()
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(UnimplementedError, match=r"pip install 'laminar\[onnx\]'"):
        chain((4,), layers.Dense(3)).export(tmp_path / "m.onnx", format="onnx")
    library_file.library.cache_clear()


_ROWS = rng.normal(size=(BATCH, 4)).astype("float32")
_WORDS = rng.integers(0, 10, (BATCH, 6)).astype("int32")


def _there_and_back() -> Any:
    embedding = layers.ReversibleEmbedding(10, 6)
    x = layers.Input((6,), dtype="int32")
    return laminar.Model(x, embedding(embedding(x), reverse=True))


_QUANTIZED: dict[str, tuple[Any, Any]] = {
    "dense": (lambda: chain((4,), layers.Dense(7, "relu"), layers.Dense(3)), _ROWS),
    "einsum": (lambda: chain((4,), layers.EinsumDense("ab,bcd->acd", (2, 3))), _ROWS),
    "embedding": (lambda: chain((6,), layers.Embedding(10, 5), dtype="int32"), _WORDS),
    "reversible-embedding": (_there_and_back, _WORDS),
}


@pytest.mark.parametrize("mode", ["int8", "int4", "float8"])
@pytest.mark.parametrize("name", list(_QUANTIZED))
def test_quantized_layers(name: str, mode: str, tmp_path: Path) -> None:
    """Products of bytes are exact; the file has a byte for each weight of 4 or 8 bits."""
    if mode == "float8" and "embedding" in name:
        pytest.skip("embeddings are not kept in float8")
    make, x = _QUANTIZED[name]
    model = make()
    model.quantize(mode)
    path = tmp_path / "m.onnx"
    model.export(path, format="onnx", verbose=False)
    (found,) = run(path, [x])
    np.testing.assert_allclose(found, np.asarray(model(x)), rtol=1e-5, atol=1e-6)
    if mode != "float8":
        kinds = {
            str(onnx.numpy_helper.to_array(t).dtype) for t in onnx.load(path).graph.initializer
        }
        assert "int8" in kinds


@pytest.mark.parametrize("dtype", ["int8", "int32", "uint8"])
@pytest.mark.parametrize("count", [0, 1, 5])
def test_shifts(count: int, dtype: str) -> None:
    given = np.array([-128, -7, -1, 0, 5, 127]).astype(dtype)
    by = np.array(count, dtype)
    check_function(lambda x: [ops.right_shift(x, by), ops.left_shift(x, by)], given)
