"""Checkpoint: values of objects by the paths of attributes, for objects there and made later."""

import contextlib
import gc
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import laminar
from laminar import engine, layers
from laminar.engine import errors
from laminar.engine.checkpoint import CheckpointReader, write_checkpoint
from laminar.engine.saving import Checkpoint, CheckpointManager, Saver, restoration


class Net:
    """A user's class, with variables in attributes, lists and dicts."""

    def __init__(self, value: float = 0.0) -> None:
        self.w = engine.Variable(np.full(2, value, np.float32), name="w")
        self.parts: list[Any] = [engine.Variable(value), {"a/b.c": engine.Variable(value + 1)}]
        self.name = "net"
        self.data = np.zeros(1000)

    def values(self) -> list[float]:
        return [float(self.w[0]), float(self.parts[0]), float(self.parts[1]["a/b.c"])]


def test_names_are_paths(tmp_path: Path) -> None:
    net = Net(1.0)
    path = Checkpoint(net=net, again=net.w).save(tmp_path / "ckpt")
    assert path == str(tmp_path / "ckpt-1")
    end = "/.ATTRIBUTES/VARIABLE_VALUE"
    assert [name for name, _ in engine.list_variables(path)] == [
        "_CHECKPOINTABLE_OBJECT_GRAPH",
        f"again{end}",
        f"net/parts/0{end}",
        f"net/parts/1/a.Sb..c{end}",
        f"save_counter{end}",
    ]
    assert engine.latest_checkpoint(tmp_path) == path


def test_save_change_restore(tmp_path: Path) -> None:
    net = Net(3.0)
    checkpoint = Checkpoint(net=net)
    first = checkpoint.save(tmp_path / "deep" / "ckpt")
    net.w.assign_add([1.0, 1.0])
    second = checkpoint.save(tmp_path / "deep" / "ckpt")
    assert [os.path.basename(p) for p in (first, second)] == ["ckpt-1", "ckpt-2"]
    other = Net()
    Checkpoint(net=other).restore(second).assert_consumed()
    assert other.values() == [4, 3, 4]
    status = checkpoint.restore(first)
    status.assert_consumed().assert_existing_objects_matched().assert_nontrivial_match()
    assert net.values() == [3, 3, 4]
    assert int(checkpoint.save_counter) == 1


def test_a_root_stands_for_the_checkpoint(tmp_path: Path) -> None:
    path = Checkpoint(Net(2.0), step=engine.Variable(7)).write(tmp_path / "c")
    assert ("w/.ATTRIBUTES/VARIABLE_VALUE", [2]) in engine.list_variables(path)
    net, step = Net(), engine.Variable(0)
    Checkpoint(net, step=step).read(path).assert_consumed()
    assert net.values() == [2, 2, 3]
    assert int(step) == 7


def test_what_is_not_matched_is_told(tmp_path: Path) -> None:
    path = Checkpoint(a=engine.Variable(1.0), b=engine.Variable(2.0)).save(tmp_path / "c")
    a = engine.Variable(0.0)
    status = Checkpoint(a=a).restore(path)
    assert float(a) == 1
    with pytest.raises(AssertionError, match=r"'b/\.ATTRIBUTES"):
        status.assert_consumed()
    status.assert_existing_objects_matched().expect_partial()
    status = Checkpoint(c=engine.Variable(0.0)).restore(path)
    with pytest.raises(AssertionError, match="no values for 'c/"):
        status.assert_existing_objects_matched()
    with pytest.raises(AssertionError, match="nothing of"):
        status.assert_nontrivial_match()
    with pytest.raises(errors.InvalidArgumentError, match="cannot be named"):
        Checkpoint(save=a)


