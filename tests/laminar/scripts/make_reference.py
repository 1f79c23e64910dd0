"""Run the scripts with Keras and write what they give to reference.json, which the tests compare.

KERAS_BACKEND=jax python -m tests.laminar.scripts.make_reference
"""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import keras

from .catalogue import SHARED
from .digest import digest

PATH = Path(__file__).with_name("reference.json")


def main() -> None:
    """Write the file."""
    results = {}
    for name, script in SHARED.items():
        keras.utils.clear_session()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            results[name] = digest(script(keras))
    found = {"keras": keras.__version__, **results}
    lines = [f"{json.dumps(k)}:{json.dumps(v, separators=(',', ':'))}" for k, v in found.items()]
    PATH.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
