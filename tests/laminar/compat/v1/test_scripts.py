"""Scripts of the book's kind, which build the default graph and run it in sessions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import laminar.compat.v1 as tf
from laminar.datasets import digits
from laminar.engine.graph import stack


@pytest.fixture(autouse=True)
def _fresh_graph() -> Iterator[None]:
    assert not stack.items
    tf.reset_default_graph()
    yield
    assert not stack.items  # no call leaves its graph behind
    tf.reset_default_graph()


def images() -> Any:
    (x, labels), (x_test, labels_test) = digits.load_data()
    one_hot = np.eye(10, dtype="float32")
    return (
        (x.reshape(-1, 8, 8, 1).astype("float32") / 16, one_hot[labels]),
        (x_test.reshape(-1, 8, 8, 1).astype("float32") / 16, one_hot[labels_test]),
    )


@pytest.mark.slow
def test_softmax_regression() -> None:
    (x_train, t_train), (x_test, t_test) = images()
    tf.set_random_seed(0)
    x = tf.placeholder(tf.float32, [None, 8, 8, 1])
    labels = tf.placeholder(tf.float32, [None, 10])
    w = tf.Variable(tf.zeros([64, 10]))
    b = tf.Variable(tf.zeros([10]))
    y = tf.nn.softmax(tf.matmul(tf.reshape(x, [-1, 64]), w) + b)
    cross_entropy = -tf.reduce_sum(labels * tf.log(y))
    is_correct = tf.equal(tf.argmax(y, 1), tf.argmax(labels, 1))
    accuracy = tf.reduce_mean(tf.cast(is_correct, tf.float32))
    train_step = tf.train.GradientDescentOptimizer(0.003).minimize(cross_entropy)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        rows = np.random.default_rng(0)
        for _ in range(400):
            batch = rows.integers(0, len(x_train), 100)
            sess.run(train_step, feed_dict={x: x_train[batch], labels: t_train[batch]})
        found, loss = sess.run([accuracy, cross_entropy], {x: x_test, labels: t_test})
        (shares,) = sess.run([y], {x: x_test})
        one = sess.run(accuracy, {x: x_test[:1], labels: t_test[:1]})
    assert found >= 0.9
    assert one in (0.0, 1.0)
    assert found == np.float32((shares.argmax(1) == t_test.argmax(1)).mean())
    np.testing.assert_allclose(loss, -(t_test * np.log(shares)).sum(), rtol=1e-4)


@pytest.mark.slow
def test_perceptron_with_decay_and_dropout() -> None:
    (x_train, t_train), (x_test, t_test) = images()
    tf.set_random_seed(0)
    x = tf.placeholder(tf.float32, [None, 8, 8, 1])
    labels = tf.placeholder(tf.float32, [None, 10])
    lr, pkeep = tf.placeholder(tf.float32), tf.placeholder(tf.float32)
    y = tf.reshape(x, [-1, 64])
    sizes = [64, 60, 30]
    for n, m in zip(sizes, sizes[1:], strict=False):
        w = tf.Variable(tf.truncated_normal([n, m], stddev=0.1))
        bias = tf.Variable(tf.ones([m]) / 10)
        y = tf.nn.dropout(tf.nn.relu(tf.matmul(y, w) + bias), pkeep)
    w = tf.Variable(tf.truncated_normal([30, 10], stddev=0.1))
    logits = tf.matmul(y, w) + tf.Variable(tf.ones([10]) / 10)
    loss = (
        tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(logits=logits, labels=labels)) * 100
    )
    accuracy = tf.reduce_mean(
        tf.cast(tf.equal(tf.argmax(logits, 1), tf.argmax(labels, 1)), tf.float32)
    )
    step = tf.train.AdamOptimizer(lr).minimize(loss)
    sess = tf.Session()
    sess.run(tf.global_variables_initializer())
    rows = np.random.default_rng(0)
    for i in range(400):
        batch = rows.integers(0, len(x_train), 100)
        rate = 0.0001 + 0.003 * np.exp(-i / 200)
        feed = {x: x_train[batch], labels: t_train[batch], lr: rate, pkeep: 0.75}
        sess.run(step, feed)
    assert sess.run(accuracy, {x: x_test, labels: t_test, pkeep: 1.0}) >= 0.9
    sess.close()


@pytest.mark.slow
def test_convolutions_fed_by_queues(tmp_path: Path) -> None:
    (x_train, t_train), _ = images()
    records = tmp_path / "digits.tfrecords"
    with tf.io.TFRecordWriter(str(records)) as writer:
        for x, t in zip(x_train[:300], t_train[:300], strict=True):
            feature = {
                "image": tf.train.Feature(float_list=tf.train.FloatList(value=x.ravel())),
                "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[int(t.argmax())])),
            }
            example = tf.train.Example(features=tf.train.Features(feature=feature))
            writer.write(example.SerializeToString())
    queue = tf.train.string_input_producer([str(records)], shuffle=False)
    _, serialized = tf.TFRecordReader().read(queue)
    parsed = tf.parse_single_example(
        serialized,
        features={
            "image": tf.FixedLenFeature([64], tf.float32),
            "label": tf.FixedLenFeature([], tf.int64),
        },
    )
    image = tf.reshape(parsed["image"], [8, 8, 1])
    batch, labels = tf.train.shuffle_batch(
        [image, parsed["label"]], batch_size=50, capacity=400, min_after_dequeue=100, seed=1
    )
    with tf.variable_scope("conv1"):
        w = tf.get_variable("w", [3, 3, 1, 4], initializer=tf.truncated_normal_initializer(0, 0.1))
        h = tf.nn.relu(tf.nn.conv2d(batch, w, strides=[1, 1, 1, 1], padding="SAME"))
    h = tf.nn.max_pool(h, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="SAME")
    logits = tf.layers.dense(tf.layers.flatten(h), 10, name="out")
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    global_step = tf.train.get_or_create_global_step()
    train = tf.train.MomentumOptimizer(0.1, 0.9).minimize(loss, global_step=global_step)
    saver = tf.train.Saver()
    with tf.Session() as sess:
        sess.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        coord = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(sess=sess, coord=coord)
        first = sess.run(loss)
        for _ in range(60):
            _, last = sess.run([train, loss])
        coord.request_stop()
        coord.join(threads)
        path = saver.save(sess, str(tmp_path / "model.ckpt"), global_step=global_step)
        kept = sess.run(w)
    assert h.shape.as_list() == [50, 4, 4, 4]
    assert last < 0.5 * first
    assert path.endswith("model.ckpt-60")
    with tf.Session() as sess:
        saver.restore(sess, tf.train.latest_checkpoint(str(tmp_path)))
        np.testing.assert_array_equal(sess.run(w), kept)
        assert sess.run(global_step) == 60


def test_the_rest_of_the_process_computes_at_once() -> None:
    import laminar

    x = tf.constant([1.0, 2.0])
    assert x.graph is tf.get_default_graph()
    assert laminar.ops.sum(laminar.ops.convert_to_tensor([1.0, 2.0])).numpy() == 3.0
    with tf.Graph().as_default() as graph:
        assert tf.zeros([2]).graph is graph
    tf.enable_eager_execution()
    try:
        assert tf.executing_eagerly()
        assert float(tf.reduce_sum(tf.constant([1.0, 2.0]))) == 3.0
        v = tf.Variable(1.0)
        assert float(tf.assign_add(v, 2.0)) == 3.0
    finally:
        tf.disable_eager_execution()
    assert not tf.executing_eagerly()


def test_control_flow_and_names() -> None:
    x = tf.placeholder(tf.int32, [], name="x")
    total = tf.while_loop(lambda i, s: i < x, lambda i, s: [i + 1, s + i], [0, 0])[1]
    chosen = tf.cond(x > 3, lambda: tf.constant("large"), lambda: tf.constant("small"))
    with tf.name_scope("named"):
        y = tf.add(x, 1, name="y")
    z = tf.case([(x < 0, lambda: tf.constant(-1)), (x > 9, lambda: tf.constant(1))], lambda: y)
    powers = tf.scan(lambda a, k: a * k, tf.constant([1, 2, 3, 4]))
    assert y.name == "named/y:0"
    with tf.Session() as sess:
        assert sess.run([total, chosen, "named/y:0", z], {x: 5}) == [10, b"large", 6, 6]
        np.testing.assert_array_equal(sess.run(powers), [1, 2, 6, 24])
        with pytest.raises(tf.errors.InvalidArgumentError):
            sess.run(total)


def test_shapes_may_change_where_asked() -> None:
    v = tf.Variable([1.0, 2.0], validate_shape=False)
    longer = tf.assign(v, [1.0, 2.0, 3.0], validate_shape=False)
    with tf.Session() as sess:
        sess.run(v.initializer)
        sess.run(longer)
        np.testing.assert_array_equal(sess.run(v), [1.0, 2.0, 3.0])


def test_metrics_and_update_ops() -> None:
    labels, found = tf.placeholder(tf.int64, [None]), tf.placeholder(tf.int64, [None])
    accuracy, update = tf.metrics.accuracy(labels, found)
    x = tf.placeholder(tf.float32, [None, 2])
    y = tf.layers.batch_normalization(x, momentum=0.5, training=True)
    (mean,) = [v for v in tf.global_variables() if v.name.endswith("moving_mean:0")]
    values = np.array([[1.0, 2.0], [3.0, 6.0]], "float32")
    with tf.Session() as sess:
        sess.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        sess.run(update, {labels: [1, 2, 3], found: [1, 2, 0]})
        sess.run(update, {labels: [1], found: [1]})
        assert sess.run(accuracy) == 0.75
        normalized, _ = sess.run([y, tf.get_collection(tf.GraphKeys.UPDATE_OPS)], {x: values})
        np.testing.assert_allclose(normalized, [[-1, -1], [1, 1]], atol=1e-3)
        np.testing.assert_allclose(sess.run(mean), [1.0, 2.0])


def test_a_step_that_is_watched(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with tf.device("/cpu:0"):
        x = tf.placeholder(tf.float32, shape=[None, 3], name="x")
    with tf.name_scope("layer"):
        w = tf.get_variable("w", [3, 2], regularizer=lambda v: 0.01 * tf.nn.l2_loss(v))
        y = tf.nn.relu(tf.add(tf.matmul(x, w), 0.1), name="y")
    penalty = tf.add_n(tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES))
    loss = tf.reduce_mean(tf.square(y - 1.0)) + penalty
    tf.summary.scalar("loss", loss)
    merged = tf.summary.merge_all()
    optimizer = tf.train.GradientDescentOptimizer(0.1)
    pairs = [(tf.clip_by_value(g, -1.0, 1.0), v) for g, v in optimizer.compute_gradients(loss)]
    train = optimizer.apply_gradients(pairs)
    saver = tf.train.Saver(max_to_keep=2, write_version=tf.train.SaverDef.V2)
    values = np.ones((4, 3), "float32")
    options = tf.GPUOptions(allow_growth=True)
    session = tf.InteractiveSession(config=tf.ConfigProto(gpu_options=options))
    tf.global_variables_initializer().run()
    assert y.eval(feed_dict={x: values}).shape == (4, 2)
    writer = tf.summary.FileWriter(str(tmp_path), session.graph)
    summary, before, _ = session.run([merged, loss, train], feed_dict={x: values})
    writer.add_summary(summary, 0)
    writer.close()
    assert session.run(loss, {"x:0": values}) < before
    kept = w.eval()
    path = saver.save(session, str(tmp_path / "m"))
    session.close()
    tf.reset_default_graph()
    saver = tf.train.import_meta_graph(path + ".meta")
    with tf.Session() as session:
        saver.restore(session, path)
        np.testing.assert_array_equal(session.run("w:0"), kept)
    tf.logging.info("nobody asked")
    assert not capfd.readouterr().err