def test_nothing_changes_where_one_does_not_fit(tmp_path: Path) -> None:
    path = Checkpoint(a=engine.Variable(1.0), b=engine.Variable([2.0, 3.0])).save(tmp_path / "c")
    a = engine.Variable(0.0)
    with pytest.raises(errors.ShapeError, match="'b/"):
        Checkpoint(a=a, b=engine.Variable([2.0])).restore(path)
    with pytest.raises(errors.DTypeError, match="'b/"):
        Checkpoint(a=a, b=engine.Variable([2, 3])).restore(path)
    with pytest.raises(errors.MissingFileError):
        Checkpoint(a=a).restore(tmp_path / "none")
    assert float(a) == 0


class Later:
    """Makes its variables when it is called first."""

    def build(self) -> None:
        self.w = engine.Variable(5.0, name="w")
        self.b = engine.Variable(6.0, name="b")


def test_variables_that_are_made_later(tmp_path: Path) -> None:
    saved = Later()
    saved.build()
    saved.w.assign(1.0)
    path = Checkpoint(net=saved).save(tmp_path / "c")
    net = Later()
    status = Checkpoint(net=net).restore(path)  # the checkpoint itself is dropped
    with pytest.raises(AssertionError):
        status.assert_consumed()
    gc.collect()
    elsewhere = engine.Variable(9.0)  # has nothing to do with it
    net.build()
    assert float(elsewhere) == 9
    assert float(net.w) == 1
    assert float(net.b) == 6
    status.assert_consumed()
    assert status._restoration not in restoration._waiting


def test_a_value_assigned_before_is_kept(tmp_path: Path) -> None:
    saved = Later()
    saved.build()
    path = Checkpoint(net=saved).save(tmp_path / "c")
    net = Later()
    Checkpoint(net=net).restore(path)
    net.build()
    net.w.assign(8.0)
    assert float(net.b) == 6
    assert float(net.w) == 8


def test_objects_that_are_dropped_end_the_waiting(tmp_path: Path) -> None:
    saved = Later()
    saved.build()
    path = Checkpoint(net=saved).save(tmp_path / "c")
    net = Later()
    waits = Checkpoint(net=net).restore(path)._restoration
    assert waits in restoration._waiting
    del net
    gc.collect()
    assert waits not in restoration._waiting
    assert float(engine.Variable(1.0)) == 1


def test_one_that_does_not_fit_later(tmp_path: Path) -> None:
    path = Checkpoint(net={"w": engine.Variable([1.0, 2.0])}).save(tmp_path / "c")
    net = Later()
    Checkpoint(net=net).restore(path)
    net.build()
    with pytest.raises(errors.ShapeError, match=r"variable 'w'"):
        net.w.numpy()
    assert float(net.w) == 5  # said once; it has its initial value


def model() -> Any:
    return laminar.Sequential([laminar.layers.Dense(3, activation="tanh"), laminar.layers.Dense(1)])


DATA = np.random.default_rng(0).normal(size=(16, 4)).astype("float32")


@pytest.mark.slow
def test_models_and_optimizers_go_on(tmp_path: Path) -> None:
    """Restored before anything is built, training goes on with the same bits."""

    def fit(net: Any) -> None:
        net.fit(DATA, DATA[:, :1], epochs=1, batch_size=8, shuffle=False, verbose=0)

    net = model()
    net.compile("adam", "mse")
    fit(net)
    path = Checkpoint(model=net, optimizer=net.optimizer).save(tmp_path / "c")
    fit(net)
    other = model()
    other.compile("adam", "mse")
    status = Checkpoint(model=other, optimizer=other.optimizer).restore(path)
    fit(other)
    status.assert_consumed()
    for v, w in zip(net.variables, other.variables, strict=True):
        np.testing.assert_array_equal(v.numpy(), w.numpy())


def test_positions_in_data(tmp_path: Path) -> None:
    data = laminar.datasets.Dataset.range(20).shuffle(20, seed=3)
    walk = iter(data)
    first = [int(next(walk)) for _ in range(5)]
    path = Checkpoint(walk=walk).save(tmp_path / "c")
    rest = [int(x) for x in walk]
    again = iter(data)
    next(again)
    Checkpoint(walk=again).restore(path).assert_consumed()
    assert [int(x) for x in again] == rest
    assert sorted(first + rest) == list(range(20))


