"""tf.train.Server takes clusters and their messages."""

from __future__ import annotations

from typing import Any

import pytest

import laminar.compat.v1 as tf


def test_a_server_of_messages() -> None:
    cluster = tf.train.ClusterDef(job=[tf.train.JobDef(name="worker", tasks={0: "localhost:0"})])
    config = tf.ConfigProto(operation_timeout_in_ms=100)
    definition = tf.train.ServerDef(
        cluster=cluster, job_name="worker", task_index=0, default_session_config=config
    )
    with tf.train.Server(definition) as server, tf.Graph().as_default():
        assert server.server_def.job_name == "worker"
        queue = tf.FIFOQueue(1, [tf.float32], shapes=[[]])
        empty, three = queue.dequeue(), tf.constant(1.0) + 2.0
        with tf.Session(server.target) as session:
            assert session.run(three) == 3.0
            with pytest.raises(tf.errors.DeadlineExceededError):
                session.run(empty)


def test_a_server_of_a_cluster() -> None:
    arguments: dict[str, Any] = {
        "server_or_cluster_def": {"worker": ["localhost:0"]},
        "job_name": "worker",
        "task_index": 0,
        "config": tf.ConfigProto(device_count={"CPU": 2}),
    }
    with (
        tf.train.Server(**arguments) as server,
        tf.Graph().as_default(),
        tf.Session(server.target) as session,
    ):
        assert len(session.list_devices()) == 2
    with tf.train.Server.create_local_server(start=False) as server:
        assert server.target.startswith("grpc://localhost:")
