from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import laminar.compat.v1 as tf


@pytest.fixture(autouse=True)
def _own_graph() -> Any:
    with tf.Graph().as_default():
        yield


def test_gradients_of_recomputed_and_passed_through() -> None:
    x = tf.constant([0.3, 1.6])
    again = tf.recompute_grad(lambda x: tf.square(tf.sin(x)))(x)
    rounded = tf.grad_pass_through(tf.round)(x)
    found = [again, *tf.gradients(again, x), rounded, *tf.gradients(3.0 * rounded, x)]
    with tf.Session() as session:
        y, dy, whole, slope = session.run(found)
    at = np.array([0.3, 1.6])
    np.testing.assert_allclose(y, np.sin(at) ** 2, rtol=1e-6)
    np.testing.assert_allclose(dy, np.sin(2 * at), rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(whole, [0.0, 2.0])
    np.testing.assert_allclose(slope, [3.0, 3.0])


def test_print(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    x = tf.range(10)
    stream = io.StringIO()
    shown = [
        tf.print("x:", x, sep="|", output_stream=sys.stdout),
        tf.print(x, summarize=-1),
        tf.print(tf.constant("text"), 1.5, end="!", output_stream=stream),
        tf.print(tf.constant(["a", "b"]), output_stream=f"file://{tmp_path / 'out.txt'}"),
    ]
    with tf.Session() as session:
        assert capsys.readouterr() == ("", "")
        session.run(shown)
    assert capsys.readouterr() == ("x:|[0 1 2 ... 7 8 9]\n", "[0 1 2 3 4 5 6 7 8 9]\n")
    assert stream.getvalue() == "text 1.5!"
    assert (tmp_path / "out.txt").read_text() == "['a' 'b']\n"


def test_count_of_steps() -> None:
    step = tf.train.get_or_create_global_step()
    more = tf.train.increment_global_step(3)
    with tf.Session() as session:
        session.run(step.initializer)
        assert session.run(more) == 3
