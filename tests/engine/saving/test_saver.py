"""Saver: variables saved and restored by operations of their graph."""

import contextlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from laminar import Sequential, engine, layers
from laminar.engine import errors
from laminar.engine.checkpoint import CheckpointReader, write_checkpoint
from laminar.engine.graph import eager_scope
from laminar.engine.saving import Saver, SaverDef


@pytest.fixture
def graph() -> Any:
    with engine.Graph().as_default() as graph:
        yield graph


def files(folder: Path) -> list[str]:
    return sorted(os.listdir(folder))


def two() -> tuple[engine.Variable, engine.Variable]:
    v = engine.Variable(np.array([1.0, 2.0], np.float32), name="v")
    with engine.name_scope("deep"):
        w = engine.Variable(np.array(3, np.int64), name="w", trainable=False)
    return v, w


def test_save_change_restore(graph: engine.Graph, tmp_path: Path) -> None:
    v, w = two()
    saver = Saver()
    with engine.Session() as session:
        session.run(engine.global_variables_initializer())
        assert saver.save(session, tmp_path / "m", global_step=7) == str(tmp_path / "m-7")
        session.run([v.assign([9.0, 9.0]), w.assign_add(1)])
        saver.restore(session, tmp_path / "m-7")
        np.testing.assert_array_equal(session.run(v), [1, 2])
        assert session.run(w) == 3
    assert files(tmp_path) == [
        "checkpoint",
        "m-7.data-00000-of-00001",
        "m-7.index",
        "m-7.meta",
    ]
    assert engine.list_variables(tmp_path) == [("deep/w", []), ("v", [2])]


def test_a_session_that_was_never_initialised(graph: engine.Graph, tmp_path: Path) -> None:
    v, w = two()
    saver = Saver()
    with engine.Session() as session:
        session.run(engine.global_variables_initializer())
        saver.save(session, tmp_path / "m")
    with engine.Session() as session:
        saver.restore(session, tmp_path / "m")
        assert not session.run(engine.report_uninitialized_variables()).size
        assert session.run(w) == 3


def test_the_operations(graph: engine.Graph) -> None:
    two()
    saver = Saver()
    found = saver.as_saver_def()
    assert isinstance(found, SaverDef)
    assert found.filename_tensor_name == "save/filename:0"
    assert found.save_tensor_name == "save/control_dependency:0"
    assert found.restore_op_name == "save/restore_all"
    types = [op.type for op in graph.operations if op.name.startswith("save/")]
    assert sorted(types) == sorted(
        ["Const"] * 5 + ["SaveV2", "Identity", "RestoreV2", "Assign", "Assign", "NoOp"]
    )
    assert graph.get_operation_by_name("save/Assign").colocation == ("deep/w",)
    assert SaverDef.from_bytes(found.to_bytes()) == found


def test_retention(graph: engine.Graph, tmp_path: Path) -> None:
    """Seven saves, of which five are kept: the first two are gone, the state lists the others."""
    two()
    saver = Saver()
    with engine.Session() as session:
        session.run(engine.global_variables_initializer())
        written = [saver.save(session, tmp_path / "m", global_step=i) for i in range(7)]
    assert saver.last_checkpoints == written[2:]
    state = engine.get_checkpoint_state(tmp_path)
    assert state is not None
    assert state.all_model_checkpoint_paths == written[2:]
    assert engine.latest_checkpoint(tmp_path) == written[-1]
    assert {name.split(".")[0] for name in files(tmp_path)} == {
        "checkpoint",
        *(f"m-{i}" for i in range(2, 7)),
    }


@pytest.mark.parametrize("most", [None, 0])
def test_all_are_kept(graph: engine.Graph, tmp_path: Path, most: int | None) -> None:
    two()
    saver = Saver(max_to_keep=most)
    with engine.Session() as session:
        session.run(engine.global_variables_initializer())
        written = [saver.save(session, tmp_path / "m", global_step=i) for i in range(7)]
    assert [p for p in written if engine.checkpoint_exists(p)] == written
    assert saver.last_checkpoints == []
    state = engine.get_checkpoint_state(tmp_path)
    assert state is not None
    assert state.all_model_checkpoint_paths == written[-1:]


