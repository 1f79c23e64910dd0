"""Write tensorflow_graphs.json: graphs and checkpoints of TensorFlow 1, and what training gives.

Run it from the repository's root where TensorFlow is installed:

    python -m tests.engine.saving.make_tensorflow_graphs
"""

from __future__ import annotations

import base64
import json
import lzma
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow

FILE = Path(__file__).with_name("tensorflow_graphs.json")
tf: Any = tensorflow
v1: Any = tf.compat.v1
rng = np.random.default_rng(0)
ROWS = rng.normal(size=(16, 4)).astype("float32")
IMAGES = rng.normal(size=(4, 8, 8, 2)).astype("float32")
WORDS = rng.integers(0, 10, (8, 4)).astype("int32")
LABELS = rng.integers(0, 3, 16).astype("int32")

Model = Callable[[], Any]


def step() -> Any:
    return v1.train.get_or_create_global_step()


def layers(optimizer: Any, dense: bool = False) -> Any:
    x = v1.placeholder(tf.float32, [None, 4], "x")
    y = v1.placeholder(tf.int32, [None], "y")
    with v1.variable_scope("layer"):
        w = v1.get_variable("w", [4, 5], initializer=v1.truncated_normal_initializer(stddev=0.5))
        b = v1.get_variable("b", [5], initializer=v1.zeros_initializer())
    hidden = tf.nn.relu(tf.matmul(x, w) + b)
    w2 = v1.get_variable("w2", [5, 3])
    logits = tf.nn.bias_add(tf.matmul(hidden, w2), tf.constant([0.0, 0.1, 0.0]), name="logits")
    if dense:
        losses = tf.nn.softmax_cross_entropy_with_logits(labels=tf.one_hot(y, 3), logits=logits)
    else:
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits)
    loss = tf.reduce_mean(losses) + 1e-3 * tf.nn.l2_loss(w)
    v1.summary.scalar("loss", loss)
    v1.summary.histogram("weights", w)
    v1.summary.merge_all()
    return loss, optimizer.minimize(loss, global_step=step())


def images() -> Any:
    x = v1.placeholder(tf.float32, [None, 8, 8, 2], "x")
    y = v1.placeholder(tf.int32, [None], "y")
    h = tf.nn.elu(
        tf.nn.conv2d(x, v1.get_variable("k", [3, 3, 2, 4]), strides=[1, 1, 1, 1], padding="SAME")
    )
    scale = v1.get_variable("scale", [4], initializer=v1.ones_initializer())
    offset = v1.get_variable("offset", [4], initializer=v1.zeros_initializer())
    h, mean, _ = v1.nn.fused_batch_norm(h, scale, offset)
    average = v1.get_variable("mean", [4], initializer=v1.zeros_initializer(), trainable=False)
    v1.add_to_collection(v1.GraphKeys.UPDATE_OPS, v1.assign_sub(average, 0.1 * (average - mean)))
    h = tf.nn.max_pool2d(h, 2, 2, "SAME")
    h = tf.nn.depthwise_conv2d(h, v1.get_variable("d", [3, 3, 4, 1]), [1, 1, 1, 1], "SAME")
    h = tf.nn.leaky_relu(
        tf.nn.conv2d(h, v1.get_variable("k2", [2, 2, 4, 4]), strides=[1, 2, 2, 1], padding="VALID")
    )
    h = tf.nn.avg_pool2d(h, 2, 1, "SAME")
    h = tf.reshape(h, [-1, int(np.prod(h.shape[1:]))])
    h = tf.tanh(h) * tf.sigmoid(h) + tf.nn.softplus(h)
    mean, variance = tf.nn.moments(h, [0])
    h = (h - mean) * tf.math.rsqrt(variance + 1e-3)
    logits = tf.matmul(tf.concat([h, h], 1)[:, : h.shape[1]], v1.get_variable("w", [16, 3]))
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
    optimizer = v1.train.AdamOptimizer(v1.train.exponential_decay(0.01, step(), 10, 0.9))
    gradients, variables = zip(*optimizer.compute_gradients(loss), strict=True)
    gradients, _ = tf.clip_by_global_norm(gradients, 1.0)
    with tf.control_dependencies(v1.get_collection(v1.GraphKeys.UPDATE_OPS)):
        pairs = list(zip(gradients, variables, strict=True))
        return loss, optimizer.apply_gradients(pairs, global_step=step())


