"""Sums, products and extremes of several tensors; Concatenate and Dot."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from laminar import layers, ops
from laminar.engine.errors import InvalidArgumentError, ShapeError
from laminar.layers.masking import get_mask, set_mask
from laminar.models import Model

from .harness import check_agreement, check_layer, random_inputs

Shapes = list[tuple[int, ...]]

ELEMENTWISE = ["Add", "Multiply", "Average", "Maximum", "Minimum", "Subtract"]
SHAPES: list[Any] = [
    ([(2, 3, 4), (2, 3, 4)], (2, 3, 4)),
    ([(2, 3, 4), (2, 1, 4)], (2, 3, 4)),
    ([(2, 4), (2, 3, 4)], (2, 3, 4)),
]


@pytest.mark.parametrize(("shapes", "output"), SHAPES)
@pytest.mark.parametrize("name", ELEMENTWISE)
def test_elementwise(name: str, shapes: Shapes, output: tuple[int, ...]) -> None:
    check_layer(getattr(layers, name), {}, shapes, expected_output_shape=output)
    check_agreement(name, {}, shapes)


@pytest.mark.parametrize("name", ELEMENTWISE[:-1])
def test_three_inputs_and_the_functional_form(name: str) -> None:
    xs = random_inputs([(2, 3), (2, 3), (2, 3)])
    reference: dict[str, Any] = {
        "Add": lambda x: x.sum(0),
        "Multiply": lambda x: x.prod(0),
        "Average": lambda x: x.mean(0),
        "Maximum": lambda x: x.max(0),
        "Minimum": lambda x: x.min(0),
    }
    expected = reference[name](np.stack(xs).astype(np.float64))
    np.testing.assert_allclose(getattr(layers, name)()(xs).numpy(), expected, rtol=1e-5)
    np.testing.assert_allclose(getattr(layers, name.lower())(xs).numpy(), expected, rtol=1e-5)


def test_functional_forms_of_the_others() -> None:
    a, b = random_inputs([(2, 3), (2, 3)])
    np.testing.assert_array_equal(layers.subtract([a, b]).numpy(), a - b)
    np.testing.assert_array_equal(layers.concatenate([a, b]).numpy(), np.concatenate([a, b], 1))
    joined = layers.concatenate([a, b], axis=0, name="join").numpy()
    np.testing.assert_array_equal(joined, np.concatenate([a, b]))
    np.testing.assert_allclose(layers.dot([a, b]).numpy()[:, 0], (a * b).sum(1), rtol=1e-5)


def test_functional_form_on_symbols() -> None:
    a, b = layers.Input((3,), name="a"), layers.Input((3,), name="b")
    model = Model([a, b], layers.add([a, b], name="total"))
    x, y = random_inputs([(2, 3), (2, 3)])
    np.testing.assert_array_equal(model([x, y]).numpy(), x + y)
    assert model.get_layer("total").name == "total"


JOINS: list[Any] = [
    ("Concatenate", {}, [(2, 3, 4), (2, 3, 1)], (2, 3, 5)),
    ("Concatenate", {"axis": 1}, [(2, 3, 4), (2, 5, 4), (2, 1, 4)], (2, 9, 4)),
    ("Dot", {"axes": 1}, [(2, 3), (2, 3)], (2, 1)),
    ("Dot", {"axes": -1}, [(2, 3, 5), (2, 4, 5)], (2, 3, 4)),
    ("Dot", {"axes": (1, 2)}, [(2, 3, 5), (2, 4, 3)], (2, 5, 4)),
    ("Dot", {"axes": (2, 1)}, [(2, 3, 5), (2, 5)], (2, 3)),
    ("Dot", {"axes": 1, "normalize": True}, [(2, 3, 4, 5), (2, 3)], (2, 4, 5)),
    ("Dot", {"axes": (3, 2)}, [(2, 3, 4, 5), (2, 6, 5, 7)], (2, 3, 4, 6, 7)),
]


@pytest.mark.parametrize(("name", "kwargs", "shapes", "output"), JOINS)
def test_joins(name: str, kwargs: dict[str, Any], shapes: Shapes, output: tuple[int, ...]) -> None:
    check_layer(getattr(layers, name), kwargs, shapes, expected_output_shape=output, tolerance=1e-5)
    check_agreement(name, kwargs, shapes)


def test_normalized_dot_is_the_cosine() -> None:
    x = random_inputs((3, 4))
    y = layers.Dot(1, normalize=True)([x, 5 * x]).numpy()
    np.testing.assert_allclose(y, 1, rtol=1e-6)


def masked(x: Any, mask: Any) -> Any:
    tensor = ops.convert_to_tensor(x)
    if mask is not None:
        set_mask(tensor, ops.convert_to_tensor(np.array(mask)))
    return tensor


MASKS = (
    [[True, False, True], [False, False, True]],
    [[True, True, False], [False, True, True]],
)


@pytest.mark.parametrize("name", ELEMENTWISE)
@pytest.mark.parametrize("count", [1, 2])
def test_masks(name: str, count: int) -> None:
    keras = pytest.importorskip("keras")
    xs = random_inputs([(2, 3, 4), (2, 3, 4)])
    masks = [*MASKS[:count], None][:2]
    theirs = [keras.ops.convert_to_tensor(x) for x in xs]
    for x, mask in zip(theirs, masks, strict=True):
        if mask is not None:
            keras.src.backend.set_keras_mask(x, keras.ops.convert_to_tensor(mask))
    expected = getattr(keras.layers, name)()(theirs)
    y = getattr(layers, name)()([masked(x, m) for x, m in zip(xs, masks, strict=True)])
    np.testing.assert_allclose(y.numpy(), np.asarray(expected), rtol=1e-6)
    wanted = keras.src.backend.get_keras_mask(expected)
    if wanted is None:
        assert get_mask(y) is None
    else:
        np.testing.assert_array_equal(get_mask(y).numpy(), np.asarray(wanted))


def test_masks_of_concatenate() -> None:
    first, second = random_inputs([(2, 3, 4), (2, 3, 4)])
    xs = [masked(first, MASKS[0]), masked(second, None)]
    along_steps = get_mask(layers.Concatenate(axis=1)(xs)).numpy()
    np.testing.assert_array_equal(along_steps, np.hstack([MASKS[0], np.ones((2, 3), bool)]))
    assert get_mask(layers.Concatenate()(xs)).numpy().all()
    both = [masked(first, MASKS[0]), masked(second, MASKS[1])]
    either = np.logical_or(*MASKS)
    np.testing.assert_array_equal(get_mask(layers.Concatenate()(both)).numpy(), either)
    assert get_mask(layers.Concatenate()([first, second])) is None
    assert get_mask(layers.Dot(2)(both)) is None


REFUSED: list[Any] = [
    (layers.Add(), (2, 3), r"expected a list of tensors, got one of shape \(2, 3\)"),
    (layers.Concatenate(), (2, 3), "expected a list of tensors"),
    (layers.Add(), [(2, 3), (2, 4)], "Add"),
    (layers.Add(), [(2, 3), (4, 3)], "the batches differ"),
    (layers.Add(), [(1, 3), (4, 3)], "the batches differ"),
    (layers.Subtract(), [(2, 3), (2, 3), (2, 3)], "expected two inputs, got 3"),
    (layers.Concatenate(), [(2, 3, 4), (2, 2, 4)], "the same shape but for axis -1"),
    (layers.Concatenate(), [(2, 3, 4), (2, 4)], "the same shape but for axis -1"),
    (layers.Concatenate(axis=3), [(2, 3, 4), (2, 3, 4)], "axis 3 does not exist"),
    (layers.Dot(1), [(2, 3), (2, 4)], r"sizes along axes 1 differ \(3 and 4\)"),
    (layers.Dot(1), [(2, 3), (2, 3), (2, 3)], "expected two inputs, got 3"),
    (layers.Dot(3), [(2, 3), (2, 3)], "axes 3 do not exist"),
]


@pytest.mark.parametrize(("layer", "shapes", "message"), REFUSED)
def test_call_refuses(layer: layers.Layer, shapes: Any, message: str) -> None:
    xs = [np.zeros(s, np.float32) for s in shapes] if isinstance(shapes, list) else np.zeros(shapes)
    with pytest.raises((InvalidArgumentError, ShapeError), match=message):
        layer(xs)


@pytest.mark.parametrize("axes", [0, (1, 0), "1", (1, 2, 3), (1.5, 1), None])
def test_dot_refuses_axes(axes: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="axes must"):
        layers.Dot(axes)


def test_compute_mask_refuses_what_is_no_list() -> None:
    xs = [np.zeros((2, 3), "float32")] * 2
    for layer in (layers.Add(), layers.Concatenate()):
        wrong: Any = layer
        for inputs, mask in ((xs, xs[0]), (xs[0], [None, None]), (xs, [None])):
            with pytest.raises(InvalidArgumentError, match=r"compute_mask\(\)"):
                wrong.compute_mask(inputs, mask=mask)
