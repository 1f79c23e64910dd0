"""Strategies of one replica, and clusters that a program knows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

import laminar.compat.v1 as tf
from laminar.engine.errors import UnimplementedError

D = tf.distribute


@pytest.fixture(autouse=True)
def _clean() -> Iterator[None]:
    tf.reset_default_graph()
    yield
    tf.reset_default_graph()


def test_one_replica() -> None:
    strategy = D.MirroredStrategy()
    assert not D.has_strategy()
    assert D.get_strategy().num_replicas_in_sync == 1
    with strategy.scope():
        assert D.get_strategy() is strategy
        assert D.in_cross_replica_context()
        assert D.get_replica_context() is None
        variable = tf.Variable(3.0)
    seen: list[Any] = []

    def replica(x: Any) -> Any:
        seen.append(D.get_replica_context().strategy)
        seen.append(
            D.get_replica_context().merge_call(lambda s, y: D.in_cross_replica_context(), (x,))
        )
        return x * variable

    found = strategy.experimental_run_v2(replica, (tf.constant([1.0, 2.0]),))
    assert seen == [strategy, True]
    total = strategy.reduce(D.ReduceOp.SUM, found, axis=0)
    mean = strategy.reduce("mean", found, axis=0)
    same = strategy.reduce(D.ReduceOp.MEAN, found)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        results = session.run([total, mean, same])
    assert [r.tolist() for r in results] == [9, 4.5, [3, 6]]
    assert not D.has_strategy()
    with pytest.raises(UnimplementedError, match="DataParallel"):
        D.MirroredStrategy(["/gpu:0", "/gpu:1"])
    with pytest.raises(ValueError, match="SUM or MEAN"):
        strategy.reduce("most", found)


def test_a_device_and_its_input() -> None:
    strategy = D.OneDeviceStrategy("/cpu:0")
    with strategy.scope():
        assert "cpu:0" in tf.constant(1.0).op.device.lower()
    data = strategy.experimental_make_numpy_dataset([1, 2])
    assert strategy.experimental_distribute_dataset(data) is data
    iterator = strategy.make_input_fn_iterator(
        lambda context: data.batch(context.get_per_replica_batch_size(2))
    )
    following = iterator.get_next()
    with tf.Session() as session:
        session.run(iterator.initializer)
        assert session.run(following).tolist() == [1, 2]
    with pytest.raises(ValueError, match="not to be divided"):
        D.InputContext(num_replicas_in_sync=2).get_per_replica_batch_size(3)


def test_a_strategy_stays() -> None:
    strategy = D.Strategy()
    D.experimental_set_strategy(strategy)
    try:
        assert D.get_strategy() is strategy
        with strategy.scope(), pytest.raises(RuntimeError, match="not inside"):
            D.experimental_set_strategy(None)
    finally:
        D.experimental_set_strategy(None)
    assert not D.has_strategy()


def test_clusters(monkeypatch: pytest.MonkeyPatch) -> None:
    simple = D.cluster_resolver.SimpleClusterResolver(
        tf.train.ClusterSpec({"worker": ["a:1", "b:1"]}), "c:1", "worker", 1, rpc_layer="grpc"
    )
    assert simple.master() == "grpc://c:1"
    assert simple.master("worker", 0) == "grpc://a:1"
    other = D.cluster_resolver.SimpleClusterResolver({"worker": ["b:1", "d:1"], "ps": ["e:1"]})
    union = D.cluster_resolver.UnionResolver(simple, other)
    assert union.task_id == 1
    expected = {"worker": ["a:1", "b:1", "d:1"], "ps": ["e:1"]}
    assert union.cluster_spec().as_dict() == expected
    told = {"cluster": {"worker": ["a:1", "b:1"]}, "task": {"type": "worker", "index": 1}}
    monkeypatch.setenv("TF_CONFIG", json.dumps(told))
    resolver = D.cluster_resolver.TFConfigClusterResolver()
    assert (resolver.task_type, resolver.task_id) == ("worker", 1)