def test_random_generators_and_functions(tmp_path: Path) -> None:
    seeds = laminar.random.SeedGenerator(3)
    w = engine.Variable(2.0, name="w")

    @laminar.function
    def times(x: Any) -> Any:
        return x * w

    times(3.0)
    path = Checkpoint(seeds=seeds, times=times).save(tmp_path / "c")
    expected = laminar.random.normal((3,), seed=seeds)
    w.assign(0.0)
    Checkpoint(seeds=seeds, times=times).restore(path).assert_consumed()
    np.testing.assert_array_equal(laminar.random.normal((3,), seed=seeds), expected)
    assert float(w) == 2


def test_what_a_saver_wrote(tmp_path: Path) -> None:
    net = Net(4.0)
    Saver([net.w]).save(None, tmp_path / "m")
    other = Net()
    status = Checkpoint(net=other).restore(tmp_path / "m")
    assert other.values() == [4, 0, 1]
    with pytest.raises(AssertionError):
        status.assert_existing_objects_matched()


def test_variables_of_a_graph(tmp_path: Path) -> None:
    with engine.Graph().as_default(), engine.Session() as session:
        v, w = engine.Variable(1.0, name="v"), engine.Variable(2.0, name="w")
        session.run(engine.global_variables_initializer())
        path = Checkpoint(v=v).save(tmp_path / "c", session)
    with engine.Graph().as_default(), engine.Session() as session:
        v, w = engine.Variable(3.0, name="v"), engine.Variable(4.0, name="w")
        status = Checkpoint(v=v, w=w).restore(path)
        status.initialize_or_restore(session)
        assert session.run([v, w]) == [1, 4]


def test_damage(tmp_path: Path) -> None:
    v = engine.Variable(1.0)
    path = Checkpoint(v=v).save(tmp_path / "c")
    with CheckpointReader(path) as reader:
        graph = reader.read("_CHECKPOINTABLE_OBJECT_GRAPH").item()
    rng = np.random.default_rng(0)
    for _ in range(30):
        changed = bytearray(graph)
        changed[rng.integers(len(graph))] ^= 1 << rng.integers(8)
        values = {"_CHECKPOINTABLE_OBJECT_GRAPH": np.array(bytes(changed), object)}
        write_checkpoint(tmp_path / "d", values.items())
        with contextlib.suppress(errors.LaminarError):
            Checkpoint(v=v).restore(tmp_path / "d")
        assert float(v) == 1


def test_manager(tmp_path: Path) -> None:
    v, step = engine.Variable(0.0), engine.Variable(0)
    made: list[int] = []
    manager = CheckpointManager(
        Checkpoint(v=v), tmp_path / "f", 3, init_fn=lambda: made.append(1), step_counter=step
    )
    assert manager.restore_or_initialize() is None
    assert made == [1]
    for i in range(5):
        v.assign(float(i))
        manager.save()
    assert [os.path.basename(p) for p in manager.checkpoints] == ["ckpt-3", "ckpt-4", "ckpt-5"]
    assert not engine.checkpoint_exists(tmp_path / "f" / "ckpt-2")
    again = CheckpointManager(Checkpoint(v=v), tmp_path / "f", 3)
    v.assign(9.0)
    assert again.restore_or_initialize() == again.latest_checkpoint == manager.latest_checkpoint
    assert float(v) == 4
    assert again.save(checkpoint_number=17) == str(tmp_path / "f" / "ckpt-17")
    assert len(again.checkpoints) == 3


def test_manager_takes_the_one_before_a_damaged_one(tmp_path: Path) -> None:
    v = engine.Variable(0.0)
    manager = CheckpointManager(Checkpoint(v=v), tmp_path, 3)
    for i in range(3):
        v.assign(float(i))
        manager.save()
    file = tmp_path / "ckpt-3.data-00000-of-00001"
    file.write_bytes(bytes(file.stat().st_size))
    with pytest.warns(UserWarning, match="ckpt-3 is passed over"):
        assert manager.restore_or_initialize() == str(tmp_path / "ckpt-2")
    assert float(v) == 1


