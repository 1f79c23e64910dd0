"""Common mistakes with callbacks, with what fit has besides and with files, and what each says."""

from __future__ import annotations

from pathlib import Path

import laminar
from laminar import callbacks, layers, ops

from .mistakes import Mistake, X, Y, make, regressor
from .mistakes_in_training import fit


def resumed_with_other_batches(folder: Path) -> None:
    regressor().fit(X, Y, resume=folder, verbose=0)
    regressor().fit(X, Y, resume=folder, batch_size=2, verbose=0)


def logs_of_zero() -> None:
    x = layers.Input((4,), name="x")
    model = laminar.Model(x, layers.Dense(1, name="head")(ops.log(x)), name="net")
    model.compile("sgd", "mse")
    model.fit(X * 0, Y, check="nan", verbose=0)


def a_file(folder: Path) -> Path:
    """A file where a folder is needed."""
    (folder / "file").touch()
    return folder / "file"


MISTAKES_WITH_CALLBACKS: list[Mistake] = [
    (
        "half-an-epoch",
        fit(epochs=1.5),
        ValueError,
        "fit: epochs must be a whole number of at least 1, got 1.5",
    ),
    (
        "early-stopping-mode",
        make(lambda: laminar.callbacks.EarlyStopping(mode="lower")),
        ValueError,
        "EarlyStopping: mode must be 'auto', 'min' or 'max', got 'lower'",
    ),
    (
        "patience",
        make(lambda: laminar.callbacks.EarlyStopping(patience=-1)),
        ValueError,
        "EarlyStopping: patience must be a whole number of at least 0, got -1",
    ),
    (
        "checkpoint-ending",
        make(lambda: laminar.callbacks.ModelCheckpoint("model.h5")),
        ValueError,
        "the file must end in .keras, got 'model.h5'",
    ),
    (
        "checkpoint-name",
        lambda f: regressor().fit(
            X, Y, verbose=0, callbacks=laminar.callbacks.ModelCheckpoint(f / "{val_los}.keras")
        ),
        KeyError,
        "names 'val_los', which is not among the values epoch, loss",
    ),
    (
        "plateau-factor",
        make(lambda: laminar.callbacks.ReduceLROnPlateau(factor=1.5)),
        ValueError,
        "ReduceLROnPlateau: factor must be at least 0 and less than 1, got 1.5",
    ),
    (
        "schedule-without-return",
        fit(laminar.callbacks.LearningRateScheduler(lambda epoch: None)),
        ValueError,
        "the schedule gave None for epoch 0, expected a number",
    ),
    (
        "callback-method",
        make(lambda: laminar.callbacks.LambdaCallback(on_epoch_ends=print)),
        ValueError,
        "LambdaCallback: a callback has no method 'on_epoch_ends'",
    ),
    (
        "function-as-callback",
        fit(print),
        ValueError,
        "callbacks: expected Callback objects, got <built-in function print>",
    ),
    (
        "averages-not-kept",
        fit(laminar.callbacks.SwapEMAWeights()),
        RuntimeError,
        "SwapEMAWeights: the optimizer keeps no averages of the weights",
    ),
    (
        "backup-frequency",
        make(lambda: laminar.callbacks.BackupAndRestore("b", save_freq=0)),
        ValueError,
        "BackupAndRestore: save_freq must be a whole number of at least 1, got 0",
    ),
    (
        "tensorboard-frequency",
        make(lambda: laminar.callbacks.TensorBoard(update_freq="epochs")),
        ValueError,
        "TensorBoard: update_freq must be 'epoch', 'batch' or a number of batches, got 'epochs'",
    ),
    (
        "resume-other-data",
        resumed_with_other_batches,
        RuntimeError,
        "fit: resume: the folder holds a training with batch_size=32, this training has",
    ),
    ("resume-number", fit(resume=1), ValueError, "fit: resume must be the name of a folder, got 1"),
    ("check", fit(check="inf"), ValueError, "fit: check must be None or 'nan', got 'inf'"),
    (
        "logarithm-of-zero",
        make(logs_of_zero),
        RuntimeError,
        "fit: batch 0 of epoch 1: operation 'net/Log' (Log) of layer 'net' gave",
    ),
    (
        "overfit-batches",
        fit(overfit_batches=-2),
        ValueError,
        "fit: overfit_batches must be a whole number of at least 1, got -2",
    ),
    ("plot", fit(plot=3), ValueError, "fit: plot must be True or the name of a file, got 3"),
    (
        "rate-finder-range",
        make(lambda: laminar.lr_find(regressor(), X, Y, start=1, end=0.1)),
        ValueError,
        "lr_find: expected 0 < start < end, got start=1, end=0.1",
    ),
    (
        "rate-finder-model",
        make(lambda: laminar.lr_find(X, Y)),
        ValueError,
        "lr_find: expected a model, got ndarray",
    ),
    (
        "one-cycle-text",
        make(lambda: laminar.optimizers.schedules.OneCycle("0.1", 10)),  # type: ignore[arg-type]  # the mistake
        ValueError,
        "OneCycle: max_learning_rate must be a number, got '0.1'",
    ),
    # where files go
    (
        "resume-in-a-file",
        lambda folder: fit(resume=a_file(folder) / "run")(folder),
        PermissionError,
        "fit: resume: no files can be written into",
    ),
    ("resume-null", fit(resume="a\0b"), PermissionError, "embedded null"),
    (
        "log-in-a-file",
        lambda folder: fit(callbacks.CSVLogger(a_file(folder) / "log.csv"))(folder),
        PermissionError,
        "CSVLogger: no files can be written into",
    ),
    (
        "checkpoint-in-a-file",
        lambda folder: fit(callbacks.ModelCheckpoint(a_file(folder) / "m.keras"))(folder),
        PermissionError,
        "ModelCheckpoint: no files can be written into",
    ),
    (
        "checkpoint-3",
        make(lambda: callbacks.ModelCheckpoint(3)),  # type: ignore[arg-type]  # the mistake
        ValueError,
        "ModelCheckpoint: expected the name of a file, got 3",
    ),
]
