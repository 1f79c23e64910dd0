"""Conversion, shapes, gradients; and what goes wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import laminar
from laminar import ops
from laminar.engine.errors import (
    DTypeError,
    FailedPreconditionError,
    InvalidArgumentError,
    ShapeError,
)
from laminar.engine.functions import function
from laminar.engine.gradients import GradientTape
from laminar.engine.graph import TensorSpec
from laminar.engine.state import Variable
from laminar.typing import DataFormat

rng = np.random.default_rng(0)
UNKNOWN: Any = "x"
FLAT, QKV = np.ones((2, 3)), np.ones((1, 2, 3, 4))


def test_what_can_be_converted() -> None:
    v = Variable([1.0, 2.0])
    for x in (v, [1.0, 2.0], np.array([1.0, 2.0], "float32"), (1.0, 2.0)):
        y = ops.convert_to_tensor(x)
        assert ops.is_tensor(y)
        np.testing.assert_array_equal(y.numpy(), [1, 2])
    assert not ops.is_tensor(v)
    assert ops.convert_to_tensor(2, "float16").dtype == "float16"
    with pytest.raises(InvalidArgumentError, match="dense tensors only"):
        ops.convert_to_tensor([1.0], sparse=True)


def test_convert_to_numpy_gives_a_copy() -> None:
    x = ops.ones(3)
    y = ops.convert_to_numpy(x)
    y[0] = 5
    assert float(x[0]) == 1
    np.testing.assert_array_equal(ops.convert_to_numpy(Variable([1.0])), [1.0])


def test_a_symbol_has_no_value() -> None:
    graph = function(lambda x: ops.convert_to_numpy(x))
    with pytest.raises(FailedPreconditionError, match="is symbolic"):
        graph(ops.ones(2))


def test_shape_of_an_unknown_batch() -> None:
    seen: list[Any] = []

    def fn(x: Any) -> Any:
        shape = ops.shape(x)
        seen.append(shape[1])
        return ops.zeros((shape[0], 2 * shape[1])) + ops.cast(shape[0], "float32")

    graph = function(fn, input_signature=[TensorSpec([None, 3], "float32")])
    np.testing.assert_array_equal(graph(np.ones((2, 3), "float32")).numpy(), np.full((2, 6), 2.0))
    np.testing.assert_array_equal(graph(np.ones((5, 3), "float32")).numpy(), np.full((5, 6), 5.0))
    assert seen == [3]


def test_shape_arguments_take_scalar_tensors() -> None:
    n = ops.array(3)
    assert ops.zeros((n, 2)).shape == (3, 2)
    assert ops.reshape(ops.arange(6), (n, -1)).shape == (3, 2)
    assert ops.broadcast_to(ops.ones((1, 2)), (n, 2)).shape == (3, 2)
    assert ops.eye(n).shape == (3, 3)


def test_variables_are_read() -> None:
    v = Variable([1.0, 4.0])
    with GradientTape() as tape:
        y = ops.sum(ops.sqrt(v) * v)
    np.testing.assert_allclose(y.numpy(), 9.0)
    np.testing.assert_allclose(tape.gradient(y, v).numpy(), [1.5, 3.0])


def test_stop_gradient_and_custom_gradient() -> None:
    x = ops.array(3.0)
    with GradientTape(persistent=True) as tape:
        tape.watch(x)
        stopped = ops.stop_gradient(x * x) * x

        @ops.custom_gradient
        def halved(v: Any) -> Any:
            return v, lambda upstream: upstream * 0.5

        own = halved(x)
    assert float(tape.gradient(stopped, x)) == 9.0
    assert float(tape.gradient(own, x)) == 0.5


def test_jvp() -> None:
    x, v = rng.normal(size=3), rng.normal(size=3)
    value, slope = ops.jvp(lambda x: ops.sum(x * x), (x,), (v,))
    assert float(value) == pytest.approx((x * x).sum())
    assert float(slope) == pytest.approx((2 * x * v).sum())
    value, slope, aux = ops.jvp(lambda x: (ops.sin(x), "aux"), [x], [v], has_aux=True)
    np.testing.assert_allclose(slope.numpy(), np.cos(x) * v)
    assert aux == "aux"


@pytest.mark.parametrize("is_traced", [False, True])
def test_cast_of_python_numbers_rounds_once(is_traced: bool) -> None:
    def found() -> tuple[Any, ...]:
        return (
            ops.cast(1 / 3, "float64"),
            ops.cast([1 / 3, 2], "float64"),
            ops.cast(16777217.0, "int32"),
            ops.cast(1 / 3, "float32"),
        )

    third, several, whole, single = function(found)() if is_traced else found()
    assert float(third) == several.numpy()[0] == 1 / 3
    assert int(whole) == 16777217
    assert single.dtype == "float32"


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64"])
def test_saturate_cast_keeps_the_limits(dtype: str) -> None:
    limits = np.iinfo(dtype)
    x = np.array([-np.inf, -1e30, -1.5, 0.5, 1e30, np.inf, np.nan], "float32")
    y = ops.saturate_cast(x, dtype).numpy()
    assert y[0] == y[1] == limits.min
    assert y[2] == (0 if dtype == "uint8" else -1)
    assert y[4] == y[5] <= limits.max
    assert y[4] >= limits.max - limits.max // 2**23
    assert y[6] == 0


def test_argpartition_splits_at_kth() -> None:
    x = rng.normal(size=(3, 9))
    order = ops.argpartition(x, 4).numpy()
    y = np.take_along_axis(x, order, -1)
    assert (y[:, :4] <= y[:, 4:5]).all()
    assert (y[:, 5:] >= y[:, 4:5]).all()
    with pytest.raises(InvalidArgumentError, match="9 is no place along an axis of 9"):
        ops.argpartition(x, 9)


def test_sparsemax_is_the_nearest_point_of_the_simplex() -> None:
    np.testing.assert_allclose(ops.sparsemax([[0.5, 0.5]]).numpy(), [[0.5, 0.5]])
    np.testing.assert_allclose(ops.sparsemax([[3.0, 1.0, 2.0]]).numpy(), [[1.0, 0, 0]])
    y = ops.sparsemax(rng.normal(size=(5, 7)), axis=0).numpy()
    np.testing.assert_allclose(y.sum(0), np.ones(7))
    assert (y >= 0).all()
    assert (y == 0).any()


def test_istft_inverts_stft() -> None:
    x = rng.normal(size=(2, 64)).astype("float32")
    pairs: list[dict[str, Any]] = [{}, {"center": False, "window": "hamming"}]
    for options in pairs:
        parts = ops.stft(x, 16, 4, 16, **options)
        np.testing.assert_allclose(
            ops.istft(parts, 16, 4, 16, length=60, **options).numpy(), x[:, :60], atol=1e-5
        )


def test_fold_undoes_unfold_of_windows_that_do_not_overlap() -> None:
    x = rng.normal(size=(2, 3, 4, 6)).astype("float32")
    np.testing.assert_allclose(ops.fold(ops.unfold(x, 2, stride=2), (4, 6), 2, stride=2).numpy(), x)


def test_uneven_repeats_and_edges_as_lists() -> None:
    np.testing.assert_array_equal(ops.repeat([1, 2, 3], [1, 0, 2]).numpy(), [1, 3, 3])
    counts, edges = ops.histogram([0.0, 0.5, 1.0, 2.0, 5.0], [0.0, 1.0, 2.0])
    np.testing.assert_array_equal(counts.numpy(), [2, 2])
    np.testing.assert_array_equal(edges.numpy(), [0, 1, 2])


def test_squeeze_keeps_axes_of_unknown_size() -> None:
    """The rank of what a model computes does not depend on how many examples come."""
    x = laminar.Input((1, 3))
    assert tuple(ops.squeeze(x).shape) == (None, 3)
    assert tuple(ops.squeeze(ops.ones((1, 1, 3))).shape) == (3,)
    model = laminar.Model(x, ops.squeeze(x))
    for size in (1, 2):
        assert model.predict(np.ones((size, 1, 3), "float32"), verbose=0).shape == (size, 3)


def test_normalize_of_nothing_is_nothing_with_a_finite_gradient() -> None:
    x = ops.zeros((2, 3))
    with GradientTape() as tape:
        tape.watch(x)
        y = ops.sum(ops.normalize(x))
    assert np.isfinite(tape.gradient(y, x).numpy()).all()


@pytest.mark.parametrize("name", ["channels_last", "channels_first"])
def test_layouts_agree(name: DataFormat) -> None:
    x, kernel = rng.normal(size=(2, 6, 5, 4)), rng.normal(size=(3, 3, 2, 4))
    moved = np.moveaxis(x, -1, 1) if name == "channels_first" else x
    y = ops.conv(moved, kernel, padding="same", data_format=name).numpy()
    y = np.moveaxis(y, 1, -1) if name == "channels_first" else y
    np.testing.assert_allclose(y, ops.conv(x, kernel, padding="same").numpy())


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: ops.reshape(ops.ones((2, 3)), (4, 2)), ShapeError, "do not fit into"),
        (lambda: ops.add(ops.ones(2), ops.ones(3)), ShapeError, "do not broadcast"),
        (lambda: ops.matmul(ops.ones((2, 3)), ops.ones((2, 3))), ShapeError, "inner dimensions"),
        (lambda: ops.concatenate([]), InvalidArgumentError, "at least one tensor"),
        (lambda: ops.split(ops.ones(5), 2), ShapeError, "cannot be cut into"),
        (lambda: ops.where(True, 1.0), InvalidArgumentError, "give both x1 and x2"),
        (lambda: ops.select([], []), InvalidArgumentError, "as many choices as conditions"),
        (lambda: ops.pad(ops.ones(2), 1, "edge", 3.0), InvalidArgumentError, "constant_values"),
        (lambda: ops.diff(ops.ones(2), -1), InvalidArgumentError, "n cannot be negative"),
        (lambda: ops.take(ops.ones(3), 5, axis=0), InvalidArgumentError, "out of range"),
        (lambda: ops.one_hot([1], 3, sparse=True), InvalidArgumentError, "dense tensors only"),
        (lambda: ops.normalize([1.0], order=0), InvalidArgumentError, "at least 1"),
        (lambda: ops.moments([1.0], 0, synchronized=True), InvalidArgumentError, "shared by"),
        (lambda: ops.einsum("i->", [1.0], speed=1), InvalidArgumentError, "no option speed"),
        (lambda: ops.conv(ops.ones((1, 4, 3)), ops.ones((2, 2, 1))), ShapeError, "sees 2 channels"),
        (
            lambda: ops.max_pool(ops.ones((1, 4, 3)), 2, data_format=UNKNOWN),
            ValueError,
            "data_format",
        ),
        (lambda: ops.correlate([1.0], [1.0], "all"), InvalidArgumentError, "mode must be one of"),
        (lambda: ops.fft(ops.ones(3)), InvalidArgumentError, "expected a pair"),
        (lambda: ops.fft(([1, 2], [3, 4])), DTypeError, "float32 or float64"),
        (lambda: ops.stft(ops.ones(9), 8, 2, 4), InvalidArgumentError, "at least sequence_length"),
        (lambda: ops.stft(ops.ones(9), 4, 2, 4, "bar"), InvalidArgumentError, "'hann' or"),
        (lambda: ops.bincount(ops.ones((1, 1, 1))), ShapeError, "expected .n,. or .batch, n."),
        (lambda: ops.histogram([[1.0]], 2), ShapeError, "expected one axis"),
        (lambda: ops.histogram([1.0], 0), InvalidArgumentError, "at least one bin"),
        (lambda: ops.histogram([1.0], 2, (2.0, 1.0)), InvalidArgumentError, "is empty"),
        (lambda: ops.vander(ops.ones((2, 2))), ShapeError, "expected a vector"),
        (lambda: ops.cdist(ops.ones(2), ops.ones(2)), ShapeError, "at least two axes"),
        (lambda: ops.psnr([1.0], [1.0], 0), InvalidArgumentError, "max_val must be positive"),
        (lambda: ops.qr(ops.eye(2), "raw"), InvalidArgumentError, "mode must be one of"),
        (lambda: ops.jvp(ops.sin, (1.0,), ()), InvalidArgumentError, "1 primals, but 0 tangents"),
        (lambda: ops.rearrange(ops.ones((2, 3)), "a b -> a c"), InvalidArgumentError, "same names"),
        (lambda: ops.rearrange(ops.ones((2, 3)), "a b c -> a"), InvalidArgumentError, "same names"),
        (lambda: ops.rearrange(ops.ones(6), "(a b) -> a b", a=4), ShapeError, "cannot be split"),
        (lambda: ops.scatter_update([1.0], [[0]], [1.0], "x"), InvalidArgumentError, "reduction"),
        (
            lambda: ops.categorical_crossentropy(ops.ones((2, 3)), ops.ones((2, 4))),
            ShapeError,
            "must have one shape",
        ),
        (
            lambda: ops.sparse_categorical_crossentropy([0, 1, 2], ops.ones((2, 4))),
            ShapeError,
            "without the class axis",
        ),
        (
            lambda: ops.sparse_categorical_crossentropy([7], ops.ones((1, 4)), True),
            InvalidArgumentError,
            "not one of the 4 classes",
        ),
        (
            lambda: ops.dot_product_attention(FLAT, FLAT, FLAT),
            ShapeError,
            "batch, time, heads, features",
        ),
        (
            lambda: ops.dot_product_attention(QKV, QKV, QKV, flash_attention=True),
            InvalidArgumentError,
            "no separate kernel",
        ),
        (
            lambda: ops.ctc_decode(ops.ones((1, 2, 3)), [2], top_paths=2),
            InvalidArgumentError,
            "'greedy' gives one path",
        ),
        (
            lambda: ops.image.resize(ops.ones((4, 4, 1)), (2, 2), "cubic"),
            InvalidArgumentError,
            "interpolation must be one of",
        ),
        (lambda: ops.image.resize(ops.ones((4, 4)), (2, 2)), ShapeError, "expected 3 axes, or 4"),
        (lambda: ops.image.rgb_to_hsv(ops.ones((4, 4, 3), "uint8")), DTypeError, "floating images"),
        (lambda: ops.image.rgb_to_hsv(ops.ones((4, 4, 2))), ShapeError, "expected 3 channels"),
        (
            lambda: ops.image.crop_images(ops.ones((4, 4, 1)), 3, 3, 3, 3),
            InvalidArgumentError,
            "do not fit a side of 4",
        ),
        (
            lambda: ops.image.pad_images(ops.ones((4, 4, 1)), 1),
            InvalidArgumentError,
            "give two of the two margins",
        ),
        (
            lambda: ops.image.map_coordinates(ops.ones((4, 4)), ops.ones((3, 2)), 1),
            ShapeError,
            "3 rows of coordinates",
        ),
        (
            lambda: ops.image.map_coordinates(ops.ones((4, 4)), ops.ones(2), 1),
            ShapeError,
            "expected coordinates .axes, places",
        ),
    ],
)
def test_errors(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()
