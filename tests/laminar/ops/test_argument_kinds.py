"""Arguments of a wrong kind, and numbers that would be cut: who, which argument, what came."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import laminar
from laminar import ops
from laminar.engine.errors import ArgumentTypeError, DTypeError, InvalidArgumentError
from laminar.ops.argument_kinds import kinds_of

X: Any = np.arange(6, dtype=np.float32).reshape(2, 3)
IMAGE: Any = np.ones((1, 4, 4, 1), np.float32)
TEXT: Any = "a"
NONE: Any = None
THREE: Any = 3
NOTHING: Any = []


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: ops.celu(X, alpha=TEXT), "celu: alpha must be a number, got 'a'"),
        (lambda: ops.top_k(X, NONE), "top_k: k must be a whole number, got None"),
        (lambda: ops.einsum(THREE, X), "einsum: subscripts must be text, got 3"),
        (lambda: ops.stft(X, TEXT, 1, 4), "stft: sequence_length must be a whole number"),
        (lambda: ops.softmax(X, axis=TEXT), "axis"),
        (lambda: ops.ctc_loss([[1]], [[[0.5, 0.5]]], [1], [1], mask_index=TEXT), "blank must be"),
    ],
)
def test_the_argument_is_named(call: Callable[[], Any], said: str) -> None:
    with pytest.raises((ArgumentTypeError, DTypeError), match=said):
        call()


@pytest.mark.parametrize("x", [X, X.tolist(), ops.array(X)], ids=["array", "list", "tensor"])
def test_it_is_named_whatever_comes_beside_it(x: Any) -> None:
    with pytest.raises(ArgumentTypeError, match="celu: alpha must be a number, got 'a'"):
        ops.celu(x, alpha=TEXT)


def test_what_the_users_own_function_raises_stays() -> None:
    def broken(x: Any) -> Any:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        ops.map(broken, X)


@pytest.mark.parametrize(
    ("annotation", "takes", "refuses"),
    [
        ("int", [3, np.int64(3), np.array(3)], [1.0, "3", None, [3]]),
        ("int | None", [3, None], [1.5, "a"]),
        ("float", [1, 1.5, np.float32(2)], ["1", None, (1.0,), 1j]),
        ("Axis", [None, 1, (0, 1), np.array([0, 1])], ["a", (0.5,)]),
        ("Sequence[int]", [(1, 2), [3]], [3, "ab", ["a"]]),
        ("tuple[float, float] | None", [(1.0, 2.0), None], [1.0, "ab"]),
        ("Callable[[Any, Any], tuple[Any, Any]]", [max], [3]),
        ("str", ["a"], [3, None]),
    ],
)
def test_annotations_name_kinds(annotation: str, takes: list[Any], refuses: list[Any]) -> None:
    kinds = kinds_of(annotation)
    assert kinds
    for value in takes:
        assert any(kind.accepts(value) for kind in kinds), value
    for value in refuses:
        assert not any(kind.accepts(value) for kind in kinds), value
    assert kinds_of("SomethingElse | int") is None


FRACTIONS: dict[str, Callable[[Any], Any]] = {
    "hanning": lambda n: ops.hanning(n),
    "kaiser": lambda n: ops.kaiser(n, 4.0),
    "bartlett": lambda n: ops.bartlett(n),
    "bincount": lambda n: ops.bincount([0, 1], minlength=n),
    "round": lambda n: ops.round(X, n),
    "top-k": lambda n: ops.top_k(X, n),
    "in-top-k": lambda n: ops.in_top_k([0, 1], X, n),
    "one-hot": lambda n: ops.one_hot([0, 1], n),
    "roll": lambda n: ops.roll(X, n),
    "rot90": lambda n: ops.rot90(X, n),
    "switch": lambda n: ops.switch(n, [lambda: 1, lambda: 2]),
    "fori": lambda n: ops.fori_loop(0, n, lambda i, x: x + i, 0),
    "while": lambda n: ops.while_loop(lambda i: i < 9, lambda i: i + 1, [0], n),
    "split": lambda n: ops.split(X, [n], axis=1),
    "pad-images": lambda n: ops.image.pad_images(IMAGE, n, 1, 1, 1),
    "resize": lambda n: ops.image.resize(IMAGE, (n, 2)),
    "ssim": lambda n: ops.image.ssim(IMAGE, IMAGE, 1.0, filter_size=n),
    "randint": lambda n: laminar.random.randint((2,), 0, n, seed=1),
    "categorical": lambda n: laminar.random.categorical(X, n, seed=1),
}


@pytest.mark.parametrize("name", FRACTIONS)
def test_fractions_are_not_cut_off(name: str) -> None:
    FRACTIONS[name](np.int64(1))
    with pytest.raises(DTypeError, match=r"whole number, got 1\.5"):
        FRACTIONS[name](1.5)


BAD: dict[str, Callable[[], Any]] = {
    "argpartition-axis": lambda: ops.argpartition([1, 2], 0, axis=2),
    "scan-nothing": lambda: ops.associative_scan(ops.add, []),
    "condition-empty": lambda: ops.cond(np.zeros(0), lambda: 1, lambda: 2),
    "conv-scalar": lambda: ops.conv(1.0, np.ones((1, 1, 1))),
    "conv-kernel": lambda: ops.conv(np.ones((1, 3, 1)), np.ones(1)),
    "padding": lambda: ops.max_pool(IMAGE, 2, padding=THREE),
    "shape-scalar": lambda: ops.zeros(np.array(1.5)),
    "stack": lambda: ops.stack(np.int64(1)),
    "fold-kernel": lambda: ops.fold(np.ones((1, 4, 4)), (3, 3), kernel_size=0),
    "fold-stride": lambda: ops.fold(np.ones((1, 4, 4)), (3, 3), 2, stride=0),
    "histogram": lambda: ops.histogram(X, range=NOTHING),
    "stft": lambda: ops.stft(np.ones(9), 0, 1, 4),
    "order": lambda: ops.norm(X, ord=np.ones((2, 2))),
    "pad": lambda: ops.pad(X, np.ones((2, 0))),
    "switch": lambda: ops.switch(0, [TEXT]),
    "tensordot": lambda: ops.tensordot(X, X, axes=[]),
    "translate-axis": lambda: ops.image.scale_and_translate(
        X, (2, 3), [1.0], [0.0], (2,), "linear"
    ),
    "translate-shape": lambda: ops.image.scale_and_translate(X, (2,), [1.0], [0.0], (0,), "linear"),
    "resize-bools": lambda: ops.image.resize(IMAGE > 0, (2, 2)),
    "excluded": lambda: ops.vectorize(len, excluded=X),
    "blur": lambda: ops.image.gaussian_blur(IMAGE, kernel_size=()),
    "elastic": lambda: ops.image.elastic_transform(IMAGE, 1.0, sigma=float("nan")),
    "starts": lambda: ops.slice(X, 3, (1, 1)),
    "view": lambda: ops.view(np.array([1, 2], np.int32), "string"),
    "segments-2d": lambda: ops.segment_sum(X, [[0, 1], [1, 0]]),
    "segments-float": lambda: ops.segment_max(X, [0.5, 1.0]),
    "pieces": lambda: ops.split(X, 2**70, axis=1),
}


@pytest.mark.parametrize("name", BAD)
def test_errors_are_laminars_own(name: str) -> None:
    with pytest.raises(InvalidArgumentError):
        BAD[name]()


def test_arrays_are_as_good_as_tuples() -> None:
    two: Any = np.array([2, 2])
    three: Any = np.array([2, 3])
    np.testing.assert_array_equal(ops.max_pool(IMAGE, two), ops.max_pool(IMAGE, (2, 2)))
    np.testing.assert_array_equal(ops.unfold(np.ones((1, 1, 3, 3)), two).shape, (1, 4, 4))
    np.testing.assert_array_equal(ops.unravel_index([5], three), [[1], [2]])


def test_values_at_the_ends() -> None:
    np.testing.assert_array_equal(ops.round(np.array([5], np.int8), -400), [0])
    np.testing.assert_array_equal(ops.round([1.25], 2**70), [1.25])
    np.testing.assert_array_equal(ops.median(np.zeros((2, 0), np.float32), axis=1), [np.nan] * 2)
    np.testing.assert_array_equal(ops.cast([1 + 2j], "float32"), [1.0])
    z = np.array([1 + 1j, np.nan, 3])
    np.testing.assert_allclose(ops.nanmean(z).numpy(), np.nanmean(z))
    q = np.ones((1, 1, 1, 0), np.float32)
    v = np.array([[[[2.0]], [[4.0]]]], np.float32)
    y = ops.dot_product_attention(q, np.ones((1, 2, 1, 0), np.float32), v)
    np.testing.assert_array_equal(y, [[[[3.0]]]])
