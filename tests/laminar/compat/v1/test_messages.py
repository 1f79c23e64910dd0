"""ConfigProto and RunOptions as scripts fill them in."""

from __future__ import annotations

import pytest

import laminar.compat.v1 as tf
from laminar import engine
from laminar.engine.devices import num_available
from tests.engine.runtime.fake_gpu import one_gpu


def test_session_settings() -> None:
    config = tf.ConfigProto(inter_op_parallelism_threads=3, device_count={"CPU": 2, "GPU": 0})
    config.graph_options.place_pruned_graph = False
    found = config.session_config()
    assert list(found.inter_op_threads) == [3]
    assert found.device_count == {"cpu": 2, "gpu": 0}
    assert not found.place_pruned_graph


def test_settings_of_gpus() -> None:
    """A script for a GPU runs where there is none; where there is one, its limits hold."""
    config = tf.ConfigProto(device_count={"GPU": 1})
    config.gpu_options.per_process_gpu_memory_fraction = 0.25
    config.gpu_options.allow_growth = False
    found = config.session_config()
    assert found.device_count == {"gpu": min(1, num_available("gpu"))}
    assert found.memory_limit_bytes == {"gpu": 0.25}
    assert not found.allow_growth
    with tf.Session(config=tf.ConfigProto(device_count={"GPU": 1})) as session:
        assert session.run(tf.constant(2.0) * 3.0) == 6.0
    with one_gpu() as gpu:
        found = tf.ConfigProto(device_count={"GPU": 4}).session_config()
        assert found.device_count == {"gpu": 1}
        with tf.Session(config=config) as session:
            assert session.run(tf.constant(2.0) * 3.0) == 6.0
        assert gpu.memory_stats().num_arrays > 0


def test_what_is_not_said_is_as_by_default() -> None:
    found = tf.ConfigProto(gpu_options=tf.GPUOptions(allow_growth=True)).session_config()
    assert list(found.inter_op_threads) == []
    assert found.place_pruned_graph


def test_fields_that_are_lists() -> None:
    config = tf.ConfigProto(rpc_options=tf.RPCOptions(use_rpc_for_inprocess_master=True))
    config.session_inter_op_thread_pool.add().num_threads = 1
    config.session_inter_op_thread_pool.add(num_threads=3)
    config.device_filters.append("/job:ps")
    config.graph_options.enable_recv_scheduling = False
    config.graph_options.enable_bfloat16_sendrecv = True
    found = config.session_config()
    assert list(found.inter_op_threads) == [1, 3]
    assert found.device_filters == ("/job:ps",)
    assert (found.rpc_for_inprocess_master, found.delay_receives) == (True, False)
    assert found.lossy_transfers


def test_what_a_run_tells_has_the_fields_of_the_message() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        y = tf.multiply(tf.random_uniform([3]), 2.0, name="y")
        told = tf.RunMetadata()
        options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE, output_partition_graphs=True)
        session.run(y, options=options, run_metadata=told)
        (device,) = told.step_stats.dev_stats
        assert device.device.endswith("cpu:0")
        found = {node.node_name: node for node in device.node_stats}
        assert 0 < found["y"].op_end_rel_micros <= found["y"].all_end_rel_micros
        assert found["y"].timeline_label == "y = Mul()"
        assert "y" in {node.name for node in told.cost_graph.node}
        assert "y" in {node.name for graph in told.partition_graphs for node in graph.node}
        call = session.make_callable(y, accept_options=True)
        again = tf.RunMetadata()
        assert call(options=options, run_metadata=again).shape == (3,)
        assert again.step_stats.dev_stats
        with pytest.raises(ValueError, match="RunOptions"):
            session.run(y, options="fast")


def test_a_session_gives_its_graph_as_data() -> None:
    with engine.Graph().as_default(), engine.Session() as session:
        engine.constant(1.0, name="one")
        assert [node.name for node in session.graph_def.node] == ["one"]
