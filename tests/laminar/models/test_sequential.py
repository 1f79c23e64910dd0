"""Sequential models: with and without an Input, adding and removing layers."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

import laminar
from laminar import layers
from laminar.engine.errors import InvalidArgumentError
from laminar.registration import custom_object_scope
from laminar.tree import map_structure


def ones(*shape: int) -> Any:
    return np.ones(shape, "float32")


def test_weights_are_made_at_the_first_call() -> None:
    model = laminar.Sequential([layers.Dense(3), layers.Dense(2)])
    assert not model.built
    assert np.asarray(model(ones(4, 5))).shape == (4, 2)
    assert [tuple(w.shape) for w in model.weights] == [(5, 3), (3,), (3, 2), (2,)]
    assert model.input_shape == (None, 5)


def test_build_makes_the_weights() -> None:
    model = laminar.Sequential([layers.Dense(3)])
    model.build((None, 7))
    assert model.count_params() == 7 * 3 + 3


def test_add_and_pop() -> None:
    model = laminar.Sequential([layers.Input((4,)), layers.Dense(3)])
    top = layers.Dense(2)
    model.add(top)
    assert np.asarray(model(ones(1, 4))).shape == (1, 2)
    assert model.pop() is top
    assert np.asarray(model(ones(1, 4))).shape == (1, 3)


def test_legacy_input_shape_argument() -> None:
    model = laminar.Sequential([layers.Dense(3, input_shape=(4,))])
    assert model.built
    assert model.input_shape == (None, 4)


def test_a_model_as_the_first_layer() -> None:
    inner = laminar.Sequential([layers.Input((4,)), layers.Dense(3)])
    outer = laminar.Sequential([inner, layers.Dense(2)])
    assert np.asarray(outer(ones(2, 4))).shape == (2, 2)
    assert len(outer.weights) == 4


def test_config_keeps_names_and_shape() -> None:
    model = laminar.Sequential([layers.Input((4,)), layers.Dense(3, name="d")], name="s")
    again = laminar.Sequential.from_config(model.get_config())
    assert again.name == "s"
    assert again.get_layer("d").units == 3  # type: ignore[attr-defined]  # a Dense
    assert again.input_shape == (None, 4)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: laminar.Sequential([layers.Dense]), "got the class Dense"),
        (lambda: laminar.Sequential([layers.Dense(2, name="a"), layers.Dense(2, name="a")]), "'a'"),
        (lambda: laminar.Sequential([layers.Dense(2), layers.Input((3,))]), "only stand first"),
        (lambda: laminar.Sequential([lambda x: x]), "expected a layer"),
        (lambda: laminar.Sequential().pop(), "has no layers"),
        (lambda: laminar.Sequential()(ones(1, 2)), "has no layers"),
    ],
)
def test_errors(make: Any, words: str) -> None:
    with pytest.raises(InvalidArgumentError, match=words):
        make()


def test_without_an_input_it_takes_all_sizes_that_its_layers_take() -> None:
    model = laminar.Sequential([layers.Conv2D(2, 3), layers.GlobalAveragePooling2D()])
    for size in (5, 9):
        assert np.asarray(model(ones(1, size, size, 3))).shape == (1, 2)
        assert model.predict(ones(2, size, size, 3), verbose=0).shape == (2, 2)
    with pytest.raises(InvalidArgumentError, match="expected size 3 along axis -1"):
        model(ones(1, 5, 5, 4))


def test_each_layer_is_called_once() -> None:
    model = laminar.Sequential([layers.Input((4,))])
    for units in (3, 2, 5):
        model.add(layers.Dense(units))
    assert [len(layer.inbound_nodes) for layer in model.layers] == [1, 1, 1]
    inside = laminar.Model(model.inputs, [layer.output for layer in model.layers])
    assert [y.shape for y in inside(ones(1, 4))] == [(1, 3), (1, 2), (1, 5)]
    model.pop()
    assert model.output is model.layers[-1].output


def test_a_layer_that_does_not_fit_is_not_added() -> None:
    model = laminar.Sequential([layers.Input((4,)), layers.Dense(3)])
    with pytest.raises(InvalidArgumentError, match="expected 4 axes"):
        model.add(layers.Conv2D(2, 3))
    assert len(model.layers) == 1
    assert np.asarray(model(ones(1, 4))).shape == (1, 3)
    late = laminar.Sequential([layers.Dense(3), layers.Conv2D(2, 3)])
    with pytest.raises(InvalidArgumentError, match="expected 4 axes"):
        late.build((None, 4))
    assert len(late.layers) == 2
    assert not late.built


def test_weights_are_named_after_the_model() -> None:
    model = laminar.Sequential([layers.Input((4,)), layers.Dense(3, name="d")], name="s")
    late = laminar.Sequential([layers.Dense(3, name="d")], name="s")
    late(ones(1, 4))
    outer = laminar.Sequential([layers.Input((4,)), late, layers.Dense(2, name="e")], name="o")
    for each, paths in (
        (model, ["s/d/kernel", "s/d/bias"]),
        (late, ["s/d/kernel", "s/d/bias"]),
        (outer, ["s/d/kernel", "s/d/bias", "o/e/kernel", "o/e/bias"]),
    ):
        assert [w.path for w in each.weights] == paths


def test_an_input_alone() -> None:
    model = laminar.Sequential([layers.Input((4,))])
    np.testing.assert_array_equal(np.asarray(model(ones(2, 4))), ones(2, 4))
    model.add(layers.Dense(2))
    assert model.output_shape == (None, 2)


def test_a_config_is_read_in_steps_that_grow_with_its_layers() -> None:
    def calls(count: int) -> int:
        """How many functions are called to read `count` layers."""
        stack = [layers.Identity(name=f"layer_{i}") for i in range(count)]
        config = laminar.Sequential([layers.Input((2,)), *stack]).get_config()
        found = 0

        def note(frame: Any, event: str, arg: Any) -> None:
            nonlocal found
            found += event == "call"

        sys.setprofile(note)
        try:
            laminar.Sequential.from_config(config)
        finally:
            sys.setprofile(None)
        return found

    calls(10)  # what happens once, such as imports
    assert calls(400) - calls(200) < 2.2 * (calls(200) - calls(100))


class Sum(layers.Layer):
    """The sum of what a dict or list holds."""

    def call(self, inputs: Any) -> Any:
        return sum(inputs.values() if isinstance(inputs, dict) else inputs)


@pytest.mark.parametrize("inputs", [{"a": 1, "b": 2}, [1, 2]], ids=["dict", "list"])
def test_structures_as_inputs(inputs: Any) -> None:
    model = laminar.Sequential([Sum(), layers.Dense(3, use_bias=False, kernel_initializer="ones")])
    x = map_structure(lambda value: np.full((2, 4), value, "float32"), inputs)
    np.testing.assert_array_equal(model(x), np.full((2, 3), 12))
    assert model.built
    assert [w.shape for w in model.weights] == [(4, 3)]
    model.summary(print_fn=lambda text: None)
    with custom_object_scope({"Sum": Sum}):
        again = type(model).from_config(model.get_config())
    assert again(x).shape == (2, 3)


def test_layers_that_know_their_outputs_when_they_compute_them() -> None:
    class Dynamic(layers.Layer):
        def call(self, inputs: Any) -> Any:
            return inputs + 1

        def compute_output_spec(self, *args: Any, **kwargs: Any) -> Any:
            raise NotImplementedError

    model = laminar.Sequential([Dynamic()])
    np.testing.assert_array_equal(model(np.zeros((1, 2))), np.ones((1, 2)))


def test_layers_that_need_more_than_one_tensor() -> None:
    class Needs(layers.Layer):
        def call(self, inputs: Any, training: bool) -> Any:
            return inputs

    with pytest.raises(ValueError, match=r"call\(\) of Needs .* needs inputs, training"):
        laminar.Sequential([laminar.Input((2,)), Needs()])


def test_layers_added_in_build() -> None:
    class Grown(laminar.Sequential):
        def build(self, input_shape: Any = None) -> None:
            self.add(layers.Dense(3))
            self.add(layers.Dense(1))
            super().build(input_shape)

    for model in (Grown(), Grown()):
        assert model(np.ones((2, 4))).shape == (2, 1)
        assert model.built
        assert [w.shape for w in model.weights] == [(4, 3), (3,), (3, 1), (1,)]
    built = Grown()
    built.build((None, 4))
    assert len(built.weights) == 4
    model = Grown()
    model.compile("sgd", "mse")
    model.fit(np.ones((4, 2)), np.ones((4, 1)), verbose=0)
    assert len(model.layers) == 2


def test_build_may_call_build_of_the_model() -> None:
    class Chain(laminar.Model):
        def __init__(self) -> None:
            super().__init__()
            self.first = layers.Dense(3)

        def build(self, input_shape: Any) -> None:
            self.last = layers.Dense(2)
            super().build(input_shape)

        def call(self, x: Any) -> Any:
            return self.last(self.first(x))

    built, called, fitted = Chain(), Chain(), Chain()
    built.build((None, 4))
    assert called(np.ones((1, 4))).shape == (1, 2)
    fitted.compile("sgd", "mse")
    fitted.fit(np.ones((4, 4)), np.ones((4, 2)), verbose=0)
    for model in (built, called, fitted):
        assert model.built
        assert [w.shape for w in model.weights] == [(4, 3), (3,), (3, 2), (2,)]


def test_layers_cannot_be_assigned() -> None:
    for model in (laminar.Sequential(), laminar.Model()):
        with pytest.raises(AttributeError, match="cannot be assigned"):
            model.layers = [layers.Dense(1)]
