"""What travels between workers and parameter servers: gradients and rows, no slots."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from laminar import engine as eng
from laminar import ops, optimizers
from laminar.distribute import GreedyLoadBalancing, replica_device_setter
from tests.distribute.cluster.local_cluster import LocalCluster, local_cluster

ROWS, WIDTH = 4000, 16
rng = np.random.default_rng(0)
TABLE = rng.normal(size=(ROWS, WIDTH)).astype("float32")
IDS = np.array([[3, 17, 3999], [-1, 2000, 3]])


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with local_cluster({"ps": 2, "worker": 1}) as found:
        yield found


def rule(cluster: LocalCluster) -> Any:
    return replica_device_setter(
        cluster=cluster.spec,
        worker_device="/job:worker/task:0",
        ps_strategy=GreedyLoadBalancing(2),
    )


def sent(cluster: LocalCluster) -> int:
    """How many bytes of tensors tasks have given to each other."""
    return sum(cluster.worker(name).tensors.sent_bytes for name in cluster.servers)


def steps(cluster: LocalCluster, optimizer: Any, num_parts: int) -> tuple[Any, float]:
    """A table after three steps, and the bytes that the last one sent."""
    with eng.Graph().as_default(), eng.device(rule(cluster)), eng.container("steps"):
        step = eng.get_or_create_global_step()
        whole = eng.get_variable(
            "table", initializer=TABLE, partitioner=eng.fixed_size_partitioner(num_parts)
        )
        ids = eng.placeholder("int64", [None, 3], name="ids")
        loss = ops.sum(ops.square(eng.embedding_lookup(whole, ids) - 1.0))
        train = optimizer().minimize(loss, global_step=step)
        devices = {part.op.device for part in whole}
        init = eng.global_variables_initializer()
        with eng.Session(cluster.target()) as session:
            session.run(init)
            for _ in range(3):
                before = sent(cluster)
                session.run(train, {ids: IDS})
            count = sent(cluster) - before
            found = session.run(whole.value)
            assert session.run(step.value) == 3
        eng.Session.reset(cluster.target(), ["steps"])
    assert len(devices) == num_parts
    return found, count


def expected_sgd() -> Any:
    table = TABLE.astype("float64")
    flat = IDS.reshape(-1) % ROWS
    for _ in range(3):
        gradient = np.zeros_like(table)
        np.add.at(gradient, flat, 2 * (table[flat] - 1))
        table -= 0.1 * gradient
    return table


@pytest.mark.parametrize("num_parts", [1, 2])
def test_gradients_of_embeddings_travel_sparse(cluster: LocalCluster, num_parts: int) -> None:
    """Six rows there and five back, of 4,000, and their numbers; each part keeps its own."""
    found, count = steps(cluster, lambda: optimizers.SGD(0.1, name="sgd"), num_parts)
    np.testing.assert_allclose(found, expected_sgd(), rtol=1e-5, atol=1e-6)
    row = WIDTH * 4
    assert 11 * row <= count <= 11 * row + 500


def test_slots_stay_on_the_servers(cluster: LocalCluster) -> None:
    """Adam keeps two numbers for each of a row; a lazy step reads and writes these rows alone."""
    found, count = steps(
        cluster, lambda: optimizers.Adam(0.1, lazy=True, name="adam", epsilon=1e-7), 2
    )
    assert count < 11 * WIDTH * 4 + 600
    flat = np.unique(IDS.reshape(-1) % ROWS)
    moved = np.flatnonzero(np.any(found != TABLE, axis=1))
    np.testing.assert_array_equal(moved, flat)


def test_updates_stand_with_their_variable(cluster: LocalCluster) -> None:
    """A dense step sends the weights once and the gradient once, whatever slots there are."""
    with eng.Graph().as_default(), eng.device(rule(cluster)), eng.container("dense"):
        w = eng.Variable(np.ones((64, 64), "float32"), name="w")
        optimizer = optimizers.Adam(0.1, name="adam")
        train = optimizer.minimize(ops.sum(ops.square(w.value - 3.0)))
        slots = [v for v in optimizer.variables if v.shape == w.shape]
        with eng.Session(cluster.target()) as session:
            session.run(eng.global_variables_initializer())
            before = sent(cluster)
            session.run(train)
            assert sent(cluster) - before < 2 * 64 * 64 * 4 + 200
            # m = (1 - 0.9) g, and w falls by the learning rate in Adam's first step
            np.testing.assert_allclose(session.run(slots[0].value), -0.4, rtol=1e-5)
            np.testing.assert_allclose(session.run(w.value), 1.1, rtol=1e-5)
        eng.Session.reset(cluster.target(), ["dense"])
    assert {v.op.device for v in slots} == {w.op.device}


def test_what_is_asked_of_a_divided_table() -> None:
    with eng.Graph().as_default():
        wide = eng.get_variable("wide", (4, 6), partitioner=eng.fixed_size_partitioner(2, axis=1))
        with pytest.raises(eng.errors.InvalidArgumentError, match="divided along axis 1"):
            eng.embedding_lookup(wide, [0])
        with pytest.raises(eng.errors.DTypeError, match="whole numbers"):
            eng.embedding_lookup(wide, [0.5])
        tall = eng.get_variable(
            "tall", initializer=TABLE[:5], partitioner=eng.fixed_size_partitioner(2)
        )
        ids = eng.placeholder("int32", [None])
        rows = eng.embedding_lookup(tall, ids)
        with eng.Session() as session:
            session.run(eng.global_variables_initializer())
            np.testing.assert_array_equal(
                session.run(rows, {ids: [4, 0, -5, 3]}), TABLE[[4, 0, 0, 3]]
            )
            assert session.run(rows, {ids: np.zeros(0, "int32")}).shape == (0, WIDTH)
            for wrong in (5, -6):
                with pytest.raises(eng.errors.InvalidArgumentError, match="Gather"):
                    session.run(rows, {ids: [0, wrong]})


@pytest.mark.parametrize(
    ("partitioner", "parts"),
    [
        (eng.fixed_size_partitioner(3), [3, 1]),
        (eng.fixed_size_partitioner(100), [10, 1]),
        (eng.variable_axis_size_partitioner(8 * 4 * 4), [3, 1]),  # 4 rows of 8 float32
        (eng.variable_axis_size_partitioner(8 * 4 * 4, max_shards=2), [2, 1]),
        (eng.min_max_variable_partitioner(4, min_slice_size=160), [2, 1]),
        (eng.min_max_variable_partitioner(4, min_slice_size=64, axis=1), [1, 4]),
    ],
)
def test_partitioners(partitioner: Any, parts: list[int]) -> None:
    """Of a variable of 10 x 8 float32."""
    assert partitioner(shape=eng.TensorShape((10, 8)), dtype="float32") == parts
    with pytest.raises(eng.errors.InvalidArgumentError, match="must be positive"):
        eng.variable_axis_size_partitioner(0)