def test_one_of_so_many_hours_stays(
    graph: engine.Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    two()
    now = 1e9
    monkeypatch.setattr("laminar.engine.saving.retention.time.time", lambda: now)
    saver = Saver(max_to_keep=2, keep_checkpoint_every_n_hours=1)
    with engine.Session() as session:
        session.run(engine.global_variables_initializer())
        for i in range(10):
            now += 1500
            saver.save(session, tmp_path / "m", global_step=i)
    kept = [i for i in range(10) if engine.checkpoint_exists(tmp_path / f"m-{i}")]
    # Saved at 25 minutes, 50, ...: those after 1 h 15 and 2 h 30 are the first past each hour.
    assert kept == [2, 5, 8, 9]


def test_what_an_earlier_process_wrote_is_taken_over(graph: engine.Graph, tmp_path: Path) -> None:
    two()
    with engine.Session() as session:
        session.run(engine.global_variables_initializer())
        first = Saver(max_to_keep=3)
        for i in range(3):
            first.save(session, tmp_path / "m", global_step=i)
        second = Saver(max_to_keep=3, name="again")
        state = engine.get_checkpoint_state(tmp_path)
        assert state is not None
        second.recover_last_checkpoints(["/nowhere/m", *state.all_model_checkpoint_paths])
        assert second.last_checkpoints == first.last_checkpoints
        second.save(session, tmp_path / "m", global_step=3)
    assert not engine.checkpoint_exists(tmp_path / "m-0")
    assert engine.checkpoint_exists(tmp_path / "m-1")


def test_some_variables_under_other_names(graph: engine.Graph, tmp_path: Path) -> None:
    v, w = two()
    with engine.Session() as session:
        session.run(engine.global_variables_initializer())
        Saver({"other": v}).save(session, tmp_path / "m")
        session.run([v.assign([5.0, 5.0]), w.assign(5)])
        assert engine.list_variables(tmp_path / "m") == [("other", [2])]
        Saver({"other": v}, name="x").restore(session, tmp_path / "m")
        np.testing.assert_array_equal(session.run(v), [1, 2])
        assert session.run(w) == 5
        with pytest.raises(errors.NotFoundError, match="'v'.*it has other"):
            Saver([v]).restore(session, tmp_path / "m")
        with pytest.raises(errors.NotFoundError, match=r"no tensors 'deep/w', 'v'"):
            Saver().restore(session, tmp_path / "m")


def test_nothing_changes_where_a_shape_or_a_type_differs(
    graph: engine.Graph, tmp_path: Path
) -> None:
    v, w = two()
    saver = Saver()
    for bad, error in (
        (np.zeros(3, np.float32), errors.ShapeError),
        (np.zeros(2, np.float64), errors.DTypeError),
    ):
        write_checkpoint(tmp_path / "m", [("deep/w", np.array(8)), ("v", bad)])
        with engine.Session() as session:
            session.run(engine.global_variables_initializer())
            with pytest.raises(error, match="'v'"):
                saver.restore(session, tmp_path / "m")
            assert session.run(w) == 3
            np.testing.assert_array_equal(session.run(v), [1, 2])


def test_values_of_other_shapes(graph: engine.Graph, tmp_path: Path) -> None:
    v = engine.Variable(np.zeros((2, 3), np.float32), name="v")
    write_checkpoint(tmp_path / "m", [("v", np.arange(6, dtype=np.float32))])
    with engine.Session() as session:
        Saver(reshape=True).restore(session, tmp_path / "m")
        np.testing.assert_array_equal(session.run(v), [[0, 1, 2], [3, 4, 5]])


def test_one_after_the_other(graph: engine.Graph, tmp_path: Path) -> None:
    v, w = two()
    saver = Saver(restore_sequentially=True)
    with engine.Session() as session:
        session.run(engine.global_variables_initializer())
        saver.save(session, tmp_path / "m")
        session.run([v.assign([5.0, 5.0]), w.assign(5)])
        saver.restore(session, tmp_path / "m")
        assert session.run(w) == 3
    restores = [op for op in graph.operations if op.type == "RestoreV2"]
    assert len(restores) == 2
    assert [op.type for op in restores[1].control_inputs] == ["Assign"]


def test_a_file_for_each_device(graph: engine.Graph, tmp_path: Path) -> None:
    with engine.device("/cpu:0"):
        v = engine.Variable(np.arange(3.0), name="v")
    with engine.device("/job:localhost"):
        w = engine.Variable(np.arange(4.0), name="w")
    saver = Saver(sharded=True)
    with engine.Session() as session:
        session.run(engine.global_variables_initializer())
        saver.save(session, tmp_path / "m", write_meta_graph=False)
        assert files(tmp_path) == [
            "checkpoint",
            "m.data-00000-of-00002",
            "m.data-00001-of-00002",
            "m.index",
        ]
        session.run([v.assign(np.zeros(3)), w.assign(np.zeros(4))])
        saver.restore(session, tmp_path / "m")
        np.testing.assert_array_equal(session.run(w), np.arange(4.0))
        np.testing.assert_array_equal(session.run(v), np.arange(3.0))


def test_step_numbers(graph: engine.Graph, tmp_path: Path) -> None:
    step = engine.create_global_step()
    saver = Saver(pad_step_number=True)
    with engine.Session() as session:
        session.run(engine.global_variables_initializer())
        session.run(step.assign(12))
        assert saver.save(session, tmp_path / "m", step).endswith("m-00000012")
        assert saver.save(session, tmp_path / "m", np.int64(3)).endswith("m-00000003")
        with pytest.raises(errors.InvalidArgumentError, match="whole number"):
            saver.save(session, tmp_path / "m", "x")


def test_a_folder_that_is_moved(graph: engine.Graph, tmp_path: Path) -> None:
    two()
    saver = Saver(save_relative_paths=True)
    (tmp_path / "one").mkdir()
    with engine.Session() as session:
        session.run(engine.global_variables_initializer())
        saver.save(session, tmp_path / "one" / "m", 1)
    (tmp_path / "one").rename(tmp_path / "two")
    assert engine.latest_checkpoint(tmp_path / "two") == str(tmp_path / "two" / "m-1")


def test_bad_arguments(graph: engine.Graph, tmp_path: Path) -> None:
    with pytest.raises(errors.InvalidArgumentError, match="no variables"):
        Saver()
    empty = Saver(allow_empty=True)
    with engine.Session() as session:
        assert empty.save(session, tmp_path / "e") == str(tmp_path / "e")
        empty.restore(session, tmp_path / "e")
    assert files(tmp_path) == ["e.meta"]  # the graph is there
    v, w = two()
    with pytest.raises(errors.InvalidArgumentError, match="expected variables"):
        Saver([v, 3])
    with pytest.raises(TypeError, match="expected variables to save, got 3"):
        Saver({"v": v, "three": 3})
    with pytest.raises(errors.InvalidArgumentError, match="two variables are named"):
        Saver([v, w, _renamed("v")])
    with pytest.raises(errors.InvalidArgumentError, match="saved twice"):
        Saver({"a": v, "b": v})
    with pytest.raises(errors.InvalidArgumentError, match="max_to_keep"):
        Saver(max_to_keep=-1)
    with pytest.raises(errors.InvalidArgumentError, match="defer_build"):
        Saver([v], defer_build=True)


def _renamed(name: str) -> Any:
    found = engine.Variable(np.zeros(2), name="renamed")
    found.path = name
    return found


def test_bad_places(graph: engine.Graph, tmp_path: Path) -> None:
    two()
    saver = Saver()
    with engine.Session() as session:
        with pytest.raises(errors.FailedPreconditionError, match="initialised"):
            saver.save(session, tmp_path / "m")
        assert files(tmp_path) == []
        session.run(engine.global_variables_initializer())
        with pytest.raises(errors.MissingFileError, match="makedirs"):
            saver.save(session, tmp_path / "none" / "m")
        with pytest.raises(errors.InvalidArgumentError, match="state file"):
            saver.save(session, tmp_path / "checkpoint")
        with pytest.raises(errors.InvalidArgumentError, match="without folders"):
            saver.save(session, tmp_path / "m", latest_filename="a/b")
        with pytest.raises(errors.InvalidArgumentError, match="folder"):
            saver.save(session, tmp_path)
        with pytest.raises(errors.MissingFileError, match="no checkpoint"):
            saver.restore(session, tmp_path / "m")
        with pytest.raises(errors.InvalidArgumentError, match="expected a session"):
            saver.save(None, tmp_path / "m")
        assert session.run("deep/w:0") is not None  # the session goes on
    assert files(tmp_path) == []


def test_built_later(graph: engine.Graph, tmp_path: Path) -> None:
    saver = Saver(defer_build=True)
    two()
    with engine.Session() as session:
        session.run(engine.global_variables_initializer())
        with pytest.raises(errors.FailedPreconditionError, match="not been built"):
            saver.save(session, tmp_path / "m")
        saver.build()
        saver.build()
        saver.save(session, tmp_path / "m")
    graph.finalize()
    with pytest.raises(errors.FailedPreconditionError, match="finalized"):
        Saver()


def test_variables_that_belong_to_no_graph(tmp_path: Path) -> None:
    v = engine.Variable(np.array([1.0, 2.0], np.float32), name="v")
    w = engine.Variable(3, name="w")
    saver = Saver([v, w])
    saver.save(None, tmp_path / "m", 1)
    v.assign([0.0, 0.0])
    w.assign(0)
    saver.restore(None, tmp_path / "m-1")
    np.testing.assert_array_equal(v, [1, 2])
    assert int(w) == 3
    write_checkpoint(tmp_path / "n", [("v", np.zeros(2, np.float32)), ("w", np.zeros(2, int))])
    with pytest.raises((errors.ShapeError, errors.DTypeError), match="'w'"):
        saver.restore(None, tmp_path / "n")
    np.testing.assert_array_equal(v, [1, 2])


KILLED = """
import os, sys
import numpy as np
from laminar import Sequential, engine, layers
from laminar.engine.saving import Saver
v = engine.Graph()
with v.as_default():
    a = engine.Variable(np.zeros(1000), name="a")
    b = engine.Variable(np.zeros(7), name="b")
    saver = Saver(max_to_keep=2)
    with engine.Session() as session:
        session.run(engine.global_variables_initializer())
        step = engine.group(a.assign_add(np.ones(1000)), b.assign_add(np.ones(7)))
        print("ready", flush=True)
        for i in range(1, 100000):
            session.run(step)
            saver.save(session, os.path.join(sys.argv[1], "m"), i if i % 3 else None)
"""


@pytest.mark.slow
def test_killed_at_any_moment(tmp_path: Path) -> None:
    """The newest checkpoint is whole, and all of it is from one moment."""
    rng = np.random.default_rng(0)
    for _ in range(3):
        with subprocess.Popen(
            [sys.executable, "-c", KILLED, str(tmp_path)], stdout=subprocess.PIPE
        ) as process:
            assert process.stdout is not None
            process.stdout.readline()
            try:
                process.wait(timeout=0.1 + 0.2 * rng.random())
            except subprocess.TimeoutExpired:
                process.kill()
        newest = engine.latest_checkpoint(tmp_path)
        if newest is None:
            continue
        with CheckpointReader(newest) as reader:
            a, b = reader.read("a"), reader.read("b")
        assert len({*a.tolist(), *b.tolist()}) == 1
        assert a[0] > 0


def test_partitioned_variables(graph: engine.Graph, tmp_path: Path) -> None:
    """Parts are stored under the name of the whole, and read into any other division."""
    value = np.arange(14.0, dtype=np.float32).reshape(7, 2)
    whole = divided("w", value, 3)
    saver = Saver()
    with engine.Session() as session:
        session.run(engine.global_variables_initializer())
        saver.save(session, tmp_path / "m")
        session.run([part.assign(part * 0) for part in whole])
        saver.restore(session, tmp_path / "m")
        np.testing.assert_array_equal(session.run(whole.value), value)
    assert engine.list_variables(tmp_path / "m") == [("w", [7, 2])]
    assert engine.load_variable(tmp_path / "m", "w").tolist() == value.tolist()
    with engine.Graph().as_default(), engine.Session() as session:
        one, two = engine.Variable(value * 0, name="w"), divided("v", value * 0, 2)
        Saver({"w": one}).restore(session, tmp_path / "m")
        Saver({"w": two}).restore(session, tmp_path / "m")
        np.testing.assert_array_equal(session.run(one), value)
        np.testing.assert_array_equal(session.run(two.value), value)
    with engine.Graph().as_default(), engine.Session() as session:
        again = engine.import_meta_graph(tmp_path / "m.meta")
        assert again is not None
        again.restore(session, tmp_path / "m")
        parts = engine.global_variables()
        assert [p.part_of.extents[0] for p in parts if p.part_of] == [(0, 3), (3, 2), (5, 2)]
        Saver().save(session, tmp_path / "n")
    assert engine.list_variables(tmp_path / "n") == [("w", [7, 2])]


def divided(name: str, value: Any, parts: int) -> Any:
    return engine.get_variable(
        name,
        initializer=value,
        partitioner=lambda shape, dtype: [parts] + [1] * (len(shape) - 1),
    )


def test_partitioned_variables_that_belong_to_no_graph(tmp_path: Path) -> None:
    value = np.arange(6.0).reshape(3, 2)
    parts = [engine.Variable(value[:2]), engine.Variable(value[2:])]
    whole = engine.PartitionedVariable("w", parts, 0, [2, 1])
    Saver([whole]).save(None, tmp_path / "m")
    for part in whole:
        part.assign(part * 0)
    Saver({"w": parts}).restore(None, tmp_path / "m")
    np.testing.assert_array_equal(whole.value, value)


@pytest.mark.parametrize("kind", ["fifo", "random", "priority"])
def test_queues_go_on_where_they_were(graph: engine.Graph, tmp_path: Path, kind: str) -> None:
    queue: Any
    if kind == "fifo":
        queue = engine.FIFOQueue(20, ["int64", "string"], [[], []], name="queue")
    elif kind == "random":
        queue = engine.RandomShuffleQueue(
            20, 2, ["int64", "string"], [[], []], seed=1, name="queue"
        )
    else:
        queue = engine.PriorityQueue(20, ["string"], [[]], name="queue")
    numbers = np.array([5, 3, 9, 1, 7, 5, 2, 8])
    texts = np.array([f"{i}".encode() for i in range(8)], object)
    fill = queue.enqueue_many([numbers, texts])
    take = queue.dequeue()
    saver = Saver([queue])
    with engine.Session() as session:
        session.run(fill)
        session.run(take)
        saver.save(session, tmp_path / "m")
        expected = [session.run(take) for _ in range(5)]
    assert engine.list_variables(tmp_path / "m") == [("queue", [])]
    with engine.Session() as session:
        session.run(fill)
        saver.restore(session, tmp_path / "m")
        assert [session.run(take) for _ in range(5)] == expected


def test_tables_go_on_where_they_were(graph: engine.Graph, tmp_path: Path) -> None:
    table = engine.MutableHashTable("string", "float32", [0.0, 0.0], name="table")
    keys = np.array([b"a", b"b"], object)
    put = table.insert(keys, np.array([[1, 2], [3, 4]], np.float32))
    found = table.lookup(keys)
    saver = Saver([table])
    with engine.Session() as session:
        session.run(put)
        saver.save(session, tmp_path / "m")
    with engine.Session() as session:
        saver.restore(session, tmp_path / "m")
        np.testing.assert_array_equal(session.run(found), [[1, 2], [3, 4]])


def test_contents_that_do_not_fit(graph: engine.Graph, tmp_path: Path) -> None:
    queue = engine.FIFOQueue(3, ["int64"], [[2]], name="queue")
    fill = queue.enqueue_many([np.ones((2, 2), np.int64)])
    saver = Saver([queue])
    with engine.Session() as session:
        session.run(fill)
        saver.save(session, tmp_path / "m")
        data = engine.load_variable(tmp_path / "m", "queue").item()
        rng = np.random.default_rng(0)
        for _ in range(40):
            changed = bytearray(data)
            changed[rng.integers(len(data))] ^= 1 << rng.integers(8)
            write_checkpoint(tmp_path / "n", [("queue", np.array(bytes(changed), object))])
            with contextlib.suppress(errors.LaminarError):
                saver.restore(session, tmp_path / "n")
        assert session.run(queue.size()) <= 3


def test_files_are_written_beside_what_follows(graph: engine.Graph, tmp_path: Path) -> None:
    """The values are those of the call; what fails is told of by the next one."""
    v, _ = two()
    more = v.assign_add([1.0, 1.0])
    saver, writer = Saver(), engine.BackgroundWriter()
    with engine.Session() as session:
        session.run(engine.global_variables_initializer())
        for i in range(4):
            saver.save(session, tmp_path / "m", i, background=writer)
            session.run(more)
        writer.wait()
        for i in range(4):
            found = engine.load_variable(tmp_path / f"m-{i}", "v")
            np.testing.assert_array_equal(found, [1.0 + i, 2.0 + i])
        assert engine.latest_checkpoint(tmp_path) == str(tmp_path / "m-3")
        assert (tmp_path / "m-3.meta").exists()
        (tmp_path / "m-4").mkdir()
        saver.save(session, tmp_path / "m", 4, background=writer)
        with pytest.raises(errors.InvalidArgumentError, match="folder"):
            saver.save(session, tmp_path / "m", 5, background=writer)
        assert not engine.checkpoint_exists(tmp_path / "m-5")
        saver.save(session, tmp_path / "m", 6, background=writer)
        writer.wait()
        with pytest.raises(errors.InvalidArgumentError, match="by a step"):
            Saver(sharded=True).save(session, tmp_path / "m", background=writer)


def test_checkpoints_of_objects_by_name(graph: engine.Graph, tmp_path: Path) -> None:
    """Of a Checkpoint, as TensorFlow's Saver restores them: by the names of the variables."""
    with eager_scope():
        model = Sequential([layers.Input((2,)), layers.Dense(3, name="first")], name="net")
        kernel = np.arange(6, dtype="float32").reshape(2, 3)
        model.set_weights([kernel, np.ones(3, "float32")])
        other = engine.Variable(5.0, dtype="float32", name="other")
        path = engine.Checkpoint(model=model, items=[other]).save(tmp_path / "c")
        names = [w.path for w in model.weights]
    w = engine.Variable(np.zeros((2, 3), "float32"), name="w")
    b = engine.Variable(np.zeros(3, "float32"), name="b")
    o = engine.Variable(np.float32(0), name="other")
    saver = engine.Saver({names[0]: w, names[1]: b, "other": o}, sharded=True)
    with engine.Session() as session:
        saver.restore(session, path)
        np.testing.assert_array_equal(session.run(w), kernel)
        np.testing.assert_array_equal(session.run(b), np.ones(3))
        assert session.run(o) == 5
        for names_, error in (
            ({"gone": b}, errors.NotFoundError),
            ({"other": b}, errors.ShapeError),
        ):
            with pytest.raises(error):
                engine.Saver(names_).restore(session, path)
        np.testing.assert_array_equal(session.run(b), np.ones(3))
    with eager_scope():
        again = engine.Variable(np.float32(0), name="again")
        engine.Saver({"other": again}).restore(None, path)
        assert again.numpy() == 5


def test_two_objects_of_one_name_are_told(graph: engine.Graph, tmp_path: Path) -> None:
    with eager_scope():
        pair = [engine.Variable(np.float32(i), name="v") for i in range(2)]
        path = engine.Checkpoint(pair=pair).save(tmp_path / "c")
    v = engine.Variable(np.float32(7), name="v")
    with engine.Session() as session:
        session.run(v.initializer)
        with pytest.raises(errors.InvalidArgumentError, match="two variables that are called 'v'"):
            engine.Saver([v]).restore(session, path)
        engine.Saver({"pair/1/.ATTRIBUTES/VARIABLE_VALUE": v}).restore(session, path)
        assert session.run(v) == 1


def test_other_formats_are_refused(graph: engine.Graph) -> None:
    two()
    Saver(write_version=SaverDef.V2)
    with pytest.raises(errors.UnimplementedError, match="V2"):
        Saver(write_version=SaverDef.V1)