def words() -> Any:
    x = v1.placeholder(tf.int32, [None, 4], "x")
    y = v1.placeholder(tf.int32, [None], "y")
    h = tf.nn.embedding_lookup(v1.get_variable("e", [10, 5]), x)
    a, b = tf.split(h, [2, 3], 2)
    h = tf.concat([b, a], 2)
    sums = tf.reduce_sum(tf.transpose(h, [0, 2, 1]), 2)
    means = tf.reduce_mean(tf.stack(tf.unstack(h, axis=1)), 0)
    h = tf.reduce_max(h, 1) + 0.1 * sums + means
    h = tf.pad(tf.where(h > 0, h, tf.exp(h) - 1.0), [[0, 0], [0, 1]])
    w = v1.get_variable("w", [6, 3])
    loss = (
        tf.reduce_mean(
            tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=tf.matmul(h, w))
        )
        + tf.reduce_mean(tf.square(tf.maximum(h, 0.1)))
        + tf.reduce_sum(tf.math.log(tf.abs(w) + 1.0) / 2.0)
    )
    return loss, v1.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=step())


def branches() -> Any:
    v1.disable_control_flow_v2()
    x = v1.placeholder(tf.float32, [None, 4], "x")
    y = v1.placeholder(tf.int32, [None], "y")
    divided = v1.fixed_size_partitioner(2)
    with v1.device("/device:CPU:0"):
        w = v1.get_variable("w", [4, 3], partitioner=divided)
    logits = tf.matmul(x, tf.convert_to_tensor(w))
    logits = v1.cond(tf.equal(step() % 2, 0), lambda: logits * 2.0, lambda: logits + 1.0)
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
    return loss, v1.train.MomentumOptimizer(0.1, 0.9).minimize(loss, global_step=step())


def loops() -> Any:
    """Loops of frames, one in the other, with a condition inside, stacks and tensor arrays."""
    v1.disable_control_flow_v2()
    x = v1.placeholder(tf.float32, [None, 4], "x")
    y = v1.placeholder(tf.int32, [None], "y")
    w = v1.get_variable("w", [4, 4])
    w2 = v1.get_variable("w2", [4, 3])

    def inner(j: Any, h: Any) -> Any:
        halved = v1.cond(tf.equal(j % 2, 0), lambda: h * 0.5, lambda: tf.tanh(h))
        return j + 1, halved + 0.1 * tf.matmul(h, w)

    def outer(i: Any, h: Any, kept: Any) -> Any:
        _, h = v1.while_loop(lambda j, _: j < i + 1, inner, (0, h))
        return i + 1, h, kept.write(i, tf.reduce_mean(h, 0))

    kept = v1.TensorArray(tf.float32, 3)
    _, h, kept = v1.while_loop(lambda i, *_: i < 3, outer, (0, x, kept), swap_memory=True)
    grown = v1.while_loop(
        lambda g: tf.shape(g)[0] < 5,
        lambda g: tf.concat([g, g[:1] * w[0, 0]], 0),
        (tf.constant([[1.0, 2.0]]),),
        shape_invariants=(tf.TensorShape([None, 2]),),
    )
    logits = tf.matmul(h + tf.reduce_sum(kept.stack(), 0), w2)
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
    loss += 0.01 * tf.reduce_sum(tf.square(grown))
    return loss, v1.train.AdamOptimizer(0.01).minimize(loss, global_step=step())


def cells() -> Any:
    """A recurrent layer of sequences, as dynamic_rnn writes it."""
    v1.disable_control_flow_v2()
    x = v1.placeholder(tf.float32, [None, 4], "x")
    y = v1.placeholder(tf.int32, [None], "y")
    words = tf.reshape(x, [-1, 2, 2])
    kernel = v1.get_variable("kernel", [7, 5])
    bias = v1.get_variable("bias", [5], initializer=v1.zeros_initializer())
    lengths = 1 + y % 2
    steps = tf.shape(words)[1]
    batch = tf.shape(words)[0]
    read = v1.TensorArray(tf.float32, steps).unstack(tf.transpose(words, [1, 0, 2]))
    written = v1.TensorArray(tf.float32, steps, element_shape=[None, 5])

    def body(t: Any, h: Any, written: Any) -> Any:
        new = tf.tanh(tf.nn.bias_add(tf.matmul(tf.concat([read.read(t), h], 1), kernel), bias))
        new = tf.where((t < lengths)[:, None], new, h)
        return t + 1, new, written.write(t, new)

    state = tf.zeros([batch, 5])
    state.set_shape([None, 5])
    _, last, written = v1.while_loop(lambda t, *_: t < steps, body, (0, state, written))
    h = tf.reduce_mean(tf.transpose(written.stack(), [1, 0, 2]), 1) + last
    logits = tf.matmul(h, v1.get_variable("w", [5, 3]))
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
    return loss, v1.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=step())


