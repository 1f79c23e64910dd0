"""The base of all layers: how it is called, masks, configs, symbols."""

from __future__ import annotations

import gc
import json
import weakref
from typing import Any

import numpy as np
import pytest

import laminar
from laminar import layers, ops
from laminar.engine.errors import FailedPreconditionError, InvalidArgumentError, ShapeError
from laminar.engine.functions import function
from laminar.layers.masking import get_mask, set_mask
from laminar.layers.operation import Operation
from laminar.tree import flatten

from .harness import random_inputs
from .samples import ONES, Block, Linear


def losses_of_2(w: Any) -> Any:
    return ops.sum(w) * 0 + 2.0


class TestCall:
    """Arguments, dtypes and losses."""

    def test_missing_super_init(self) -> None:
        class Bare(layers.Layer):
            def __init__(self) -> None:
                self.x = 3

        with pytest.raises(FailedPreconditionError, match=r"did not call super\(\).__init__"):
            Bare()(ONES)

    def test_no_call(self) -> None:
        with pytest.raises(NotImplementedError, match="does not say what it computes"):
            layers.Layer()(ONES)

    def test_unknown_arguments(self) -> None:
        with pytest.raises(InvalidArgumentError, match="Linear: unknown arguments colour"):
            Linear(colour="red")

    def test_training_reaches_inner_layers(self) -> None:
        block = Block()
        block(ONES)
        assert float(block.first.steps) == 0
        block(ONES, training=True)
        assert [float(x.steps) for x in (block.first, *block.many)] == [1, 1, 1]
        block(ONES, training=False)
        assert float(block.first.steps) == 1

    def test_an_inner_call_may_say_otherwise(self) -> None:
        class Frozen(Block):
            def call(self, x: Any) -> Any:
                return self.many[0](self.first(x, training=False))

        block = Frozen()
        block(ONES, training=True)
        assert float(block.first.steps) == 0
        assert float(block.many[0].steps) == 1

    def test_the_default_of_an_outer_call_reaches_inner_ones(self) -> None:
        class Training(Block):
            def call(self, x: Any, training: bool = True) -> Any:
                return self.first(x)

        block = Training()
        block(ONES)
        assert float(block.first.steps) == 1

    def test_training_as_a_positional_argument(self) -> None:
        layer = Linear()
        layer(ONES, True)
        assert float(layer.steps) == 1

    def test_only_tensors_come_without_a_name(self) -> None:
        class Flagged(layers.Layer):
            def call(self, x: Any, other: Any = None, flag: bool = False) -> Any:
                return x + 1 if flag else x

        layer = Flagged()
        with pytest.raises(InvalidArgumentError, match=r"argument 3 is True") as caught:
            layer(ONES, None, True)
        assert "flag=True" in str(caught.value)
        with pytest.raises(ValueError, match="argument 2 is 0.5"):
            layer(layers.Input((3,)), 0.5)
        np.testing.assert_array_equal(layer(ONES, ONES, flag=True), ONES + 1)

    def test_arrays_become_tensors_of_the_compute_dtype(self) -> None:
        seen = []

        class Look(layers.Layer):
            def call(self, x: Any, ids: Any = None, flag: str = "") -> Any:
                seen.append((x.dtype, None if ids is None else ids.dtype, flag))
                return x

        Look()(ONES.astype(np.float64), ids=np.array([1]), flag="a")
        Look(dtype="float16")(ONES)
        Look(autocast=False)(ONES.astype(np.float64))
        assert seen == [
            ("float32", "int64", "a"),
            ("float16", None, ""),
            ("float64", None, ""),
        ]

    def test_mixed_precision(self) -> None:
        layer = Linear(dtype="mixed_float16")
        y = layer(ONES)
        assert y.dtype == "float16"
        assert layer.w.dtype == "float32"
        assert (layer.dtype, layer.compute_dtype) == ("float32", "float16")

        class Outer(layers.Layer):
            def __init__(self) -> None:
                super().__init__(dtype="mixed_bfloat16")
                self.inner = Linear(dtype="float32")

            def call(self, x: Any) -> Any:
                return self.inner(x)

        assert Outer()(ONES).dtype == "float32"

    def test_losses_are_those_of_the_last_call(self) -> None:
        class Penalized(layers.Layer):
            def call(self, x: Any) -> Any:
                self.add_loss(ops.sum(x))
                return x

        class Outer(layers.Layer):
            def __init__(self) -> None:
                super().__init__()
                self.a, self.b = Penalized(), Penalized()

            def call(self, x: Any) -> Any:
                self.add_loss([1.0, 2.0])
                return self.b(self.a(x))

        outer = Outer()
        for _ in range(2):
            outer(ONES)
            assert [float(loss) for loss in outer.losses] == [1, 2, 8, 8]
        outer(layers.Input((4,)))
        assert outer.losses == []

    def test_regularizers_and_activity(self) -> None:
        layer = layers.Dense(
            2, kernel_regularizer=losses_of_2, activity_regularizer="l2", use_bias=False
        )
        y = layer(ONES).numpy()
        found = sorted(float(loss) for loss in layer.losses)
        assert found == pytest.approx(sorted([2.0, 0.01 * (y**2).sum() / 2]))

    def test_add_metric_takes_values_and_names(self) -> None:
        for value, options in ((1.0, {}), (1.0, {"name": "m", "aggregation": "sum"})):
            with pytest.raises(InvalidArgumentError, match="add_metric"):
                layers.Layer().add_metric(value, **options)
        for add in (layers.Layer().add_loss, lambda x: layers.Layer().add_metric(x, name="m")):
            with pytest.raises(InvalidArgumentError, match="symbolic tensor"):
                add(layers.Input((2,)))

    def test_an_error_names_the_layer(self) -> None:
        class Wrong(layers.Layer):
            def call(self, x: Any) -> Any:
                return ops.matmul(x, ops.ones((7, 2)))

        class Outer(layers.Layer):
            def __init__(self) -> None:
                super().__init__(name="outer")
                self.inner = Wrong(name="wrong")

            def call(self, x: Any) -> Any:
                return self.inner(x)

        with pytest.raises(ShapeError, match="layer: outer/wrong"):
            Outer()(ONES)


