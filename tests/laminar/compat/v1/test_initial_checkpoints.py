"""Variables that begin with values of a checkpoint."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import laminar.compat.v1 as tf
from laminar.engine.errors import InvalidArgumentError, NotFoundError, ShapeError

A = np.arange(6.0, dtype="float32").reshape(3, 2)


@pytest.fixture
def checkpoint(tmp_path: Path) -> Iterator[str]:
    tf.reset_default_graph()
    tf.get_variable("bert/a", initializer=A)
    tf.get_variable("bert/b", initializer=np.float32(7))
    tf.get_variable("c", initializer=np.int64(5))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        path = tf.train.Saver().save(session, str(tmp_path / "model"))
    tf.reset_default_graph()
    yield path
    tf.reset_default_graph()


def values(variables: Any) -> Any:
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return session.run(variables)


def test_by_names_by_variables_and_by_scopes(checkpoint: str) -> None:
    a, b, c = (tf.get_variable(n, s) for n, s in (("x/a", [3, 2]), ("x/b", []), ("own", [])))
    other = tf.get_variable("other", initializer=2.0)
    tf.train.init_from_checkpoint(Path(checkpoint).parent, {"bert/": "x/", "c": c})
    found = values([a, b, c, other, a.initialized_value()])
    for value, expected in zip(found, (A, 7, 5, 2, A), strict=True):
        np.testing.assert_array_equal(value, expected)
    assert found[2].dtype == np.float32


def test_all_of_a_checkpoint(checkpoint: str) -> None:
    with tf.variable_scope("m"):
        a = tf.get_variable("bert/a", [3, 2])
    tf.train.init_from_checkpoint(checkpoint, {"/": "m/"})
    np.testing.assert_array_equal(values(a), A)
    b = tf.get_variable("last", [])
    tf.train.init_from_checkpoint(checkpoint, {"bert/b": "last"})
    assert values(b) == 7


def test_parts_of_a_variable(checkpoint: str) -> None:
    whole = tf.get_variable("w", [3, 2], partitioner=tf.fixed_size_partitioner(2))
    tf.train.init_from_checkpoint(checkpoint, {"bert/a": list(whole)})
    found = values(list(whole))
    np.testing.assert_array_equal(np.concatenate(found), A)
    assert len(found) == 2


def test_a_warm_start(checkpoint: str) -> None:
    a, b = tf.get_variable("bert/a", [3, 2]), tf.get_variable("new", [])
    tf.train.warm_start(checkpoint, ".*(a|new)", var_name_to_prev_var_name={"new": "bert/b"})
    found = values([a, b])
    np.testing.assert_array_equal(found[0], A)
    assert found[1] == 7
    with pytest.raises(InvalidArgumentError, match="vocabularies"):
        tf.train.warm_start(checkpoint, ".*", {"bert/a": 1})


def test_what_is_not_there(checkpoint: str) -> None:
    tf.get_variable("x/a", [2, 3])
    with pytest.raises(NotFoundError, match="has no 'bert/z'"):
        tf.train.init_from_checkpoint(checkpoint, {"bert/z": "x/a"})
    with pytest.raises(NotFoundError, match="no variable 'y'"):
        tf.train.init_from_checkpoint(checkpoint, {"bert/a": "y"})
    with pytest.raises(NotFoundError, match="no variables in 'y/'"):
        tf.train.init_from_checkpoint(checkpoint, {"bert/": "y/"})
    with pytest.raises(NotFoundError, match="no checkpoint at"):
        tf.train.init_from_checkpoint(checkpoint + "x", {"bert/a": "x/a"})
    with pytest.raises(ShapeError, match=r"'bert/a' is \[3, 2\]"):
        tf.train.init_from_checkpoint(checkpoint, {"bert/a": "x/a"})
    with pytest.raises(InvalidArgumentError, match="mapped to 'x'"):
        tf.train.init_from_checkpoint(checkpoint, {"bert/": "x"})