def functions() -> Any:
    """Functions that call functions, with gradients, and conditions and loops of functions."""
    x = v1.placeholder(tf.float32, [None, 4], "x")
    y = v1.placeholder(tf.int32, [None], "y")
    w = v1.get_variable("w", [4, 3])
    count = v1.get_variable("count", initializer=0.0, trainable=False)

    def activate(h: Any) -> Any:
        return tf.tanh(h) + 0.1 * h, tf.reduce_max(h)

    def dense(h: Any) -> Any:
        h, most = tf.function(activate)(tf.matmul(h, w))
        count.assign_add(1.0)
        return h + 0.0 * most

    def scaled(h: Any, number: Any) -> Any:
        def doubled() -> Any:
            count.assign_add(10.0)
            return h * 2.0

        h = tf.cond(tf.equal(number % 2, 0), doubled, lambda: h + 1.0)
        _, h = tf.while_loop(
            lambda i, _: i < tf.cast(number, tf.int32), lambda i, h: (i + 1, h * 0.9), (0, h)
        )
        return tf.switch_case(
            tf.cast(number, tf.int32) % 4, [lambda: h, lambda: h - 1.0, lambda: 0.5 * h]
        )

    logits = tf.function(dense)(x)
    after = tf.function(scaled)(logits, step())
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
    with tf.control_dependencies([after]):
        train_op = v1.train.MomentumOptimizer(0.1, 0.9).minimize(loss, global_step=step())
    return loss + 0.1 * tf.reduce_mean(after) + 0.0 * count, train_op


def trained_functions() -> Any:
    """A loop and a condition of functions, with their gradients."""
    x = v1.placeholder(tf.float32, [None, 4], "x")
    y = v1.placeholder(tf.int32, [None], "y")
    w = v1.get_variable("w", [4, 4])
    w2 = v1.get_variable("w2", [4, 3])

    def layers_of(h: Any, count: Any) -> Any:
        def body(i: Any, h: Any) -> Any:
            h = tf.cond(tf.equal(i % 2, 0), lambda: h * 0.5, lambda: tf.tanh(h) + h)
            return i + 1, h + 0.1 * tf.matmul(h, w)

        return tf.while_loop(lambda i, _: i < count, body, (0, h))[1]

    logits = tf.matmul(tf.function(layers_of)(x, 3), w2)
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
    return loss, v1.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=step())


def listed() -> Any:
    """A recurrent layer whose loop is a function: what it reads, gives and keeps are lists."""
    x = v1.placeholder(tf.float32, [None, 4], "x")
    y = v1.placeholder(tf.int32, [None], "y")
    kernel = v1.get_variable("kernel", [6, 4])

    def cells_of(words: Any) -> Any:
        read = tf.TensorArray(tf.float32, 2).unstack(tf.transpose(words, [1, 0, 2]))
        written = tf.TensorArray(tf.float32, 0, dynamic_size=True)
        h = tf.zeros([tf.shape(words)[0], 4])
        h.set_shape([None, 4])
        for t in tf.range(2):
            h = tf.tanh(tf.matmul(tf.concat([read.read(t), h], 1), kernel))
            written = written.write(t, h)
        return written.stack()

    h = tf.function(cells_of)(tf.reshape(x, [-1, 2, 2]))
    logits = tf.matmul(tf.reduce_mean(h, 0), v1.get_variable("w", [4, 3]))
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
    return loss, v1.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=step())


def blocks() -> Any:
    """Attention, dilated windows and pixels as channels; dropout, of which nothing is left."""
    x = v1.placeholder(tf.float32, [None, 8, 8, 2], "x")
    y = v1.placeholder(tf.int32, [None], "y")
    wide = tf.space_to_batch(x, [2, 2], [[1, 1], [0, 2]])
    wide = tf.nn.conv2d(wide, v1.get_variable("k", [2, 2, 2, 4]), 1, "SAME")
    wide = tf.batch_to_space(wide, [2, 2], [[1, 1], [0, 2]])
    rows = tf.reshape(tf.nn.space_to_depth(wide, 4), [-1, 16, 16])
    q = tf.einsum("btd,de->bte", rows, v1.get_variable("q", [16, 16]))
    weights = tf.nn.softmax(tf.matmul(q, rows, transpose_b=True) / 4.0)
    rows = tf.matmul(tf.linalg.band_part(weights, -1, 0), tf.roll(rows, 1, 1))
    most, _ = tf.math.top_k(tf.reduce_mean(rows, 1), 4)
    square = tf.matmul(most, most, transpose_a=True) + 4.0 * tf.eye(4)
    known = tf.matmul(most, tf.linalg.inv(square)) + tf.linalg.diag_part(square)
    sums = tf.math.unsorted_segment_sum(tf.transpose(known), [0, 1, 1, 0], 3)
    logits = tf.matmul(tf.concat([known, tf.transpose(sums)], 1), v1.get_variable("w", [7, 3]))
    logits += 0.0 * tf.nn.dropout(logits, rate=0.5) * tf.random.stateless_uniform([3], [1, 2])
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
    return loss, v1.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=step())


