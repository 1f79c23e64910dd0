"""Write reference.json: what Keras gives for the calls of cases.py.

Run it from the repository's root where Keras 3 is installed:

    KERAS_BACKEND=jax python -m tests.laminar.ops.make_reference
"""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

import keras
import numpy as np

from laminar.tree import flatten

from .cases import CASES

FILE = Path(__file__).with_name("reference.json")


def described(value: Any) -> dict[str, Any]:
    """A result as plain data, floats to 7 digits."""
    if isinstance(value, int | str | bool):
        return {"dtype": "python", "values": value}
    array = np.asarray(value)
    dtype = str(array.dtype)
    if array.dtype.kind == "c":
        array = np.stack([array.real, array.imag], -1)
    flat = array.ravel().tolist()
    if array.dtype.kind == "f":
        flat = [float(f"{x:.7g}") for x in flat]
    return {"dtype": dtype, "shape": list(np.shape(value)), "values": flat}


def main() -> None:
    """Call Keras, and write the file."""
    found: dict[str, Any] = {}
    for case in CASES:
        fn = functools.reduce(getattr, case.name.split("."), keras.ops)
        result = fn(*case.args, **case.kwargs)
        assert case.id not in found, f"{case.id} stands there twice"
        found[case.id] = [described(y) for y in flatten(result)]
    lines = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in found.items()]
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
