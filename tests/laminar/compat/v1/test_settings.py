"""Settings of the process, modules, checks of shapes, and names that stand alone."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import laminar.compat.v1 as tf
from laminar import engine
from laminar.engine.ops.text.farmhash import fingerprint_of


@pytest.fixture(autouse=True)
def _clean() -> Iterator[None]:
    tf.reset_default_graph()
    yield
    tf.reset_default_graph()


def run(x: Any, feed: Any = None) -> Any:
    with tf.Session() as session:
        return session.run(x, feed)


def test_settings_are_kept() -> None:
    for get, put, value in (
        (tf.config.get_soft_device_placement, tf.config.set_soft_device_placement, True),
        (tf.config.optimizer.get_jit, tf.config.optimizer.set_jit, True),
        (tf.debugging.get_log_device_placement, tf.debugging.set_log_device_placement, True),
        (tf.config.threading.get_inter_op_parallelism_threads,
         tf.config.threading.set_inter_op_parallelism_threads, 3),
        (tf.config.experimental.get_device_policy,
         tf.config.experimental.set_device_policy, "warn"),
    ):  # fmt: skip
        before = get()
        put(value)
        assert get() == value
        put(before)
    with pytest.raises(ValueError, match="at least 0"):
        tf.config.threading.set_intra_op_parallelism_threads(-1)
    with pytest.raises(ValueError, match="one of silent"):
        tf.config.experimental.set_device_policy("loud")
    cpus = tf.config.experimental.get_visible_devices("CPU")
    tf.config.experimental.set_visible_devices(cpus, "CPU")
    with pytest.raises(ValueError, match="not the devices"):
        tf.config.experimental.set_visible_devices([], "CPU")


def test_virtual_devices() -> None:
    (cpu,) = tf.config.list_physical_devices("CPU")
    parts = [tf.config.experimental.VirtualDeviceConfiguration()] * 2
    try:
        tf.config.experimental.set_virtual_device_configuration(cpu, parts)
        assert len(tf.config.list_physical_devices("CPU")) == 2
        assert tf.config.experimental.get_virtual_device_configuration(cpu) == parts
    finally:
        engine.set_device_count(None)


def test_shapes_are_checked() -> None:
    x, y = tf.placeholder(tf.float32, [None, 2]), tf.placeholder(tf.float32, [None])
    held = tf.debugging.assert_shapes([(x, ("n", 2)), (y, ("n",))])
    run(held, {x: np.ones((3, 2)), y: np.ones(3)})
    with pytest.raises(tf.errors.InvalidArgumentError, match="axis 0 is not 'n'"):
        run(held, {x: np.ones((3, 2)), y: np.ones(4)})
    with pytest.raises(ValueError, match="expected 3"):
        tf.debugging.assert_shapes({x: (None, 3)})
    with pytest.raises(ValueError, match="2 axes, expected 1"):
        tf.debugging.assert_shapes([(x, ("n",))])


class Scale(tf.Module):  # type: ignore[misc]  # a name that is looked up
    """A number, and another module."""

    def __init__(self, inner: Any = None) -> None:
        super().__init__()
        self.factor = tf.Variable(2.0)
        self.parts = [inner]

    @tf.Module.with_name_scope  # type: ignore[untyped-decorator]  # a name that is looked up
    def __call__(self, x: Any) -> Any:
        return tf.multiply(x, self.factor)


def test_modules() -> None:
    inner = Scale()
    outer = Scale(inner)
    assert outer.variables == (outer.factor, inner.factor)
    assert outer.trainable_variables == outer.variables
    assert outer.submodules == (inner,)
    assert outer.name == "scale"
    assert outer(tf.constant(1.0)).op.name.startswith("scale/")
    with pytest.raises(ValueError, match="no name"):
        tf.Module("2 words")


def test_losses_and_labels() -> None:
    assert run(tf.nn.compute_average_loss([1.0, 3.0], [1.0, 2.0], 7)) == 1
    assert run(tf.nn.scale_regularization_loss([1.0, 2.0])) == 3
    labels = [[1, 1, 2, 2, 1, 0], [3, 3, 3, 0, 0, 0]]
    found, counts = run(tf.nn.collapse_repeated(labels, [5, 3]))
    assert found.tolist() == [[1, 2, 1], [3, 0, 0]]
    assert counts.tolist() == [3, 1]
    unique, places = run(tf.nn.ctc_unique_labels([[3, 4, 4, 3], [1, 1, 1, 1]]))
    assert unique.tolist() == [[3, 4, 0, 0], [1, 0, 0, 0]]
    assert places.tolist() == [[0, 1, 1, 0], [0, 0, 0, 0]]


def test_names_that_stand_alone() -> None:
    assert abs(run(tf.timestamp()) - time.time()) < 60
    found = run(tf.fingerprint(["a", "bc"]))
    assert found.shape == (2, 8)
    assert found[0].tobytes() == fingerprint_of(b"a").to_bytes(8, "little")
    numbers = np.arange(4, dtype=np.int32).reshape(2, 2)
    expected = fingerprint_of(numbers[1].tobytes()).to_bytes(8, "little")
    assert run(tf.fingerprint(numbers))[1].tobytes() == expected
    pads, crops = run(tf.required_space_to_batch_paddings([11, 6], [4, 3], [[1, 0], [0, 0]]))
    assert pads.tolist() == [[1, 0], [0, 0]]
    assert crops.tolist() == [[0, 0], [0, 0]]
    pads, crops = run(tf.required_space_to_batch_paddings([11, 7], [4, 3]))
    assert pads.tolist() == crops.tolist() == [[0, 1], [0, 2]]
    assert isinstance(tf.ConditionalAccumulator(tf.float32, []), tf.ConditionalAccumulatorBase)
    assert run(tf.xla.experimental.compile(lambda x: x + 1, [1])) == [2]


def test_objects_that_stand_for_tensors() -> None:
    class Twice:
        def __init__(self, value: float) -> None:
            self.value = value

    tf.register_tensor_conversion_function(
        Twice, lambda x, dtype=None, name=None, as_ref=False: tf.constant(2 * x.value)
    )
    assert run(tf.square(Twice(3.0))) == 36
    assert run(tf.add(Twice(3.0), 1.0)) == 7
    with pytest.raises(TypeError, match="expected classes"):
        tf.register_tensor_conversion_function(3, lambda x: x)


def test_functions_that_tensors_decide() -> None:
    def sign(x: Any) -> Any:
        if x > 0:
            return tf.constant(1)
        return tf.constant(-1)

    x = tf.placeholder(tf.float32, [])
    with tf.get_default_graph().as_default():
        found = tf.autograph.to_graph(sign)(x)
    assert run(found, {x: 3.0}) == 1
    assert run(found, {x: -3.0}) == -1


def test_files_beside_the_program() -> None:
    path = tf.resource_loader.get_path_to_datafile("test_settings.py")
    assert path == __file__
    assert tf.resource_loader.load_resource("test_settings.py").startswith(b'"""Settings')