class TestMasks:
    """Masks travel beside tensors."""

    def masked(self) -> Any:
        x = ops.convert_to_tensor(random_inputs((2, 3, 4)))
        set_mask(x, ops.convert_to_tensor(np.array([[True, True, False]] * 2)))
        return x

    def test_passed_on_where_supported(self) -> None:
        x = self.masked()
        assert get_mask(layers.Dense(3)(x)) is get_mask(x)
        assert get_mask(layers.Flatten()(x)) is None

    def test_given_to_call(self) -> None:
        class Average(layers.Layer):
            def call(self, x: Any, mask: Any = None) -> Any:
                self.seen = mask
                return x

        layer, x = Average(), self.masked()
        layer(x)
        assert layer.seen is get_mask(x)
        other = ops.ones((2, 3), dtype="bool")
        layer(x, mask=other)
        assert layer.seen is other

    def test_none_in_place_of_a_mask(self) -> None:
        class Ignore(layers.Layer):
            def call(self, x: Any, mask: Any = None) -> Any:
                self.seen = mask
                return x

        layer, x = Ignore(), self.masked()
        layer(x, None)
        assert layer.seen is None
        layer(x, mask=None)
        assert layer.seen is get_mask(x)

    def test_for_several_arguments(self) -> None:
        class Attend(layers.Layer):
            def call(self, query: Any, value: Any, mask: Any = None, value_mask: Any = None) -> Any:
                self.seen = mask, value_mask
                return query

        layer, x = Attend(), self.masked()
        layer(random_inputs((2, 3, 4)), x)
        assert layer.seen == (None, get_mask(x))

    def test_survives_a_cast(self) -> None:
        x = self.masked()
        assert get_mask(layers.Dense(3, dtype="mixed_float16")(x)) is get_mask(x)

    def test_on_symbols(self) -> None:
        x = layers.Masking()(layers.Input((3, 4)))
        assert tuple(get_mask(x).shape) == (None, 3)
        assert get_mask(layers.Dense(2)(x)).dtype == "bool"
        assert get_mask(layers.Flatten()(x)) is None
        assert get_mask(layers.Dense(2)(layers.Input((3, 4)))) is None

    def test_a_mask_does_not_keep_its_graph_alive(self) -> None:
        graphs = []

        def step(x: Any) -> Any:
            y = layers.Masking()(x)
            graphs.append(weakref.ref(get_mask(y).graph))
            return y

        function(step)(random_inputs((2, 3, 4)))
        gc.collect()
        assert graphs[0]() is None


