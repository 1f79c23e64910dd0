"""Write recurrent_reference.json: what Keras on JAX computes for `recurrent_cases.py`.

KERAS_BACKEND=jax python -m tests.layers.make_recurrent_reference
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jax
import keras
import numpy as np

from .recurrent_cases import CASES, Case, described, factors_for, names_removed, weights_for

REFERENCE = Path(__file__).with_name("recurrent_reference.json")


def listed(array: Any) -> Any:
    """An array as nested lists of rounded numbers."""
    return [float(f"{v:.6g}") for v in np.asarray(array).reshape(-1)]


def reference(case: Case) -> dict[str, Any]:
    layer = case.make(keras.layers)
    layer(case.x, **case.last_call())
    layer.set_weights(weights_for([tuple(w.shape) for w in layer.weights]))
    outputs = {name: jax.tree.leaves(layer(case.x, **call)) for name, call in case.calls().items()}
    factors = factors_for(list(outputs.values())[-1])

    def loss(values: Any, x: Any) -> Any:
        states = [v.value for v in layer.non_trainable_variables]
        found, _ = layer.stateless_call(values, states, x, **case.last_call())
        return sum((y * f).sum() for y, f in zip(jax.tree.leaves(found), factors, strict=True))

    values = [v.value for v in layer.trainable_variables]
    gradients = jax.grad(loss, argnums=(0, 1))(values, case.x)
    return {
        "weights": described(layer),
        "config": names_removed(keras.saving.serialize_keras_object(layer)),
        "outputs": {name: [listed(y) for y in ys] for name, ys in outputs.items()},
        "gradients": [listed(g) for g in jax.tree.leaves(gradients)],
    }


if __name__ == "__main__":
    found = {case.name: reference(case) for case in CASES}
    assert len(found) == len(CASES)
    lines = [
        f"{json.dumps(name)}:{json.dumps(value, separators=(',', ':'))}"
        for name, value in found.items()
    ]
    REFERENCE.write_text("{\n" + ",\n".join(lines) + "\n}\n")
