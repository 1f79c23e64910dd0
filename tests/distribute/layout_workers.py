"""What workers run in the tests of layouts: `layout_workers.py FOLDER ROWS COLUMNS CASE...`.

A mesh of ROWS * COLUMNS processes trains models with variables in pieces. Each writes what it has
found to FOLDER/<rank>.npz: "all", and of its share of the cases what one process makes of the same,
"one".
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import laminar
from laminar import distribution, layers
from laminar.distribute.layouts.held import _held

rng = np.random.default_rng(0)
X = rng.normal(size=(43, 20)).astype("float32")
Y = rng.integers(0, 4, 43)
WORDS = rng.integers(0, 30, (43, 6))
IMAGES = rng.normal(size=(43, 6, 6, 2)).astype("float32")

Layouts = dict[str, tuple[str | None, ...]]
Found = dict[str, Any]


def dense() -> Any:
    return laminar.Sequential(
        [
            layers.Input((20,)),
            layers.Dense(16, activation="tanh", name="columns", kernel_regularizer="l2"),
            layers.Dense(8, activation="gelu", name="rows"),
            layers.LayerNormalization(name="scale"),
            layers.Dense(4, activation="softmax", name="scores"),
        ]
    )


def attention() -> Any:
    words = layers.Input((6,), dtype="int32")
    x = layers.Embedding(30, 8, name="table")(words)
    x = layers.MultiHeadAttention(2, 4, name="attention")(x, x)
    x = layers.Dense(12, activation="relu", name="columns")(x)
    x = layers.Dense(8, name="rows")(x)
    x = layers.GlobalAveragePooling1D()(x)
    return laminar.Model(words, layers.Dense(4, activation="softmax", name="scores")(x))


def images() -> Any:
    return laminar.Sequential(
        [
            layers.Input((6, 6, 2)),
            layers.Conv2D(8, 3, activation="relu", name="filters"),
            layers.Conv2D(4, 3, name="channels"),
            layers.Flatten(),
            layers.Dense(4, activation="softmax", name="scores"),
        ]
    )


COLUMNS: Layouts = {
    "columns/kernel": (None, "model"),
    "columns/bias": ("model",),
    "rows/kernel": ("model", None),
    "scale/gamma": ("model",),
}
HEADS: Layouts = {
    "table/embeddings": (None, "model"),
    "(query|key|value)/kernel": (None, "model", None),
    "(query|key|value)/bias": ("model", None),
    "attention_output/kernel": ("model", None, None),
    **{k: v for k, v in COLUMNS.items() if "scale" not in k},
}
# Against all sense: pieces have to be put together, or cut, wherever they are used.
ACROSS: Layouts = {
    "table/embeddings": ("model", None),
    "query/kernel": (None, None, "model"),
    "columns/kernel": ("model", None),
    "rows/kernel": (None, "model"),
    "rows/bias": ("model",),
}
# Along the axis of the batches: each process keeps a part of what all of them need.
ALONG_ROWS: Layouts = {"columns/kernel": ("batch", "model"), "rows/kernel": ("model", "batch")}
FILTERS: Layouts = {
    "filters/kernel": (None, None, None, "model"),
    "filters/bias": ("model",),
    "channels/kernel": (None, None, "model", None),
}

Case = tuple[Callable[[], Any], Layouts, Any, Any]
CASES: dict[str, Case] = {
    "dense": (dense, COLUMNS, X, lambda: "adam"),
    "clipped": (dense, COLUMNS, X, lambda: laminar.optimizers.SGD(0.1, global_clipnorm=0.5)),
    "along_rows": (dense, ALONG_ROWS, X, lambda: "adam"),
    "heads": (attention, HEADS, WORDS, lambda: laminar.optimizers.SGD(0.1, momentum=0.9)),
    "across": (attention, ACROSS, WORDS, lambda: "adam"),
    "images": (images, FILTERS, IMAGES, lambda: "adam"),
}


def parallel(shape: tuple[int, int], layouts: Layouts) -> Any:
    mesh = distribution.DeviceMesh(shape, ["batch", "model"])
    found = distribution.LayoutMap(mesh)
    for path, axes in layouts.items():
        found[path] = axes
    return distribution.ModelParallel(layout_map=found, batch_dim_name="batch")


def of_case(name: str, who: str, shape: tuple[int, int], folder: Path) -> Found:
    make, layouts, x, optimizer = CASES[name]
    distribution.set_distribution(parallel(shape, layouts) if who == "all" else None)
    found: Found = {}
    try:
        laminar.set_random_seed(3)
        model = make()
        model.compile(
            optimizer(),
            "sparse_categorical_crossentropy",
            metrics=["accuracy"],
            jit_compile=name == "dense",  # native code computes the same, and takes time to make
        )
        given = {"batch_size": 12, "shuffle": False, "verbose": 0, "epochs": 2}
        path = folder / f"{name}_{who}.keras"
        keep = laminar.callbacks.ModelCheckpoint(path)
        history = model.fit(x, Y, validation_split=0.2, callbacks=[keep], **given).history
        for key, values in history.items():
            found[f"{name}/{who}/logs/{key}"] = np.array(values)
        # 25 rows, the last batch of one: fewer than the processes that share rows.
        model.fit(x[:25], Y[:25], batch_size=12, shuffle=False, verbose=0)
        variables = [*model.variables, *model.optimizer.variables]
        if who == "all":
            found[f"{name}/kept"] = [v.path for v in variables if v.store.value is None]
            kept = [(_held[v.store], v) for v in variables if v.store.value is None]
            found[f"{name}/sizes"] = np.array([[h.piece().size, v.size] for h, v in kept])
        found[f"{name}/{who}/tested"] = np.array(model.evaluate(x, Y, batch_size=10, verbose=0))
        found[f"{name}/{who}/predicted"] = model.predict(x, batch_size=10, verbose=0)
        for i, v in enumerate(variables):
            found[f"{name}/{who}/weights/{i}"] = v.numpy()
        if name == "dense":
            found |= files(name, who, model, path, folder)
    finally:
        distribution.set_distribution(None)
    return found


def files(name: str, who: str, model: Any, path: Path, folder: Path) -> Found:
    """A model of the file goes on; whole weights are written, and set."""
    again = laminar.saving.load_model(path)
    again.fit(X[:12], Y[:12], batch_size=12, shuffle=False, verbose=0)
    weights = folder / f"{name}_{who}.weights.h5"
    model.save_weights(weights)
    before = model.get_weights()
    model.set_weights([np.zeros_like(w) for w in before])
    zeros = model.predict(X[:3], verbose=0)
    model.load_weights(weights)
    state = folder / f"state_{who}"
    resumed = model.fit(X[:24], Y[:24], batch_size=12, epochs=1, resume=state, verbose=0)
    return {
        f"{name}/{who}/again": again.predict(X, verbose=0),
        f"{name}/{who}/zeros": zeros,
        f"{name}/{who}/loaded": model.predict(X, verbose=0),
        f"{name}/{who}/resumed": np.array(resumed.history["loss"]),
    }


def main() -> None:
    folder, rows, columns = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    distribution.initialize(num_processes=rows * columns)
    found: Found = {"devices": np.array(distribution.list_devices("cpu"))}
    names = sys.argv[4:]
    for name in names:
        found |= of_case(name, "all", (rows, columns), folder)
    rank = laminar.distribute.MultiWorker().rank
    for name in names[rank :: rows * columns]:
        found |= of_case(name, "one", (1, 1), folder)
    np.savez(folder / f"{rank}.npz", **found)


if __name__ == "__main__":
    main()
