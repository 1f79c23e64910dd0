"""The base of all layers: what it owns, and when weights are made."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from laminar import layers, ops
from laminar.engine.errors import FailedPreconditionError, InvalidArgumentError, ShapeError
from laminar.engine.functions import function
from laminar.engine.graph import TensorSpec
from laminar.engine.state import Variable
from laminar.metrics import Mean
from laminar.random import SeedGenerator

from .samples import ONES, Block, Linear


class TestOwnership:
    """What a layer finds among its attributes."""

    def test_sublayers_in_attributes_lists_and_dicts(self) -> None:
        block = Block()
        assert block._laminar_sublayers == [block.first, *block.many, block.named["last"]]
        assert block.weights == []
        block(ONES)
        assert len(block.weights) == 8
        assert len(block.trainable_weights) == 4
        assert len(block.non_trainable_weights) == 4

    def test_a_layer_added_to_a_list_later_counts(self) -> None:
        block = Block()
        block.many.append(Linear(3))
        block(ONES)
        assert len(block.trainable_weights) == 5

    def test_a_shared_layer_counts_once(self) -> None:
        block = Block()
        block.many = [block.first] * 2
        block.first.build((None, 3))
        assert len(block.weights) == 2

    def test_variables_that_are_assigned(self) -> None:
        layer = layers.Layer()
        layer.a = Variable(1.0, name="a")
        layer.more = [Variable(2.0, name="b"), {"c": Variable(3.0, trainable=False)}]
        assert [float(v) for v in layer.weights] == [1.0, 2.0, 3.0]
        assert len(layer.trainable_variables) == 2

    def test_seeds_are_variables_and_no_weights(self) -> None:
        layer: Any = Linear()
        layer.seed = SeedGenerator(3)
        layer(ONES)
        assert len(layer.weights) == 2
        assert layer.non_trainable_variables[-1] is layer.seed.state

    def test_metrics_are_apart(self) -> None:
        layer: Any = Linear()
        layer.mean = Mean(name="m")
        layer.inner = Linear()
        layer.inner.mean = Mean(name="n")
        assert [m.name for m in layer.metrics] == ["m", "n"]
        assert layer.metrics_variables == [*layer.mean.variables, *layer.inner.mean.variables]
        assert layer.variables == []

    def test_trainable_weights_come_first(self) -> None:
        layer = layers.Layer()
        layer.add_weight(name="fixed", trainable=False)
        layer.add_weight(name="free")
        assert [w.name for w in layer.weights] == ["free", "fixed"]

    def test_attributes_may_be_set_before_super_init(self) -> None:
        class Early(layers.Layer):
            def __init__(self) -> None:
                self.inner = Linear()
                super().__init__()

        assert len(Early()._laminar_sublayers) == 1

    def test_an_argument_is_no_attribute(self) -> None:
        class Teacher(layers.Layer):
            def __init__(self, teacher: Any) -> None:
                super().__init__()
                self.predict = lambda x: teacher(x)

        assert Teacher(Linear())._laminar_sublayers == []

    def test_a_weight_that_is_deleted(self) -> None:
        layer = Linear()
        layer(ONES)
        del layer.steps
        assert [w.name for w in layer.weights] == ["w"]

    def test_paths_name_the_layers(self) -> None:
        block = Block(name="block")
        block.first = Linear(3, name="entry")
        block(ONES)
        assert block.first.w.path == "block/entry/w"


class TestTrainable:
    """Freezing."""

    def test_freezing_takes_all_inside(self) -> None:
        block = Block()
        block(ONES)
        block.trainable = False
        assert block.trainable_weights == []
        assert len(block.non_trainable_weights) == 8
        assert not block.first.trainable
        block.trainable = True
        assert len(block.trainable_weights) == 4

    def test_freezing_one_inside(self) -> None:
        block = Block()
        block(ONES)
        block.many[0].trainable = False
        assert len(block.trainable_weights) == 3
        assert len(block.weights) == 8

    def test_a_constructor_argument(self) -> None:
        layer = Linear(trainable=False)
        layer(ONES)
        assert layer.trainable_weights == []
        assert Linear.from_config(layer.get_config()).trainable is False

    def test_frozen_weights_have_no_penalty(self) -> None:
        layer = layers.Dense(2, kernel_regularizer="l2")
        layer(ONES)
        assert len(layer.losses) == 1
        layer.trainable = False
        assert layer.losses == []


class TestWeights:
    """Making and setting them."""

    def test_defaults(self) -> None:
        layer = layers.Layer(name="thing")
        w = layer.add_weight((3, 2), name="w")
        assert (w.dtype, w.trainable, w.path) == ("float32", True, "thing/w")
        assert abs(w.numpy()).max() > 0
        assert layer.add_weight((3,), dtype="int32").numpy().tolist() == [0, 0, 0]
        assert layer.add_weight().shape == ()

    def test_errors(self) -> None:
        layer = layers.Layer()
        with pytest.raises(InvalidArgumentError, match="takes the shape first"):
            layer.add_weight("kernel", (3, 2))  # type: ignore[arg-type]  # the mistake
        with pytest.raises(InvalidArgumentError, match=r"two shapes, \(3, 2\) and \(2,\)"):
            layer.add_weight((3, 2), shape=(2,))  # type: ignore[misc]  # the mistake
        with pytest.raises(TypeError, match="positional arguments"):
            layer.add_weight((3, 2), "zeros", "float32", "w")  # type: ignore[call-arg, arg-type]  # the mistake
        with pytest.raises(ShapeError, match="the shape of weight 'w' is not fully known"):
            layer.add_weight((None, 2), name="w")
        with pytest.raises(InvalidArgumentError, match="glorot_unifrm"):
            layer.add_weight((2, 2), "glorot_unifrm")

    def test_options_stay_with_the_weight(self) -> None:
        w: Any = layers.Layer().add_weight((2,), "ones", regularizer="l1", constraint="non_neg")
        assert float(w.regularizer(w)) == pytest.approx(0.02)
        assert type(w.constraint).__name__ == "NonNeg"

    def test_get_and_set(self) -> None:
        layer = Linear()
        layer(ONES)
        layer.set_weights([np.full((4, 2), 2.0), 5.0])
        assert layer(ONES).numpy().tolist() == [[8, 8]] * 2
        assert [w.tolist() for w in layer.get_weights()] == [[[2, 2]] * 4, 5]

    def test_set_weights_sets_all_or_none(self) -> None:
        layer = layers.Dense(2)
        layer(ONES)
        before = layer.get_weights()
        with pytest.raises(ShapeError, match=r"bias.* has shape \(2,\), the array has \(3,\)"):
            layer.set_weights([np.zeros((4, 2)), np.zeros(3)])
        with pytest.raises(InvalidArgumentError, match="got 1 arrays, the layer has 2"):
            layer.set_weights([np.zeros((4, 2))])
        for old, new in zip(before, layer.get_weights(), strict=True):
            np.testing.assert_array_equal(old, new)
        with pytest.raises(InvalidArgumentError, match=r"the layer has 0 weights\n(.*\n)*.*build"):
            layers.Dense(2).set_weights([np.zeros((4, 2))])

    def test_own_variables_to_a_mapping_and_back(self) -> None:
        layer, copy = Linear(), Linear()
        layer(ONES, training=True)
        copy(ONES)
        store: dict[str, Any] = {}
        layer.save_own_variables(store)
        assert list(store) == ["0", "1"]
        copy.load_own_variables(store)
        assert float(copy.steps) == 1
        with pytest.raises(InvalidArgumentError, match="the file has 1 weights, the layer has 2"):
            copy.load_own_variables({"0": store["0"]})
        with pytest.raises(ShapeError, match="the file has"):
            copy.load_own_variables({"0": store["1"], "1": store["1"]})

    def test_count_params(self) -> None:
        layer = layers.Dense(3)
        with pytest.raises(FailedPreconditionError, match="has no weights yet"):
            layer.count_params()
        layer.build((None, 4))
        assert layer.count_params() == 15


class TestBuild:
    """When weights are made."""

    def test_once_with_the_first_shape(self) -> None:
        layer = Linear()
        assert not layer.built
        layer(ONES)
        w = layer.w
        layer(ONES)
        assert layer.built
        assert layer.w is w
        assert layer.get_build_config() == {"input_shape": (2, 4)}

    def test_one_shape_for_each_tensor_of_call(self) -> None:
        class Two(layers.Layer):
            def build(self, left_shape: Any, right_shape: Any) -> None:  # type: ignore[override]  # two
                self.shapes = left_shape, right_shape
                self.w = self.add_weight((left_shape[-1], right_shape[-1]))

            def call(self, left: Any, right: Any) -> Any:
                return ops.matmul(left, self.w) * right

        layer = Two()
        layer(np.ones((2, 3)), right=np.ones((2, 5)))
        assert layer.shapes == ((2, 3), (2, 5))
        config = json.loads(json.dumps(layer.get_build_config()))
        assert config == {"shapes_dict": {"left_shape": [2, 3], "right_shape": [2, 5]}}
        copy = Two()
        copy.build_from_config(config)
        assert tuple(copy.w.shape) == (3, 5)

        class Misnamed(layers.Layer):
            def build(self, a_shape: Any, b_shape: Any) -> None:  # type: ignore[override]  # two
                raise AssertionError

            def call(self, left: Any, right: Any) -> Any:
                return left + right

        with pytest.raises(InvalidArgumentError, match=r"build\(\) wants a_shape, b_shape"):
            Misnamed()(np.ones(2), np.ones(2))
        with pytest.raises(TypeError, match="missing a required argument: 'right'"):
            Misnamed()(np.ones(2))

    def test_shapes_of_nested_inputs(self) -> None:
        class Nested(layers.Layer):
            def build(self, shapes: Any) -> None:
                self.shapes = shapes

            def call(self, inputs: Any) -> Any:
                return inputs["a"] + inputs["b"][0]

        layer = Nested()
        layer({"a": np.ones((2, 3)), "b": [np.ones((2, 3))]})
        assert layer.shapes == {"a": (2, 3), "b": [(2, 3)]}

    def test_weights_are_made_in_a_trace_as_well(self) -> None:
        layer = Linear()
        traced = function(layer, input_signature=[TensorSpec((None, 4), "float32")])
        assert traced(ONES).numpy().tolist() == [[4, 4]] * 2
        assert len(layer.weights) == 2

    def test_input_spec(self) -> None:
        layer = Linear()
        layer.input_spec = layers.InputSpec(ndim=2, axes={1: 4})
        layer(ONES)
        with pytest.raises(ShapeError, match="expected 2 axes, got shape"):
            layer(ONES[0])
        with pytest.raises(ShapeError, match="expected size 4 along axis 1"):
            layer(ONES[:, :3])
        with pytest.raises(InvalidArgumentError, match="must be a tensor or an array, got str"):
            layer("abc")

    @pytest.mark.parametrize(
        ("spec", "good", "bad", "message"),
        [
            ({"shape": (None, 4)}, (2, 4), (2, 5), "expected shape"),
            ({"min_ndim": 2}, (2, 4), (2,), "expected at least 2 axes"),
            ({"max_ndim": 2}, (2, 4), (2, 4, 1), "expected at most 2 axes"),
            ({"axes": {2: 3}}, (2, 4, 3), (2, 4), "expected an axis 2"),
            ({"dtype": "float32"}, (2,), np.zeros(2, np.int32), "expected dtype float32"),
        ],
    )
    def test_what_input_specs_say(
        self, spec: dict[str, Any], good: Any, bad: Any, message: str
    ) -> None:
        layer = layers.Identity()
        layer.input_spec = layers.InputSpec(**spec)
        layer(np.zeros(good, np.float32))
        with pytest.raises((ShapeError, InvalidArgumentError), match=message):
            layer(bad if isinstance(bad, np.ndarray) else np.zeros(bad, np.float32))

    def test_input_specs_of_several_inputs(self) -> None:
        layer = layers.Lambda(lambda xs: xs)
        layer.input_spec = {
            "a": layers.InputSpec(ndim=2),
            "b": layers.InputSpec(ndim=1, optional=True),
        }
        layer({"a": ONES, "b": ONES[0]})
        layer({"a": ONES})
        with pytest.raises(InvalidArgumentError, match="input 0 is missing"):
            layer({"b": ONES[0]})
        layer.input_spec = [layers.InputSpec(ndim=2)] * 2
        with pytest.raises(InvalidArgumentError, match="expected 2 inputs, got 3"):
            layer([ONES] * 3)


def test_what_was_never_called_has_no_input() -> None:
    dense = layers.Dense(2)
    assert not hasattr(dense, "input")
    assert not hasattr(dense, "output")
    dense(layers.Input((3,)))
    assert dense.input.shape == (None, 3)