def test_manager_with_an_interval(tmp_path: Path) -> None:
    v, step = engine.Variable(0.0), engine.Variable(0)
    manager = CheckpointManager(
        Checkpoint(v=v), tmp_path, None, step_counter=step, checkpoint_interval=3
    )
    saved = []
    for i in range(8):
        step.assign(i)
        if manager.save() is not None:
            saved.append(i)
    assert saved == [0, 3, 6]
    for arguments in ({"max_to_keep": 0}, {"max_to_keep": 1, "checkpoint_interval": 2}):
        with pytest.raises(errors.InvalidArgumentError):
            CheckpointManager(Checkpoint(v=v), tmp_path, **arguments)  # type: ignore[arg-type]  # a dict of any


def test_files_are_written_beside_what_follows(tmp_path: Path) -> None:
    v, writer = engine.Variable([1.0, 2.0]), engine.BackgroundWriter()
    manager = CheckpointManager(Checkpoint(v=v), tmp_path, 2)
    for _ in range(4):
        manager.save(background=writer)
        v.assign_add([1.0, 1.0])
    writer.wait()
    assert [os.path.basename(p) for p in manager.checkpoints] == ["ckpt-3", "ckpt-4"]
    manager.restore_or_initialize()
    np.testing.assert_array_equal(v, [4, 5])
    path = Checkpoint(v=v).save(tmp_path / "own", background=writer)
    writer.wait()
    assert engine.latest_checkpoint(tmp_path) == path


@pytest.mark.parametrize(
    ("layer", "name"),
    [
        (layers.Dense(2), "kernel"),
        (layers.Embedding(4, 2), "embeddings"),
        (layers.Conv1D(2, 1), "kernel"),
    ],
)
def test_a_layer_s_weight_has_the_name_that_it_is_shown_by(
    layer: Any, name: str, tmp_path: Path
) -> None:
    """Whatever attribute holds it; checkpoints that are there name it so."""
    layer.build((None, 3, 3) if isinstance(layer, layers.Conv1D) else (None, 3))
    path = Checkpoint(layer=layer).save(tmp_path / "model.ckpt")
    keys = [key for key, _ in engine.list_variables(path)]
    assert any(f"layer/{name}/" in key or key.endswith(f"layer/{name}") for key in keys), keys
    assert not any(f"/_{name}" in key for key in keys)


def test_the_prefix_that_was_given_to_save_means_the_newest(tmp_path: Path) -> None:
    v = engine.Variable([1.0, 2.0])
    checkpoint = Checkpoint(v=v)
    prefix = tmp_path / "checkpoint"  # beside the state file, which has that very name
    for value in ([3.0, 4.0], [5.0, 6.0]):
        v.assign(value)
        checkpoint.save(prefix)
    v.assign([0.0, 0.0])
    checkpoint.restore(prefix)
    np.testing.assert_array_equal(v, [5.0, 6.0])
    with pytest.raises(errors.MissingFileError, match="other"):
        checkpoint.restore(tmp_path / "other")


@pytest.mark.parametrize("part", [3, 1.5, "text", b"bytes", np.zeros(2)])
def test_a_part_that_cannot_change(part: Any) -> None:
    with pytest.raises(errors.InvalidArgumentError, match="'part' is .* nothing can be restored"):
        engine.Checkpoint(part=part)


def test_what_is_no_path() -> None:
    checkpoint = engine.Checkpoint(x=engine.Variable(1.0))
    uses: list[Any] = [checkpoint.save, checkpoint.write, checkpoint.restore, checkpoint.read]
    for use in uses:
        with pytest.raises(errors.InvalidArgumentError, match="expected a path, got 5"):
            use(5)
    assert checkpoint.counted(0) == 0
