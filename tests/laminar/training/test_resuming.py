"""A training that was interrupted goes on, and ends with the bits of one that was not."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import laminar
from laminar import callbacks, layers, optimizers
from laminar.engine.errors import DataLossError, FailedPreconditionError, InvalidArgumentError
from laminar.training.state_files import StateFiles

SCRIPT = Path(__file__).with_name("resumed_training.py")
STEPS = 30  # of the script, all epochs together

rng = np.random.default_rng(0)
X = rng.normal(size=(40, 3)).astype("float32")
Y = (X @ np.array([[1.0], [-2.0], [0.5]])).astype("float32")


class StepError(RuntimeError):
    pass


def interrupt(after: int) -> callbacks.Callback:
    """Ends training by an error after so many steps."""
    left = iter(range(after - 1, -1, -1))

    def count(batch: int, logs: Any) -> None:
        if next(left) == 0:
            raise StepError

    return callbacks.LambdaCallback(on_train_batch_end=count)


def dropped() -> laminar.Sequential:
    laminar.set_random_seed(3)
    model = laminar.Sequential([layers.Dense(8, "tanh"), layers.Dropout(0.4), layers.Dense(1)])
    model.compile(optimizers.Adam(0.01), "mse", metrics=["mae"])
    return model


def backup(folder: Path, every: int | str = 2, *, deletes: bool = False) -> Any:
    return callbacks.BackupAndRestore(folder, save_freq=every, delete_checkpoint=deletes)


def fit(model: laminar.Model, *given: Any, **options: Any) -> Any:
    laminar.set_random_seed(3)  # the weights and the order of the examples are drawn in fit
    arguments = {"x": X, "y": Y, "batch_size": 8, "epochs": 3, "verbose": 0}
    return model.fit(**(arguments | {"callbacks": list(given)} | options))


def same(a: laminar.Model, b: laminar.Model) -> None:
    for left, right in zip(a.variables, b.variables, strict=True):
        np.testing.assert_array_equal(left, right)
    for left, right in zip(a.optimizer.variables, b.optimizer.variables, strict=True):
        np.testing.assert_array_equal(left, right)


def run_script(folder: Path | str, kill_after: int) -> subprocess.Popen[str]:
    command = [sys.executable, str(SCRIPT), str(folder), str(kill_after)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


@pytest.mark.slow
def test_killed_at_any_step(tmp_path: Path) -> None:
    """SIGKILL, by the process itself after some step, and from outside at any moment."""
    whole, _ = run_script("", 0).communicate(timeout=120)
    expected = json.loads(whole)
    chance = random.Random(5)
    kills = 0
    while True:
        after = chance.choice([0, 1, 2, 4, 7, 9]) if kills < 5 else 0
        process = run_script(tmp_path, after)
        if after == 0 and kills < 5:
            time.sleep(chance.uniform(0.5, 1.0))
            process.send_signal(signal.SIGKILL)
        printed, _ = process.communicate(timeout=120)
        if process.returncode == 0:
            break
        assert process.returncode == -signal.SIGKILL
        kills += 1
        assert kills < 40
    found = json.loads(printed)
    for name in ("history", "epochs", "digest", "best"):
        assert found[name] == expected[name], name
    assert kills >= 1
    rows = found["table"].splitlines()[1:]
    assert [int(row.split(",")[0]) for row in rows] == expected["epochs"]


@pytest.mark.slow
@pytest.mark.parametrize("after", range(1, 16))
def test_interrupted_after_each_step(tmp_path: Path, after: int) -> None:
    whole = dropped()
    expected = fit(whole)
    first = dropped()
    with pytest.raises(StepError):
        fit(first, interrupt(after), backup(tmp_path))
    second = dropped()
    found = fit(second, backup(tmp_path))
    same(whole, second)
    assert found.history == expected.history
    assert found.epoch == [0, 1, 2]


def test_resume_keeps_several_states_and_goes_on_with_more_epochs(tmp_path: Path) -> None:
    whole, parts = dropped(), dropped()
    expected = fit(whole, epochs=6)
    fit(parts, epochs=2, resume=tmp_path)
    again = dropped()
    found = fit(again, epochs=6, resume=tmp_path)
    same(whole, again)
    assert found.history == expected.history
    files = sorted(tmp_path.glob("*.index"))
    assert 1 <= len(files) <= 3
    assert files[-1].name == "state-0000000030.index"
    ended = dropped()
    assert fit(ended, epochs=6, resume=tmp_path).history == expected.history
    same(whole, ended)


def test_a_training_that_was_stopped_stays_stopped(tmp_path: Path) -> None:
    def stopping() -> Any:
        return callbacks.EarlyStopping("loss", min_delta=10, restore_best_weights=True)

    first = dropped()
    fit(first, stopping(), epochs=9, resume=tmp_path)
    second = dropped()
    history = fit(second, stopping(), epochs=9, resume=tmp_path)
    same(first, second)
    assert history.epoch == [0, 1]


def test_the_best_of_a_checkpoint_survives(tmp_path: Path) -> None:
    def saving() -> Any:
        path = tmp_path / "best.keras"
        return callbacks.ModelCheckpoint(path, monitor="loss", mode="min", save_best_only=True)

    first = saving()
    fit(dropped(), first, resume=tmp_path / "state")
    second = saving()
    with pytest.raises(StepError):
        fit(dropped(), second, interrupt(1), epochs=9, resume=tmp_path / "state")
    assert first.best is not None
    assert second.best == first.best


def test_rate_and_patience_of_a_plateau_survive(tmp_path: Path) -> None:
    def lowering() -> Any:
        return callbacks.ReduceLROnPlateau("loss", factor=0.5, patience=2, min_delta=10)

    whole, parts = dropped(), dropped()
    expected = fit(whole, lowering(), epochs=6)
    with pytest.raises(StepError):
        fit(parts, lowering(), interrupt(17), backup(tmp_path, "epoch"), epochs=6)
    again = dropped()
    found = fit(again, lowering(), backup(tmp_path, "epoch"), epochs=6)
    assert found.history == expected.history
    assert len(set(found.history["learning_rate"])) > 1


def test_a_schedule_by_epoch_is_not_applied_twice(tmp_path: Path) -> None:
    def falling() -> Any:
        return callbacks.LearningRateScheduler(lambda epoch, rate: rate * 0.5)

    whole, parts, again = dropped(), dropped(), dropped()
    expected = fit(whole, falling())
    with pytest.raises(StepError):
        fit(parts, falling(), interrupt(8), backup(tmp_path))
    assert fit(again, falling(), backup(tmp_path)).history == expected.history
    same(whole, again)


def endless() -> Iterator[Any]:
    at = 0
    while True:
        yield X[at : at + 8], Y[at : at + 8]
        at = (at + 8) % 40


@pytest.mark.parametrize("after", [1, 3, 4, 8])
def test_a_generator_goes_on_where_it_was(tmp_path: Path, after: int) -> None:
    options: dict[str, Any] = {"y": None, "batch_size": None, "steps_per_epoch": 3}
    whole, again = dropped(), dropped()
    expected = fit(whole, x=endless(), **options)
    with pytest.raises(StepError):
        fit(dropped(), interrupt(after), backup(tmp_path, 1), x=endless(), **options)
    found = fit(again, backup(tmp_path, 1), x=endless(), **options)
    assert found.history == expected.history
    same(whole, again)


@pytest.mark.filterwarnings("ignore:fit. the data ended after 1 batches")
@pytest.mark.parametrize("after", [2, 4, 5, 8])
def test_epochs_of_fixed_length_over_arrays(tmp_path: Path, after: int) -> None:
    whole, again = dropped(), dropped()
    expected = fit(whole, steps_per_epoch=4)
    with pytest.raises(StepError):
        fit(dropped(), interrupt(after), backup(tmp_path, 1), steps_per_epoch=4)
    assert fit(again, backup(tmp_path, 1), steps_per_epoch=4).history == expected.history
    same(whole, again)


def test_own_steps_with_two_optimizers(tmp_path: Path) -> None:
    class Own(laminar.Model):
        def __init__(self) -> None:
            super().__init__()
            self.one, self.two = layers.Dense(4), layers.Dense(1)
            self.second = optimizers.Adam(0.02)

        def call(self, x: Any) -> Any:
            return self.two(self.one(x))

        def train_step(self, data: Any) -> dict[str, Any]:
            x, y = data
            with laminar.GradientTape(persistent=True) as tape:
                loss = laminar.ops.mean((self(x) - y) ** 2)
            for layer, optimizer in ((self.one, self.optimizer), (self.two, self.second)):
                weights = layer.trainable_weights
                optimizer.apply(tape.gradient(loss, weights), weights)
            return {"loss": loss}

    def make() -> Own:
        laminar.set_random_seed(1)
        model = Own()
        model.compile(optimizers.SGD(0.05, momentum=0.9))
        return model

    whole, parts, again = make(), make(), make()
    expected = fit(whole)
    with pytest.raises(StepError):
        fit(parts, interrupt(8), backup(tmp_path))
    assert fit(again, backup(tmp_path)).history == expected.history
    same(whole, again)
    for left, right in zip(whole.second.variables, again.second.variables, strict=True):
        np.testing.assert_array_equal(left, right)


def test_the_files_go_at_the_end(tmp_path: Path) -> None:
    fit(dropped(), backup(tmp_path / "state", deletes=True))
    assert not (tmp_path / "state").exists()


# What is wrong with the folder


def test_damaged_files_are_passed_over(tmp_path: Path) -> None:
    fit(dropped(), resume=tmp_path, epochs=1)
    (index,) = tmp_path.glob("*.index")
    (data,) = tmp_path.glob("*.data-*")
    (tmp_path / "state-0000000099.index").write_bytes(index.read_bytes())
    bad = tmp_path / "state-0000000099.data-00000-of-00001"
    bad.write_bytes(data.read_bytes()[:700])
    (tmp_path / ".state-0000000007.index.next.0123456789abcdef.tmp").write_bytes(b"half")
    again = dropped()
    with pytest.warns(UserWarning, match=r"state-0000000099 is passed over"):
        history = fit(again, resume=tmp_path, epochs=2)
    assert history.epoch == [0, 1]
    assert not list(tmp_path.glob(".*.tmp"))


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"batch_size": 4}, "batch_size=8, this training has batch_size=4"),
        ({"shuffle": False}, "shuffle=True"),
        ({"steps_per_epoch": 2}, "steps_per_epoch=None"),
    ],
)
def test_other_data(tmp_path: Path, change: dict[str, Any], text: str) -> None:
    fit(dropped(), resume=tmp_path, epochs=1)
    with pytest.raises(FailedPreconditionError, match=text):
        fit(dropped(), resume=tmp_path, **change)


def test_another_model(tmp_path: Path) -> None:
    fit(dropped(), resume=tmp_path, epochs=1)
    other = laminar.Sequential([layers.Dense(8), layers.Dropout(0.1), layers.Dense(1)])
    other.compile("sgd", "mse", metrics=["mae"])
    with pytest.raises(FailedPreconditionError, match="variables, this training has"):
        fit(other, resume=tmp_path)
    wider = laminar.Sequential([layers.Dense(9), layers.Dropout(0.1), layers.Dense(1)])
    wider.compile("adam", "mse", metrics=["mae"])
    with pytest.raises(FailedPreconditionError, match=r"a variable float32\[3, 8\] where"):
        fit(wider, resume=tmp_path)


def rewritten(folder: Path, change: Any) -> None:
    """Change the state in the newest file of a folder."""
    files = StateFiles(folder)
    state = files.latest(lambda state: None)
    assert state is not None
    change(state)
    files.write(state["steps"] + 1, state)


@pytest.mark.parametrize(
    "change",
    [
        lambda s: s.pop("variables"),
        lambda s: s.update(variables=[1.0] * len(s["variables"])),
        lambda s: s.update(variables=3),
        lambda s: s.update(epoch="two"),
        lambda s: s.update(step=-1),
        lambda s: s.update(logs=[1]),
        lambda s: s.update(callbacks=[["History"]]),
        lambda s: s.update(callbacks=[["History", 3]]),
        lambda s: s.update(stop_training=[]),
        lambda s: s["data"].update(position=None),
        lambda s: s["data"]["position"].update(epochs=1 << 60),
        lambda s: s["data"]["position"].pop("place"),
        lambda s: s["random"].pop("numpy"),
        lambda s: s["random"].update(python=[3, [1, 2], None]),
        lambda s: s["random"].update(numpy=["MT19937", np.zeros(3), 0, 0, 0.0]),
        lambda s: s["random"].update(sequence=None),
    ],
)
def test_a_state_of_another_form_is_passed_over(tmp_path: Path, change: Any) -> None:
    fit(dropped(), resume=tmp_path, epochs=1)
    rewritten(tmp_path, change)
    before = random.getstate()
    again = dropped()
    with pytest.warns(UserWarning, match="is passed over: .*not a state of a training"):
        assert fit(again, resume=tmp_path, epochs=1).epoch == [0]
    assert random.getstate() == before


def _damage_callback(state: Any) -> None:
    state["callbacks"] = [["EarlyStopping", {"wait": []}]]


def test_variables_change_after_all_is_checked(tmp_path: Path) -> None:
    stop = callbacks.EarlyStopping("loss")
    fit(dropped(), stop, resume=tmp_path, epochs=1)
    rewritten(tmp_path, _damage_callback)
    again = dropped()
    again.build((None, 3))
    before = [v.numpy() for v in again.variables]
    with pytest.raises(DataLossError, match="the state of EarlyStopping is damaged"):
        fit(again, stop, resume=tmp_path)
    for variable, value in zip(again.variables, before, strict=True):
        np.testing.assert_array_equal(variable.numpy(), value)


def test_wrong_arguments(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidArgumentError, match="is a file, expected a folder"):
        fit(dropped(), resume=tmp_path / "file")
    with pytest.raises(InvalidArgumentError, match="resume must be the name of a folder, got 3"):
        fit(dropped(), resume=3)
    with pytest.raises(InvalidArgumentError, match="resume= or one BackupAndRestore"):
        fit(dropped(), backup(tmp_path), resume=tmp_path)
    with pytest.raises(InvalidArgumentError, match="save_freq must be 'epoch' or a number"):
        callbacks.BackupAndRestore(tmp_path, save_freq="batch")
    with pytest.raises(InvalidArgumentError, match="backup_dir is empty"):
        callbacks.BackupAndRestore("")


def test_a_state_that_cannot_be_kept(tmp_path: Path) -> None:
    class Odd(callbacks.Callback):
        def get_state(self) -> dict[str, Any]:
            return {"thing": object()}

    with pytest.raises(InvalidArgumentError, match="a state holds <object object"):
        fit(dropped(), Odd(), resume=tmp_path)


def test_a_new_callback_begins_anew(tmp_path: Path) -> None:
    fit(dropped(), resume=tmp_path, epochs=1)
    stopping = callbacks.EarlyStopping("loss", patience=9)
    with pytest.warns(UserWarning, match="no state of EarlyStopping"):
        fit(dropped(), stopping, resume=tmp_path, epochs=2)
    assert stopping.best is not None


def test_nothing_is_left_open(tmp_path: Path) -> None:
    before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    for _ in range(3):
        fit(dropped(), resume=tmp_path, epochs=1)
    after = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    assert after <= before + 2
