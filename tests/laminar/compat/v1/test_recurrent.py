"""Recurrent cells and loops of TensorFlow 1 against NumPy and against each other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import laminar.compat.v1 as tf

cells = tf.nn.rnn_cell
X = np.random.default_rng(0).normal(size=(2, 4, 3)).astype("float32")
LENGTHS = [4, 2]


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def lstm(x: Any, w: dict[str, Any]) -> Any:
    c = h = np.zeros((2, 2))
    ys = []
    for t in range(4):
        i, j, f, o = np.split(np.c_[x[:, t], h] @ w["kernel"] + w["bias"], 4, 1)
        if "w_f_diag" in w:
            f, i = f + w["w_f_diag"] * c, i + w["w_i_diag"] * c
        c = sigmoid(f + 1) * c + sigmoid(i) * np.tanh(j)
        if "w_f_diag" in w:
            o = o + w["w_o_diag"] * c
        h = sigmoid(o) * np.tanh(c)
        ys.append(h)
    return np.stack(ys, 1)


def gru(x: Any, w: dict[str, Any]) -> Any:
    h = np.zeros((2, 2))
    ys = []
    for t in range(4):
        r, u = np.split(sigmoid(np.c_[x[:, t], h] @ w["gates/kernel"] + w["gates/bias"]), 2, axis=1)
        c = np.tanh(np.c_[x[:, t], r * h] @ w["candidate/kernel"] + w["candidate/bias"])
        h = u * h + (1 - u) * c
        ys.append(h)
    return np.stack(ys, 1)


def simple(x: Any, w: dict[str, Any]) -> Any:
    h = np.zeros((2, 2))
    ys = []
    for t in range(4):
        h = np.tanh(np.c_[x[:, t], h] @ w["kernel"] + w["bias"])
        ys.append(h)
    return np.stack(ys, 1)


CELLS: list[Any] = [
    pytest.param(lambda: cells.BasicRNNCell(2), simple, id="rnn"),
    pytest.param(lambda: cells.GRUCell(2), gru, id="gru"),
    pytest.param(lambda: cells.BasicLSTMCell(2), lstm, id="basic-lstm"),
    pytest.param(lambda: cells.LSTMCell(2, use_peepholes=True), lstm, id="peepholes"),
    pytest.param(lambda: cells.LSTMCell(2, state_is_tuple=False), lstm, id="one-matrix"),
]


@pytest.mark.parametrize(("make", "reference"), CELLS)
def test_cells(make: Any, reference: Any) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        tf.set_random_seed(1)
        cell = make()
        outputs, _ = tf.nn.dynamic_rnn(cell, tf.constant(X), dtype=tf.float32)
        session.run(tf.global_variables_initializer())
        found, weights = session.run([outputs, cell.weights])
        scope = f"rnn/{cell.name}/"
        names = [v.op.name.removeprefix(scope) for v in cell.weights]
    np.testing.assert_allclose(
        found, reference(X, dict(zip(names, weights, strict=True))), rtol=1e-4, atol=1e-6
    )


def test_dynamic_and_static_are_alike() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        cell = cells.MultiRNNCell([cells.LSTMCell(3, num_proj=2), cells.GRUCell(2)])
        x = tf.placeholder("float32", [None, 4, 3])
        a, a_state = tf.nn.dynamic_rnn(cell, x, LENGTHS, dtype=tf.float32)
        assert a.shape.as_list() == [2, 4, 2]
        with tf.variable_scope("", reuse=True):
            b, b_state = tf.nn.static_rnn(
                cell, tf.unstack(x, axis=1), dtype=tf.float32, sequence_length=LENGTHS
            )
        assert [v.op.name for v in tf.trainable_variables()] == [
            "rnn/multi_rnn_cell/cell_0/lstm_cell/kernel",
            "rnn/multi_rnn_cell/cell_0/lstm_cell/bias",
            "rnn/multi_rnn_cell/cell_0/lstm_cell/projection/kernel",
            "rnn/multi_rnn_cell/cell_1/gru_cell/gates/kernel",
            "rnn/multi_rnn_cell/cell_1/gru_cell/gates/bias",
            "rnn/multi_rnn_cell/cell_1/gru_cell/candidate/kernel",
            "rnn/multi_rnn_cell/cell_1/gru_cell/candidate/bias",
        ]
        grads = [tf.gradients(tf.reduce_sum(y), cell.weights[0])[0] for y in (a, tf.stack(b, 1))]
        session.run(tf.global_variables_initializer())
        fetched = session.run([a, tf.stack(b, 1), a_state, b_state, *grads], {x: X})
    dynamic, static, first, second, da, db = fetched
    np.testing.assert_allclose(dynamic, static, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(da, db, rtol=1e-4, atol=1e-5)
    assert not dynamic[1, 2:].any()
    np.testing.assert_allclose(first[0].c, second[0].c, rtol=1e-5)
    np.testing.assert_allclose(first[1], [dynamic[0, 3], dynamic[1, 1]], rtol=1e-5)


def test_both_directions() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        fw, bw = cells.GRUCell(2, name="a"), cells.GRUCell(2, name="b")
        (ahead, behind), states = tf.nn.bidirectional_dynamic_rnn(
            fw, bw, tf.constant(X), LENGTHS, dtype=tf.float32
        )
        turned = np.stack([X[0, ::-1], np.concatenate([X[1, 1::-1], X[1, 2:]])])
        with tf.variable_scope("bidirectional_rnn", reuse=True):
            expected, last = tf.nn.dynamic_rnn(
                bw, tf.constant(turned), LENGTHS, dtype=tf.float32, scope="bw"
            )
        session.run(tf.global_variables_initializer())
        found, wanted, state, end = session.run([behind, expected, states[1], last])
        lists, _, _ = tf.nn.static_bidirectional_rnn(
            cells.GRUCell(2), cells.GRUCell(2), [tf.constant(X[:, 0])], dtype=tf.float32, scope="s"
        )
        assert lists[0].shape.as_list() == [2, 4]
    np.testing.assert_allclose(found[0], wanted[0, ::-1], rtol=1e-5)
    np.testing.assert_allclose(found[1, :2], wanted[1, 1::-1], rtol=1e-5)
    np.testing.assert_allclose(state, end, rtol=1e-5)


def test_raw_rnn_is_what_its_function_makes_of_it() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        cell = cells.BasicRNNCell(2)
        steps = tf.TensorArray("float32", 4, clear_after_read=False).unstack(
            tf.constant(X.transpose(1, 0, 2))
        )

        def loop(time: Any, output: Any, state: Any, count: Any) -> Any:
            new = cell.zero_state(2, tf.float32) if output is None else state
            ended = time >= tf.constant(LENGTHS)
            x = steps.read(tf.minimum(time, 3))
            return ended, x, new, output, 0 if count is None else count + 1

        emitted, state, count = tf.nn.raw_rnn(cell, loop)
        with tf.variable_scope("", reuse=True):
            expected, last = tf.nn.dynamic_rnn(cell, tf.constant(X), LENGTHS, dtype=tf.float32)
        session.run(tf.global_variables_initializer())
        found, wanted, a, b, n = session.run([emitted.stack(), expected, state, last, count])
    np.testing.assert_allclose(found.transpose(1, 0, 2), wanted, rtol=1e-5)
    np.testing.assert_allclose(a, b, rtol=1e-5)
    assert n == 4


def test_a_cell_of_ones_own() -> None:
    class Sum(cells.RNNCell):  # type: ignore[misc,name-defined]  # a class of a table
        state_size = output_size = 3

        def call(self, inputs: Any, state: Any) -> Any:
            total = state + inputs * tf.get_variable("scale", initializer=2.0)
            return total, total

    with tf.Graph().as_default(), tf.Session() as session:
        outputs, state = tf.nn.dynamic_rnn(
            cells.ResidualWrapper(Sum()), tf.constant(X), initial_state=tf.ones([2, 3])
        )
        assert [v.name for v in tf.trainable_variables()] == ["rnn/sum/scale:0"]
        session.run(tf.global_variables_initializer())
        found, last = session.run([outputs, state])
    totals = 1 + 2 * X.cumsum(1)
    np.testing.assert_allclose(found, totals + X, rtol=1e-5)
    np.testing.assert_allclose(last, totals[:, -1], rtol=1e-5)


def test_dropout_of_one_draw_for_all_steps() -> None:
    class Keep(cells.RNNCell):  # type: ignore[misc,name-defined]  # likewise
        state_size = output_size = 3

        def call(self, inputs: Any, state: Any) -> Any:
            return inputs, state

    ones = np.ones((2, 4, 3), "float32")
    with tf.Graph().as_default(), tf.Session() as session:
        tf.set_random_seed(3)
        made = []
        for same in (True, False):
            wrapped = cells.DropoutWrapper(
                Keep(), input_keep_prob=0.5, variational_recurrent=same, input_size=3,
                dtype=tf.float32,
            )  # fmt: skip
            made.append(tf.nn.dynamic_rnn(wrapped, ones, dtype=tf.float32, scope=f"s{same}")[0])
        session.run(tf.global_variables_initializer())
        runs = [session.run(made) for _ in range(8)]
    for same, other in runs:
        assert set(np.unique(same)) <= {0.0, 2.0}
        assert (same == same[:1, :1]).all()
        assert set(np.unique(other)) <= {0.0, 2.0}
    assert any((a != b).any() for (a, _), (b, _) in zip(runs, runs[1:], strict=False))
    assert any((other != other[:, :1]).any() for _, other in runs)


WRONG: list[Any] = [
    pytest.param(lambda: tf.nn.dynamic_rnn(cells.GRUCell(2), X), "give initial_state", id="dtype"),
    pytest.param(lambda: tf.nn.static_rnn(cells.GRUCell(2), X, dtype="float32"), "a list of"),
    pytest.param(lambda: cells.GRUCell(0), "at least 1", id="units"),
    pytest.param(lambda: cells.MultiRNNCell([cells.GRUCell(2)] * 2), "stands twice", id="twice"),
    pytest.param(lambda: cells.DropoutWrapper(cells.GRUCell(2), 0.0), "above 0", id="keep"),
    pytest.param(
        lambda: cells.DropoutWrapper(cells.GRUCell(2), 0.5, variational_recurrent=True), "needs"
    ),
    pytest.param(
        lambda: cells.GRUCell(2)(tf.placeholder("float32", [2, None]), tf.zeros([2, 2])),
        "it is unknown",
        id="depth",
    ),
]


@pytest.mark.parametrize(("make", "message"), WRONG)
def test_wrong_arguments(make: Any, message: str) -> None:
    with tf.Graph().as_default(), pytest.raises(ValueError, match=message):
        make()
