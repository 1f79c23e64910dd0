"""`tf.flags` and `tf.app.run`, as scripts of clusters have them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import laminar.compat.v1 as tf
from laminar.compat.v1.flag_values import FlagValues, _boolean, _Flag
from laminar.engine.errors import AlreadyExistsError, InvalidArgumentError, NotFoundError

SCRIPT = """
import laminar.compat.v1 as tf

tf.app.flags.DEFINE_string("ps_hosts", "", "with commas between")
tf.app.flags.DEFINE_integer("task_index", 0, "of the job")
tf.flags.DEFINE_boolean("sync", True, "all together")
tf.flags.DEFINE_enum("job_name", "ps", ["ps", "worker"], "which")
tf.flags.DEFINE_list("names", ["a"], "of anything")
FLAGS = tf.app.flags.FLAGS


def main(argv):
    print(FLAGS.ps_hosts.split(","), FLAGS.task_index, FLAGS.sync, FLAGS.job_name, FLAGS.names)
    print(argv[1:])
    return 3


if __name__ == "__main__":
    tf.app.run()
"""


def test_a_script_with_flags(tmp_path: Path) -> None:
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    arguments = "--ps_hosts=a:1,b:2 --task_index 1 --nosync --job_name=worker --names=x,y rest"
    found = subprocess.run(
        [sys.executable, path, *arguments.split()], capture_output=True, text=True, check=False
    )
    assert found.returncode == 3, found.stderr
    assert found.stdout.splitlines() == ["['a:1', 'b:2'] 1 False worker ['x', 'y']", "['rest']"]


def test_wrong_flags() -> None:
    flags = FlagValues()
    flags.define("steps", _Flag(7, int, "how many"))
    flags.define("sync", _Flag(False, _boolean, "together"))
    assert flags(["program", "--sync=1", "--", "--steps=2"]) == ["program", "--steps=2"]
    assert (flags.steps, flags.sync) == (7, True)
    flags.steps = 8
    assert flags.flag_values_dict() == {"steps": 8, "sync": True}
    with pytest.raises(AlreadyExistsError, match="steps"):
        flags.define("steps", _Flag(7, int, ""))
    with pytest.raises(InvalidArgumentError, match="--steps: 'many'"):
        flags(["program", "--steps=many"])
    with pytest.raises(InvalidArgumentError, match="--steps needs a value"):
        flags(["program", "--steps"])
    with pytest.raises(InvalidArgumentError, match="true or false"):
        flags(["program", "--sync=perhaps"])
    with pytest.raises(NotFoundError, match="--nowhere"):
        flags(["program", "--nowhere=1"])
    with pytest.raises(AttributeError, match="nowhere"):
        _ = flags.nowhere
    with pytest.raises(AttributeError, match="define it first"):
        flags.nowhere = 1
    assert "nowhere" not in flags


def test_texts() -> None:
    assert tf.compat.as_bytes("a") == tf.compat.as_bytes(b"a") == b"a"
    assert tf.compat.as_str(b"a") == tf.compat.as_text("a") == tf.compat.as_str_any("a") == "a"
    assert tf.compat.as_str_any(1) == "1"
    with pytest.raises(TypeError, match="expected a text or bytes"):
        tf.compat.as_bytes(1)
