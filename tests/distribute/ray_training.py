"""A training as each process of Ray Train runs it."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import numpy as np

import laminar
from laminar import layers


def training(config: dict[str, Any]) -> dict[str, float]:
    """What each process runs; who leads kills the victim once, in the second epoch."""
    folder = Path(config["folder"])
    victim = None if config["victim"] is None else folder / f"pid-{config['victim']}"
    task = json.loads(os.environ["TF_CONFIG"])["task"]
    (folder / f"pid-{task['type']}{task['index']}").write_text(str(os.getpid()))
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(64, 8)).astype("float32"), rng.integers(0, 3, 64)
    strategy = laminar.distribute.ParameterServer(synchronous=True)
    laminar.set_random_seed(0)
    model = laminar.Sequential(
        [layers.Input((8,)), layers.Dense(8), layers.Dropout(0.2), layers.Dense(3)]
    )
    loss = laminar.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("adam", loss, strategy=strategy)

    class Kill(laminar.callbacks.Callback):
        def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
            mark = folder / "killed"
            if epoch == 2 and victim is not None and not mark.exists():
                mark.write_text("")
                os.kill(int(victim.read_text()), signal.SIGKILL)

    resume = str(folder / "state")
    history = model.fit(x, y, batch_size=16, epochs=4, verbose=0, resume=resume, callbacks=[Kill()])
    np.savez(folder / "weights.npz", *model.get_weights())
    return {"loss": history.history["loss"][-1]}
