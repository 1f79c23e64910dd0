"""What a layer finds among its attributes, and in which order."""

from __future__ import annotations

from typing import Any

import numpy as np

from laminar import layers, metrics, random
from laminar.engine.state import Variable

ONES = np.ones((2, 3), "float32")


class Holder(layers.Layer):
    """A layer whose attributes are set from outside."""

    def call(self, x: Any) -> Any:
        return x


def built() -> layers.Dense:
    layer = layers.Dense(2)
    layer(ONES)
    return layer


def test_attributes_of_all_kinds() -> None:
    holder: Any = Holder()
    inside = [built() for _ in range(6)]
    holder.one = inside[0]
    holder.listed = [inside[1], {"key": inside[2]}]
    holder.pair = (3, (inside[3], "text"))
    holder.later = [1]
    holder.later.append(inside[4])
    holder.named = {"a": {"b": [inside[5]]}}
    holder.text, holder.number, holder.function = "text", 3, built
    assert holder._laminar_sublayers == inside
    assert len(holder.weights) == 12


def test_the_order_is_that_of_getting_them() -> None:
    holder: Any = Holder()
    first, second = built(), built()
    holder.b = None
    holder.a = second
    holder.b = first
    assert holder._laminar_sublayers == [second, first]
    holder.a = "gone"
    assert holder._laminar_sublayers == [first]
    holder.a = second
    assert holder._laminar_sublayers == [first, second]
    del holder.b
    assert holder._laminar_sublayers == [second]


def test_variables_seeds_and_metrics() -> None:
    holder: Any = Holder()
    holder.v = Variable(np.ones(3, "float32"), name="v")
    holder.seed = random.SeedGenerator(1)
    holder.mean = metrics.Mean(name="mean")
    holder.pairs = [("total", metrics.Sum(name="total"))]
    assert holder.weights == [holder.v]
    assert holder.variables == [holder.v, holder.seed.state]
    assert [metric.name for metric in holder.metrics] == ["mean", "total"]
    assert len(holder.metrics_variables) == 3


def test_names_that_only_layers_use_are_free_elsewhere() -> None:
    class Means(metrics.Metric):
        def __init__(self) -> None:
            super().__init__()
            self._losses = [metrics.Mean()]

        def update_state(self, x: Any) -> None:
            self._losses[0].update_state(x)

        def result(self) -> Any:
            return self._losses[0].result()

    mean = Means()
    mean.update_state([2.0, 4.0])
    mean.reset_state()
    assert float(mean.result()) == 0


def test_weights_without_names_have_different_paths() -> None:
    class Pair(layers.Layer):
        def build(self, shape: Any) -> None:
            self.a = self.add_weight(shape=(2,))
            self.b = self.add_weight(shape=(2,))

        def call(self, x: Any) -> Any:
            return x

    pair = Pair(name="pair")
    pair(ONES)
    paths = [w.path for w in pair.weights]
    assert len(set(paths)) == 2
    assert all(path.startswith("pair/variable") for path in paths)


def test_random_states_under_keras_private_names() -> None:
    class Noisy(layers.Layer):
        def __init__(self) -> None:
            super().__init__()
            self.seeds = [random.SeedGenerator(1), random.SeedGenerator(2)]
            self.dropout = layers.Dropout(0.5)

    layer = Noisy()
    assert layer._seed_generators == layer.seeds
    assert len([s for inner in layer._flatten_layers() for s in inner._seed_generators]) == 3
    holder: Any = Holder()
    holder._seed_generators = "mine"
    assert holder._seed_generators == "mine"


def test_variables_say_that_their_layer_is_frozen() -> None:
    """The order of the weights, which files have, stays as it is."""

    class Two(layers.Layer):
        def build(self, input_shape: Any) -> None:
            self.count = self.add_weight((), "zeros", trainable=False, name="count")
            self.scale = self.add_weight((), "ones", name="scale")
            self.norm = layers.BatchNormalization()
            self.norm.build(input_shape)

        def call(self, x: Any) -> Any:
            return self.norm(x) * self.scale

    layer = Two(name="two")
    layer.build((None, 3))
    order = [v.path for v in layer.weights]
    assert order[:2] == ["two/scale", "two/count"]
    layer.trainable = False
    assert not any(v.trainable for v in layer.weights)
    assert [v.path for v in layer.weights] == order
    layer.trainable = False
    layer.norm.trainable = True
    assert [v.name for v in layer.weights if v.trainable] == ["gamma", "beta"]
    layer.trainable = True
    assert [v.name for v in layer.weights if v.trainable] == ["scale", "gamma", "beta"]
    layer.scale.trainable = False  # by itself, which a layer does not take back
    layer.trainable = False
    layer.trainable = True
    assert [v.name for v in layer.trainable_weights] == ["gamma", "beta"]