def texts() -> Any:
    """Numbers written, joined, cut, hashed and looked up."""
    x = v1.placeholder(tf.int32, [None, 4], "x")
    y = v1.placeholder(tf.int32, [None], "y")
    words = tf.strings.join(["Word ", tf.strings.as_string(x), " "], "_")
    words = tf.strings.strip(tf.strings.lower(words))
    words = tf.strings.regex_replace(words, "[0-3]", "few")
    first = tf.strings.to_number(tf.strings.substr(tf.strings.as_string(x + 5), 0, 1))
    ids = tf.strings.to_hash_bucket_fast(tf.strings.reduce_join(words, 1, separator="-"), 10)
    sizes = tf.cast(tf.strings.length(words), tf.float32)
    rows = tf.nn.embedding_lookup(v1.get_variable("e", [10, 4]), ids)
    logits = tf.matmul(rows + 0.1 * first + 0.01 * sizes, v1.get_variable("w", [4, 3]))
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
    return loss, v1.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=step())


train = v1.train
DATA = {"rows": ROWS, "images": IMAGES, "words": WORDS}
# By name: which data, resource variables or references, the model, arguments of Saver.
MODELS: dict[str, tuple[str, bool, Model, dict[str, Any]]] = {
    "descent": ("rows", False, lambda: layers(train.GradientDescentOptimizer(0.1)), {}),
    "nesterov": (
        "rows",
        False,
        lambda: layers(train.MomentumOptimizer(0.1, 0.9, use_nesterov=True), True),
        {},
    ),
    "adagrad": ("rows", True, lambda: layers(train.AdagradOptimizer(0.1)), {}),
    "rmsprop": ("rows", True, lambda: layers(train.RMSPropOptimizer(0.01, momentum=0.5)), {}),
    "centered": ("rows", False, lambda: layers(train.RMSPropOptimizer(0.01, centered=True)), {}),
    "adadelta": ("rows", True, lambda: layers(train.AdadeltaOptimizer(0.5)), {}),
    "ftrl": (
        "rows",
        False,
        lambda: layers(train.FtrlOptimizer(0.1, l1_regularization_strength=0.01)),
        {},
    ),
    "images": ("images", True, images, {}),
    "words": ("words", False, words, {}),
    "resource_words": ("words", True, words, {}),
    "branches": ("rows", False, branches, {"sharded": True}),
    "loops": ("rows", False, loops, {}),
    "resource_loops": ("rows", True, loops, {}),
    "cells": ("rows", True, cells, {}),
    "functions": ("rows", True, functions, {}),
    "trained_functions": ("rows", True, trained_functions, {}),
    "listed": ("rows", True, listed, {}),
    "blocks": ("images", True, blocks, {}),
    "texts": ("words", True, texts, {}),
}


def record(folder: Path, name: str) -> dict[str, Any]:
    data, resource, build, options = MODELS[name]
    x = DATA[data]
    (v1.enable_resource_variables if resource else v1.disable_resource_variables)()
    with tf.Graph().as_default(), v1.Session() as session:
        v1.set_random_seed(1)
        loss, train_op = build()
        v1.add_to_collection("loss", loss)
        v1.add_to_collection("train", train_op)
        feeds = {"x:0": x, "y:0": LABELS[: len(x)]}
        saver = v1.train.Saver(**options)
        session.run(v1.global_variables_initializer())
        for _ in range(2):
            session.run(train_op, feeds)
        saver.save(session, str(folder / name))
        if name == "descent":
            saver.export_meta_graph(str(folder / f"{name}.text"), as_text=True)
        losses = [float(session.run([loss, train_op], feeds)[0]) for _ in range(4)]
        variables = {v.name: session.run(v) for v in v1.global_variables()}
    return {
        "x": x.tolist(),
        "y": LABELS[: len(x)].tolist(),
        "losses": losses,
        "variables": {key: value.tolist() for key, value in variables.items()},
        "files": {
            path.name: base64.b85encode(lzma.compress(path.read_bytes())).decode()
            for path in sorted(folder.glob(f"{name}.*"))
        },
    }


def main() -> None:
    v1.disable_v2_behavior()
    with tempfile.TemporaryDirectory() as folder:
        found = {name: record(Path(folder), name) for name in MODELS}
    FILE.write_text(json.dumps({"tensorflow": tf.__version__, "graphs": found}) + "\n")


if __name__ == "__main__":
    main()