class TestConfig:
    """Layers as data."""

    def test_arguments_are_remembered(self) -> None:
        layer = Linear(units=5, name="lin", dtype="float16")
        config = layer.get_config()
        assert config["units"] == 5
        assert config["name"] == "lin"
        copy = Linear.from_config(json.loads(json.dumps(config)))
        assert (copy.units, copy.name, copy.compute_dtype) == (5, "lin", "float16")

    def test_objects_among_the_arguments(self) -> None:
        class Holder(layers.Layer):
            def __init__(self, inner: Any, scale: float = 2.0, **kwargs: Any) -> None:
                super().__init__(**kwargs)
                self.inner = inner if isinstance(inner, layers.Layer) else None

        config = Holder(layers.Dense(3, name="d"), 4.0).get_config()
        assert config["inner"]["class_name"] == "Dense"
        assert config["scale"] == 4.0
        assert json.dumps(config)

    def test_a_config_that_does_not_fit(self) -> None:
        with pytest.raises(InvalidArgumentError, match="unknown arguments colour"):
            Linear.from_config({"units": 2, "colour": "red"})

        class Strict(layers.Layer):
            def __init__(self, units: int) -> None:
                super().__init__()

        with pytest.raises(InvalidArgumentError, match="Strict cannot be made from its config"):
            Strict.from_config({"unit": 2})

    def test_deserialize_refuses_what_is_no_layer(self) -> None:
        config = layers.serialize(layers.Dense(2))["config"]["kernel_initializer"]
        with pytest.raises(InvalidArgumentError, match="describes no layer"):
            layers.deserialize(config)

    def test_names_count(self) -> None:
        first, second = Linear(), Linear()
        stem, _, number = second.name.rpartition("_")
        assert stem == "linear"
        assert first.name in ("linear", f"linear_{int(number) - 1}")
        for bad in ("", "a/b", 3):
            with pytest.raises(InvalidArgumentError, match="a name is a string without '/'"):
                Linear(name=bad)


class TestStateless:
    """stateless_call."""

    def test_values_in_values_out(self) -> None:
        layer = Linear()
        layer(ONES)
        outputs, rest = layer.stateless_call(
            [np.full((4, 2), 3.0)], [np.float32(7)], ONES, training=True
        )
        assert outputs.numpy().tolist() == [[12, 12]] * 2
        assert [float(v) for v in rest] == [8]
        assert layer.w.numpy().max() == 1
        assert float(layer.steps) == 0

    def test_losses(self) -> None:
        layer = layers.Dense(1, kernel_regularizer="l2", use_bias=False)
        layer(ONES)
        *_, found = layer.stateless_call([np.ones((4, 1))], [], ONES, return_losses=True)
        assert float(found[0]) == pytest.approx(0.04)


