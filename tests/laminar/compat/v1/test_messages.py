"""ConfigProto and RunOptions as scripts fill them in."""

from __future__ import annotations

import laminar.compat.v1 as tf
from laminar.compat.v1.messages import as_config


def test_session_settings() -> None:
    config = tf.ConfigProto(inter_op_parallelism_threads=3, device_count={"CPU": 2, "GPU": 0})
    config.graph_options.place_pruned_graph = False
    found = as_config(config)
    assert found is not None
    assert list(found.inter_op_threads) == [3]
    assert found.device_count == {"cpu": 2}
    assert not found.place_pruned_graph


def test_what_is_not_said_is_as_by_default() -> None:
    found = as_config(tf.ConfigProto(gpu_options=tf.GPUOptions(allow_growth=True)))
    assert found is not None
    assert list(found.inter_op_threads) == []
    assert found.place_pruned_graph
