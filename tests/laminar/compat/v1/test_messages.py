"""ConfigProto and RunOptions as scripts fill them in."""

from __future__ import annotations

import laminar.compat.v1 as tf
from laminar.compat.v1.messages import as_config
from laminar.engine.devices import num_available
from tests.engine.runtime.fake_gpu import one_gpu


def test_session_settings() -> None:
    config = tf.ConfigProto(inter_op_parallelism_threads=3, device_count={"CPU": 2, "GPU": 0})
    config.graph_options.place_pruned_graph = False
    found = as_config(config)
    assert found is not None
    assert list(found.inter_op_threads) == [3]
    assert found.device_count == {"cpu": 2, "gpu": 0}
    assert not found.place_pruned_graph


def test_settings_of_gpus() -> None:
    """A script for a GPU runs where there is none; where there is one, its limits hold."""
    config = tf.ConfigProto(device_count={"GPU": 1})
    config.gpu_options.per_process_gpu_memory_fraction = 0.25
    config.gpu_options.allow_growth = False
    found = as_config(config)
    assert found is not None
    assert found.device_count == {"gpu": min(1, num_available("gpu"))}
    assert found.memory_limit_bytes == {"gpu": 0.25}
    assert not found.allow_growth
    with tf.Session(config=tf.ConfigProto(device_count={"GPU": 1})) as session:
        assert session.run(tf.constant(2.0) * 3.0) == 6.0
    with one_gpu() as gpu:
        found = as_config(tf.ConfigProto(device_count={"GPU": 4}))
        assert found is not None
        assert found.device_count == {"gpu": 1}
        with tf.Session(config=config) as session:
            assert session.run(tf.constant(2.0) * 3.0) == 6.0
        assert gpu.memory_stats().num_arrays > 0


def test_what_is_not_said_is_as_by_default() -> None:
    found = as_config(tf.ConfigProto(gpu_options=tf.GPUOptions(allow_growth=True)))
    assert found is not None
    assert list(found.inter_op_threads) == []
    assert found.place_pruned_graph