class TestSymbols:
    """Layers on symbolic tensors."""

    def test_input_and_output_of_the_first_call(self) -> None:
        x = layers.Input((4,))
        layer = Linear()
        with pytest.raises(FailedPreconditionError, match="was never called"):
            _ = layer.output
        y = layer(x)
        assert layer.input is x
        assert layer.output is y
        layer(x)
        assert layer.output is y

    def test_symbols_have_no_values(self) -> None:
        x = layers.Input((4,), name="x")
        with pytest.raises(InvalidArgumentError, match="has no value"):
            len(x)
        for use in (bool, float, int, np.asarray, lambda t: t.numpy()):
            with pytest.raises(FailedPreconditionError, match="has no value"):
                use(x)
        assert "shape=(None, 4)" in repr(x)

    def test_a_symbolic_call_leaves_the_state_alone(self) -> None:
        layer = Linear()
        layer(layers.Input((4,)), training=True)
        assert float(layer.steps) == 0
        dropout = layers.Dropout(0.5, seed=1)
        before = dropout.seed_generator.state.numpy()
        dropout(layers.Input((4,)), training=True)
        np.testing.assert_array_equal(dropout.seed_generator.state.numpy(), before)

    @pytest.mark.parametrize(
        ("kwargs", "shape"),
        [
            ({"shape": (3, 4)}, (None, 3, 4)),
            ({"shape": (3, None)}, (None, 3, None)),
            ({"shape": (), "batch_size": 5}, (5,)),
            ({"batch_shape": (2, 3)}, (2, 3)),
        ],
    )
    def test_input(self, kwargs: dict[str, Any], shape: tuple[Any, ...]) -> None:
        x = layers.Input(**kwargs, dtype="int32", name="ids")
        assert (tuple(x.shape), x.dtype, x.name) == (shape, "int32", "ids")
        made = x.history.operation
        copy = layers.deserialize(json.loads(json.dumps(layers.serialize(made))))
        assert copy.batch_shape == shape
        assert copy.dtype == "int32"

    @pytest.mark.parametrize(
        ("kwargs", "message"),
        [
            ({}, "the shape is missing"),
            ({"shape": 3}, "a shape is a tuple, got 3"),
            ({"shape": (3,), "batch_shape": (2, 3)}, "not both"),
            ({"shape": (3,), "sparse": True}, "not supported"),
        ],
    )
    def test_input_refuses(self, kwargs: dict[str, Any], message: str) -> None:
        with pytest.raises(InvalidArgumentError, match=message):
            layers.Input(**kwargs)


def test_the_first_argument_by_name() -> None:
    x = np.array([[1.0, 0.0], [0.0, 0.0]], "float32")
    layer: Any = layers.SimpleRNN(2)
    masked = layers.Masking()(inputs=x[None])
    np.testing.assert_array_equal(masked._keras_mask, [[True, False]])
    np.testing.assert_array_equal(layer(sequences=masked), layer(masked))
    up: Any = layers.UpSampling2D(2)
    assert up(inputs=np.zeros((1, 2, 2, 1), "float32")).shape == (1, 4, 4, 1)
    assert up(inputs=layers.Input((2, 2, 1))).shape == (None, 4, 4, 1)


class Scaled(Operation):
    """An operation of one's own."""

    def call(self, x: Any, y: Any = 1.0) -> Any:
        return x * y


def test_operations_are_called_on_values_and_symbols() -> None:
    op = Scaled(name="scaled")
    np.testing.assert_array_equal(op(np.ones(2), y=3.0), [3.0, 3.0])
    x = layers.Input((2,))
    model = laminar.Model(x, op(x, y=x))
    np.testing.assert_array_equal(model(np.full((1, 2), 3.0)), [[9.0, 9.0]])


class TestDeclaredShapes:
    """Classes that write `compute_output_shape` need not be traced."""

    class Opaque(layers.Layer):
        def __init__(self, form: Any = None) -> None:
            super().__init__()
            self.form = form
            self.supports_masking = True

        def call(self, x: Any, mask: Any = None) -> Any:
            y = np.asarray(x)[:, :1]  # not possible in a trace
            return y if self.form is None else self.form(y)

        def compute_output_shape(self, input_shape: Any) -> Any:
            shape = (input_shape[0], 1, *input_shape[2:])
            return shape if self.form is None else self.form(shape)

    @pytest.mark.parametrize(
        "form", [None, lambda y: [y, y], lambda y: (y, y), lambda y: {"y": y}, lambda y: [{"y": y}]]
    )
    def test_outputs(self, form: Any) -> None:
        layer = self.Opaque(form)
        x = layers.Input((3, 4))
        found = layer.compute_output_spec(x)
        leaf = found if form is None else flatten(found)[-1]
        assert (leaf.shape, leaf.dtype) == ((None, 1, 4), "float32")
        if form is not None:
            assert type(found) is type(form(x))
        model = laminar.Model(x, layer(x))
        assert flatten(model(np.ones((2, 3, 4))))[-1].shape == (2, 1, 4)

    def test_masks(self) -> None:
        x = layers.Masking()(layers.Input((3, 4)))
        assert get_mask(self.Opaque()(x)).shape == (None, 3)

    def test_what_can_be_traced_has_its_own_dtype(self) -> None:
        class Largest(layers.Layer):
            def call(self, x: Any) -> Any:
                return ops.argmax(x, -1)

            def compute_output_shape(self, input_shape: Any) -> Any:
                return input_shape[:-1]

        assert Largest()(layers.Input((3,))).dtype == "int32"

        class Mistaken(Largest):
            def call(self, x: Any) -> Any:
                return x + ops.ones((5,))

        with pytest.raises(ShapeError):
            Mistaken()(layers.Input((3,)))

    def test_the_class_may_ask_its_base(self) -> None:
        class Narrowed(layers.Dense):
            def compute_output_shape(self, input_shape: Any) -> Any:
                return super().compute_output_shape(input_shape)

        assert Narrowed(3)(layers.Input((2,))).shape == (None, 3)

    def test_layers_inside_are_built(self) -> None:
        class Outer(layers.Layer):
            def __init__(self) -> None:
                super().__init__()
                self.dense = layers.Dense(3)

            def call(self, xs: Any) -> Any:
                return self.dense(xs["a"])

            def compute_output_shape(self, input_shape: Any) -> Any:
                return (*input_shape["a"][:-1], 3)

        layer = Outer()
        assert layer({"a": layers.Input((2,)), "b": None}).shape == (None, 3)
        assert layer.dense.built
        assert layer({"a": layers.Input((2,)), "b": None}).shape == (None, 3)


def test_a_mask_that_is_passed_goes_on() -> None:
    class Passes(layers.Layer):
        def __init__(self) -> None:
            super().__init__()
            self.supports_masking = True

        def call(self, x: Any, mask: Any = None) -> Any:
            return x * 1

    mask = np.array([True, False])
    np.testing.assert_array_equal(get_mask(Passes()(ONES, mask=mask)), mask)


class Affine(Operation):
    """An operation of one's own without a config."""

    def __init__(self, alpha: float, *, beta: float = 1.0, name: str | None = None) -> None:
        super().__init__(name)
        self.alpha, self.beta = alpha, beta

    def call(self, x: Any) -> Any:
        return self.alpha * x + self.beta


def test_configs_of_operations() -> None:
    config = Affine(0.5, name="half").get_config()
    assert config == {"alpha": 0.5, "beta": 1.0, "name": "half"}
    assert Affine.from_config(config).get_config() == config


def test_inputs_in_older_words() -> None:
    with pytest.warns(UserWarning, match="input_shape is called shape now"):
        layer = layers.InputLayer(input_shape=(2, 3), batch_size=4)
    assert layer.batch_shape == (4, 2, 3)
    with pytest.raises(InvalidArgumentError, match="not both"):
        layers.InputLayer(batch_shape=(2, 3), batch_size=4)
